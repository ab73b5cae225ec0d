//===- PlanRemarks.cpp - What attn-plan says about its choice -------------===//

#include "PlanRemarks.h"
#include "attn/Target/Boards.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <numeric>

using namespace mlir;
using namespace mlir::attn;

/// Says which keys estimates are those of; empty where nobody has said.
static std::string describeExpected(AttentionOp op) {
  std::optional<ArrayRef<int64_t>> keys = op.getExpectedKeys();
  if (!keys)
    return "";
  double sum = std::accumulate(keys->begin(), keys->end(), 0.0);
  return llvm::formatv("; estimated for sequences of {0} to {1} keys, {2:f0} "
                       "on average",
                       *llvm::min_element(*keys), *llvm::max_element(*keys),
                       sum / keys->size());
}

void attn::report(AttentionOp op, const PlanCandidate &candidate,
                  const llvm::Twine &source, const llvm::Twine &measured) {
  const PlanEstimate &e = candidate.estimate;
  remark::passed(op.getLoc(),
                 remark::RemarkOpts::name("plan").category("attn.plan"))
      << remark::add("plan {0}: {1}{2}{3}", source.str(), candidate.describe(),
                     measured.str(), describeExpected(op))
      << remark::metric("microseconds",
                        llvm::formatv("{0:f1}", e.microseconds).str())
      << remark::metric("shared-bytes", e.sharedBytes.getTotal())
      << remark::metric("registers", e.registers.getTotal())
      << remark::metric("ctas-per-sm", e.ctasPerSM)
      << remark::metric("tensor-clocks",
                        llvm::formatv("{0:f0}", e.tensorClocks).str())
      << remark::metric("exp-clocks",
                        llvm::formatv("{0:f0}", e.expClocks).str())
      << remark::metric("issue-clocks",
                        llvm::formatv("{0:f0}", e.issueClocks).str())
      << remark::metric("shared-clocks",
                        llvm::formatv("{0:f0}", e.sharedClocks).str());
}

/// The value of a plan's parameter; empty if its schedule has none of that
/// name.
static std::string getParameter(PlanAttrInterface plan, StringRef name) {
  for (const PlanParameterInfo &info : plan.listParameters())
    if (info.name == name)
      return info.value;
  return "";
}

void attn::reportWays(AttentionOp op, ArrayRef<PlanCandidate> plans,
                      StringRef parameter, StringRef what) {
  PlanAttrInterface taken = plans.front().plan;
  SmallVector<std::pair<std::string, const PlanCandidate *>> best;
  for (const PlanCandidate &each : plans) {
    std::string way = getParameter(each.plan, parameter);
    if (each.plan.getSchedule() == taken.getSchedule() &&
        !llvm::is_contained(llvm::make_first_range(best), way))
      best.push_back({way, &each});
  }
  if (best.size() < 2)
    return;
  std::string category = ("attn." + parameter).str();
  auto message = remark::passed(
      op.getLoc(), remark::RemarkOpts::name(parameter).category(category));
  message << remark::add("{0} by '{1}'", what, best.front().first);
  for (const auto &[way, candidate] : best) {
    const PlanEstimate &e = candidate->estimate;
    message << remark::metric(way + "-microseconds",
                              llvm::formatv("{0:f2}", e.microseconds).str())
            << remark::metric(way + "-tile-clocks",
                              llvm::formatv("{0:f0}", e.tileClocks).str())
            << remark::metric(way + "-block-clocks",
                              llvm::formatv("{0:f0}", e.blockClocks).str())
            << remark::metric(way + "-shared-bytes", e.sharedBytes.getTotal());
  }
}

void attn::reportOtherSchedule(AttentionOp op, const PlanCandidates &candidates,
                               const TargetRow &target) {
  const Schedule &expected = getDefaultSchedule(target);
  std::string why = explainOtherSchedule(candidates, expected);
  if (why.empty())
    return;
  remark::missed(op.getLoc(),
                 remark::RemarkOpts::name("schedule").category("attn.plan"))
      << remark::reason("no plan of '{0}', the schedule of {1}: {2}",
                        expected.getName(), target.chip, why);
}

void attn::reportSlowerSchedule(AttentionOp op,
                                const PlanCandidates &candidates,
                                const TargetRow &target) {
  const Schedule &taken = *candidates.plans.front().schedule;
  const Schedule &own = getDefaultSchedule(target);
  // The default of chips that have no other matrix instructions.
  bool isOther = &taken == &getSplitQSchedule() && &own != &taken;
  bool isCompared =
      llvm::any_of(candidates.plans, [&](const PlanCandidate &each) {
        return each.schedule == &own;
      });
  if (!isOther || isCompared || candidates.reasons.empty())
    return;
  double share = double(target.mmaSyncFlopF16) / target.tensorFlopF16;
  remark::missed(op.getLoc(),
                 remark::RemarkOpts::name("slower").category("attn.plan"))
      << remark::reason(
             "'{0}' multiplies by mma.sync, at {1:f2} of the rate of {2}: {3}",
             taken.getName(), share, target.chip,
             candidates.reasons.front().text)
      << remark::metric("rate", llvm::formatv("{0:f2}", share).str());
}

void attn::reportBoard(ModuleOp module, const TargetRow &target,
                       StringRef board) {
  SmallVector<StringRef> others;
  for (const Board &each : getBoards())
    if (llvm::is_contained(each.chips, target.chip) &&
        each.title != target.board)
      others.push_back(each.name);
  if (others.empty())
    return;
  remark::passed(module.getLoc(),
                 remark::RemarkOpts::name("board").category("attn.board"))
      << remark::add("plans for {0}{1} of {2}; others are {3}",
                     board.empty() ? "the default board " : "board ",
                     target.board, target.chip, llvm::join(others, ", "));
}
