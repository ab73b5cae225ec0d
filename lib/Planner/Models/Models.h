//===- Models.h - The models of the project's schedules ---------*- C++ -*-===//
//
// A class for each line of Schedules.def, such as SplitQModel. <Name>Candidates
// has what is compared, <Name>Cost registers and time; or <Name>Model both.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_PLANNER_MODELS_MODELS_H
#define ATTN_LIB_PLANNER_MODELS_MODELS_H

#include "attn/Planner/Facts/PlanModel.h"

namespace mlir::attn {

#define ATTN_SCHEDULE(name)                                                    \
  class name##Model : public PlanModel {                                       \
  public:                                                                      \
    std::vector<PlanAttrInterface>                                             \
    getCandidates(const ProblemFacts &facts,                                   \
                  const TargetRow &target) const override;                     \
    bool isExpectedToSpill(const ProblemFacts &facts, PlanAttrInterface plan,  \
                           const TargetRow &target) const override;            \
    PlanEstimate estimate(const ProblemFacts &facts, PlanAttrInterface plan,   \
                          const TargetRow &target) const override;             \
  };
#include "attn/Schedule/Core/Schedules.def"
#undef ATTN_SCHEDULE

/// Offers tiled_d where others take no such heads.
class OfferedTiledDModel : public TiledDModel {
public:
  bool isOffered(const ProblemFacts &facts,
                 const TargetRow &target) const override;
};

/// Offers no plan of ws_mla: who asks for them by name gets them.
class UnofferedWsMlaModel : public WsMlaModel {
public:
  bool isOffered(const ProblemFacts &facts,
                 const TargetRow &target) const override;
};

/// Computes fewer exponentials by polynomials where ptxas spills beside them.
class LightenedWsTmemModel : public WsTmemModel {
public:
  PlanAttrInterface lighten(PlanAttrInterface plan) const override;
};

} // namespace mlir::attn

#endif // ATTN_LIB_PLANNER_MODELS_MODELS_H
