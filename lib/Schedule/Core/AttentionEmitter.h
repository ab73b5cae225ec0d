//===- AttentionEmitter.h - What all schedules emit -------------*- C++ -*-===//
//
// The parts of an attention kernel in tile IR that do not depend on how its
// tiles are scheduled: lengths, views, what stands between products and
// softmax, and how results are finished. Scores stay in units in which one
// factor, the softmax's scale, turns them into exponents of two: the raw
// products where nothing but the problem's scale stands between, else natural
// units.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_CORE_ATTENTIONEMITTER_H
#define ATTN_LIB_SCHEDULE_CORE_ATTENTIONEMITTER_H

#include "DividedRows.h"
#include "EmitBlockBounds.h"
#include "KeySource.h"
#include "ResultSink.h"

namespace mlir::attn {

/// Where TMA may store results: a map of their tensor, which ends where their
/// rows do, and the first element of the tile. Empty if it may not.
struct ResultMap {
  Value map;
  SmallVector<Value, 4> coordinates;
};

/// The row values and the accumulator that the loop carries.
struct RunningState {
  Value m, l, o;
  /// Sums of whole rows by which these are divided, if they are not those of
  /// which LSE is made; else null.
  Value divisor;
  /// In a loop the largest exponents of rows, or of parts of rows, where
  /// divisors are to be made of them; else null.
  Value largest;

  RunningState() = default;
  RunningState(Value m, Value l, Value o) : m(m), l(l), o(o) {}
  /// The state as a loop has it, in the order of list().
  explicit RunningState(ValueRange carried)
      : RunningState(carried[0], carried[1], carried[2]) {
    if (carried.size() > 3)
      largest = carried[3];
  }
  SmallVector<Value> list() const {
    SmallVector<Value> values = {m, l, o};
    if (largest)
      values.push_back(largest);
    return values;
  }
  Value getDivisor() const { return divisor ? divisor : l; }
};

/// The row values of a whole tile.
struct FinalRows {
  Value m, l;
  /// What the accumulator is multiplied by for sinks and the state that rows go
  /// on from; null without any.
  Value factor;
  /// As in RunningState.
  Value divisor;

  Value getDivisor() const { return divisor ? divisor : l; }
};

/// What emitScores adds for the options of a problem: registers of a thread,
/// and instructions of a warp for each element of a thread.
struct ScoreCost {
  int64_t registers = 0;
  double instructions = 0;
};
ScoreCost getScoreCost(const ProblemFacts &facts);

/// Whether rows have logits beside their scores, so that FinalRows has a
/// factor.
inline bool hasMoreLogits(const ProblemFacts &facts) {
  return facts.sinks || facts.initLse;
}

/// Whether rows whose maxima are whole numbers are divided by sums that have a
/// row's largest probability as it is rounded: it is not 1, and where one key
/// decides a row its error is the row's. Keys of 8 bits have probabilities of
/// f16, whose errors are small beside their own.
inline bool dividesByRounded(const ProblemFacts &facts) {
  return facts.hasWholeMaxima() && !facts.isNarrow() && !facts.hasNarrowKeys();
}

class AttentionEmitter {
public:
  /// For tiles of `blockM` rows. With `group` above 1 the heads of a group are
  /// rows of their query: the first `members` of as many rows, all if 0.
  AttentionEmitter(KernelContext &context, int64_t blockM, int64_t group = 1,
                   int64_t members = 0);

  RankedTensorType tileType(ArrayRef<int64_t> shape, Type elementType) {
    return RankedTensorType::get(shape, elementType,
                                 AutoLayoutAttr::get(b.getContext()));
  }
  RankedTensorType f32Tile(ArrayRef<int64_t> shape) {
    return tileType(shape, b.getF32Type());
  }
  BufferType bufferType(ArrayRef<int64_t> shape) {
    return bufferType(shape, facts.elementType);
  }
  BufferType bufferType(ArrayRef<int64_t> shape, Type elementType) {
    return BufferType::get(b.getContext(), shape, elementType,
                           AutoLayoutAttr::get(b.getContext()),
                           MemorySpace::Shared);
  }
  /// The type of queries and probabilities in products.
  Type getOperandType() {
    return facts.hasNarrowKeys() ? Type(b.getF16Type()) : facts.elementType;
  }
  /// Queries in the type of operands.
  Value emitOperand(Value q);
  /// Queries in shared memory, the same bytes in the type of operands.
  Value emitConverted(Value buffer);
  Value splat(RankedTensorType type, double value) {
    return arith::ConstantOp::create(
        b, DenseElementsAttr::get(type, b.getF32FloatAttr(value)));
  }
  /// A scalar f32 as a tile of row values.
  Value splatRows(Value scalar) {
    return tensor::SplatOp::create(b, scalar, f32Tile({blockM}));
  }
  Value alloc(StringRef name, BufferType type) {
    return AllocOp::create(b, type, b.getStringAttr(name), IntegerAttr(),
                           StringAttr());
  }

  /// Reads what units of q and k, and of v, stand for in the tile's head, where
  /// the problem says so.
  void emitScoreDescale();
  void emitValueDescale();
  /// The factor of online_softmax, f32: exponents of two per unit of score.
  Value emitExponentScale();
  /// Reads the lengths of the tile's sequences and where they start.
  void emitLengths();
  /// Narrows the bounds to those blocks that are the tile's run: an equal part
  /// of them, in whole blocks of `blockN` keys, of which the last ones may be
  /// fewer or none, or those of the keys that the problem gives it.
  void emitRun(int64_t blockN);
  /// Rows of the tile's queries: as many for each as heads are packed.
  Value getRows() const { return packedRows ? packedRows : queries; }
  /// The rows of the tile's head, or group of heads, in q, o or lse; of a
  /// partial result those of the tile's run.
  Value emitQueryView() { return emitHeadRows(context, "q", getQueryRows()); }
  /// The same of `columns` columns from `first` on, all if 0, where they are.
  Value emitQueryView(int64_t first, int64_t columns) {
    HeadRows rows = getQueryRows();
    bool isApart = facts.qRope && first >= facts.valueDim;
    rows.firstColumn = isApart ? first - facts.valueDim : first;
    rows.columns = columns;
    return emitHeadRows(context, isApart ? "q_rope" : "q", rows);
  }
  Value emitResultView(StringRef name) {
    return results->emitView(name, getQueryRows(), at);
  }
  /// The same of `columns` columns from `first` on, in part `part` of the
  /// columns, each of `partColumns`, if it is not null.
  Value emitResultView(StringRef name, int64_t first, int64_t columns,
                       Value part = {}, int64_t partColumns = 0) {
    HeadRows rows = getQueryRows();
    rows.firstColumn = first;
    rows.columns = columns;
    rows.part = part;
    rows.partColumns = partColumns;
    return results->emitView(name, rows, at);
  }
  /// A view of column `column` alone, as values of rows.
  Value emitColumnView(StringRef name, int64_t column) {
    HeadRows rows = getQueryRows();
    rows.firstColumn = column;
    rows.isOneColumn = true;
    return results->emitView(name, rows, at);
  }
  /// Initial values of m, l and o. Under a policy that bets, rows beyond the
  /// last query start with a maximum that keeps their probabilities small: all
  /// their scores are 0, so that each block would lose the bet for its warp.
  RunningState emitInitialState(bool bets = false);
  /// Applies the soft cap, score_mod, mask_mod and the mask to the products of
  /// a block, whose keys are in fours with `quads` (attn.apply_mask).
  LogicalResult emitScores(OpBuilder &builder, Value key, Value &scores,
                           bool quads = false);
  /// Row sums `sums` with the largest probabilities as they are rounded to the
  /// operands' type, given m and the largest exponents of rows, or of parts of
  /// rows where maxima are whole. Of rows without keys, whose sum is 0, that is
  /// nothing above 0.
  Value emitDivisor(Value sums, Value m, Value largest);
  /// The rows after the loop, m and partial sums l: in exponents of two and
  /// whole row sums, with sinks and the state that rows go on from. With
  /// `largest`, the largest exponents of rows or of parts of rows, they have a
  /// divisor.
  FinalRows emitFinalRows(Value m, Value l, Value largest = {});
  /// The same of whole row sums.
  FinalRows emitLogits(FinalRows rows);
  /// What a row of the accumulator is multiplied by, given its sum.
  Value emitInverse(Value l);
  /// What a row of an accumulator that has no logits yet is multiplied by.
  Value emitRowFactor(const FinalRows &rows);
  /// `results` times `factor`, of their rows, where some factor is not 1.
  static SmallVector<Value> emitRareRescale(ImplicitLocOpBuilder &b,
                                            Value factor, ValueRange results);
  /// The accumulator times `inverse`, in the type of the results, without
  /// `rounds` f32.
  /// With `initWeight`, of emitInitWeight in the layout of the rows of o, the
  /// results that rows go on from join.
  Value emitQuotient(Value o, Value inverse, Value initWeight = {},
                     bool rounds = true);
  /// `tiles`, f32 columns of the accumulators, times `factor`, and with
  /// `initWeight` as emitQuotient has it, in f16: in units of the scales of the
  /// rows, or of their columns' group `group`, which are stored. `divided`
  /// tells how warps divide columns, if they do; then `initWeight` has their
  /// layout and `factor` that of all columns.
  SmallVector<Value> emitScaledRows(ValueRange tiles, Value factor,
                                    Value initWeight,
                                    const DividedRows *divided = nullptr,
                                    int64_t group = 0);
  /// What of a row, given its sum, is the state that it goes on from, below 0
  /// in rows without one; null if no row has one.
  Value emitInitWeight(Value l);
  /// Stores LSE.
  void emitLSE(Value m, Value l, Value view);
  /// The state after the loop with whole row sums: `l` has a value for each
  /// row.
  RunningState emitRowSums(RunningState carried);
  /// What two states of different keys, with whole row sums, give together.
  RunningState emitMergedState(RunningState first, RunningState second);
  /// A state of final rows and the accumulator that has no logits yet.
  RunningState emitState(const FinalRows &rows, Value o);
  /// A state with whole row sums and the sinks.
  RunningState emitWithSinks(RunningState state);
  /// The state after the loop in exponents of two and whole row sums, with the
  /// sinks.
  RunningState emitFinalState(RunningState carried) {
    return emitWithSinks(emitRowSums(carried));
  }
  /// Divides by the row sums and stores O and LSE.
  void emitResults(RunningState state, Value oView, Value lseView,
                   Value scratch, EpilogueKind epilogue,
                   const ResultMap &map = {});

  KernelContext &context;
  const ProblemFacts &facts;
  const int64_t blockM;
  /// Rows of the tiles that are placed side by side, whether or not the last
  /// ones have any.
  int64_t rowsTogether = blockM;
  /// Columns of the accumulator of the results: those of v, and padding.
  int64_t resultColumns;
  /// Whether the softmax has whole maxima.
  bool hasWholeMaxima = false;
  /// Rows of a query, and the heads that these are. Behind them, where heads
  /// are fewer, stand rows that do not exist.
  const int64_t group, members;
  ImplicitLocOpBuilder &b;
  std::unique_ptr<KeySource> source;
  std::unique_ptr<ResultSink> results;
  TileCoordinates at;
  Value row;
  /// The lengths of the tile's sequences.
  Value queries, keys;
  /// First row of the sequence in packed tensors, i64; null otherwise.
  Value queryStart, keyStart;
  BlockBounds bounds;
  /// Factors of q k and of v, f32; null where units are ones.
  Value scoreDescale, valueDescale;

private:
  /// Stores `o`, f32, in groups of columns, each with a scale, which are stored
  /// too.
  void emitScaledGroups(Value o, EpilogueKind epilogue);
  /// The share of the state that rows go on from, from emitLogits on.
  Value initShare;
  /// Null where each query has one row.
  Value packedRows;
  /// The tile's rows in tensors of queries.
  HeadRows getQueryRows() const {
    // Without groups rows share an address, and a bound costs a compare.
    return {at.head,
            at.batch,
            queryStart,
            getRows(),
            group,
            members,
            group != 1 && hasWholeTiles()};
  }
  /// True if no tile has rows that do not exist.
  bool hasWholeTiles() const;
  /// The head and the query that row `row` of a group's rows is.
  std::pair<Value, Value> emitHeadAndQuery(ImplicitLocOpBuilder &lb, Value row);
  /// The extra logits of the tile's rows, in exponents of two.
  Value emitSinkRows();
  /// The element of a (batch, heads) tensor that is the tile's.
  Value emitDescale(StringRef name, Value head);
  /// One more logit for each row, in exponents of two, which joins the sums;
  /// with its share of them.
  std::pair<FinalRows, Value> emitLogit(FinalRows rows, Value logit);
  /// The LSE of that state in exponents of two; -inf where it is another run's.
  Value emitInitRows();
  /// That state's results times `weight`, a tile of `type`; 0 where that is
  /// below 0.
  Value emitInitTerm(RankedTensorType type, Value weight);
  /// `one` by the sum, or by 1 where that is 0.
  Value emitReciprocal(Value l, Value one);
  /// The sums of whole rows; NaN where a maximum is beyond what scores may be.
  Value emitSums(Value l, Value m);
  /// Hides keys in whose place the table has no page.
  Value emitSelected(ImplicitLocOpBuilder &lb, Value key, Value scores,
                     bool quads);
  /// Applies score_mod, and mask_mod where it does not stand apart, or with
  /// `hides` mask_mod alone.
  LogicalResult emitRegions(ImplicitLocOpBuilder &lb, Value key, Value &scores,
                            bool quads, bool hides);
  /// True if scores are made before the softmax, so that it gets no factor but
  /// log2 e.
  bool hasNaturalScores() const;
  Value emitAbsentRows(Value m);
};

/// The place and the lengths of an emitter's tile, for bounds of its rows.
inline BoundedTiles getBoundedTiles(const AttentionEmitter &emitter) {
  return {emitter.at, emitter.queries, emitter.keys, emitter.group,
          emitter.members};
}

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_CORE_ATTENTIONEMITTER_H
