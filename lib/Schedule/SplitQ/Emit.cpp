//===- Emit.cpp - The kernel of split_q in tile IR ------------------------===//
//
// One CTA: find the tile, copy Q to shared memory, walk the blocks of keys with
// the online softmax, finish the rows and store them.
//
//===----------------------------------------------------------------------===//

#include "../AttentionEmitter.h"
#include "SplitQ.h"
#include "attn/Dialect/Attn/IR/KernelAttrs.h"

using namespace mlir;
using namespace mlir::attn;

/// Plans that take more registers keep nothing for the results in their loops:
/// on an H200 (sm_80's PTX, D 64 and 256, no mask and causal, 1k and 4k) 0.98
/// to 1.02 times the time, and what spilled before spills no more. With fewer
/// registers kernels at D 128 took 1.02 and 1.03 times as long under a causal
/// mask, for nothing.
static constexpr int64_t kTightRegisters = 235;

namespace {

class SplitQEmitter : AttentionEmitter {
public:
  SplitQEmitter(KernelContext &context, SplitQPlanAttr plan)
      : AttentionEmitter(context, plan.getBlockM()), plan(plan),
        extents(facts, plan) {}
  LogicalResult run();

private:
  TileCoordinates emitCoordinates();
  LogicalResult emitTile();
  Operation *getKernel() {
    Operation *parent = b.getBlock()->getParentOp();
    auto kernel = dyn_cast<gpu::GPUFuncOp>(parent);
    return kernel ? kernel : parent->getParentOfType<gpu::GPUFuncOp>();
  }

  SplitQPlanAttr plan;
  SplitQExtents extents;
};

} // namespace

TileCoordinates SplitQEmitter::emitCoordinates() {
  auto blockId = [&](gpu::Dimension dim) -> Value {
    return arith::IndexCastOp::create(b, b.getI32Type(),
                                      gpu::BlockIdOp::create(b, dim));
  };
  TileCoordinates result;
  if (plan.getOrder() == TileOrder::LongestFirst) {
    // Under a causal mask the last tile has the most keys.
    Value x = blockId(gpu::Dimension::x), y = blockId(gpu::Dimension::y);
    Value heads = context.getHeads();
    if (plan.getGroupHeads())
      x = arith::AddIOp::create(
          b, x,
          arith::MulIOp::create(b, blockId(gpu::Dimension::z),
                                context.i32(plan.getGroupHeads())));
    result.head = arith::RemUIOp::create(b, x, heads);
    result.batch = arith::DivUIOp::create(b, x, heads);
    Value tiles = arith::IndexCastOp::create(
        b, b.getI32Type(), gpu::GridDimOp::create(b, gpu::Dimension::y));
    result.tile = arith::SubIOp::create(
        b, arith::SubIOp::create(b, tiles, context.i32(1)), y);
  } else {
    result.tile = blockId(gpu::Dimension::x);
    result.head = blockId(gpu::Dimension::y);
    result.batch = blockId(gpu::Dimension::z);
  }
  result.kvHead = emitKVHead(result.head);
  return result;
}

LogicalResult SplitQEmitter::emitTile() {
  int64_t blockN = plan.getBlockN();
  int64_t stages = plan.getStages(), parts = plan.getParts();
  int64_t partN = blockN / parts;
  Value qView = emitView("q", at.head, queryStart, queries);
  Value kView = emitView("k", at.kvHead, keyStart, keys);
  Value vView = emitView("v", at.kvHead, keyStart, keys);
  Value oView, lseView;
  auto emitResultViews = [&] {
    oView = emitView("o", at.head, queryStart, queries);
    if (facts.lse)
      lseView = emitView("lse", at.head, queryStart, queries);
  };
  bool isTight = extents.getRegisters(plan).getTotal() > kTightRegisters;
  if (isTight)
    getKernel()->setAttr(kRenewEntryAttr, b.getUnitAttr());
  else
    emitResultViews();

  Value qBuffer = alloc("q", bufferType({blockM, extents.keyColumns}));
  BufferType kRing = bufferType({stages, partN, extents.keyColumns});
  BufferType vRing = bufferType({stages, partN, extents.valueColumns});
  SmallVector<Value> kBuffers, vBuffers;
  for (int64_t part = 0; part < parts; ++part) {
    std::string suffix = parts == 1 ? "" : std::to_string(part);
    kBuffers.push_back(alloc("k" + suffix, kRing));
    vBuffers.push_back(alloc("v" + suffix, vRing));
  }

  CpAsyncOp::create(b, qView, row, qBuffer, /*in_bounds=*/UnitAttr());
  CpAsyncCommitOp::create(b);
  Value q = qBuffer;
  if (plan.getQInRegs()) {
    CpAsyncWaitOp::create(b, 0);
    q = LocalLoadOp::create(
        b, tileType({blockM, extents.keyColumns}, facts.elementType), qBuffer);
  }

  bounds = emitBlockBounds(context, row, queries, keys, blockM, blockN);
  RankedTensorType scoreType = f32Tile({blockM, partN}),
                   outType = f32Tile({blockM, facts.valueDim});
  Value scale = emitExponentScale();
  SmallVector<Value> inits = emitInitialState();

  LogicalResult status = success();
  auto body = [&](OpBuilder &builder, Location loc, Value key,
                  ValueRange carried) {
    ImplicitLocOpBuilder lb(loc, builder);
    auto slot = [&](BufferType ring) {
      return BufferType::get(lb.getContext(), ring.getSlotShape(),
                             ring.getElementType(), ring.getLayout(),
                             ring.getSpace());
    };
    // Products of the next part stand before the softmax of this one.
    auto rowOf = [&](int64_t part) -> Value {
      if (part == 0)
        return key;
      Value distance = arith::ConstantIntOp::create(lb, part * partN, 32);
      return arith::AddIOp::create(lb, key, distance);
    };
    auto products = [&](int64_t part) -> Value {
      Value first = rowOf(part);
      Value k = StageOp::create(lb, slot(kRing), kView, first, kBuffers[part]);
      Value transposed =
          TransposeOp::create(lb, bufferType({extents.keyColumns, partN}), k);
      Value zero = arith::ConstantOp::create(
          lb, DenseElementsAttr::get(scoreType, lb.getF32FloatAttr(0)));
      Value s = MmaOp::create(lb, scoreType, q, transposed, zero);
      if (failed(emitScores(lb, first, s)))
        status = failure();
      return s;
    };
    SmallVector<Value, 3> state(carried);
    Value s = products(0);
    for (int64_t part = 0; part < parts; ++part) {
      Value next = part + 1 < parts ? products(part + 1) : Value();
      auto softmax = OnlineSoftmaxOp::create(
          lb, s, state[0], state[1], state[2], scale, plan.getSoftmax());
      Value p = arith::TruncFOp::create(
          lb, tileType({blockM, partN}, facts.elementType), softmax.getP());
      Value v =
          StageOp::create(lb, slot(vRing), vView, rowOf(part), vBuffers[part]);
      Value o = MmaOp::create(lb, outType, p, v, softmax.getNewO());
      state = {softmax.getNewM(), softmax.getNewL(), o};
      s = next;
    }
    YieldOp::create(lb, state);
  };
  auto loop =
      KVLoopOp::create(b, bounds.begin, bounds.fullBegin, bounds.fullEnd,
                       bounds.end, blockN, stages, inits, body);
  if (failed(status))
    return failure();
  // Without any key nothing has waited for Q, whose bytes are used again.
  if (!plan.getQInRegs())
    CpAsyncWaitOp::create(b, 0);

  RunningState state = emitFinalState(loop.getResults());
  if (isTight)
    emitResultViews();
  // All other buffers are dead by now: staging takes their bytes. Results of 32
  // bits need none: four lanes fill a sector of 32 bytes by themselves.
  Value scratch;
  if (!facts.outType.isF32() &&
      extents.oBytes <= extents.getSharedBytes(plan).getTotal() &&
      facts.o.getRowAlignment() == 16)
    scratch = alloc(
        "o", BufferType::get(b.getContext(), {blockM, facts.valueDim},
                             facts.outType, AutoLayoutAttr::get(b.getContext()),
                             MemorySpace::Shared));
  emitResults(state, oView, lseView, scratch, plan.getEpilogue());
  return success();
}

LogicalResult SplitQEmitter::run() {
  at = emitCoordinates();
  emitLengths();
  row = arith::MulIOp::create(b, at.tile, context.i32(plan.getBlockM()));
  if (!facts.varlen)
    return emitTile();
  // The grid covers the longest sequence: tiles beyond a shorter one leave.
  Value exists =
      arith::CmpIOp::create(b, arith::CmpIPredicate::slt, row, queries);
  auto branch = scf::IfOp::create(b, exists, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  return emitTile();
}

LogicalResult SplitQSchedule::emit(KernelContext &context,
                                   PlanAttrInterface plan) const {
  return SplitQEmitter(context, cast<SplitQPlanAttr>(plan)).run();
}
