//===- AttnOps.cpp - Generated definitions of all ops ---------------------===//

#include "ProblemChecks.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace mlir::attn;

#define GET_OP_CLASSES
#include "attn/Dialect/Attn/IR/AttnOps.cpp.inc"
