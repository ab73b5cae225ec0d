//===- TiledDCandidates.cpp - Plans of tiled_d to compare -----------------===//

#include "../../Schedule/Copied/GridTiles.h"
#include "../../Schedule/Core/CommonChecks.h"
#include "../Seen/PtxasData.h"
#include "CopiedCost.h"
#include "Models.h"
#include "attn/Schedule/Kernel/RowState.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attn;

bool OfferedTiledDModel::isOffered(const ProblemFacts &facts,
                                   const TargetRow &) const {
  return std::max(facts.headDim, facts.valueDim) > kUsualColumns;
}

/// Most of a product's columns that may be padding in a candidate: slices of 64
/// columns have no more at any multiple of 64.
static bool hasLittlePadding(int64_t dim, int64_t slice) {
  int64_t padding = llvm::alignTo(dim, slice) - dim;
  return padding < 32 || 8 * padding <= dim;
}

/// Returns the heads that run side by side: those whose keys L2 holds, but as
/// many as have a tile for nearly each SM.
static int64_t chooseGroupHeads(const ProblemFacts &facts,
                                const TargetRow &target, int64_t blockM) {
  int64_t group = chooseHeadsInL2(facts, target);
  if (group == 0 || ShapedType::isDynamic(facts.queries))
    return group;
  double tiles = std::ceil(double(facts.queries) / blockM);
  while (group < facts.heads && tiles * group < 0.9 * target.smCount)
    do
      ++group;
    while (facts.heads % group != 0);
  return group;
}

/// Returns the plans that the data says to fit for some problems.
static std::vector<TiledDPlanAttr> listFittingPlans(MLIRContext *context) {
  std::vector<TiledDPlanAttr> plans;
  PlanAttrInterface base = TiledDPlanAttr::get(context, {});
  for (const auto &values : PtxasData::getShipped().listFitting("tiled_d")) {
    SmallVector<PlanParameter> parameters;
    for (const auto &[name, value] : values)
      parameters.push_back({name, value});
    PlanAttrInterface plan = base.withParameters(
        [&] { return emitError(UnknownLoc::get(context)); }, parameters);
    if (plan)
      plans.push_back(cast<TiledDPlanAttr>(plan));
  }
  return plans;
}

std::vector<PlanAttrInterface>
TiledDModel::getCandidates(const ProblemFacts &facts,
                           const TargetRow &target) const {
  MLIRContext *context = AttentionOp(facts.op).getContext();
  std::vector<PlanAttrInterface> plans;
  TiledDPlanAttr::Parameters p;
  // Tiles get unequal work under a mask: the longest ones go first.
  p.order = facts.mask.getKind() == MaskKind::None ? TileOrder::RowMajor
                                                   : TileOrder::LongestFirst;
  constexpr int64_t kUsualRows = 64;
  int64_t group = facts.getGroup();
  p.packHeads = savesTiles(facts, kUsualRows, group, kDecodedWideRows);
  bool isGrouped = p.order == TileOrder::LongestFirst && !p.packHeads;
  auto groupHeads = [&](int64_t blockM) {
    return isGrouped ? chooseGroupHeads(facts, target, blockM) : 0;
  };
  auto add = [&](int64_t blockM, int64_t blockN, int64_t warpsM, int64_t warpsN,
                 int64_t slice, int64_t stages) {
    p.blockM = blockM;
    p.groupHeads = groupHeads(blockM);
    p.blockN = blockN;
    p.warpsM = warpsM;
    p.warpsN = warpsN;
    p.slice = slice;
    p.stages = stages;
    plans.push_back(TiledDPlanAttr::get(context, p));
  };
  for (int64_t blockM : {64, 32, 16})
    for (int64_t warpsM : {4, 2, 1})
      for (int64_t warpsN : {2, 4, 8, 1})
        for (int64_t blockN : {64, 32, 16})
          for (int64_t slice : {128, 64, 32, 16})
            for (bool streams : {false, true})
              // An exact softmax has no scores beside probabilities.
              for (auto [stages, softmax] :
                   {std::pair(8, SoftmaxPolicy::Optimistic),
                    std::pair(4, SoftmaxPolicy::Optimistic),
                    std::pair(4, SoftmaxPolicy::Exact),
                    std::pair(2, SoftmaxPolicy::Optimistic)}) {
                int64_t step = std::max<int64_t>(16, 8 * warpsN);
                // An exact one is compared in wide slices beside all of Q, but
                // where no other one is right.
                if (softmax == SoftmaxPolicy::Exact &&
                    !facts.needsExactMaxima() && (slice != 128 || streams))
                  continue;
                if (warpsM * warpsN > 8 || blockM != 16 * warpsM ||
                    blockN % step != 0 || slice % step != 0 ||
                    !hasLittlePadding(facts.headDim, slice) ||
                    !hasLittlePadding(facts.valueDim, slice))
                  continue;
                p.softmax = softmax;
                p.qStreamed = streams;
                add(blockM, blockN, warpsM, warpsN, slice, stages);
              }
  // Warps of 32 rows, whose fragments of keys and values serve twice as many,
  // and long blocks, which read Q less often: they take all registers, and the
  // data says for which problems they fit.
  for (TiledDPlanAttr plan : listFittingPlans(context))
    if (hasLittlePadding(facts.headDim, plan.getSlice()) &&
        hasLittlePadding(facts.valueDim, plan.getSlice())) {
      TiledDPlanAttr::Parameters own = plan.getParameters();
      own.order = p.order;
      own.packHeads = p.packHeads;
      own.groupHeads = groupHeads(own.blockM);
      plans.push_back(TiledDPlanAttr::get(context, own));
    }
  return plans;
}
