//===- TwoPass.cpp - A schedule outside of attn ---------------------------===//

#include "TwoPass.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attn;
using two_pass::PlanAttr;

#include "TwoPassDialect.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "TwoPassAttrs.cpp.inc"

void two_pass::TwoPassDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "TwoPassAttrs.cpp.inc"
      >();
}

int64_t PlanAttr::getThreads() const { return 32 * getWarps(); }

LogicalResult PlanAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               const Parameters &p) {
  if (p.warps < 1 || p.warps > 16 || !llvm::isPowerOf2_64(p.warps))
    return emitError() << "expected warps to be a power of two up to 16, got "
                       << p.warps;
  if (p.blockN < 16 || p.blockN % 16 != 0)
    return emitError() << "expected block_n to be a multiple of 16, got "
                       << p.blockN;
  return success();
}

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class TwoPassSchedule : public ScheduleOf<PlanAttr> {
public:
  std::vector<PlanAttrInterface>
  getCandidates(const ProblemFacts &facts,
                const TargetRow &target) const override;
  llvm::Error isApplicable(const ProblemFacts &facts,
                           const TargetRow &target) const override;
  llvm::Error checkPlan(const ProblemFacts &facts, PlanAttrInterface plan,
                        const TargetRow &target) const override;
  bool isExpectedToSpill(const ProblemFacts &facts, PlanAttrInterface plan,
                         const TargetRow &target) const override {
    return estimate(facts, plan, target).registers.getTotal() >
           target.registersPerThread;
  }
  PlanEstimate estimate(const ProblemFacts &facts, PlanAttrInterface plan,
                        const TargetRow &target) const override;
  KernelShape getKernelShape(const ProblemFacts &facts, PlanAttrInterface plan,
                             const TargetRow &target) const override;
  LogicalResult emit(KernelContext &context,
                     PlanAttrInterface plan) const override;
};

/// Emits the kernel of one CTA: 16 rows for each warp.
class Emitter {
public:
  Emitter(KernelContext &context, PlanAttr plan)
      : context(context), facts(context.facts), b(context.b),
        blockM(16 * plan.getWarps()), blockN(plan.getBlockN()) {}
  void run();

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
  Value alloc(StringRef name, ArrayRef<int64_t> shape) {
    return AllocOp::create(b, bufferType(shape), b.getStringAttr(name),
                           IntegerAttr(), StringAttr());
  }
  Value splat(RankedTensorType type, double value) {
    return arith::ConstantOp::create(
        b, DenseElementsAttr::get(type, b.getF32FloatAttr(value)));
  }
  Value blockId(gpu::Dimension dim) {
    return arith::IndexCastOp::create(b, b.getI32Type(),
                                      gpu::BlockIdOp::create(b, dim));
  }
  Value emitView(StringRef name, Value head);
  /// Copies a block of rows to a buffer; emitWait waits for all copies.
  void emitCopy(Value view, Value first, Value buffer) {
    CpAsyncOp::create(b, view, first, buffer, /*in_bounds=*/UnitAttr());
    CpAsyncCommitOp::create(b);
  }
  void emitWait() { CpAsyncWaitOp::create(b, 0); }
  /// Scores of the block of keys that stands in the K buffer.
  Value emitScores(Value key);
  /// Walks the blocks of keys with `inits` carried.
  ValueRange emitLoop(ValueRange inits,
                      function_ref<void(Value, ValueRange)> body);

  KernelContext &context;
  const ProblemFacts &facts;
  ImplicitLocOpBuilder &b;
  int64_t blockM, blockN;
  Value batch, row, q, kBuffer, blocks, keys, upper;
};

} // namespace

std::vector<PlanAttrInterface>
TwoPassSchedule::getCandidates(const ProblemFacts &facts,
                               const TargetRow &) const {
  MLIRContext *context = AttentionOp(facts.op).getContext();
  std::vector<PlanAttrInterface> plans;
  for (int64_t warps : {1, 4})
    for (int64_t blockN : {16, 32, 64})
      plans.push_back(PlanAttr::get(context, {warps, blockN}));
  return plans;
}

llvm::Error TwoPassSchedule::isApplicable(const ProblemFacts &facts,
                                          const TargetRow &) const {
  AttentionOp op = facts.op;
  auto unsupported = [](const Twine &what) {
    return llvm::createStringError("schedule 'two_pass' does not support " +
                                   what);
  };
  if (op.getPageTable() || op.getKvSplits() || op.getRopeDim())
    return unsupported("pages, split keys, or the absorbed latent form");
  if (facts.varlen)
    return unsupported("packed sequences");
  if (facts.hasScoreMod() || facts.hasMaskMod())
    return unsupported("regions");
  if (facts.softcap)
    return unsupported("a softcap");
  if (facts.sinks)
    return unsupported("sinks");
  if (facts.mask.getKind() == MaskKind::Window)
    return unsupported("a window mask");
  if (facts.scale <= 0)
    return unsupported("a scale of 0 or below");
  if (!facts.elementType.isF16() && !facts.elementType.isBF16())
    return unsupported("operands other than f16 and bf16");
  for (int64_t dim : {facts.headDim, facts.valueDim})
    if (dim % 16 != 0 || dim > 128)
      return unsupported(llvm::formatv(
          "a head dimension of {0}, expected a multiple of 16 up to 128", dim));
  for (const TensorFacts *tensor : {&facts.q, &facts.k, &facts.v})
    if (tensor->getRowAlignment() < 16)
      return unsupported(llvm::formatv("rows of '{0}' that start at multiples "
                                       "of {1} bytes, expected 16",
                                       tensor->name,
                                       tensor->getRowAlignment()));
  return llvm::Error::success();
}

llvm::Error TwoPassSchedule::checkPlan(const ProblemFacts &facts,
                                       PlanAttrInterface plan,
                                       const TargetRow &target) const {
  ResourceSum shared = estimate(facts, plan, target).sharedBytes;
  if (shared.getTotal() > target.sharedBytesPerCTA)
    return llvm::createStringError(
        llvm::formatv("does not fit: shared memory {0} exceeds {1} on {2}",
                      shared.str(), target.sharedBytesPerCTA, target.chip));
  return llvm::Error::success();
}

/// A rough upper bound: matrix instructions, copies and softmax one after the
/// other, since nothing of it overlaps within a CTA.
PlanEstimate TwoPassSchedule::estimate(const ProblemFacts &facts,
                                       PlanAttrInterface planAttr,
                                       const TargetRow &target) const {
  auto plan = cast<PlanAttr>(planAttr);
  int64_t blockM = 16 * plan.getWarps(), blockN = plan.getBlockN();
  int64_t d = facts.headDim, dv = facts.valueDim;
  PlanEstimate e;
  e.sharedBytes.add("q", blockM * d * 2);
  e.sharedBytes.add("k", blockN * d * 2);
  e.sharedBytes.add("v", blockN * dv * 2);
  e.registers.add("o", dv / 2);
  e.registers.add("s", blockN / 2);
  e.registers.add("q", d / 4);
  e.registers.add("other", 80);
  e.ctasPerSM = std::max<int64_t>(
      1, std::min(target.sharedBytesPerSM / e.sharedBytes.getTotal(),
                  target.registersPerSM /
                      (plan.getThreads() * e.registers.getTotal())));
  double queries = getAssumedExtent(facts.queries, kAssumedLength);
  double keys = getAssumedExtent(facts.keys, kAssumedLength);
  e.tiles = getAssumedExtent(facts.batch, kAssumedBatch) *
            getAssumedExtent(facts.heads, kAssumedHeads) *
            int64_t(std::ceil(queries / blockM));
  e.blocks = std::max(1.0, std::ceil(keys / blockN));
  if (facts.mask.getKind() == MaskKind::Causal)
    e.blocks = std::max(1.0, e.blocks / 2);
  double elements = double(blockM) * blockN;
  e.tensorClocks = 2 * elements * (2 * d + dv) / target.mmaSyncFlopF16;
  e.expClocks = elements / target.expPerClock;
  e.issueClocks = elements * 12 / 32 / target.issuePerClock;
  e.sharedClocks = blockN * (2 * d + dv) * 2.0 * (1 + plan.getWarps()) /
                   target.sharedBytesPerClock;
  e.tileClocks = 3000;
  e.blockClocks =
      e.tensorClocks + e.expClocks + e.issueClocks + e.sharedClocks + 1000;
  e.waves = e.tiles / (double(target.smCount) * e.ctasPerSM);
  e.microseconds = std::ceil(e.waves) *
                   (e.tileClocks + e.blocks * e.blockClocks) / target.clockMHz;
  return e;
}

KernelShape TwoPassSchedule::getKernelShape(const ProblemFacts &,
                                            PlanAttrInterface planAttr,
                                            const TargetRow &) const {
  auto plan = cast<PlanAttr>(planAttr);
  KernelShape shape;
  shape.grid = {
      SizeExpr::ceilDiv(SizeExpr::getDim("q", 2), 16 * plan.getWarps()),
      SizeExpr::getDim("q", 1), SizeExpr::getDim("q", 0)};
  shape.threads = plan.getThreads();
  shape.warps = {plan.getWarps(), 1};
  return shape;
}

LogicalResult TwoPassSchedule::emit(KernelContext &context,
                                    PlanAttrInterface plan) const {
  Emitter(context, cast<PlanAttr>(plan)).run();
  return success();
}

/// Rows of one head. Offsets may exceed 2^31 elements: 64 bits.
Value Emitter::emitView(StringRef name, Value head) {
  Value offset =
      arith::AddIOp::create(b,
                            arith::MulIOp::create(b, context.widen(batch),
                                                  context.getStride(name, 0)),
                            arith::MulIOp::create(b, context.widen(head),
                                                  context.getStride(name, 1)));
  const TensorFacts &tensor = *llvm::find_if(
      context.tensors, [&](const TensorFacts &t) { return t.name == name; });
  SmallVector<int64_t> shape = {ShapedType::kDynamic};
  IntegerAttr alignment;
  if (tensor.shape.size() == 4) {
    shape.push_back(tensor.shape[3]);
    alignment = b.getI64IntegerAttr(tensor.getRowAlignment());
  }
  Value rows =
      name == "k" || name == "v" ? context.getKeys() : context.getQueries();
  return GlobalViewOp::create(
      b, GlobalType::get(b.getContext(), shape, tensor.elementType),
      context.getPointer(name), offset, rows, context.getStride(name, 2),
      alignment);
}

Value Emitter::emitScores(Value key) {
  RankedTensorType type = f32Tile({blockM, blockN});
  Value k =
      TransposeOp::create(b, bufferType({facts.headDim, blockN}), kBuffer);
  Value s = MmaOp::create(b, type, q, k, splat(type, 0));
  return ApplyMaskOp::create(b, type, s, row, key, keys, /*lower=*/Value(),
                             upper);
}

ValueRange Emitter::emitLoop(ValueRange inits,
                             function_ref<void(Value, ValueRange)> body) {
  auto loop =
      scf::ForOp::create(b, context.i32(0), blocks, context.i32(1), inits);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value key =
      arith::MulIOp::create(b, loop.getInductionVar(), context.i32(blockN));
  body(key, loop.getRegionIterArgs());
  return loop.getResults();
}

void Emitter::run() {
  Value head = blockId(gpu::Dimension::y), kvHead = head;
  batch = blockId(gpu::Dimension::z);
  row =
      arith::MulIOp::create(b, blockId(gpu::Dimension::x), context.i32(blockM));
  keys = context.getKeys();
  if (facts.heads != facts.kvHeads || ShapedType::isDynamic(facts.heads))
    kvHead = arith::DivUIOp::create(
        b, head,
        arith::DivUIOp::create(b, context.getHeads(), context.getKVHeads()));
  Value qView = emitView("q", head), kView = emitView("k", kvHead),
        vView = emitView("v", kvHead), oView = emitView("o", head);

  // Keys that some row of the tile sees.
  Value seen = keys;
  if (facts.mask.getKind() == MaskKind::Causal) {
    upper = facts.mask.getAlign() == MaskAlign::BottomRight
                ? arith::SubIOp::create(b, keys, context.getQueries())
                : context.i32(0);
    Value past = arith::AddIOp::create(
        b, arith::AddIOp::create(b, row, context.i32(blockM)), upper);
    seen = arith::MaxSIOp::create(b, arith::MinSIOp::create(b, keys, past),
                                  context.i32(0));
  }
  blocks = arith::DivUIOp::create(
      b, arith::AddIOp::create(b, seen, context.i32(blockN - 1)),
      context.i32(blockN));

  Value qBuffer = alloc("q", {blockM, facts.headDim});
  kBuffer = alloc("k", {blockN, facts.headDim});
  Value vBuffer = alloc("v", {blockN, facts.valueDim});
  emitCopy(qView, row, qBuffer);
  emitWait();
  q = LocalLoadOp::create(
      b, tileType({blockM, facts.headDim}, facts.elementType), qBuffer);

  RankedTensorType rows = f32Tile({blockM}), scores = f32Tile({blockM, blockN}),
                   output = f32Tile({blockM, facts.valueDim});
  Value zero = splat(rows, 0), infinity = splat(rows, -kInfinity);

  // First pass: the maximum of each row's scores.
  Value m = emitLoop(infinity, [&](Value key, ValueRange carried) {
    emitCopy(kView, key, kBuffer);
    emitWait();
    Value most = ReduceOp::create(b, rows, ReduceKind::Max, emitScores(key));
    scf::YieldOp::create(
        b, ValueRange{arith::MaxNumFOp::create(b, carried[0], most)});
  })[0];
  // In exponents of two; a row without keys has nothing to subtract.
  Value factor = context.f32(facts.scale * std::log2(std::exp(1.0)));
  Value factors = tensor::SplatOp::create(b, factor, rows);
  m = arith::MulFOp::create(b, m, factors);
  Value empty =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, m, infinity);
  Value shift =
      arith::NegFOp::create(b, arith::SelectOp::create(b, empty, zero, m));

  // Second pass: sums of powers, and of values weighted with them.
  Value inits[] = {zero, splat(output, 0)};
  ValueRange sums = emitLoop(inits, [&](Value key, ValueRange carried) {
    emitCopy(kView, key, kBuffer);
    emitCopy(vView, key, vBuffer);
    emitWait();
    Value s = emitScores(key);
    Value exponents =
        math::FmaOp::create(b, s, tensor::SplatOp::create(b, factor, scores),
                            BroadcastOp::create(b, scores, shift));
    Value p = Exp2Op::create(b, exponents.getType(), exponents);
    Value sum = ReduceOp::create(b, rows, ReduceKind::Add, p);
    Value weights = arith::TruncFOp::create(
        b, tileType({blockM, blockN}, facts.elementType), p);
    Value l = arith::AddFOp::create(b, carried[0], sum);
    Value o = MmaOp::create(b, output, weights, vBuffer, carried[1]);
    scf::YieldOp::create(b, ValueRange{l, o});
  });

  Value some =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, sums[0], zero);
  Value divisor = arith::SelectOp::create(b, some, sums[0], splat(rows, 1));
  Value inverse = arith::DivFOp::create(b, splat(rows, 1), divisor);
  Value o = arith::MulFOp::create(b, sums[1],
                                  BroadcastOp::create(b, output, inverse));
  if (!facts.outType.isF32())
    o = arith::TruncFOp::create(
        b, tileType({blockM, facts.valueDim}, facts.outType), o);
  if (facts.lse) {
    // log2 0 = -inf, so a row without keys gets -inf.
    Value log = arith::AddFOp::create(b, m, math::Log2Op::create(b, sums[0]));
    Value natural = arith::MulFOp::create(b, log, splat(rows, std::log(2.0)));
    GlobalStoreOp::create(b, natural, emitView("lse", head), row);
  }
  StoreResultOp::create(b, o, oView, row, /*scratch=*/Value(), /*map=*/Value(),
                        /*coords=*/ValueRange(), EpilogueKind::Auto);
}

const Schedule &two_pass::getSchedule() {
  static const TwoPassSchedule schedule;
  return schedule;
}
