//===- ExampleSchedule.cpp - A schedule outside of the library ------------===//

#include "ExampleSchedule.h"
#include "attn/Schedule/Kernel/Control.h"
#include "attn/Schedule/Kernel/Scores.h"
#include "attn/Schedule/Kernel/StoreResults.h"
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

/// What is not named here, and the functions on tiles do not do, would be
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
  if (facts.varlen)
    return unsupported("packed sequences");
  if (!facts.elementType.isF16() || !facts.keyType.isF16() ||
      !facts.outType.isF16())
    return unsupported("types other than f16");
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
  e.tiles = getAssumedExtent(facts.batch, kAssumedBatch) *
            getAssumedExtent(facts.heads, kAssumedHeads) *
            int64_t(std::ceil(queries / rows));
  e.waves = double(e.tiles) / target.smCount;
  e.blocks = std::ceil(double(getAssumedExtent(facts.keys, kAssumedLength)) /
                       plan.getBlockN());
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

/// The kernel: a CTA has one tile of queries, and walks its blocks of keys from
/// the last to the first.
LogicalResult ExampleSchedule::emit(KernelContext &context,
                                    PlanAttrInterface planAttr) const {
  auto plan = cast<PlanAttr>(planAttr);
  const ProblemFacts &facts = context.facts;
  ImplicitLocOpBuilder &b = context.b;
  int64_t rows = 16 * plan.getWarps(), blockN = plan.getBlockN();
  int64_t d = facts.headDim, dv = facts.valueDim;
  int64_t stages = plan.getAhead() ? 2 : 1;

  // Where the tile is, and which blocks of keys its rows see.
  Control control(b);
  AttentionTile tile(context, rows);
  tile.at.head = context.getBlockId(gpu::Dimension::y);
  tile.at.kvHead = emitKVHead(context, tile.at.head);
  tile.at.batch = context.getBlockId(gpu::Dimension::z);
  tile.row = arith::MulIOp::create(b, context.getBlockId(gpu::Dimension::x),
                                   context.i32(rows));
  emitLengths(tile, tile.row);
  tile.bounds =
      emitBlockBounds(context, tile.getBoundedTiles(), tile.row, rows, blockN);
  Value kView = tile.source->emitView("k", tile.at),
        vView = tile.source->emitView("v", tile.at);

  BufferType kSlot = tile.bufferType({blockN, d}),
             vSlot = tile.bufferType({blockN, dv});
  Value qBuffer = tile.alloc("q", tile.bufferType({rows, d})),
        kRing = tile.alloc("k", tile.bufferType({stages, blockN, d})),
        vRing = tile.alloc("v", tile.bufferType({stages, blockN, dv}));
  CpAsyncOp::create(b, emitQueryView(tile), tile.row, qBuffer,
                    /*in_bounds=*/UnitAttr());
  CpAsyncCommitOp::create(b);
  CpAsyncWaitOp::create(b, 0);
  Value q = LocalLoadOp::create(b, tile.tileType({rows, d}, facts.elementType),
                                qBuffer);

  RunningState none = emitInitialState(tile);
  Var m(control, none.m), l(control, none.l), o(control, none.o);
  Value scale = emitExponentScale(tile);
  auto addBlock = [&](Value key) {
    Value k = StageOp::create(b, kSlot, kView, key, kRing);
    Value kT = TransposeOp::create(b, tile.bufferType({d, blockN}), k);
    Value s = tile.splat(tile.f32Tile({rows, blockN}), 0);
    s = MmaOp::create(b, s.getType(), q, kT, s);
    if (failed(emitScores(tile, key, s)))
      return control.fail();
    auto softmax = OnlineSoftmaxOp::create(b, s, m.get(), l.get(), o.get(),
                                           scale, SoftmaxPolicy::Exact);
    Value p = arith::TruncFOp::create(
        b, tile.tileType({rows, blockN}, facts.elementType), softmax.getP());
    Value v = StageOp::create(b, vSlot, vView, key, vRing);
    m = softmax.getNewM(), l = softmax.getNewL();
    o = MmaOp::create(b, none.o.getType(), p, v, softmax.getNewO());
  };
  const BlockBounds &blocks = tile.bounds;
  control.loop(b.getI32Type(), addBlock,
               [&](ValueRange inits, Control::Fill fill) {
                 return KVLoopOp::create(b, blocks.begin, blocks.fullBegin,
                                         blocks.fullEnd, blocks.end, blockN,
                                         stages, inits, fill);
               });
  if (!control.isWhole())
    return failure();

  emitResults(tile, emitFinalState(tile, RunningState(m, l, o)),
              emitResultView(tile, "o"), emitLogViews(tile),
              /*scratch=*/Value(), EpilogueKind::Auto);
  return success();
}
