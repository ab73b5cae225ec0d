//===- TestAttnDialect.cpp - Ops that only tests use ----------------------===//

#include "TestAttnDialect.h"

using namespace mlir;
using namespace mlir::attn;
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

ChannelUse AsyncFillOp::getChannelUse() {
  return getToken() ? ChannelUse::Fill : ChannelUse::None;
}

OpOperand *AsyncFillOp::getUsedHandle() {
  return getToken() ? &*getTokenMutable().begin() : nullptr;
}

int64_t AsyncFillOp::getFilledBytes() {
  BufferType type = getDest().getType();
  return ShapedType::getNumElements(type.getShape()) *
         type.getElementType().getIntOrFloatBitWidth() / 8;
}

void AsyncFillOp::setFillBarrier(Value barriers, Value index, IntegerAttr) {
  getBarriersMutable().assign(barriers);
  getIndexMutable().assign(index);
  getTokenMutable().clear();
}

ChannelUse BulkFillOp::getChannelUse() { return ChannelUse::Fill; }

OpOperand *BulkFillOp::getUsedHandle() { return &getTokenMutable(); }

int64_t BulkFillOp::getFilledBytes() {
  return cast<BulkCopyOpInterface>(getOperation()).getCopiedBytes();
}
