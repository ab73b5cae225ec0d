//===- TestAttnDialect.cpp - Ops that only tests use ----------------------===//

#include "TestAttnDialect.h"

using namespace mlir;
using namespace mlir::attn::test;

#include "TestAttnDialect.cpp.inc"

#define GET_OP_CLASSES
#include "TestAttnOps.cpp.inc"

void TestAttnDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "TestAttnOps.cpp.inc"
      >();
}
