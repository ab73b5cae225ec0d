//===- DecodePlan.cpp - Plans of decode: legality and parameters ----------===//

#include "../Copied/CopiedChecks.h"
#include "../Copied/CopiedCost.h"
#include "../Copied/CopiedEmit.h"
#include "../Copied/CopiedExtents.h"
#include "../Copied/GridTiles.h"
#include "../Core/CommonChecks.h"
#include "../Core/NarrowKeys.h"
#include "Decode.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::attn;

const Schedule &attn::getDecodeSchedule() {
  static const DecodeSchedule schedule;
  return schedule;
}

/// Most query rows that share keys.
static constexpr int64_t kMostRows = 32;

/// Most columns of keys and values, and of those of 8 bits, whose results one
/// warp holds: of 240 and 256 columns ptxas 13.0 spilled 148 and 612 bytes, of
/// 224 with a state to start from 8 to 20.
static constexpr int64_t kMostColumns = 208, kMostNarrowColumns = 192;

/// Most columns of queries beside keys of 8 bits for which plans keep them in
/// registers: of 448 and 512 columns with scales of groups ptxas 13.0 spilled
/// 20 to 356 bytes, of 320 and 384 columns whose scales of a row are copied
/// together 4 to 36. Nobody timed shorter ones that are read with each block.
static constexpr int64_t kMostHeldColumns = 416, kMostScaledColumns = 304;

/// Query heads that share a key head; 1 if only the launch knows.
static int64_t getKnownGroup(const ProblemFacts &facts) {
  int64_t group = facts.getGroup();
  return ShapedType::isDynamic(group) ? 1 : group;
}

llvm::Error DecodeSchedule::isApplicable(const ProblemFacts &facts,
                                         const TargetRow &) const {
  Parts parts;
  parts.narrowKeys = parts.rowScales = parts.resultScales = true;
  parts.mostColumns = kMostSharedColumns;
  if (llvm::Error error = checkCopied(getName(), facts, parts))
    return error;
  if (llvm::Error error = checkNarrowKeys(getName(), facts))
    return error;
  if (ShapedType::isDynamic(facts.queries))
    return makeUnsupported(getName(),
                           "a number of queries that only the launch decides");
  int64_t rows = facts.queries * getKnownGroup(facts);
  if (facts.queries > kMostRows || rows > kMostRows)
    return makeUnsupported(
        getName(),
        llvm::formatv("{0} query rows that share keys, expected at most {1}; "
                      "'split_q' takes more, and on chips with wgmma "
                      "'ws_wgmma'",
                      rows, kMostRows));
  return llvm::Error::success();
}

/// Whether plans for 8-bit keys keep queries in registers: unless they are long
/// and may be in groups of columns.
static bool holdsQueries(const ProblemFacts &facts) {
  if (facts.kScales && facts.scaleGroup != facts.headDim)
    return facts.headDim <= kMostScaledColumns;
  bool isInGroups =
      facts.headDim % kGroupColumns == 0 && facts.valueDim % kGroupColumns == 0;
  return facts.headDim <= kMostHeldColumns || !isInGroups;
}

/// Bytes of a row of keys and values that two heads in a CTA have to save, for
/// plans of several heads.
static constexpr double kFewestSavedBytes = 2;

/// The most heads of one CTA that are worth a plan: a power of two that divides
/// those of tiles where a head has short pieces of pages and heads lie side by
/// side; else 1.
static int64_t countHeadsTogether(const ProblemFacts &facts) {
  int64_t group = getKnownGroup(facts);
  if (ShapedType::isDynamic(facts.heads) ||
      getBytesBeside(facts, /*heads=*/1) - getBytesBeside(facts, /*heads=*/2) <
          kFewestSavedBytes)
    return 1;
  int64_t heads = facts.heads / group;
  return heads & -heads;
}

std::vector<PlanAttrInterface>
DecodeSchedule::getCandidates(const ProblemFacts &facts,
                              const TargetRow &) const {
  MLIRContext *context = AttentionOp(facts.op).getContext();
  int64_t group = getKnownGroup(facts);
  // Scales of groups want whole rows in a warp: of long ones a CTA has one.
  int64_t most = facts.hasNarrowKeys() ? kMostNarrowColumns : kMostColumns;
  bool isLong = std::max(facts.headDim, facts.valueDim) > most;
  int64_t mostHeads = countHeadsTogether(facts);
  std::vector<PlanAttrInterface> plans;
  for (int64_t warps : {4, 8, 2, 1}) {
    int64_t together = std::min(warps, mostHeads);
    for (int64_t blockN : {16, 32, 64})
      for (int64_t stages : {2, 3, 4})
        for (int64_t ctasPerSM : {1, 2, 3, 4})
          for (bool qInRegs : {true, false}) {
            DecodePlanAttr::Parameters plan;
            plan.blockM = facts.queries * group > 16 ? 32 : 16;
            plan.blockN = blockN;
            plan.warps = warps;
            plan.stages = stages;
            plan.ctasPerSm = ctasPerSM;
            plan.qInRegs = qInRegs;
            if (facts.hasNarrowKeys() && qInRegs != holdsQueries(facts))
              continue;
            plan.softmax = SoftmaxPolicy::Optimistic;
            plan.packHeads = group > 1;
            if (isLong)
              plan.warpsN = warps;
            plans.push_back(DecodePlanAttr::get(context, plan));
            // Several heads in a CTA are for short pieces of pages.
            plan.ctaHeads = together / plan.warpsN;
            if (plan.ctaHeads > 1)
              plans.push_back(DecodePlanAttr::get(context, plan));
          }
  }
  return plans;
}

llvm::Error DecodeSchedule::checkPlan(const ProblemFacts &facts,
                                      PlanAttrInterface planAttr,
                                      const TargetRow &target) const {
  auto plan = cast<DecodePlanAttr>(planAttr);
  if (llvm::Error error = checkCopiedPlan(getName(), facts, plan, target))
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
  if (columnWarps > 1 && facts.oScales && !facts.hasPartialScales())
    return llvm::createStringError(
        llvm::formatv("expected warps_n = 1 with scales of the output, got {0}",
                      columnWarps));
  // A warp has pairs of groups of 8 columns of each product.
  int64_t group = extents.groupColumns ? extents.groupColumns : facts.valueDim;
  if (facts.hasNarrowKeys() && group % (16 * columnWarps) != 0)
    return llvm::createStringError(
        llvm::formatv("expected up to {0} warps_n with 8-bit keys, got {1}",
                      group / 16, columnWarps));
  ResourceSum shared = extents.getSharedBytes(plan);
  return checkCTAsFit(plan.getCtasPerSm(), shared, target);
}

KernelShape DecodeSchedule::getKernelShape(const ProblemFacts &facts,
                                           PlanAttrInterface planAttr,
                                           const TargetRow &) const {
  auto plan = cast<DecodePlanAttr>(planAttr);
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

LogicalResult DecodeSchedule::emit(KernelContext &context,
                                   PlanAttrInterface plan) const {
  return emitCopied(context, cast<DecodePlanAttr>(plan));
}
