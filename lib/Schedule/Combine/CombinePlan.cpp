//===- CombinePlan.cpp - The launch of a combine --------------------------===//

#include "../Core/CommonChecks.h"
#include "RowMerge.h"
#include "attn/Planner/Facts/Factor.h"
#include "attn/Schedule/Core/CombineSchedule.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::attn;

CombinePlanAttr attn::getDefaultCombinePlan(MLIRContext *context) {
  return CombinePlanAttr::get(context, {});
}

llvm::Error attn::checkCombinePlan(const CombineFacts &facts,
                                   PlanAttrInterface plan) {
  if (!isa<CombinePlanAttr>(plan))
    return llvm::createStringError(
        "expected a plan of schedule 'combine', got one of '" +
        plan.getSchedule() + "'");
  return checkGroups(facts);
}

llvm::Error attn::checkGroups(const CombineFacts &facts) {
  if (facts.groupColumns == 0)
    return llvm::Error::success();
  int64_t columns = getCombineColumns(facts, kMaxCombineColumns);
  if (facts.hasFloat4Results() && columns < 2)
    return llvm::createStringError(
        "merged results of 4 bits need pairs of columns, expected rows of "
        "partial results at multiples of 8 bytes");
  int64_t most = columns * kWarpLanes;
  if (facts.groupColumns <= most && llvm::isPowerOf2_64(facts.groupColumns))
    return llvm::Error::success();
  return llvm::createStringError(llvm::formatv(
      "merged results do not support a scale for each {0} columns, expected a "
      "power of two up to {1}, which the lanes of a warp share",
      facts.groupColumns, most));
}

bool attn::mayMergeScales(const ProblemFacts &facts) {
  CombineFacts merge;
  merge.valueDim = facts.valueDim;
  merge.groupColumns = facts.outGroup;
  // Rows of partial results are dense: those of o decide.
  merge.partialO = merge.o = facts.o;
  bool may = true;
  llvm::handleAllErrors(checkGroups(merge),
                        [&](const llvm::StringError &) { may = false; });
  return may;
}

llvm::Error attn::checkScaleColumns(llvm::StringRef schedule,
                                    const ProblemFacts &facts, int64_t step) {
  if (!facts.hasResultScales() || facts.outGroup % step == 0)
    return llvm::Error::success();
  return makeUnsupported(
      schedule, llvm::formatv("a scale for each {0} columns of the output, "
                              "expected a multiple of {1}",
                              facts.outGroup, step));
}

RowMergeWay attn::getRowMergeWay(const CombineFacts &facts) {
  // Few results make few threads, which ask for little at a time; what they
  // ask for at once anyway takes longer in more of them.
  static constexpr Factor kFewThreads{"combine.few_threads"};
  bool isKnown =
      llvm::none_of(ArrayRef({facts.batch, facts.heads, facts.queries}),
                    ShapedType::isDynamic);
  bool hasMany =
      ShapedType::isDynamic(facts.splits) || facts.splits > kUnrolledSplits;
  bool isSmall = isKnown && hasMany && !facts.areDealt &&
                 facts.batch * facts.heads * facts.queries * facts.valueDim <
                     kFewThreads * kMaxCombineColumns;
  // A group of columns is a warp's, and lanes load 4 bytes or more.
  bool hasPairs = facts.partialO.elementType.getIntOrFloatBitWidth() == 16 ||
                  facts.hasFloat4Results();
  int64_t fewest =
      std::max<int64_t>(hasPairs ? 2 : 1, facts.groupColumns / kWarpLanes);
  // Nearly all sequences of equal runs are in two of them.
  constexpr int64_t kFewPieces = 4;
  if (facts.equalRuns)
    return {getCombineColumns(facts, 2 * kMaxCombineColumns), kFewPieces};
  return {getCombineColumns(facts, isSmall ? fewest : kMaxCombineColumns),
          isSmall ? 4 * kUnrolledSplits : kUnrolledSplits};
}

int64_t attn::getCombineColumns(const CombineFacts &facts, int64_t most) {
  int64_t columns = most;
  auto limit = [&](const TensorFacts &tensor, int64_t bits) {
    columns = std::min(columns, 8 * tensor.getRowAlignment() / bits);
  };
  limit(facts.partialO, facts.partialO.elementType.getIntOrFloatBitWidth());
  limit(facts.o, facts.hasFloat4Results()
                     ? 4
                     : facts.o.elementType.getIntOrFloatBitWidth());
  while (facts.valueDim % columns != 0)
    columns /= 2;
  while (facts.groupColumns % columns != 0)
    columns /= 2;
  while (facts.getUnitColumns() % columns != 0)
    columns /= 2;
  return columns;
}

CombineFrame::CombineFrame(const CombineFacts &facts, const TargetRow &target)
    : KernelFrame(target, CombineOp(facts.op).getLoc(), {}, facts.scalars) {
  for (const TensorFacts *tensor :
       {&facts.partialO, &facts.partialLse, &facts.partialScales, &facts.o,
        &facts.lse, &facts.oScales, &facts.amax, &facts.work})
    if (*tensor)
      tensors.push_back(*tensor);
  llvm::append_range(tensors, facts.captures);
  addSize("partial_o", 0, facts.splits);
  addSize("o", 0, facts.batch);
  addSize("o", 1, facts.heads);
  addSize("o", 2, facts.queries);
  for (auto [index, tensor] : llvm::enumerate(tensors))
    for (auto [dim, stride] : llvm::enumerate(tensor.strides))
      if (ShapedType::isDynamic(stride))
        addStride(index, dim);
}

KernelShape attn::getCombineShape(const CombineFacts &facts,
                                  CombinePlanAttr plan) {
  KernelShape shape;
  // Each equal run merges one sequence at most.
  SizeExpr merged =
      facts.equalRuns ? SizeExpr(facts.equalRuns) : SizeExpr::getDim("o", 0);
  SizeExpr rows = merged * SizeExpr::getDim("o", 1) * SizeExpr::getDim("o", 2);
  shape.grid = {
      SizeExpr::ceilDiv(rows * (facts.valueDim / getRowMergeWay(facts).columns),
                        plan.getThreads()),
      1, 1};
  shape.threads = plan.getThreads();
  shape.warps = {{plan.getWarps(), 1}};
  return shape;
}

std::optional<int64_t> attn::countCombineCtas(const CombineFacts &facts,
                                              CombinePlanAttr plan) {
  if (llvm::any_of(ArrayRef({facts.batch, facts.heads, facts.queries}),
                   ShapedType::isDynamic))
    return std::nullopt;
  int64_t threads = (facts.equalRuns ? facts.equalRuns : facts.batch) *
                    facts.heads * facts.queries *
                    (facts.valueDim / getRowMergeWay(facts).columns);
  return llvm::divideCeil(threads, plan.getThreads());
}
