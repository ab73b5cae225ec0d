//===- CopiedTeams.cpp - What the teams of a CTA give together ------------===//
//
// The states of all teams are merged pairwise: of 8 teams those of the first 4
// with those of the other 4, then 2 with 2 and 1 with 1; those of one head are
// as many apart as a CTA has heads. A tile ends with it, so what counts is how
// long it takes: where teams can divide the columns each merges and stores its
// own, and all meet once.
//
//===----------------------------------------------------------------------===//

#include "CopiedEmitter.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attn;

/// Columns that a team's part has to be a multiple of: a fragment of columns in
/// fours, as products with widened values leave them, has 16.
static constexpr int64_t kPartColumns = 16;

Value CopiedEmitter::getTeam() {
  if (!team)
    team = TeamIndexOp::create(b);
  return team;
}

void CopiedEmitter::emitTeamShare() {
  Value share = getTeam();
  if (plan.getHeadTeams() > 1)
    share = arith::DivUIOp::create(b, share, context.i32(plan.getHeadTeams()));
  emitShare(context, bounds, share, plan.getKeyTeams());
}

bool CopiedEmitter::dividesResults() const {
  // Groups of columns have a scale together, and initial results are found by
  // the column of a whole row.
  return plan.getTeams() > 1 && plan.getHeadTeams() == 1 &&
         plan.getColumnWarps() == 1 &&
         extents.valueColumns % (kPartColumns * plan.getTeams()) == 0 &&
         !facts.oScales && !facts.initLse;
}

Value CopiedEmitter::emitTeamResultView() {
  return emitResultView("o", /*first=*/0, getTeamColumns(), getTeam(),
                        getTeamColumns());
}

/// What teams exchange of a state with whole row sums.
static SmallVector<Value> listExchanged(const RunningState &state) {
  SmallVector<Value> values = {state.m, state.l, state.o};
  if (state.divisor)
    values.push_back(state.divisor);
  return values;
}

/// The state that such values are.
static RunningState getExchanged(ValueRange values) {
  RunningState state(values[0], values[1], values[2]);
  if (values.size() > 3)
    state.divisor = values[3];
  return state;
}

RunningState CopiedEmitter::mergeTeams(RunningState state) {
  int64_t teams = plan.getTeams(), from = llvm::PowerOf2Ceil(teams) / 2;
  Value buffer =
      alloc("states", bufferType({extents.stateElements}, b.getF32Type()));
  if (!dividesResults()) {
    for (; from >= plan.getHeadTeams(); from /= 2) {
      SmallVector<Value> own = listExchanged(state);
      auto take =
          TeamTakeOp::create(b, ValueRange(own).getTypes(), own, buffer, from);
      state = emitMergedState(state, getExchanged(take.getResults()));
    }
    return state;
  }
  SmallVector<Value> own = listExchanged(state);
  auto whole = cast<RankedTensorType>(state.o.getType());
  Type part = whole.clone({blockM, getTeamColumns()});
  SmallVector<Type> types;
  for (int64_t i = 0; i < teams; ++i)
    for (Value value : own)
      types.push_back(value == state.o ? part : value.getType());
  auto share = TeamShareOp::create(b, types, own, buffer);
  SmallVector<RunningState> states;
  for (int64_t i = 0; i < teams; ++i)
    states.push_back(
        getExchanged(share.getResults().slice(own.size() * i, own.size())));
  for (; from > 0; from /= 2) {
    for (size_t i = 0; i + from < states.size(); ++i)
      states[i] = emitMergedState(states[i], states[i + from]);
    states.resize(from);
  }
  return states.front();
}

void CopiedEmitter::storeTeamResults(RunningState state) {
  bool isDivided = dividesResults();
  Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, getTeam(),
                                        context.i32(plan.getHeadTeams()));
  if (!isDivided || lseView) {
    auto branch = scf::IfOp::create(b, isFirst, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    if (isDivided)
      emitLSE(state.m, state.l, lseView);
    else
      storeResults(state, lseView);
  }
  if (isDivided)
    storeResults(state, /*lse=*/Value());
}
