//===- ClusterTile.cpp - Tiles of the CTAs of a cluster -------------------===//

#include "ClusterTile.h"

using namespace mlir;
using namespace mlir::attn;

ClusterTile attn::emitClusterTile(KernelContext &context,
                                  const BoundedTiles &tiles, Value firstRow,
                                  Value place, int64_t ctas, int64_t blockM,
                                  int64_t blockN) {
  int64_t group = tiles.group;
  ImplicitLocOpBuilder &b = context.b;
  const ProblemFacts &facts = context.facts;
  ClusterTile result;
  result.firstRow = firstRow;
  result.row = result.firstRow;
  if (ctas == 1) {
    result.bounds = emitBlockBounds(context, tiles, result.row, blockM, blockN);
    result.begin = result.bounds.begin;
    result.end = result.bounds.end;
    return result;
  }

  Value offset = b.createOrFold<arith::MulIOp>(place, context.i32(blockM));
  result.row = b.createOrFold<arith::AddIOp>(result.firstRow, offset);
  BlockBounds all =
      emitBlockBounds(context, tiles, result.firstRow, blockM * ctas, blockN);
  result.begin = all.begin;
  result.end = all.end;
  // Heads of one query need the same keys.
  if (group % (blockM * ctas) == 0) {
    result.bounds = all;
    return result;
  }
  BlockBounds &own = result.bounds;
  own = emitBlockBounds(context, tiles, result.row, blockM, blockN);
  // Only the last tiles of a head may lack one.
  bool mayLack = facts.varlen || ShapedType::isDynamic(facts.queries) ||
                 llvm::divideCeil(facts.queries * group, blockM) % ctas != 0;
  if (mayLack) {
    Value rows = tiles.queries;
    if (group != 1)
      rows = arith::MulIOp::create(b, rows, context.i32(group));
    Value exists =
        arith::CmpIOp::create(b, arith::CmpIPredicate::slt, result.row, rows);
    for (Value *bound : {&own.begin, &own.fullBegin, &own.fullEnd, &own.end})
      *bound = arith::SelectOp::create(b, exists, *bound, all.end);
  }
  bool hasRange = facts.hasKeyRange();
  // Where a mask leaves a tile no key, its empty range may be anywhere.
  if (hasRange)
    for (Value *bound : {&own.begin, &own.fullBegin, &own.fullEnd, &own.end})
      *bound = arith::MinSIOp::create(
          b, arith::MaxSIOp::create(b, *bound, all.begin), all.end);
  if (own.upper || hasRange)
    result.skippedBehind = arith::SubIOp::create(b, all.end, own.end);
  if (own.lower || hasRange || mayLack)
    result.skippedInFront = arith::SubIOp::create(b, own.begin, all.begin);
  return result;
}
