//===- EmitBlockBounds.cpp - A kernel finds the keys of a tile ------------===//

#include "attn/Schedule/Kernel/EmitBlockBounds.h"

using namespace mlir;
using namespace mlir::attn;

BlockBounds attn::emitBlockBounds(KernelContext &context, Value row,
                                  Value queries, Value keys, int64_t blockM,
                                  int64_t blockN, int64_t group) {
  MaskAttr mask = context.facts.mask;
  auto blocks = KeyBlocksOp::create(context.b, row, queries, keys, mask, blockM,
                                    blockN, group);
  BlockBounds bounds;
  bounds.lower = blocks.getLower();
  bounds.upper = blocks.getUpper();
  bounds.fullEnd = blocks.getFullEnd();
  bounds.end = blocks.getEnd();
  // Emitters make simpler code of a constant.
  bounds.begin = bounds.fullBegin = context.i32(0);
  if (mask.hasLeft()) {
    bounds.begin = blocks.getBegin();
    bounds.fullBegin = blocks.getFullBegin();
  }
  return bounds;
}

void attn::emitShare(KernelContext &context, BlockBounds &bounds, Value index,
                     int64_t count) {
  ImplicitLocOpBuilder &b = context.b;
  auto min = [&](Value x, Value y) -> Value {
    return arith::MinSIOp::create(b, x, y);
  };
  auto add = [&](Value x, Value y) -> Value {
    return arith::AddIOp::create(b, x, y);
  };
  Value shares = context.i32(count);
  Value blocks = arith::SubIOp::create(b, bounds.end, bounds.begin);
  Value each = arith::DivUIOp::create(b, blocks, shares);
  Value rest = arith::RemUIOp::create(b, blocks, shares);
  bounds.begin = add(bounds.begin, add(arith::MulIOp::create(b, index, each),
                                       min(index, rest)));
  Value isLonger =
      arith::CmpIOp::create(b, arith::CmpIPredicate::slt, index, rest);
  bounds.end = add(add(bounds.begin, each),
                   arith::ExtUIOp::create(b, b.getI32Type(), isLonger));
  auto clamp = [&](Value x) -> Value {
    return min(arith::MaxSIOp::create(b, x, bounds.begin), bounds.end);
  };
  bounds.fullBegin = clamp(bounds.fullBegin);
  bounds.fullEnd = clamp(bounds.fullEnd);
}
