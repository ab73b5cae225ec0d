//===- MlaCandidates.cpp - Plans of mla to compare ------------------------===//

#include "../../Schedule/Mla/Mla.h"
#include "Models.h"

using namespace mlir;
using namespace mlir::attn;

namespace {
/// Says how warps of mma.sync that share rows work together: they exchange
/// scores, or probabilities (the exact softmax), or nothing.
struct Form {
  ScoreWork score;
  SoftmaxPolicy softmax;
};
} // namespace
static constexpr Form kForms[] = {
    {ScoreWork::Shard, SoftmaxPolicy::Optimistic},
    {ScoreWork::Shard, SoftmaxPolicy::Exact},
    {ScoreWork::Twice, SoftmaxPolicy::Optimistic}};

std::vector<PlanAttrInterface>
MlaModel::getCandidates(const ProblemFacts &facts,
                        const TargetRow &target) const {
  MLIRContext *context = AttentionOp(facts.op).getContext();
  int64_t rows = countLatentRows(facts);
  bool isOneHead = facts.heads == 1;
  std::vector<PlanAttrInterface> plans;
  for (int64_t blockM : {16, 32, 64}) {
    // More rows than there are help nobody.
    if (blockM > 16 && rows <= blockM / 2)
      continue;
    for (int64_t warpsM : {1, 2, 4})
      for (int64_t warpsN : {8, 4, 2})
        for (int64_t blockN : {64, 32, 16})
          for (int64_t stages : {2, 3, 4, 1})
            for (int64_t ctasPerSM : {2, 1})
              for (const Form &form : kForms)
                for (bool qInRegs : {false, true}) {
                  MlaPlanAttr::Parameters plan;
                  plan.blockM = blockM;
                  plan.blockN = blockN;
                  plan.warpsM = warpsM;
                  plan.warpsN = warpsN;
                  plan.stages = stages;
                  plan.ctasPerSm = ctasPerSM;
                  plan.qInRegs = qInRegs;
                  plan.score = form.score;
                  plan.softmax = form.softmax;
                  plan.packHeads = !isOneHead;
                  bool isWhole = blockM % (16 * warpsM) == 0 &&
                                 warpsM * warpsN <= 16 &&
                                 (form.score == ScoreWork::Twice ||
                                  blockN % (8 * warpsN) == 0);
                  if (isWhole)
                    plans.push_back(MlaPlanAttr::get(context, plan));
                }
  }
  // Warpgroups for tiles that have the rows, or half of them where scores have
  // one of their own, whose blocks are long.
  if (rows >= 16 && target.has(Capability::Wgmma))
    for (int64_t blockN : {64, 32})
      for (int64_t stages : {1, 2, 3, 4}) {
        // Widened keys leave memory for one slot of 64.
        if ((stages == 1) != facts.hasNarrowKeys())
          continue;
        MlaPlanAttr::Parameters plan;
        plan.blockM = 64;
        plan.blockN = blockN;
        plan.warpsM = 4;
        plan.warpsN = 2;
        plan.stages = stages;
        plan.score = ScoreWork::Twice;
        plan.softmax = facts.needsExactMaxima() ? SoftmaxPolicy::Exact
                                                : SoftmaxPolicy::Optimistic;
        plan.packHeads = !isOneHead;
        plan.wgmma = true;
        if (rows > 32 && !facts.hasNarrowKeys())
          plans.push_back(MlaPlanAttr::get(context, plan));
        plan.score = ScoreWork::Own;
        plan.softmax = facts.needsExactMaxima() ? SoftmaxPolicy::Exact
                                                : SoftmaxPolicy::Lagged;
        for (bool qInRegs : {false, true}) {
          plan.qInRegs = qInRegs;
          if (blockN == 64)
            plans.push_back(MlaPlanAttr::get(context, plan));
        }
      }
  return plans;
}
