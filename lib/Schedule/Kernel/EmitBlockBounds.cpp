//===- EmitBlockBounds.cpp - A kernel finds the keys of a tile ------------===//

#include "attn/Schedule/Kernel/EmitBlockBounds.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::attn;

/// Emits what key_range says of the tile of `blockM` rows from `row` on; empty
/// without that region.
static SmallVector<Value> emitKeyRange(KernelContext &context,
                                       const BoundedTiles &tiles, Value row,
                                       int64_t blockM) {
  AttentionOp op = context.facts.op;
  if (tiles.range.begin)
    return {tiles.range.begin, tiles.range.end, tiles.range.fullBegin,
            tiles.range.fullEnd};
  if (!op.hasKeyRange())
    return {};
  ImplicitLocOpBuilder &b = context.b;
  auto add = [&](Value x, Value y) -> Value {
    return b.createOrFold<arith::AddIOp>(x, y);
  };
  auto min = [&](Value x, Value y) -> Value {
    return b.createOrFold<arith::MinSIOp>(x, y);
  };
  // Tiles beyond the last query count as its own, and a problem without queries
  // as one with a first query.
  Value rows = tiles.queries;
  if (tiles.group != 1)
    rows = b.createOrFold<arith::MulIOp>(rows, context.i32(tiles.group));
  Value last = min(add(row, context.i32(blockM)), rows);
  last = b.createOrFold<arith::MaxSIOp>(add(last, context.i32(-1)),
                                        context.i32(0));
  Value first = min(row, last);
  Value lastHead = tiles.at.head;
  if (tiles.group != 1) {
    Value group = context.i32(tiles.group);
    first = b.createOrFold<arith::DivUIOp>(first, group);
    last = b.createOrFold<arith::DivUIOp>(last, group);
    lastHead = add(lastHead, context.i32(tiles.members - 1));
  }
  return context.inlineResults(
      b, *op.getKeyRange(),
      {tiles.at.batch, tiles.at.head, lastHead, first, last});
}

/// Returns true if number `index` of a range is there and may be above 0.
static bool startsAbove(ValueRange range, size_t index) {
  APInt known;
  return index < range.size() &&
         !(matchPattern(range[index], m_ConstantInt(&known)) &&
           !known.isStrictlyPositive());
}

/// Emits the kernel's blocks of a list: as many in each that it names, of which
/// those of the full ones come first.
static BlockBounds emitListedBlocks(KernelContext &context,
                                    const ListedBlocks &listed,
                                    int64_t blockN) {
  ImplicitLocOpBuilder &b = context.b;
  Value each = context.i32(context.facts.blockKeys / blockN);
  BlockBounds bounds;
  bounds.begin = bounds.fullBegin = context.i32(0);
  bounds.fullEnd = b.createOrFold<arith::MulIOp>(listed.full, each);
  bounds.end = b.createOrFold<arith::MulIOp>(listed.all, each);
  return bounds;
}

BlockBounds attn::emitBlockBounds(KernelContext &context,
                                  const BoundedTiles &tiles, Value row,
                                  int64_t blockM, int64_t blockN) {
  MaskAttr mask = context.facts.mask;
  if (tiles.listed.all)
    return emitListedBlocks(context, tiles.listed, blockN);
  SmallVector<Value> range = emitKeyRange(context, tiles, row, blockM);
  auto blocks = KeyBlocksOp::create(context.b, row, tiles.queries, tiles.keys,
                                    range, mask, blockM, blockN, tiles.group);
  BlockBounds bounds;
  if (range.size() == 4)
    bounds.range = {range[0], range[1], range[2], range[3]};
  bounds.lower = blocks.getLower();
  bounds.upper = blocks.getUpper();
  bounds.fullEnd = blocks.getFullEnd();
  bounds.end = blocks.getEnd();
  if (tiles.whole)
    bounds.fullEnd = arith::MinSIOp::create(
        context.b, bounds.fullEnd,
        arith::DivUIOp::create(context.b, tiles.whole, context.i32(blockN)));
  // Emitters make simpler code of a constant.
  bounds.begin = bounds.fullBegin = context.i32(0);
  bool startsLater = mask.hasLeft() || startsAbove(range, 0);
  if (startsLater)
    bounds.begin = blocks.getBegin();
  if (startsLater || startsAbove(range, 2))
    bounds.fullBegin = blocks.getFullBegin();
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
