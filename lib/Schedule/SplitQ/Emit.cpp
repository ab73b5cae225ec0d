//===- Emit.cpp - The kernel of split_q in tile IR ------------------------===//
//
// One CTA: find the tile, copy Q to shared memory, walk the blocks of keys with
// the online softmax, finish the rows and store them. Scores stay in units in
// which one factor, the softmax's scale, turns them into exponents of two: the
// raw products where nothing but the problem's scale stands between, else
// natural units.
//
//===----------------------------------------------------------------------===//

#include "Bounds.h"
#include "SplitQ.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attn;

static constexpr double kLog2E = 1.4426950408889634;
static constexpr double kLn2 = 0.6931471805599453;

namespace {

/// Where the CTA works.
struct TileCoordinates {
  Value tile, head, kvHead, batch;
};

/// The row values and the accumulator that the loop carries.
struct RunningState {
  Value m, l, o;
};

class SplitQEmitter {
public:
  SplitQEmitter(KernelContext &context, SplitQPlanAttr plan)
      : context(context), facts(context.facts), plan(plan),
        extents(facts, plan), b(context.b) {}
  LogicalResult run();

private:
  RankedTensorType tileType(ArrayRef<int64_t> shape, Type elementType) {
    return RankedTensorType::get(shape, elementType,
                                 AutoLayoutAttr::get(b.getContext()));
  }
  RankedTensorType f32Tile(ArrayRef<int64_t> shape) {
    return tileType(shape, b.getF32Type());
  }
  BufferType bufferType(ArrayRef<int64_t> shape) {
    return BufferType::get(b.getContext(), shape, facts.elementType,
                           AutoLayoutAttr::get(b.getContext()),
                           MemorySpace::Shared);
  }
  Value splat(RankedTensorType type, double value) {
    return arith::ConstantOp::create(
        b, DenseElementsAttr::get(type, b.getF32FloatAttr(value)));
  }
  /// A scalar f32 as a tile of row values.
  Value splatRows(Value scalar) {
    return tensor::SplatOp::create(b, scalar, f32Tile({plan.getBlockM()}));
  }
  Value alloc(StringRef name, BufferType type) {
    return AllocOp::create(b, type, b.getStringAttr(name), IntegerAttr(),
                           StringAttr());
  }

  TileCoordinates emitCoordinates();
  /// Reads the lengths of the tile's sequences and where they start.
  void emitLengths();
  LogicalResult emitTile();
  /// Rows of one head of a rank-4 tensor, or of lse.
  Value emitView(StringRef name, Value head, Value start, Value rows);
  LogicalResult emitScores(OpBuilder &builder, Value key, Value &scores);
  RunningState emitSinks(RunningState state);
  void emitResults(RunningState state, Value oView, Value lseView,
                   Value scratch);
  bool needsIndices() const;

  KernelContext &context;
  const ProblemFacts &facts;
  SplitQPlanAttr plan;
  SplitQExtents extents;
  ImplicitLocOpBuilder &b;
  TileCoordinates at;
  Value row;
  Value queries, keys;
  /// First row of the sequence in packed tensors, i64; null otherwise.
  Value queryStart, keyStart;
  BlockBounds bounds;
  /// The factor of online_softmax: exponents of two per unit of score.
  double exponentScale = 1;
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
  // Query heads of a key head stand next to each other.
  if (facts.heads == facts.kvHeads && !ShapedType::isDynamic(facts.heads)) {
    result.kvHead = result.head;
  } else if (facts.kvHeads == 1) {
    result.kvHead = context.i32(0);
  } else {
    Value group = ShapedType::isDynamic(facts.heads) ||
                          ShapedType::isDynamic(facts.kvHeads)
                      ? arith::DivUIOp::create(b, context.getHeads(),
                                               context.getKVHeads())
                            .getResult()
                      : context.i32(facts.heads / facts.kvHeads);
    result.kvHead = arith::DivUIOp::create(b, result.head, group);
  }
  return result;
}

void SplitQEmitter::emitLengths() {
  if (!facts.varlen) {
    queries = context.getQueries();
    keys = context.getKeys();
    return;
  }
  Value index = context.widen(at.batch);
  Value next = arith::AddIOp::create(b, index, context.i64(1));
  auto length = [&](StringRef name, Value &start) -> Value {
    Value first = context.loadElement(name, index);
    Value last = context.loadElement(name, next);
    start = context.widen(first);
    return arith::SubIOp::create(b, last, first);
  };
  queries = length("cu_seqlens_q", queryStart);
  keys = length("cu_seqlens_k", keyStart);
}

Value SplitQEmitter::emitView(StringRef name, Value head, Value start,
                              Value rows) {
  // Offsets may exceed 2^31 elements: 64 bits here, 32 inside of a tile.
  auto mul = [&](Value x, Value y) -> Value {
    return arith::MulIOp::create(b, x, y);
  };
  auto add = [&](Value x, Value y) -> Value {
    return arith::AddIOp::create(b, x, y);
  };
  Value rowStride = context.getStride(name, 2);
  Value offset = mul(context.widen(head), context.getStride(name, 1));
  offset = add(
      offset, start ? mul(start, rowStride)
                    : mul(context.widen(at.batch), context.getStride(name, 0)));
  const TensorFacts &tensor =
      *llvm::find_if(context.tensors, [&](const TensorFacts &tensor) {
        return tensor.name == name;
      });
  SmallVector<int64_t> shape = {ShapedType::kDynamic};
  IntegerAttr alignment;
  if (tensor.shape.size() == 4) {
    shape.push_back(tensor.shape[3]);
    alignment = b.getI64IntegerAttr(tensor.getRowAlignment());
  }
  return GlobalViewOp::create(
      b, GlobalType::get(b.getContext(), shape, tensor.elementType),
      context.getPointer(name), offset, rows, rowStride, alignment);
}

bool SplitQEmitter::needsIndices() const {
  return facts.hasScoreMod() || facts.hasMaskMod();
}

/// Applies softcap, score_mod, mask_mod and the mask to the products of a
/// block.
LogicalResult SplitQEmitter::emitScores(OpBuilder &builder, Value key,
                                        Value &scores) {
  ImplicitLocOpBuilder lb(b.getLoc(), builder);
  auto type = cast<RankedTensorType>(scores.getType());
  auto constant = [&](double value) -> Value {
    return arith::ConstantOp::create(
        lb, DenseElementsAttr::get(type, lb.getF32FloatAttr(value)));
  };
  auto scaleBy = [&](double factor) {
    if (factor != 1)
      scores = arith::MulFOp::create(lb, scores, constant(factor));
  };
  if (facts.softcap) {
    scaleBy(facts.scale / *facts.softcap);
    scores = math::TanhOp::create(lb, scores);
    scaleBy(*facts.softcap);
  } else if (needsIndices()) {
    scaleBy(facts.scale);
  } else if (facts.scale < 0) {
    // The running maximum is that of the raw products: it needs their sign.
    scaleBy(-1);
  }

  if (needsIndices()) {
    AttentionOp op = facts.op;
    auto map = MapElementsOp::create(lb, type, scores, row, key);
    Type i32 = lb.getI32Type();
    OpBuilder::InsertionGuard guard(lb);
    Block *block =
        lb.createBlock(&map.getBody(), {}, {lb.getF32Type(), i32, i32},
                       SmallVector<Location>(3, b.getLoc()));
    Value score = block->getArgument(0);
    Value query = block->getArgument(1), index = block->getArgument(2);
    // Regions run for rows and keys beyond the end as well, whose results are
    // dropped: their reads must stay inside of what they would read.
    if (!facts.captures.empty()) {
      Value one = arith::ConstantIntOp::create(lb, 1, 32);
      query = arith::MinSIOp::create(lb, query,
                                     arith::SubIOp::create(lb, queries, one));
      index = arith::MinSIOp::create(lb, index,
                                     arith::SubIOp::create(lb, keys, one));
    }
    auto inlineRegion = [&](Region &region) {
      return context.inlineRegion(
          lb, region, ValueRange{score, at.batch, at.head, query, index});
    };
    if (facts.hasScoreMod())
      score = inlineRegion(op.getScoreMod());
    if (!score)
      return failure();
    if (facts.hasMaskMod()) {
      Value keep = inlineRegion(op.getMaskMod());
      if (!keep)
        return failure();
      Value excluded = arith::ConstantOp::create(
          lb, lb.getF32FloatAttr(-std::numeric_limits<float>::infinity()));
      score = arith::SelectOp::create(lb, keep, score, excluded);
    }
    YieldOp::create(lb, ValueRange{score});
    scores = map.getResult();
  }
  scores = ApplyMaskOp::create(lb, type, scores, row, key, keys, bounds.lower,
                               bounds.upper);
  return success();
}

/// One more logit for each row, which has no value.
RunningState SplitQEmitter::emitSinks(RunningState state) {
  // All in exponents of two.
  Value sink = context.loadElement("sinks", context.widen(at.head));
  sink = splatRows(
      arith::MulFOp::create(b, sink, context.f32(kLog2E)).getResult());
  RankedTensorType rows = f32Tile({plan.getBlockM()});
  Value m = arith::MaximumFOp::create(b, state.m, sink);
  // A row without keys and with a sink of -inf has nothing to subtract.
  Value infinity = splat(rows, -std::numeric_limits<double>::infinity());
  Value empty =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, m, infinity);
  Value shift = arith::SelectOp::create(b, empty, splat(rows, 0), m);
  auto power = [&](Value x) -> Value {
    return Exp2Op::create(b, rows, arith::SubFOp::create(b, x, shift));
  };
  Value factor = power(state.m);
  Value l = arith::AddFOp::create(b, arith::MulFOp::create(b, state.l, factor),
                                  power(sink));
  Value spread = BroadcastOp::create(b, state.o.getType(), factor);
  Value o = arith::MulFOp::create(b, state.o, spread);
  return {m, l, o};
}

/// Divides by the row sums and stores O and LSE. `state.m` is in exponents of
/// two, `state.l` holds whole row sums.
void SplitQEmitter::emitResults(RunningState state, Value oView, Value lseView,
                                Value scratch) {
  RankedTensorType rows = f32Tile({plan.getBlockM()});
  Value zero = splat(rows, 0);
  Value some =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, state.l, zero);
  Value divisor = arith::SelectOp::create(b, some, state.l, splat(rows, 1));
  Value inverse = arith::DivFOp::create(b, splat(rows, 1), divisor);
  Value o = arith::MulFOp::create(
      b, state.o, BroadcastOp::create(b, state.o.getType(), inverse));
  if (!facts.outType.isF32())
    o = arith::TruncFOp::create(
        b, tileType({plan.getBlockM(), facts.valueDim}, facts.outType), o);
  if (lseView) {
    // log2 0 = -inf, so a row without keys gets -inf.
    Value log =
        arith::AddFOp::create(b, state.m, math::Log2Op::create(b, state.l));
    Value natural = arith::MulFOp::create(b, log, splat(rows, kLn2));
    GlobalStoreOp::create(b, natural, lseView, row);
  }
  StoreResultOp::create(b, o, oView, row, scratch, plan.getEpilogue());
}

LogicalResult SplitQEmitter::emitTile() {
  int64_t blockM = plan.getBlockM(), blockN = plan.getBlockN();
  int64_t stages = plan.getStages();
  Value qView = emitView("q", at.head, queryStart, queries);
  Value kView = emitView("k", at.kvHead, keyStart, keys);
  Value vView = emitView("v", at.kvHead, keyStart, keys);
  Value oView = emitView("o", at.head, queryStart, queries);
  Value lseView;
  if (facts.lse)
    lseView = emitView("lse", at.head, queryStart, queries);

  Value qBuffer = alloc("q", bufferType({blockM, extents.keyColumns}));
  BufferType kRing = bufferType({stages, blockN, extents.keyColumns});
  BufferType vRing = bufferType({stages, blockN, extents.valueColumns});
  Value kBuffer = alloc("k", kRing), vBuffer = alloc("v", vRing);

  CpAsyncOp::create(b, qView, row, qBuffer, /*in_bounds=*/UnitAttr());
  CpAsyncCommitOp::create(b);
  Value q = qBuffer;
  if (plan.getQInRegs()) {
    CpAsyncWaitOp::create(b, 0);
    q = LocalLoadOp::create(
        b, tileType({blockM, extents.keyColumns}, facts.elementType), qBuffer);
  }

  bounds = emitBlockBounds(context, row, queries, keys, blockM, blockN);
  RankedTensorType rows = f32Tile({blockM}), sums = f32Tile({blockM, 4}),
                   scoreType = f32Tile({blockM, blockN}),
                   outType = f32Tile({blockM, facts.valueDim});
  Value scale = context.f32(exponentScale);
  Value inits[] = {splat(rows, -std::numeric_limits<double>::infinity()),
                   splat(sums, 0), splat(outType, 0)};

  LogicalResult status = success();
  auto body = [&](OpBuilder &builder, Location loc, Value key,
                  ValueRange carried) {
    ImplicitLocOpBuilder lb(loc, builder);
    auto slot = [&](BufferType ring) {
      return BufferType::get(lb.getContext(), ring.getSlotShape(),
                             ring.getElementType(), ring.getLayout(),
                             ring.getSpace());
    };
    Value k = StageOp::create(lb, slot(kRing), kView, key, kBuffer);
    Value transposed =
        TransposeOp::create(lb, bufferType({extents.keyColumns, blockN}), k);
    Value zero = arith::ConstantOp::create(
        lb, DenseElementsAttr::get(scoreType, lb.getF32FloatAttr(0)));
    Value s = MmaOp::create(lb, scoreType, q, transposed, zero);
    if (failed(emitScores(lb, key, s)))
      status = failure();
    auto softmax =
        OnlineSoftmaxOp::create(lb, s, carried[0], carried[1], carried[2],
                                scale, plan.getSoftmax(), /*finite=*/false);
    Value p = arith::TruncFOp::create(
        lb, tileType({blockM, blockN}, facts.elementType), softmax.getP());
    Value v = StageOp::create(lb, slot(vRing), vView, key, vBuffer);
    Value o = MmaOp::create(lb, outType, p, v, softmax.getNewO());
    YieldOp::create(lb, ValueRange{softmax.getNewM(), softmax.getNewL(), o});
  };
  auto loop =
      KVLoopOp::create(b, bounds.begin, bounds.fullBegin, bounds.fullEnd,
                       bounds.end, blockN, stages, inits, body);
  if (failed(status))
    return failure();
  // Without any key nothing has waited for Q, whose bytes are used again.
  if (!plan.getQInRegs())
    CpAsyncWaitOp::create(b, 0);

  RunningState state{
      arith::MulFOp::create(b, loop.getResult(0), splat(rows, exponentScale)),
      ReduceOp::create(b, rows, ReduceKind::Add, loop.getResult(1),
                       /*partial=*/UnitAttr()),
      loop.getResult(2)};
  if (facts.sinks)
    state = emitSinks(state);
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
  emitResults(state, oView, lseView, scratch);
  return success();
}

LogicalResult SplitQEmitter::run() {
  exponentScale =
      facts.softcap || needsIndices() ? kLog2E : std::abs(facts.scale) * kLog2E;
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
