//===- ExampleSchedule.cpp - A schedule outside of the library ------------===//

#include "ExampleSchedule.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attn;
using example::PlanAttr;

#include "ExampleDialect.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "ExampleAttrs.cpp.inc"

void example::ExampleDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ExampleAttrs.cpp.inc"
      >();
}

int64_t PlanAttr::getThreads() const { return 32 * getWarps(); }

LogicalResult PlanAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               const Parameters &p) {
  if (p.warps < 1 || p.warps > 8 || !llvm::isPowerOf2_64(p.warps))
    return emitError() << "expected warps to be a power of two up to 8, got "
                       << p.warps;
  if (p.blockN < 16 || p.blockN > 128 || p.blockN % 16 != 0)
    return emitError()
           << "expected block_n to be a multiple of 16 up to 128, got "
           << p.blockN;
  return success();
}

namespace {

class ExampleSchedule : public ScheduleOf<PlanAttr> {
public:
  llvm::Error isApplicable(const ProblemFacts &facts,
                           const TargetRow &target) const override;
  std::vector<PlanAttrInterface>
  getCandidates(const ProblemFacts &facts,
                const TargetRow &target) const override;
  llvm::Error checkPlan(const ProblemFacts &facts, PlanAttrInterface plan,
                        const TargetRow &target) const override;
  bool isExpectedToSpill(const ProblemFacts &facts, PlanAttrInterface plan,
                         const TargetRow &target) const override;
  PlanEstimate estimate(const ProblemFacts &facts, PlanAttrInterface plan,
                        const TargetRow &target) const override;
  KernelShape getKernelShape(const ProblemFacts &facts, PlanAttrInterface plan,
                             const TargetRow &target) const override;
  LogicalResult emit(KernelContext &context,
                     PlanAttrInterface plan) const override;
};

} // namespace

const Schedule &example::getSchedule() {
  static const ExampleSchedule schedule;
  return schedule;
}

/// Plain attention on f16 with contiguous rows. What is not named here would be
/// computed as if it were not there.
llvm::Error ExampleSchedule::isApplicable(const ProblemFacts &facts,
                                          const TargetRow &) const {
  AttentionOp op = facts.op;
  auto unsupported = [](const Twine &what) {
    return llvm::createStringError("schedule 'example' does not support " +
                                   what);
  };
  if (op.getPageTable() || op.getKvSplits() || op.getRopeDim())
    return unsupported("pages, split keys, or the absorbed latent form");
  if (facts.mask.getKind() != MaskKind::None || facts.varlen)
    return unsupported("masks or packed sequences");
  if (facts.hasScoreMod() || facts.hasMaskMod() || facts.softcap)
    return unsupported("changes of scores");
  if (facts.sinks || facts.lse || facts.qDescale)
    return unsupported("sinks, a log-sum-exp, or descales");
  if (!facts.elementType.isF16() || !facts.outType.isF16())
    return unsupported("types other than f16");
  if (facts.scale <= 0)
    return unsupported("a scale of 0 or below");
  if (ShapedType::isDynamic(facts.keys) || ShapedType::isDynamic(facts.heads) ||
      facts.heads != facts.kvHeads)
    return unsupported("grouped heads, or keys that the launch decides");
  if (facts.headDim % 16 != 0 || facts.valueDim % 16 != 0)
    return unsupported("head dimensions that are no multiple of 16");
  for (const TensorFacts *tensor : {&facts.q, &facts.k, &facts.v, &facts.o})
    if (tensor->getRowAlignment() < 16 || tensor->getContiguousDim() != 3)
      return unsupported("rows that do not start at multiples of 16 bytes");
  return llvm::Error::success();
}

std::vector<PlanAttrInterface>
ExampleSchedule::getCandidates(const ProblemFacts &facts,
                               const TargetRow &) const {
  // Registers hold the accumulator of no wider values.
  if (facts.valueDim > 128)
    return {};
  AttentionOp op = facts.op;
  std::vector<PlanAttrInterface> plans;
  for (int64_t warps : {1, 2, 4}) {
    PlanAttr::Parameters plan;
    plan.warps = warps;
    plans.push_back(PlanAttr::get(op.getContext(), plan));
  }
  return plans;
}

llvm::Error ExampleSchedule::checkPlan(const ProblemFacts &facts,
                                       PlanAttrInterface plan,
                                       const TargetRow &target) const {
  ResourceSum shared = estimate(facts, plan, target).sharedBytes;
  if (shared.getTotal() <= target.sharedBytesPerCTA)
    return llvm::Error::success();
  return llvm::createStringError("does not fit: shared memory " + shared.str() +
                                 " exceeds " + Twine(target.sharedBytesPerCTA) +
                                 " on " + target.chip);
}

bool ExampleSchedule::isExpectedToSpill(const ProblemFacts &facts,
                                        PlanAttrInterface plan,
                                        const TargetRow &target) const {
  return estimate(facts, plan, target).registers.getTotal() >
         target.registersPerThread;
}

/// Everything one after the other, which is more than it takes.
PlanEstimate ExampleSchedule::estimate(const ProblemFacts &facts,
                                       PlanAttrInterface planAttr,
                                       const TargetRow &target) const {
  auto plan = cast<PlanAttr>(planAttr);
  int64_t rows = 16 * plan.getWarps(), stages = plan.getAhead() ? 2 : 1;
  PlanEstimate e;
  e.sharedBytes.add("q", rows * facts.headDim * 2);
  e.sharedBytes.add("k", plan.getBlockN() * facts.headDim * 2, stages);
  e.sharedBytes.add("v", plan.getBlockN() * facts.valueDim * 2, stages);
  e.registers.add("o", facts.valueDim / 2);
  e.registers.add("s", plan.getBlockN() / 2);
  e.registers.add("other", 80);
  e.ctasPerSM = 1;
  double queries = getAssumedExtent(facts.queries, kAssumedLength);
  e.tiles = getAssumedExtent(facts.batch, kAssumedBatch) * facts.heads *
            int64_t(std::ceil(queries / rows));
  e.waves = double(e.tiles) / target.smCount;
  e.blocks = std::ceil(double(facts.keys) / plan.getBlockN());
  double elements = double(rows) * plan.getBlockN();
  e.tensorClocks =
      2 * elements * (facts.headDim + facts.valueDim) / target.mmaSyncFlopF16;
  e.expClocks = elements / target.expPerClock;
  e.issueClocks = elements * 12 / 32 / target.issuePerClock;
  e.tileClocks = 6000;
  e.blockClocks = e.tensorClocks + e.expClocks + e.issueClocks + 1000;
  e.microseconds = std::ceil(e.waves) *
                   (e.tileClocks + e.blocks * e.blockClocks) / target.clockMHz;
  return e;
}

KernelShape ExampleSchedule::getKernelShape(const ProblemFacts &,
                                            PlanAttrInterface planAttr,
                                            const TargetRow &) const {
  auto plan = cast<PlanAttr>(planAttr);
  KernelShape shape;
  SizeExpr queries = SizeExpr::getDim("q", 2), heads = SizeExpr::getDim("q", 1),
           batch = SizeExpr::getDim("q", 0);
  shape.grid = {SizeExpr::ceilDiv(queries, 16 * plan.getWarps()), heads, batch};
  shape.threads = plan.getThreads();
  shape.warps = {{plan.getWarps(), 1}};
  return shape;
}

namespace {

/// Emits the kernel: a CTA has one tile of queries.
class Emitter {
public:
  Emitter(KernelContext &context, PlanAttr plan)
      : context(context), facts(context.facts), b(context.b), plan(plan) {}
  void run();

private:
  RankedTensorType tile(ArrayRef<int64_t> shape, Type elementType) {
    return RankedTensorType::get(shape, elementType,
                                 AutoLayoutAttr::get(b.getContext()));
  }
  BufferType buffer(ArrayRef<int64_t> shape) {
    return BufferType::get(b.getContext(), shape, facts.elementType,
                           AutoLayoutAttr::get(b.getContext()),
                           MemorySpace::Shared);
  }
  Value alloc(StringRef name, BufferType type) {
    return AllocOp::create(b, type, b.getStringAttr(name), IntegerAttr(),
                           StringAttr());
  }
  Value splat(ArrayRef<int64_t> shape, double value) {
    return arith::ConstantOp::create(
        b, DenseElementsAttr::get(tile(shape, b.getF32Type()),
                                  b.getF32FloatAttr(value)));
  }
  Value blockId(gpu::Dimension dim) {
    return arith::IndexCastOp::create(b, b.getI32Type(),
                                      gpu::BlockIdOp::create(b, dim));
  }
  /// The rows of this CTA's head.
  Value emitView(const TensorFacts &tensor, Value rows);

  KernelContext &context;
  const ProblemFacts &facts;
  ImplicitLocOpBuilder &b;
  PlanAttr plan;
};

} // namespace

Value Emitter::emitView(const TensorFacts &tensor, Value rows) {
  // Offsets may exceed 2^31 elements: 64 bits.
  Value batch = context.widen(blockId(gpu::Dimension::z));
  Value head = context.widen(blockId(gpu::Dimension::y));
  Value offset = arith::AddIOp::create(
      b, arith::MulIOp::create(b, batch, context.getStride(tensor.name, 0)),
      arith::MulIOp::create(b, head, context.getStride(tensor.name, 1)));
  return GlobalViewOp::create(
      b,
      GlobalType::get(b.getContext(), {ShapedType::kDynamic, tensor.shape[3]},
                      tensor.elementType),
      context.getPointer(tensor.name), offset, rows,
      context.getStride(tensor.name, 2),
      b.getI64IntegerAttr(tensor.getRowAlignment()));
}

void Emitter::run() {
  int64_t rows = 16 * plan.getWarps(), blockN = plan.getBlockN();
  int64_t d = facts.headDim, dv = facts.valueDim;
  int64_t stages = plan.getAhead() ? 2 : 1;
  RankedTensorType scores = tile({rows, blockN}, b.getF32Type()),
                   output = tile({rows, dv}, b.getF32Type());
  Value row =
      arith::MulIOp::create(b, blockId(gpu::Dimension::x), context.i32(rows));
  Value keys = context.getKeys(), zero = context.i32(0);
  Value kView = emitView(facts.k, keys), vView = emitView(facts.v, keys);
  Value qBuffer = alloc("q", buffer({rows, d})),
        kRing = alloc("k", buffer({stages, blockN, d})),
        vRing = alloc("v", buffer({stages, blockN, dv}));

  CpAsyncOp::create(b, emitView(facts.q, context.getQueries()), row, qBuffer,
                    /*in_bounds=*/UnitAttr());
  CpAsyncCommitOp::create(b);
  CpAsyncWaitOp::create(b, 0);
  Value q = LocalLoadOp::create(b, tile({rows, d}, facts.elementType), qBuffer);

  // Exponents of two of a unit of score.
  Value scale = context.f32(facts.scale * std::log2(std::exp(1.0)));
  auto body = [&](OpBuilder &builder, Location loc, Value key,
                  ValueRange carried) {
    ImplicitLocOpBuilder lb(loc, builder);
    Value k = StageOp::create(lb, buffer({blockN, d}), kView, key, kRing);
    Value transposed = TransposeOp::create(lb, buffer({d, blockN}), k);
    Value none = arith::ConstantOp::create(
        lb, DenseElementsAttr::get(scores, lb.getF32FloatAttr(0)));
    Value s = MmaOp::create(lb, scores, q, transposed, none);
    s = ApplyMaskOp::create(lb, scores, s, row, key, keys, /*lower=*/Value(),
                            /*upper=*/Value());
    auto softmax = OnlineSoftmaxOp::create(
        lb, s, carried[0], carried[1], carried[2], scale, SoftmaxPolicy::Exact);
    Value p = arith::TruncFOp::create(
        lb, tile({rows, blockN}, facts.elementType), softmax.getP());
    Value v = StageOp::create(lb, buffer({blockN, dv}), vView, key, vRing);
    Value o = MmaOp::create(lb, output, p, v, softmax.getNewO());
    YieldOp::create(lb, ValueRange{softmax.getNewM(), softmax.getNewL(), o});
  };
  // Only the last block may hold keys behind the end.
  Value whole = context.i32(facts.keys / blockN),
        end = context.i32(llvm::divideCeil(facts.keys, blockN));
  Value infinity = splat({rows}, -std::numeric_limits<double>::infinity());
  Value none = arith::ConstantOp::create(
      b, DenseElementsAttr::get(getPartialSumsType(b.getContext(), rows),
                                b.getF32FloatAttr(0)));
  auto loop = KVLoopOp::create(
      b, /*begin=*/zero, /*fullBegin=*/zero, /*fullEnd=*/whole, end, blockN,
      stages, ValueRange{infinity, none, splat({rows, dv}, 0)}, body);

  Value sum = ReduceOp::create(b, tile({rows}, b.getF32Type()), ReduceKind::Add,
                               loop.getResult(1), /*partial=*/UnitAttr());
  Value isSome = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, sum,
                                       splat({rows}, 0));
  Value divisor = arith::SelectOp::create(b, isSome, sum, splat({rows}, 1));
  Value inverse = arith::DivFOp::create(b, splat({rows}, 1), divisor);
  Value o = arith::MulFOp::create(b, loop.getResult(2),
                                  BroadcastOp::create(b, output, inverse));
  o = arith::TruncFOp::create(b, tile({rows, dv}, facts.outType), o);
  StoreResultOp::create(b, o, emitView(facts.o, context.getQueries()), row,
                        /*scratch=*/Value(), /*map=*/Value(),
                        /*coords=*/ValueRange(), EpilogueKind::Auto);
}

LogicalResult ExampleSchedule::emit(KernelContext &context,
                                    PlanAttrInterface plan) const {
  Emitter(context, cast<PlanAttr>(plan)).run();
  return success();
}
