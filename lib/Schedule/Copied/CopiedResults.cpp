//===- CopiedResults.cpp - Results of a kernel on cp.async ----------------===//

#include "CopiedResults.h"
#include "CopiedTeams.h"
#include "attn/Planner/Facts/RegisterLimit.h"

using namespace mlir;
using namespace mlir::attn;

void CopiedResults::makeViews() {
  if (dividesResults(tile.facts, plan, extents)) {
    columns.columns = columns.partColumns = getTeamColumns(plan, extents);
    columns.part = TeamIndexOp::create(b);
  }
  oView = emitResultView(tile, "o", columns);
  logViews = emitLogViews(tile);
}

Value CopiedResults::allocateScratch() {
  const ProblemFacts &facts = tile.facts;
  // All other buffers are dead by now: staging takes their bytes. Results of 32
  // bits need none: four lanes fill a sector of 32 bytes by themselves. Nor do
  // groups with scales, which leave as they are.
  if (facts.outType.isF32() || facts.hasResultScales() ||
      plan.getTeams() != 1 ||
      extents.oBytes > extents.getSharedBytes(plan).getTotal() ||
      facts.o.getRowAlignment() != 16)
    return {};
  return tile.alloc(
      "o", tile.bufferType({tile.blockM, tile.resultColumns}, facts.outType));
}

void CopiedResults::storeRows(const RunningState &state, const LogViews &lse) {
  EpilogueKind epilogue = plan.getEpilogue();
  // Shuffles, and copies through shared memory, of many results of f16 take
  // registers: ptxas widens as many of them at once as there are.
  static constexpr RegisterLimit kNarrowResults{"copied.narrow_results"};
  bool hasMany = extents.getNarrowResultRegisters(plan) >= kNarrowResults;
  // Columns in quads fill sectors of 32 bytes as they are.
  if ((tile.facts.hasNarrowValues() || (hasMany && plan.getSlice())) &&
      epilogue == EpilogueKind::Auto)
    epilogue = EpilogueKind::Direct;
  emitResults(tile, state, oView, lse, allocateScratch(), epilogue,
              /*map=*/{}, columns);
}

void CopiedResults::store(const RunningState &state) {
  if (plan.getKeyTeams() == 1)
    return storeRows(state, logViews);
  bool isDivided = dividesResults(tile.facts, plan, extents);
  Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::ult,
                                        TeamIndexOp::create(b),
                                        tile.context.i32(plan.getHeadTeams()));
  if (!isDivided || logViews) {
    auto branch = scf::IfOp::create(b, isFirst, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    if (isDivided)
      emitLSE(tile, state.m, state.l, logViews);
    else
      storeRows(state, logViews);
  }
  if (isDivided)
    storeRows(state, /*lse=*/{});
}

void CopiedResults::storeDivided(RunningState state) {
  DividedRows divided = layouts.getDividedRows();
  if (plan.gathersProbabilities())
    state.l = divided.gather(b, state.l);
  FinalRows rows = emitFinalRows(tile, state.m, state.l, state.largest);
  if (logViews)
    emitLSE(tile, rows.m, rows.l, logViews);
  Value factor = emitRowFactor(tile, rows);
  Value weight = emitInitWeight(tile, rows.getDivisor(), rows.initShare);
  if (weight)
    weight = divided.spread(b, weight);
  Value o;
  if (tile.facts.hasPartialScales())
    o = emitScaledRows(tile, state.o, factor, weight, &divided).front();
  else
    o = emitQuotient(tile, state.o, divided.spread(b, factor), columns, weight);
  EpilogueKind epilogue = plan.getEpilogue();
  if (tile.facts.hasNarrowValues() && epilogue == EpilogueKind::Auto)
    epilogue = EpilogueKind::Direct;
  StoreResultOp::create(b, o, oView, tile.row, allocateScratch(),
                        /*map=*/Value(), /*coordinates=*/ValueRange(),
                        epilogue);
}
