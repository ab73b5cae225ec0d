//===- WsMlaPlan.cpp - Plans of ws_mla: legality and parameters -----------===//

#include "../Copied/CopiedChecks.h"
#include "../Copied/GridTiles.h"
#include "../Tma/TileWalk.h"
#include "WsMla.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::attn;

static StringRef getName() { return WsMlaPlanAttr::getSyntax().schedule; }

/// Most columns of the keys, as in `mla`.
static constexpr int64_t kMostColumns = 640;

std::array<int64_t, 2> attn::getScoreGrid(WsMlaPlanAttr plan) {
  int64_t rows = plan.getBlockM() / 16;
  return {rows, kRoleScoreWarps / rows};
}

std::array<int64_t, 2> attn::getSoftmaxGrid(WsMlaPlanAttr plan) {
  int64_t rows = std::min(plan.getBlockM() / 16, kRoleSoftmaxWarps);
  return {rows, kRoleSoftmaxWarps / rows};
}

int64_t attn::getRoleKeyColumns(const ProblemFacts &facts) {
  return llvm::alignTo(facts.headDim, 16);
}

int64_t attn::getRoleRegisters(WsMlaPlanAttr plan) {
  // A quarter of an SM has a quarter of the file, and 5 of the 18 warps.
  int64_t threads = llvm::alignTo(plan.getThreads(), 32 * kWarpgroupWarps);
  return llvm::alignDown(kRegisterFile / threads, 8);
}

ResourceSum attn::getRoleSharedBytes(const ProblemFacts &facts,
                                     WsMlaPlanAttr plan) {
  int64_t bytes = facts.elementType.getIntOrFloatBitWidth() / 8;
  int64_t rows = plan.getBlockM(), keys = plan.getBlockN();
  int64_t columns = getRoleKeyColumns(facts);
  ResourceSum sum;
  sum.add("q", rows * columns * bytes);
  sum.add("k", keys * columns * bytes, plan.getStages());
  sum.add("s", rows * keys * 4, plan.getSStages());
  sum.add("p", rows * keys * bytes, plan.getPStages());
  sum.add("factor", rows * 4, plan.getPStages());
  sum.add("scale", rows * 4);
  if (areResultsPartial(facts))
    sum.add("units", rows * kRoleResultWarps * kRowOwners * 4);
  // A slot of k has three mbarriers, any other one two.
  sum.add("barriers", 8,
          3 * plan.getStages() +
              2 * (2 + plan.getSStages() + plan.getPStages()));
  return sum;
}

static llvm::Error isApplicable(const ProblemFacts &facts, const TargetRow &) {
  if (!facts.isLatent())
    return makeLacking(getName(), "values that are not columns of the keys, "
                                  "expected the latent form ('rope_dim')");
  Parts parts;
  parts.latent = true;
  parts.mostColumns = kMostColumns;
  if (llvm::Error error = checkCopied(getName(), facts, parts))
    return error;
  if (facts.initLse)
    return makeLacking(getName(), "a state to go on from ('init')");
  // Values are whole panels of the keys in shared memory, of which each warp of
  // the results has 8 columns or more.
  unsigned bits = facts.elementType.getIntOrFloatBitWidth();
  int64_t panel = SharedLayout::chooseSpan(facts.headDim, bits) * 8 / bits;
  int64_t step = std::max(panel, 8 * kRoleResultWarps);
  if (facts.kRope)
    step = 8 * kRoleResultWarps;
  if (facts.headDim % 16 != 0 || facts.valueDim % step != 0)
    return makeUnsupported(
        getName(),
        llvm::formatv("a head dimension of {0} and a value dimension of {1}, "
                      "expected multiples of 16 and {2}",
                      facts.headDim, facts.valueDim, step));
  return llvm::Error::success();
}

static llvm::Error checkPlan(const ProblemFacts &facts, WsMlaPlanAttr plan,
                             const TargetRow &target) {
  if (llvm::Error error = checkPolicy(getName(), plan.getSoftmax()))
    return error;
  if (llvm::Error error = checkExactMaxima(facts, plan.getSoftmax()))
    return error;
  if (plan.getEpilogue() == EpilogueKind::Tma ||
      plan.getEpilogue() == EpilogueKind::Staged)
    return llvm::createStringError(
        llvm::formatv("expected the epilogue 'auto', 'direct' or 'shuffled', "
                      "got '{0}'",
                      stringifyEpilogueKind(plan.getEpilogue())));
  if (facts.heads != 1)
    if (llvm::Error error = checkPackedHeads(facts, /*groupHeads=*/0))
      return error;
  if (llvm::Error error = checkRunKeys(facts, plan.getBlockN()))
    return error;
  return checkSharedBytes(getRoleSharedBytes(facts, plan), target);
}

static KernelShape getKernelShape(const ProblemFacts &facts, WsMlaPlanAttr plan,
                                  const TargetRow &target) {
  KernelShape shape;
  shape.threads = plan.getThreads();
  // One CTA for each SM of the target's board. They walk all tiles, so any
  // number is right.
  shape.grid = {int64_t(target.smCount), 1, 1};
  shape.tiles = countDealtTiles(facts, getTilePlan(facts, plan));
  return shape;
}

const Schedule &attn::getWsMlaSchedule() {
  static const ProjectSchedule<WsMlaPlanAttr> schedule(
      {isApplicable, checkPlan, getKernelShape, emitWsMla});
  return schedule;
}
