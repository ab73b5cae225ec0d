//===- PersistentTiles.cpp - CTAs that walk tiles -------------------------===//

#include "PersistentTiles.h"

using namespace mlir;
using namespace mlir::attn;

void PersistentTiles::emitExtents() {
  Value length =
      facts.varlen ? context.i32(facts.queries) : context.getQueries();
  if (group != 1)
    length = arith::MulIOp::create(b, length, context.i32(group));
  tilesPerHead =
      arith::CeilDivUIOp::create(b, length, context.i32(rowsTogether));
  allHeads = b.createOrFold<arith::MulIOp>(
      emitTileHeads(), context.i32(facts.batch * tilePlan.runs));
  allTiles = arith::MulIOp::create(b, allHeads, tilesPerHead);
  if (tilePlan.cluster > 1)
    rank = arith::IndexCastOp::create(
        b, b.getI32Type(), gpu::ClusterBlockIdOp::create(b, gpu::Dimension::x));
}

Value PersistentTiles::emitPlace(Value index) {
  if (!rank || !isLongestFirst() || tilePlan.tilesPerCTA > 1)
    return rank;
  // Turns alternate between even and odd tiles: whoever has the longest tile of
  // one turn has the shortest of the next.
  Value isOdd = arith::TruncIOp::create(b, b.getI1Type(), index);
  Value last = context.i32(tilePlan.cluster - 1);
  return arith::SelectOp::create(b, isOdd, arith::SubIOp::create(b, last, rank),
                                 rank);
}

void PersistentTiles::emitTile(Value index) {
  auto divide = [&](Value x, Value y) -> std::pair<Value, Value> {
    Value quotient = arith::DivUIOp::create(b, x, y);
    Value product = arith::MulIOp::create(b, quotient, y);
    return {quotient, arith::SubIOp::create(b, x, product)};
  };
  auto sub = [&](Value x, Value y) -> Value {
    return arith::SubIOp::create(b, x, y);
  };
  auto isLess = [&](Value x, Value y) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, x, y);
  };
  Value place = emitPlace(index), head;
  if (isLongestFirst()) {
    Value one = context.i32(1);
    Value first = context.i32(0), heads = allHeads, inGroup = index, ascends;
    if (tilePlan.groupHeads != 0) {
      Value size = context.i32(tilePlan.groupHeads);
      Value group;
      std::tie(group, inGroup) =
          divide(index, arith::MulIOp::create(b, size, tilesPerHead));
      first = arith::MulIOp::create(b, group, size);
      heads = arith::MinSIOp::create(b, size, sub(allHeads, first));
      // The end of a group meets tiles of its own length, and the last group
      // descends. A counter deals evenly whatever comes next.
      if (!tilePlan.dynamic) {
        Value groups = arith::CeilDivUIOp::create(b, allHeads, size);
        Value behind = sub(groups, group);
        ascends = isLess(arith::AndIOp::create(b, behind, one), one);
      }
    }
    auto [turn, offset] = divide(inGroup, heads);
    // Under a causal mask the last tile of a head has the most keys.
    at.tile = sub(sub(tilesPerHead, one), turn);
    if (ascends)
      at.tile = arith::SelectOp::create(b, ascends, turn, at.tile);
    head = b.createOrFold<arith::AddIOp>(first, offset);
  } else {
    std::tie(head, at.tile) = divide(index, tilesPerHead);
  }
  if (tilePlan.runs > 1)
    std::tie(head, at.split) = divide(head, context.i32(tilePlan.runs));
  std::tie(at.batch, at.head) = divide(head, emitTileHeads());
  if (group == 1) {
    at.kvHead = emitKVHead(context, at.head);
  } else {
    at.kvHead = at.head;
    at.head = arith::MulIOp::create(b, at.head, context.i32(members));
  }
  emitLengths();
  walk = emitClusterTile(context, at.tile, place, tilePlan.getTogether(),
                         queries, keys, blockM, tilePlan.blockN, group);
  row = walk.row;
  bounds = walk.bounds;
  emitRun(tilePlan.blockN);
}

FailureOr<SmallVector<Value>> PersistentTiles::emitIfThere(
    ValueRange carried,
    function_ref<FailureOr<SmallVector<Value>>(ValueRange)> body) {
  if (!facts.varlen)
    return body(carried);
  // The tiles of the longest sequence are dealt for all.
  Value exists = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                       walk.firstRow, getRows());
  auto branch = scf::IfOp::create(b, carried.getTypes(), exists,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, carried);
  b.setInsertionPointToStart(branch.thenBlock());
  FailureOr<SmallVector<Value>> next = body(carried);
  if (failed(next))
    return failure();
  scf::YieldOp::create(b, *next);
  return SmallVector<Value>(branch.getResults());
}

TileScheduler PersistentTiles::getScheduler() const {
  if (tilePlan.dynamic)
    return TileScheduler::Dynamic;
  // In turns of alternating direction the CTA with the longest tile of one turn
  // gets the shortest of the next.
  return isLongestFirst() ? TileScheduler::Snake : TileScheduler::Strided;
}

void PersistentTiles::forTiles(Control &control, function_ref<void()> body,
                               function_ref<void(TileLoopOp)> complete) {
  control.loop(
      allTiles.getType(),
      [&](Value tile) {
        emitTile(tile);
        if (!facts.varlen)
          return body();
        // The tiles of the longest sequence are dealt for all.
        control.ifThen(arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                             walk.firstRow, getRows()),
                       body);
      },
      [&](ValueRange inits, Control::Fill fill) {
        auto loop =
            TileLoopOp::create(b, allTiles, getScheduler(), inits, fill);
        if (complete)
          complete(loop);
        return loop;
      });
}

TileLoopOp PersistentTiles::emitTileLoop(
    function_ref<SmallVector<Value>()> init,
    function_ref<FailureOr<SmallVector<Value>>(ValueRange)> body) {
  SmallVector<Value> inits = init();
  bool isWhole = true;
  auto emitBody = [&](OpBuilder &builder, Location, Value tile,
                      ValueRange carried) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(builder.getInsertionBlock());
    emitTile(tile);
    FailureOr<SmallVector<Value>> next = emitIfThere(carried, body);
    isWhole = succeeded(next);
    if (isWhole)
      YieldOp::create(b, *next);
  };
  auto loop = TileLoopOp::create(b, allTiles, getScheduler(), inits, emitBody);
  return isWhole ? loop : TileLoopOp();
}
