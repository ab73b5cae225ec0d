//===- AttentionEmitter.h - A tile with what kernels make of it -*- C++ -*-===//
//
// A door to the functions on tiles for kernels that derive from their tile.
// Kernels that hold one call the functions.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_CORE_ATTENTIONEMITTER_H
#define ATTN_LIB_SCHEDULE_CORE_ATTENTIONEMITTER_H

#include "attn/Schedule/Kernel/Scores.h"
#include "attn/Schedule/Kernel/StoreResults.h"

namespace mlir::attn {

class AttentionEmitter : public AttentionTile {
public:
  using AttentionTile::AttentionTile;

  Value emitOperand(Value q) { return attn::emitOperand(*this, q); }
  Value emitConverted(Value buffer) {
    return attn::emitConverted(*this, buffer);
  }
  void emitScoreDescale() { scoreDescale = attn::emitScoreDescale(*this); }
  void emitValueDescale() { valueDescale = attn::emitValueDescale(*this); }
  Value emitExponentScale() { return attn::emitExponentScale(*this); }
  void emitLengths() { attn::emitLengths(*this); }
  void emitRun(int64_t blockN) { attn::emitRun(*this, blockN); }
  Value emitQueryView() { return attn::emitQueryView(*this); }
  Value emitQueryView(int64_t first, int64_t columns) {
    return attn::emitQueryView(*this, first, columns);
  }
  Value emitResultView(StringRef name) {
    return attn::emitResultView(*this, name);
  }
  Value emitResultView(StringRef name, int64_t first, int64_t columns,
                       Value part = {}, int64_t partColumns = 0) {
    return attn::emitResultView(*this, name,
                                {first, columns, part, partColumns});
  }
  RunningState emitInitialState(bool bets = false) {
    return attn::emitInitialState(*this, bets);
  }
  LogicalResult emitScores(OpBuilder &builder, Value key, Value &scores,
                           bool quads = false) {
    OpBuilder::InsertionGuard guard(b);
    b.restoreInsertionPoint(builder.saveInsertionPoint());
    return attn::emitScores(*this, key, scores, quads);
  }
  FinalRows emitFinalRows(Value m, Value l, Value largest = {}) {
    return attn::emitFinalRows(*this, m, l, largest);
  }
  Value emitInverse(Value l) { return attn::emitInverse(*this, l); }
  Value emitRowFactor(const FinalRows &rows) {
    return attn::emitRowFactor(*this, rows);
  }
  static SmallVector<Value> emitRareRescale(ImplicitLocOpBuilder &b,
                                            Value factor, ValueRange results) {
    return attn::emitRareRescale(b, factor, results);
  }
  Value emitQuotient(Value o, Value inverse, Value initWeight = {},
                     bool rounds = true) {
    return attn::emitQuotient(*this, o, inverse, initWeight, rounds);
  }
  SmallVector<Value> emitScaledRows(ValueRange columns, Value factor,
                                    Value initWeight,
                                    const DividedRows *divided = nullptr,
                                    int64_t group = 0) {
    return attn::emitScaledRows(*this, columns, factor, initWeight, divided,
                                group);
  }
  void emitLSE(Value m, Value l, Value view) {
    attn::emitLSE(*this, m, l, view);
  }
  RunningState emitState(const FinalRows &rows, Value o) {
    return attn::emitState(*this, rows, o);
  }
  RunningState emitFinalState(const RunningState &state) {
    return attn::emitFinalState(*this, state);
  }
  void emitResults(const RunningState &state, Value oView, Value lseView,
                   Value scratch, EpilogueKind epilogue,
                   const ResultMap &map = {}) {
    attn::emitResults(*this, state, oView, lseView, scratch, epilogue, map);
  }
};

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_CORE_ATTENTIONEMITTER_H
