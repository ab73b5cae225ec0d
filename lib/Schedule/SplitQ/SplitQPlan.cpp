//===- SplitQPlan.cpp - Plans of split_q: legality and parameters ---------===//

#include "../Core/AttentionEmitter.h"
#include "../Core/CommonChecks.h"
#include "GridTiles.h"
#include "SplitQ.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attn;

/// Largest extent of a grid along y and z.
static constexpr int64_t kGridLimit = 65535;

const Schedule &attn::getSplitQSchedule() {
  static const SplitQSchedule schedule;
  return schedule;
}

SplitQExtents::SplitQExtents(const ProblemFacts &facts, SplitQPlanAttr plan) {
  int64_t bytes = facts.elementType.getIntOrFloatBitWidth() / 8;
  keyColumns = llvm::alignTo(facts.headDim, 16);
  valueColumns = facts.valueDim;
  warpRows = plan.getBlockM() / plan.getWarps();
  qBytes = plan.getBlockM() * keyColumns * bytes;
  kBytes = plan.getBlockN() * keyColumns * bytes;
  vBytes = plan.getBlockN() * valueColumns * bytes;
  dynamicStrides = false;
  for (const TensorFacts *tensor : {&facts.q, &facts.k, &facts.v, &facts.o})
    dynamicStrides |= llvm::is_contained(tensor->strides, ShapedType::kDynamic);
  isPaged = facts.isPaged();
  scoreRegisters += getScoreCost(facts).registers;
  oBytes = plan.getBlockM() * valueColumns *
           facts.outType.getIntOrFloatBitWidth() / 8;
}

ResourceSum SplitQExtents::getSharedBytes(SplitQPlanAttr plan) const {
  // The tile of O takes dead bytes, and so do K and V where Q is in registers:
  // what is live together and largest counts.
  ResourceSum sum;
  int64_t rings = plan.getStages() * (kBytes + vBytes);
  if (!plan.getQInRegs() || qBytes > rings)
    sum.add("q", qBytes);
  if (!plan.getQInRegs() || qBytes <= rings) {
    sum.add("k", kBytes, plan.getStages());
    sum.add("v", vBytes, plan.getStages());
  }
  if (plan.getEpilogue() == EpilogueKind::Staged && oBytes > sum.getTotal()) {
    sum = ResourceSum();
    sum.add("o", oBytes);
  }
  return sum;
}

/// True if values are so wide that ptxas was seen to keep more beside them.
static bool hasWideValues(int64_t valueColumns, SplitQPlanAttr plan) {
  return valueColumns > 192 && plan.getBlockN() > 32;
}

/// The same for an odd number of 8-column groups, which is read ahead.
static bool hasWideOddValues(int64_t valueColumns) {
  return valueColumns % 16 != 0 && valueColumns >= 152;
}

/// True if "wide odd v" holds more than rows of unequal length take, which it
/// does where Q has no registers.
static bool coversUnevenRows(int64_t valueColumns, SplitQPlanAttr plan) {
  return hasWideOddValues(valueColumns) && !plan.getQInRegs();
}

int64_t SplitQExtents::getOwnRowRegisters(SplitQPlanAttr plan) const {
  if (plan.getSoftmax() == SoftmaxPolicy::Exact ||
      keyColumns == int64_t(llvm::alignTo(valueColumns, 16)) ||
      coversUnevenRows(valueColumns, plan))
    return 0;
  int64_t own = 14;
  if (hasWideValues(valueColumns, plan))
    own = 10;
  else if (plan.getBlockN() >= 128)
    own = plan.getParts() == 4 ? 24 : 4;
  // With two groups of rows "long k" holds some of them.
  if (warpRows > 16)
    own -= std::clamp<int64_t>((keyColumns - valueColumns) / 8, 0, own);
  return own;
}

ResourceSum SplitQExtents::getRegisters(SplitQPlanAttr plan) const {
  // Fragments of 16 rows: 4 registers for 8 columns of an accumulator and for
  // 16 columns of an operand (PTX ISA, mma.m16n8k16).
  int64_t rowGroups = warpRows / 16;
  ResourceSum sum;
  sum.add("o", valueColumns / 8 * 4, rowGroups);
  // The products of two parts are live together.
  int64_t partN = plan.getBlockN() / plan.getParts();
  int64_t live = plan.getParts() > 1 ? 2 * partN : partN;
  sum.add("s", live / 8 * 4, rowGroups);
  // At a vote both scores and probabilities are.
  bool exact = plan.getSoftmax() == SoftmaxPolicy::Exact;
  if (!exact)
    sum.add("p", partN / 16 * 4, rowGroups);
  if (plan.getQInRegs())
    sum.add("q", keyColumns / 16 * 4, rowGroups);
  else
    sum.add("q step", 4, rowGroups);
  sum.add("row values", 6, rowGroups);
  // Addresses, fragments of K and V on their way, temporaries of the masks.
  sum.add("other", exact ? 70 + 10 * rowGroups : 33);
  // ptxas 13.0 was seen to keep more addresses of blocks of 128 keys, and of
  // copies that do not run ahead.
  if (!exact && plan.getBlockN() >= 128)
    sum.add("long blocks", partN >= 128 ? 32 : 27);
  if (!exact && plan.getStages() == 1)
    sum.add("copies", 12);
  // An odd number of 8-column groups of V is read for two k-steps at once, so
  // that the second one's fragments wait in registers.
  if (valueColumns % 16 != 0 && partN > 16)
    sum.add("v ahead", valueColumns / 8 * 2 + 12);
  // What masked kernels of wide values were seen to need beside.
  if (!exact && hasWideOddValues(valueColumns))
    sum.add("wide odd v", 21);
  if (!exact && hasWideValues(valueColumns, plan))
    sum.add("wide v", 13);
  sum.add("own rows", getOwnRowRegisters(plan));
  if (!exact && keyColumns > valueColumns)
    sum.add("long k", (keyColumns - valueColumns) / 8);
  // Two groups of rows with all of their scores at the vote.
  if (!exact && rowGroups > 1 && partN > 32)
    sum.add("vote", 6);
  if (dynamicStrides)
    sum.add("strides", 12);
  if (isPaged)
    sum.add("pages", 24);
  sum.add("score", scoreRegisters);
  return sum;
}

/// The most heads whose keys and values take 0.4 of L2 (each of its halves
/// may hold a copy of what its SMs read); 0 if all do.
static int64_t chooseGroup(const ProblemFacts &facts, const TargetRow &target) {
  if (ShapedType::isDynamic(facts.heads) ||
      ShapedType::isDynamic(facts.kvHeads))
    return 0;
  int64_t batch =
      std::max<int64_t>(1, getAssumedExtent(facts.batch, kAssumedBatch));
  int64_t keys = getAssumedExtent(facts.keys, kAssumedLength);
  if (facts.varlen)
    keys = llvm::divideCeil(keys, batch);
  double bytes = double(keys) * (facts.headDim + facts.valueDim) *
                 facts.elementType.getIntOrFloatBitWidth() / 8 * facts.kvHeads /
                 facts.heads;
  double limit = 0.4 * target.l2Bytes;
  if (!ShapedType::isDynamic(facts.batch) &&
      bytes * facts.heads * batch <= limit)
    return 0;
  int64_t group = facts.heads;
  while (group > 1 && (facts.heads % group != 0 || bytes * group > limit))
    --group;
  // The grid has a limit along its third dimension.
  int64_t groups =
      facts.heads / group * batch * std::max<int64_t>(1, facts.kvSplits);
  return groups <= kGridLimit ? group : 0;
}

/// Most heads of a group whose rows a tile may hold together.
static constexpr int64_t kPackedHeadsLimit = 128;

/// Whether plans that pack the heads of a group are worth comparing: a batch
/// that is served has few queries, whose keys are most of the traffic.
static bool isWorthPacking(const ProblemFacts &facts) {
  bool isServed = facts.isPaged() || facts.kvLengths;
  return isServed && !ShapedType::isDynamic(facts.heads) &&
         !ShapedType::isDynamic(facts.kvHeads) &&
         facts.heads != facts.kvHeads &&
         facts.heads / facts.kvHeads <= kPackedHeadsLimit;
}

std::vector<PlanAttrInterface>
SplitQSchedule::getCandidates(const ProblemFacts &facts,
                              const TargetRow &target) const {
  MLIRContext *context = AttentionOp(facts.op).getContext();
  // Tiles get unequal work under a mask: the longest ones go first.
  TileOrder order = facts.mask.getKind() == MaskKind::None
                        ? TileOrder::RowMajor
                        : TileOrder::LongestFirst;
  std::vector<PlanAttrInterface> plans;
  int64_t queries = getAssumedExtent(facts.queries, kAssumedLength);
  bool packs = isWorthPacking(facts);
  if (packs)
    queries *= facts.heads / facts.kvHeads;
  int64_t groupHeads = order == TileOrder::LongestFirst && !packs
                           ? chooseGroup(facts, target)
                           : 0;
  // Parts of one k-step, whose fragments of V have none to wait for: wide odd
  // values leave no registers for a second one.
  int64_t leastPart =
      facts.valueDim % 16 != 0 && facts.valueDim > 192 ? 16 : 32;
  for (int64_t warps : {1, 2, 4, 8})
    for (int64_t warpRows : {16, 32})
      for (int64_t blockN : {32, 64, 128})
        for (int64_t parts : {1, 2, 4})
          for (int64_t stages : {2, 1})
            for (bool qInRegs : {true, false}) {
              // Few warps are for few rows only.
              int64_t blockM = warps * warpRows;
              if (warps < 4 && (warpRows != 16 || queries > blockM))
                continue;
              if (parts > 1 && blockN / parts < leastPart)
                continue;
              SplitQPlanAttr::Parameters plan;
              plan.blockM = blockM;
              plan.blockN = blockN;
              plan.warps = warps;
              plan.stages = stages;
              plan.qInRegs = qInRegs;
              plan.parts = parts;
              plan.softmax = SoftmaxPolicy::Optimistic;
              plan.order = order;
              plan.groupHeads = groupHeads;
              plan.packHeads = packs;
              plans.push_back(SplitQPlanAttr::get(context, plan));
            }
  return plans;
}

llvm::Error SplitQSchedule::isApplicable(const ProblemFacts &facts,
                                         const TargetRow &) const {
  Parts parts;
  parts.lengths = parts.pages = parts.partialResults = true;
  if (llvm::Error error = checkCommon(getName(), facts, parts))
    return error;
  if (facts.kvSplits && facts.varlen)
    return makeUnsupported(getName(),
                           "split keys of packed sequences, since attn.combine "
                           "would write rows that no sequence owns");
  if (facts.hasTransposedValues())
    return makeUnsupported(getName(),
                           "'v' whose keys are contiguous, expected a stride "
                           "of 1 along the head dimension");
  for (const TensorFacts *tensor : {&facts.q, &facts.k, &facts.v})
    if (tensor->getRowAlignment() < 4)
      return makeUnsupported(
          getName(), llvm::formatv("rows of '{0}' that start at multiples of "
                                   "{1} bytes, expected 4, 8 or 16",
                                   tensor->name, tensor->getRowAlignment()));
  return llvm::Error::success();
}

int64_t attn::getPackedHeads(const ProblemFacts &facts, SplitQPlanAttr plan) {
  return plan.getPackHeads() ? facts.heads / facts.kvHeads : 1;
}

/// Heads of a group as rows of their query.
static llvm::Error checkPacking(const ProblemFacts &facts,
                                SplitQPlanAttr plan) {
  if (!plan.getPackHeads())
    return llvm::Error::success();
  auto name = [](int64_t extent) {
    return ShapedType::isDynamic(extent) ? std::string("a dynamic number of")
                                         : std::to_string(extent);
  };
  if (ShapedType::isDynamic(facts.heads) ||
      ShapedType::isDynamic(facts.kvHeads) || facts.heads == facts.kvHeads ||
      facts.heads / facts.kvHeads > kPackedHeadsLimit)
    return llvm::createStringError(llvm::formatv(
        "expected groups of 2 to {0} heads for pack_heads, got {1} query heads "
        "and {2} key heads",
        kPackedHeadsLimit, name(facts.heads), name(facts.kvHeads)));
  if (int64_t group = plan.getGroupHeads())
    return llvm::createStringError(llvm::formatv(
        "expected group_heads to be 0 with pack_heads, got {0}", group));
  // Rows are numbered in 32 bits.
  int64_t rows = facts.heads / facts.kvHeads;
  if (!ShapedType::isDynamic(facts.queries) &&
      facts.queries >= kLengthLimit / rows)
    return llvm::createStringError(llvm::formatv(
        "expected fewer than {0} rows with pack_heads, got {1} queries of {2} "
        "heads",
        kLengthLimit, facts.queries, rows));
  return llvm::Error::success();
}

llvm::Error SplitQSchedule::checkPlan(const ProblemFacts &facts,
                                      PlanAttrInterface planAttr,
                                      const TargetRow &target) const {
  auto plan = cast<SplitQPlanAttr>(planAttr);
  if (llvm::Error error = checkPolicy(getName(), plan.getSoftmax()))
    return error;
  if (plan.getEpilogue() == EpilogueKind::Tma)
    return makeUnsupported(getName(), "results that TMA stores");
  if (llvm::Error error = checkPacking(facts, plan))
    return error;
  SplitQExtents extents(facts, plan);
  if (llvm::Error error =
          checkSharedBytes(extents.getSharedBytes(plan), target))
    return error;
  // The grid's y and z are narrower than x.
  auto checkGrid = [&](llvm::StringRef what, int64_t extent) -> llvm::Error {
    if (ShapedType::isDynamic(extent) || extent <= kGridLimit)
      return llvm::Error::success();
    return llvm::createStringError(llvm::formatv(
        "does not fit: {0} {1} exceed {2} of a grid's y and z in order '{3}'",
        extent, what, kGridLimit, stringifyTileOrder(plan.getOrder())));
  };
  // Runs of keys are a factor of z.
  int64_t splits = std::max<int64_t>(1, facts.kvSplits);
  if (int64_t group = plan.getGroupHeads()) {
    // Groups of one batch only: batches may be many at the launch.
    if (ShapedType::isDynamic(facts.heads) || facts.heads % group != 0)
      return llvm::createStringError(llvm::formatv(
          "expected group_heads to divide the number of heads, {0}, got {1}",
          ShapedType::isDynamic(facts.heads) ? std::string("which is dynamic")
                                             : std::to_string(facts.heads),
          group));
    if (!ShapedType::isDynamic(facts.batch))
      if (llvm::Error error = checkGrid(
              "groups of heads", facts.heads / group * facts.batch * splits))
        return error;
  }
  if (llvm::Error error = checkGrid("runs of keys", splits))
    return error;
  if (plan.getOrder() == TileOrder::LongestFirst)
    return checkGrid(
        "tiles of queries",
        ShapedType::isDynamic(facts.queries)
            ? 0
            : llvm::divideCeil(facts.queries * getPackedHeads(facts, plan),
                               plan.getBlockM()));
  if (llvm::Error error =
          checkGrid("heads", plan.getPackHeads() ? facts.kvHeads : facts.heads))
    return error;
  return checkGrid("batches", ShapedType::isDynamic(facts.batch)
                                  ? facts.batch
                                  : facts.batch * splits);
}

KernelShape SplitQSchedule::getKernelShape(const ProblemFacts &facts,
                                           PlanAttrInterface planAttr,
                                           const TargetRow &) const {
  auto plan = cast<SplitQPlanAttr>(planAttr);
  KernelShape shape;
  shape.grid = getTileGrid(facts, plan);
  shape.threads = plan.getThreads();
  shape.warps = {{plan.getWarps(), 1}};
  return shape;
}

FailureOr<PlanAttrInterface> SplitQSchedule::setParameters(
    llvm::function_ref<InFlightDiagnostic()> emitError, PlanAttrInterface plan,
    llvm::ArrayRef<PlanParameter> parameters) const {
  // Groups belong to one order, and to heads with tiles of their own: another
  // order, or packed heads, drop the group of a candidate.
  llvm::SmallVector<PlanParameter> all(parameters);
  bool setsGroup = false, dropsGroup = false;
  for (PlanParameter parameter : parameters) {
    setsGroup |= parameter.name == "group_heads";
    dropsGroup |=
        parameter.name == "order" &&
        parameter.value != stringifyTileOrder(TileOrder::LongestFirst);
    dropsGroup |= parameter.name == "pack_heads" && parameter.value == "true";
  }
  if (dropsGroup && !setsGroup)
    all.push_back({"group_heads", "0"});
  return Schedule::setParameters(emitError, plan, all);
}
