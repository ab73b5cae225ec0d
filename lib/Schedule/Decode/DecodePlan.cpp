//===- DecodePlan.cpp - Plans of decode: legality and parameters ----------===//

#include "../Copied/CopiedChecks.h"
#include "../Copied/CopiedExtents.h"
#include "../Copied/CopiedKernel.h"
#include "../Copied/GridTiles.h"
#include "../Core/CommonChecks.h"
#include "../Core/NarrowKeys.h"
#include "Decode.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::attn;

static StringRef getName() { return DecodePlanAttr::getSyntax().schedule; }

/// Most query rows that share keys. Tiles of them stand side by side in the
/// grid, and all but one find keys in L2. With runs of a fixed length a chunk
/// of a prompt has the plan of its queries one by one, however many rows it
/// has.
static constexpr int64_t kMostRows = 256;
/// Most queries of a sequence: those of a draft.
static constexpr int64_t kMostQueries = 32;

int64_t attn::getKnownGroup(const ProblemFacts &facts) {
  int64_t group = facts.getGroup();
  return ShapedType::isDynamic(group) ? 1 : group;
}

static llvm::Error isApplicable(const ProblemFacts &facts,
                                const TargetRow &target) {
  Parts parts;
  parts.narrow = parts.narrowKeys = parts.rowScales = parts.resultScales = true;
  parts.mostColumns = kMostSharedColumns;
  if (llvm::Error error = checkCopied(getName(), facts, parts))
    return error;
  if (llvm::Error error = checkNarrowOperands(getName(), facts, target))
    return error;
  if (llvm::Error error = checkNarrowKeys(getName(), facts))
    return error;
  if (ShapedType::isDynamic(facts.queries))
    return makeUnsupported(getName(),
                           "a number of queries that only the launch decides");
  if (facts.hasRuns())
    return llvm::Error::success();
  if (facts.queries > kMostQueries)
    return makeUnsupported(
        getName(), llvm::formatv("{0} queries of a sequence, expected at most "
                                 "{1}; 'split_q' takes more",
                                 facts.queries, kMostQueries));
  int64_t rows = facts.queries * getKnownGroup(facts);
  if (rows > kMostRows)
    return makeUnsupported(
        getName(),
        llvm::formatv("{0} query rows that share keys, expected at most {1}; "
                      "'split_q' takes more, and on chips with wgmma "
                      "'ws_wgmma'",
                      rows, kMostRows));
  return llvm::Error::success();
}

static llvm::Error checkPlan(const ProblemFacts &facts, DecodePlanAttr plan,
                             const TargetRow &target) {
  if (llvm::Error error = checkCopiedPlan(getName(), facts, plan, target))
    return error;
  if (llvm::Error error = checkNarrowParts(facts, plan.getBlockN()))
    return error;
  CopiedExtents extents(facts, plan);
  if (int64_t group = extents.groupColumns;
      group && (facts.headDim % group != 0 || facts.valueDim % group != 0))
    return llvm::createStringError(llvm::formatv(
        "expected q_in_regs with 8-bit keys beside 16-bit queries unless "
        "groups "
        "of {0} columns divide keys and values, of {1} and {2} columns",
        group, facts.headDim, facts.valueDim));
  int64_t columnWarps = plan.getWarpsN();
  if (facts.valueDim % (8 * columnWarps) != 0)
    return llvm::createStringError(llvm::formatv(
        "expected warps_n to divide the value dimension's {0} groups of 8 "
        "columns, got {1}",
        facts.valueDim / 8, columnWarps));
  if (columnWarps > 1 && facts.hasResultScales())
    return llvm::createStringError(
        llvm::formatv("expected warps_n = 1 with scales of the output, got {0}",
                      columnWarps));
  // A warp has pairs of groups of 8 columns of each product.
  int64_t group =
      extents.groupColumns ? extents.groupColumns : extents.valueColumns;
  if (facts.hasNarrowValues() && group % (16 * columnWarps) != 0)
    return llvm::createStringError(
        llvm::formatv("expected up to {0} warps_n with 8-bit keys, got {1}",
                      group / 16, columnWarps));
  ResourceSum shared = extents.getSharedBytes(plan);
  return checkCTAsFit(plan.getCtasPerSm(), shared, target);
}

static KernelShape getKernelShape(const ProblemFacts &facts,
                                  DecodePlanAttr plan, const TargetRow &) {
  KernelShape shape;
  shape.grid = getTileGrid(facts, plan);
  shape.mergesRuns = mergesRuns(facts, plan);
  shape.dealsRuns = plan.getDealtRuns() != 0;
  if (plan.getPlanWork())
    shape.plannedRuns = plan.getDealtRuns();
  shape.threads = plan.getThreads();
  shape.warps = {{1, plan.getWarpsN()}};
  shape.teams = plan.getWarps() / plan.getWarpsN();
  shape.ctasPerSM = plan.getCtasPerSm();
  return shape;
}

static LogicalResult emit(KernelContext &context, DecodePlanAttr plan) {
  return emitCopied(context, plan);
}

static std::string describeSums(const ProblemFacts &facts,
                                DecodePlanAttr plan) {
  return describeCopiedSums(facts, plan);
}

const Schedule &attn::getDecodeSchedule() {
  static const ProjectSchedule<DecodePlanAttr> schedule(
      {isApplicable, checkPlan, getKernelShape, emit,
       /*completeParameters=*/nullptr, /*countUnitGroups=*/nullptr,
       describeSums});
  return schedule;
}
