//===- ClusterTile.cpp - Tiles of the CTAs of a cluster -------------------===//

#include "ClusterTile.h"

using namespace mlir;
using namespace mlir::attn;

ClusterTile attn::emitClusterTile(KernelContext &context, Value firstRow,
                                  Value place, int64_t ctas, Value queries,
                                  Value keys, int64_t blockM, int64_t blockN,
                                  int64_t group) {
  ImplicitLocOpBuilder &b = context.b;
  const ProblemFacts &facts = context.facts;
  ClusterTile result;
  result.firstRow = firstRow;
  result.row = result.firstRow;
  if (ctas == 1) {
    result.bounds = emitBlockBounds(context, result.row, queries, keys, blockM,
                                    blockN, group);
    result.begin = result.bounds.begin;
    result.end = result.bounds.end;
    return result;
  }

  Value offset = b.createOrFold<arith::MulIOp>(place, context.i32(blockM));
  result.row = b.createOrFold<arith::AddIOp>(result.firstRow, offset);
  BlockBounds all = emitBlockBounds(context, result.firstRow, queries, keys,
                                    blockM * ctas, blockN, group);
  result.begin = all.begin;
  result.end = all.end;
  // Heads of one query need the same keys.
  if (group % (blockM * ctas) == 0) {
    result.bounds = all;
    return result;
  }
  BlockBounds &own = result.bounds;
  own = emitBlockBounds(context, result.row, queries, keys, blockM, blockN,
                        group);
  // Only the last tiles of a head may lack one.
  bool mayLack = facts.varlen || ShapedType::isDynamic(facts.queries) ||
                 llvm::divideCeil(facts.queries * group, blockM) % ctas != 0;
  if (mayLack) {
    Value rows = queries;
    if (group != 1)
      rows = arith::MulIOp::create(b, queries, context.i32(group));
    Value exists =
        arith::CmpIOp::create(b, arith::CmpIPredicate::slt, result.row, rows);
    for (Value *bound : {&own.begin, &own.fullBegin, &own.fullEnd, &own.end})
      *bound = arith::SelectOp::create(b, exists, *bound, all.end);
  }
  if (own.upper)
    result.skippedBehind = arith::SubIOp::create(b, all.end, own.end);
  if (own.lower || mayLack)
    result.skippedInFront = arith::SubIOp::create(b, own.begin, all.begin);
  return result;
}
