//===- MlaEmit.cpp - Kernels of mla whose scores have a warpgroup ---------===//

#include "../Copied/GridTiles.h"
#include "MlaEmitter.h"

using namespace mlir;
using namespace mlir::attn;

/// The tiles of a plan; runs of keys are dealt as tiles are.
static TilePlan getTilePlan(const ProblemFacts &facts, MlaPlanAttr plan) {
  TilePlan tiles = {plan.getBlockM(), plan.getBlockN(), TileOrder::RowMajor,
                    /*groupHeads=*/0};
  tiles.packedHeads = getPackedHeads(facts, plan);
  tiles.runs = countRuns(facts);
  return tiles;
}

MlaEmitter::MlaEmitter(KernelContext &context, MlaPlanAttr plan)
    : RingEmitter(context, getTilePlan(context.facts, plan)), plan(plan),
      extents(facts, plan) {}

void MlaEmitter::makeRings() {
  int64_t blockN = plan.getBlockN(), stages = plan.getStages();
  // Panels of one width, so that the first ones are the values.
  auto layout = SwizzledLayoutAttr::get(
      b.getContext(),
      SharedLayout::chooseSpan(extents.keyColumns,
                               facts.elementType.getIntOrFloatBitWidth()));
  auto inPanels = [&](ArrayRef<int64_t> shape) {
    return BufferType::get(b.getContext(), shape, facts.elementType, layout,
                           MemorySpace::Shared);
  };
  q = alloc("q", bufferType({blockM, extents.keyColumns}));
  ring.name = "k";
  ring.buffer = alloc("k", inPanels({stages, blockN, extents.keyColumns}));
  ring.slotType = inPanels({blockN, extents.keyColumns});
  auto channel = [&](StringRef name, int64_t slots, ArrayRef<Role> roles) {
    SmallVector<std::pair<Role, SignalKind>> signals;
    for (Role role : roles)
      signals.push_back({role, SignalKind::Arrive});
    return makeChannel(name, slots, signals);
  };
  ring.channel =
      channel("k", stages, {kLatentLoad, kLatentScores, kLatentResults});
  qChannel = channel("q", 1, {kLatentLoad, kLatentScores});
  pChannel = channel("p", 1, {kLatentScores, kLatentResults});
  scaleChannel = channel("scale", 1, {kLatentScores, kLatentResults});
  probabilities = alloc("p", bufferType({blockM, blockN}));
  auto rows = [&](StringRef name) {
    return alloc(name, BufferType::get(b.getContext(), {blockM}, b.getF32Type(),
                                       AutoLayoutAttr::get(b.getContext()),
                                       MemorySpace::Shared));
  };
  factors = rows("factor");
  scales = rows("scale");
}

scf::ForOp MlaEmitter::emitBlocks(
    ValueRange inits,
    function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  Value trips = b.createOrFold<arith::SubIOp>(bounds.end, bounds.begin);
  return scf::ForOp::create(
      b, context.i32(0), trips, context.i32(1), inits,
      [&](OpBuilder &builder, Location, Value index, ValueRange carried) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToStart(builder.getInsertionBlock());
        scf::YieldOp::create(b, body(index, carried));
      });
}

//===----------------------------------------------------------------------===//
// The warpgroup that loads
//===----------------------------------------------------------------------===//

SmallVector<Value> MlaEmitter::emitLoadTile(ValueRange cursors) {
  auto copy = [&](Value view, Value first, Value slot) {
    CpAsyncOp::create(b, view, first, slot, /*in_bounds=*/UnitAttr());
    CpAsyncCommitOp::create(b);
    CpAsyncWaitOp::create(b, 0);
  };
  Value queryView = emitQueryView();
  Value keyView = source->emitView("k", at);
  Value token = await(qChannel, cursors[0], kLatentLoad);
  copy(queryView, row, q);
  ChannelReleaseOp::create(b, qChannel, token, kLatentLoad);
  Value last = arith::SubIOp::create(b, bounds.end, context.i32(1));
  auto loop = emitBlocks(
      cursors[1], [&](Value index, ValueRange carried) -> SmallVector<Value> {
        Value key =
            arith::MulIOp::create(b, arith::SubIOp::create(b, last, index),
                                  context.i32(plan.getBlockN()));
        auto [slot, filled] = acquire(ring, carried[0], kLatentLoad);
        copy(keyView, key, slot);
        release(ring, filled, kLatentLoad);
        return {advance(carried[0], ring)};
      });
  return {next(cursors[0], qChannel), loop.getResult(0)};
}

LogicalResult MlaEmitter::emitLoad() {
  TileLoopOp loop = emitTileLoop(
      [&]() -> SmallVector<Value> {
        return {start(qChannel, kLatentLoad), start(ring.channel, kLatentLoad)};
      },
      [&](ValueRange cursors) -> FailureOr<SmallVector<Value>> {
        return emitLoadTile(cursors);
      });
  return success(static_cast<bool>(loop));
}

//===----------------------------------------------------------------------===//
// The warpgroup of the scores
//===----------------------------------------------------------------------===//

LogicalResult MlaEmitter::emitScoreBlock(Value scale, Value key,
                                         ValueRange carried) {
  int64_t blockN = plan.getBlockN();
  RankedTensorType type = f32Tile({blockM, blockN});
  auto [slot, token] = acquire(ring, carried[2], kLatentScores);
  Value transposed =
      TransposeOp::create(b, bufferType({extents.keyColumns, blockN}), slot);
  auto inFlight =
      InFlightType::get(b.getContext(), type.getShape(), b.getF32Type());
  Value product =
      WgmmaOp::create(b, inFlight, q, transposed, /*c=*/Value(),
                      /*columns=*/IntegerAttr(), /*depth=*/IntegerAttr());
  Value s = WgmmaWaitOp::create(b, type, product, /*pending=*/0).getResult(0);
  release(ring, token, kLatentScores);
  if (failed(emitScores(b, key, s)))
    return failure();
  auto softmax =
      OnlineSoftmaxOp::create(b, s, carried[0], carried[1],
                              /*o=*/Value(), scale, plan.getSoftmax());
  Value p = arith::TruncFOp::create(
      b, tileType({blockM, blockN}, facts.elementType), softmax.getP());
  Value free = await(pChannel, carried[3], kLatentScores);
  LocalStoreOp::create(b, p, probabilities);
  LocalStoreOp::create(b, softmax.getFactor(), factors);
  ChannelReleaseOp::create(b, pChannel, free, kLatentScores);
  YieldOp::create(b, ValueRange{softmax.getNewM(), softmax.getNewL(),
                                advance(carried[2], ring),
                                next(carried[3], pChannel)});
  return success();
}

KVLoopOp MlaEmitter::emitScoreLoop(Value scale, ValueRange cursors) {
  RunningState state = emitInitialState(
      /*bets=*/plan.getSoftmax() == SoftmaxPolicy::Optimistic);
  SmallVector<Value> inits = {state.m, state.l};
  llvm::append_range(inits, cursors);
  bool isWhole = true;
  auto body = [&](OpBuilder &builder, Location, Value key, ValueRange carried) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(builder.getInsertionBlock());
    isWhole = succeeded(emitScoreBlock(scale, key, carried));
  };
  auto loop = KVLoopOp::create(b, bounds.begin, bounds.fullBegin,
                               bounds.fullEnd, bounds.end, plan.getBlockN(),
                               /*stages=*/1, inits, body);
  return isWhole ? loop : KVLoopOp();
}

FailureOr<SmallVector<Value>> MlaEmitter::emitScoreTile(ValueRange cursors) {
  Value scale = emitExponentScale();
  Value queryToken = await(qChannel, cursors[0], kLatentScores);
  KVLoopOp loop = emitScoreLoop(scale, {cursors[1], cursors[2]});
  if (!loop)
    return failure();
  ChannelReleaseOp::create(b, qChannel, queryToken, kLatentScores);
  FinalRows rows = emitFinalRows(loop.getResult(0), loop.getResult(1));
  Value factor = emitInverse(rows.l);
  if (rows.factor)
    factor = arith::MulFOp::create(b, factor, rows.factor);
  Value free = await(scaleChannel, cursors[3], kLatentScores);
  LocalStoreOp::create(b, factor, scales);
  ChannelReleaseOp::create(b, scaleChannel, free, kLatentScores);
  if (facts.lse)
    emitLSE(rows.m, rows.l, emitResultView("lse"));
  return SmallVector<Value>{next(cursors[0], qChannel), loop.getResult(2),
                            loop.getResult(3), next(cursors[3], scaleChannel)};
}

LogicalResult MlaEmitter::emitScoreRole() {
  TileLoopOp loop = emitTileLoop(
      [&]() -> SmallVector<Value> {
        return {
            start(qChannel, kLatentScores), start(ring.channel, kLatentScores),
            start(pChannel, kLatentScores), start(scaleChannel, kLatentScores)};
      },
      [&](ValueRange cursors) { return emitScoreTile(cursors); });
  return success(static_cast<bool>(loop));
}

//===----------------------------------------------------------------------===//
// The warpgroups of the results
//===----------------------------------------------------------------------===//

Value MlaEmitter::emitRescale(Value factor, Value results) {
  Value changed =
      arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, factor,
                            splat(cast<RankedTensorType>(factor.getType()), 1));
  auto path = RareOp::create(b, results.getType(), changed, results,
                             /*each_warpgroup=*/false,
                             /*barrier=*/IntegerAttr(), /*leave_loop=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.createBlock(&path.getBody());
  YieldOp::create(
      b, ValueRange{arith::MulFOp::create(
             b, results, BroadcastOp::create(b, results.getType(), factor))});
  return path.getResult(0);
}

SmallVector<Value> MlaEmitter::emitResultBlock(ValueRange carried) {
  auto type = cast<RankedTensorType>(carried[0].getType());
  auto [slot, token] = acquire(ring, carried[1], kLatentResults);
  Value handed = await(pChannel, carried[2], kLatentResults);
  Value factor = LocalLoadOp::create(b, f32Tile({blockM}), factors);
  Value results = emitRescale(factor, carried[0]);
  auto values = BufferType::get(
      b.getContext(), {plan.getBlockN(), extents.valueColumns},
      facts.elementType, ring.slotType.getLayout(), MemorySpace::Shared);
  auto inFlight = InFlightType::get(
      b.getContext(), type.getShape(), b.getF32Type(),
      MmaLayoutAttr::get(b.getContext(), {plan.getWarpsM(), plan.getWarpsN()},
                         /*copies=*/1, /*column_runs=*/true));
  Value product =
      WgmmaOp::create(b, inFlight, probabilities,
                      ReinterpretOp::create(b, values, slot), results,
                      /*columns=*/IntegerAttr(), /*depth=*/IntegerAttr());
  results = WgmmaWaitOp::create(b, type, product, /*pending=*/0).getResult(0);
  ChannelReleaseOp::create(b, pChannel, handed, kLatentResults);
  release(ring, token, kLatentResults);
  return {results, advance(carried[1], ring), next(carried[2], pChannel)};
}

SmallVector<Value> MlaEmitter::emitResultTile(ValueRange cursors) {
  Value zero = splat(f32Tile({blockM, extents.valueColumns}), 0);
  auto loop = emitBlocks(
      {zero, cursors[0], cursors[1]},
      [&](Value, ValueRange carried) { return emitResultBlock(carried); });
  Value handed = await(scaleChannel, cursors[2], kLatentResults);
  Value factor = LocalLoadOp::create(b, f32Tile({blockM}), scales);
  ChannelReleaseOp::create(b, scaleChannel, handed, kLatentResults);
  StoreResultOp::create(b, emitQuotient(loop.getResult(0), factor),
                        emitResultView("o"), row, /*scratch=*/Value(),
                        /*map=*/Value(), /*coordinates=*/ValueRange(),
                        plan.getEpilogue());
  return {loop.getResult(1), loop.getResult(2), next(cursors[2], scaleChannel)};
}

LogicalResult MlaEmitter::emitResultRole() {
  TileLoopOp loop = emitTileLoop(
      [&]() -> SmallVector<Value> {
        return {start(ring.channel, kLatentResults),
                start(pChannel, kLatentResults),
                start(scaleChannel, kLatentResults)};
      },
      [&](ValueRange cursors) -> FailureOr<SmallVector<Value>> {
        return emitResultTile(cursors);
      });
  return success(static_cast<bool>(loop));
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

LogicalResult MlaEmitter::run() {
  makeRings();
  emitExtents();
  auto op = WarpSpecializeOp::create(
      b, b.getStrArrayAttr({kLatentResults, kLatentScores, kLatentLoad}),
      b.getDenseI64ArrayAttr({8, 4, 4}),
      b.getDenseI64ArrayAttr({plan.getWarpsM(), plan.getWarpsN(), 4, 1, 0, 0}),
      b.getDenseI64ArrayAttr({kLatentResultRegisters, kLatentScoreRegisters,
                              kLatentLoadRegisters}),
      /*partitionsCount=*/3);
  for (auto [region, emit] :
       llvm::zip(op.getPartitions(), std::array{&MlaEmitter::emitResultRole,
                                                &MlaEmitter::emitScoreRole,
                                                &MlaEmitter::emitLoad})) {
    OpBuilder::InsertionGuard guard(b);
    b.createBlock(&region);
    auto end = YieldOp::create(b, ValueRange());
    b.setInsertionPoint(end);
    if (failed((this->*emit)()))
      return failure();
  }
  return success();
}
