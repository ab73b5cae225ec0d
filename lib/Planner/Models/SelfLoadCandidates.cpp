//===- SelfLoadCandidates.cpp - Plans of self_load to compare -------------===//

#include "../../Schedule/Core/NarrowKeys.h"
#include "../../Schedule/SelfLoad/SelfLoad.h"
#include "../../Schedule/Wgmma/WgmmaFacts.h"
#include "../Facts/TileBalance.h"
#include "Models.h"

using namespace mlir;
using namespace mlir::attn;

std::vector<PlanAttrInterface>
SelfLoadModel::getCandidates(const ProblemFacts &facts,
                             const TargetRow &target) const {
  MLIRContext *context = AttentionOp(facts.op).getContext();
  bool masked = facts.mask.getKind() != MaskKind::None;
  TileOrder order = masked ? TileOrder::LongestFirst : TileOrder::RowMajor;
  std::vector<PlanAttrInterface> plans;
  for (int64_t ctas : {3, 2, 1})
    for (int64_t blockN : {128, 96, 64}) {
      int64_t groupHeads = masked
                               ? chooseGroupHeads(facts, target, kSelfLoadRows,
                                                  blockN, target.smCount * ctas)
                               : 0;
      for (SoftmaxPolicy softmax : getUsualPolicies(facts))
        for (bool qkAhead : {true, false}) {
          SelfLoadPlanAttr::Parameters plan;
          plan.blockN = blockN;
          plan.kStages = 2;
          plan.qkAhead = qkAhead;
          plan.ctasPerSm = ctas;
          plan.keyQuads = !findNoQuads(facts);
          plan.softmax = softmax;
          plan.order = order;
          plan.groupHeads = groupHeads;
          // A slot of V is refilled a block later than one of K.
          plan.vStages = 3;
          if (!fitsShared(facts, SelfLoadPlanAttr::get(context, plan), target))
            plan.vStages = 2;
          plans.push_back(SelfLoadPlanAttr::get(context, plan));
        }
    }
  return plans;
}
