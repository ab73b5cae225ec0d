//===- CopiedTeams.cpp - What the teams of a CTA give together ------------===//

#include "CopiedTeams.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attn;

/// Columns that a team's part has to be a multiple of: a fragment of columns in
/// fours, as products with widened values leave them, has 16.
static constexpr int64_t kPartColumns = 16;

void attn::takeTeamShare(AttentionTile &tile, const CopiedPlan &plan) {
  Value share = TeamIndexOp::create(tile.b);
  if (plan.getHeadTeams() > 1)
    share = arith::DivUIOp::create(tile.b, share,
                                   tile.context.i32(plan.getHeadTeams()));
  emitShare(tile.context, tile.bounds, share, plan.getKeyTeams());
}

bool attn::dividesResults(const ProblemFacts &facts, const CopiedPlan &plan,
                          const CopiedExtents &extents) {
  // Groups of columns have a scale together, initial results are found by the
  // column of a whole row, and no team may have columns that rows lack.
  return plan.getTeams() > 1 && plan.getHeadTeams() == 1 &&
         plan.getColumnWarps() == 1 &&
         extents.valueColumns % (kPartColumns * plan.getTeams()) == 0 &&
         extents.valueColumns == facts.valueDim && !facts.oScales &&
         !facts.initLse;
}

int64_t attn::getTeamColumns(const CopiedPlan &plan,
                             const CopiedExtents &extents) {
  return extents.valueColumns / plan.getTeams();
}

/// Lists the values of a state with whole row sums that teams exchange.
static SmallVector<Value *> listExchanged(RunningState &state) {
  SmallVector<Value *> values = {&state.m, &state.l, &state.o};
  if (state.divisor)
    values.push_back(&state.divisor);
  return values;
}

static SmallVector<Value> getExchanged(RunningState state) {
  return llvm::map_to_vector(listExchanged(state),
                             [](Value *value) { return *value; });
}

static void setExchanged(RunningState &state, ValueRange values) {
  for (auto [place, value] : llvm::zip_equal(listExchanged(state), values))
    *place = value;
}

/// Merges the states of whole rows in the first teams.
static RunningState mergeRows(const AttentionTile &tile, const CopiedPlan &plan,
                              Value buffer, int64_t distance,
                              RunningState state) {
  for (; distance >= plan.getHeadTeams(); distance /= 2) {
    SmallVector<Value> own = getExchanged(state);
    auto take = TeamTakeOp::create(tile.b, ValueRange(own).getTypes(), own,
                                   buffer, distance);
    RunningState other = state;
    setExchanged(other, take.getResults());
    state = emitMergedState(tile, state, other);
  }
  return state;
}

/// Merges in each team the states of its columns.
static RunningState mergeColumns(const AttentionTile &tile,
                                 const CopiedPlan &plan,
                                 const CopiedExtents &extents, Value buffer,
                                 int64_t distance, const RunningState &state) {
  SmallVector<Value> own = getExchanged(state);
  auto whole = cast<RankedTensorType>(state.o.getType());
  Type part = whole.clone({tile.blockM, getTeamColumns(plan, extents)});
  SmallVector<Type> types;
  for (int64_t i = 0; i < plan.getTeams(); ++i)
    for (Value value : own)
      types.push_back(value == state.o ? part : value.getType());
  auto share = TeamShareOp::create(tile.b, types, own, buffer);
  SmallVector<RunningState> states(plan.getTeams(), state);
  for (auto [i, each] : llvm::enumerate(states))
    setExchanged(each, share.getResults().slice(own.size() * i, own.size()));
  for (; distance > 0; distance /= 2) {
    for (size_t i = 0; i + distance < states.size(); ++i)
      states[i] = emitMergedState(tile, states[i], states[i + distance]);
    states.resize(distance);
  }
  return states.front();
}

RunningState attn::mergeTeams(const AttentionTile &tile, const CopiedPlan &plan,
                              const CopiedExtents &extents,
                              RunningState state) {
  int64_t distance = llvm::PowerOf2Ceil(plan.getTeams()) / 2;
  Value buffer = tile.alloc(
      "states", tile.bufferType({extents.stateElements}, tile.b.getF32Type()));
  if (dividesResults(tile.facts, plan, extents))
    return mergeColumns(tile, plan, extents, buffer, distance, state);
  return mergeRows(tile, plan, buffer, distance, state);
}
