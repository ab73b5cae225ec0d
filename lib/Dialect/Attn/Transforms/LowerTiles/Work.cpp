//===- Work.cpp - Which work a CTA does -----------------------------------===//
//
// Each warp finds out for itself, so that nobody waits for another one: lane i
// has the lengths of neighbouring sequences, as many as other lanes.
//
//===----------------------------------------------------------------------===//

#include "FindKey.h"
#include "PartitionLowering.h"
#include "PlanTiles.h"
#include "WarpNumbers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::lowering;

/// Blocks that all sequences count as at most, so that their sum and its
/// multiples fit 32 bits.
static constexpr int64_t kMostBlocks = int64_t(1) << 30;

namespace {

/// A run, i32 each: its sequence, its number there, how many runs the sequence
/// has, and its keys.
struct Run {
  Value sequence, number, count, keys;
};

/// One warp's code: the sequences and their blocks. Numbers are i32.
class SequenceReader : public WarpNumbers {
public:
  template <typename Op>
  SequenceReader(Op op, ImplicitLocOpBuilder &b, Value lane)
      : WarpNumbers(b, lane), lengths(op.getLengths()), index(op.getIndex()),
        capacity(op.getCapacity()), sequences(op.getSequences()),
        mostBlocks(kMostBlocks / Op::kMostSequences),
        each(llvm::divideCeil(sequences, kLanes)) {}

protected:
  /// Reads what this lane's sequences are, in blocks of `block` keys and
  /// `start` more for each.
  void readSequences(int64_t block, int64_t start);
  /// The sum over all lanes, and the largest number of any.
  Value emitSum(Value own);
  Value emitLargest(Value own);
  /// Returns the sum of `values`.
  Value sum(ArrayRef<Value> values);

  Value lengths, index, capacity;
  int64_t sequences, mostBlocks;
  /// Sequences of a lane.
  int64_t each;
  /// Of this lane: its sequences, their keys, and these in blocks, 0 where
  /// there is no sequence.
  SmallVector<Value> places, keys, blocks;

private:
  /// The sequence of place `i` of the lane, and whether there is one.
  std::pair<Value, Value> findSequence(int64_t i);
  Value emitKeys(Value sequence, Value exists);
  Value emitBlocks(Value length, Value exists, int64_t block, int64_t start);
};

/// Deals runs to sequences.
class RunDealer : public SequenceReader {
public:
  template <typename Op>
  RunDealer(Op op, ImplicitLocOpBuilder &b, Value lane)
      : SequenceReader(op, b, lane), total(op.getTotal()), most(op.getMost()) {}
  /// Returns run `index` of those of `attn.deal_run`, without its keys.
  Run emit();

protected:
  /// Gives all lanes what the lane `owner` has, zeros unless `exists`.
  void share(Run &found, Value owner, Value exists);

  int64_t total, most;
};

/// The same for runs whose longest one is as short as it can be, in the order
/// of their lengths.
class WorkPlanner : public RunDealer {
public:
  using RunDealer::RunDealer;
  Run emit();

private:
  /// How many runs of up to `length` blocks each sequence has.
  SmallVector<Value> emitRuns(Value length);
  /// The least length that leaves at most `total` runs.
  Value emitLength();
  /// How many runs stand before those of each sequence: longer ones, and equal
  /// ones of sequences before it.
  SmallVector<Value> emitFirst(ArrayRef<Value> runs);
};

/// Cuts all sequences, end to end, into equal runs.
class PieceCutter : public SequenceReader {
public:
  PieceCutter(PlanPiecesOp op, ImplicitLocOpBuilder &b, Value lane)
      : SequenceReader(op, b, lane), runs(op.getRuns()), block(op.getBlock()),
        start(op.getStart()), fewest(op.getFewest()), plan(op.getPlan()) {}
  /// Writes run `index` and its records.
  void emit();

private:
  /// A piece that a run has of a sequence, which counts as `all` blocks from
  /// `place` on.
  struct Piece {
    Value place, all, begin, end, exists;
  };

  /// Returns where the cut at block `at` of all cuts the sequence of `piece`.
  Value cut(const Piece &piece, Value at);
  /// Returns how many runs have pieces of the sequence of `piece`, which begins
  /// with it.
  Value countPieces(const Piece &piece, Value length);
  /// Returns the least number of any lane; none is above `most`.
  Value emitLeast(Value own, int64_t most);
  /// Stores four numbers as record `number` of the plan.
  void store(Value number, ArrayRef<Value> words);

  int64_t runs, block, start, fewest;
  Value plan;
};

} // namespace

std::pair<Value, Value> SequenceReader::findSequence(int64_t i) {
  Value sequence = add(arith::MulIOp::create(b, lane, number(each)), number(i));
  return {sequence,
          compare(arith::CmpIPredicate::ult, sequence, number(sequences))};
}

Value SequenceReader::emitKeys(Value sequence, Value exists) {
  // Lanes without a sequence read the first one's length.
  Value place = select(exists, sequence, number(0));
  Value address = LLVM::GEPOp::create(
      b, lengths.getType(), b.getI32Type(), lengths,
      ValueRange{arith::ExtUIOp::create(b, b.getI64Type(), place)});
  return LLVM::LoadOp::create(b, b.getI32Type(), address, 4);
}

Value SequenceReader::emitBlocks(Value length, Value exists, int64_t block,
                                 int64_t start) {
  length = arith::MinSIOp::create(
      b, arith::MaxSIOp::create(b, length, number(0)), capacity);
  length = arith::MaxSIOp::create(b, length, number(0));
  Value count = arith::DivUIOp::create(
      b, add(length, number((start + 1) * block - 1)), number(block));
  count = arith::MinUIOp::create(b, count, number(mostBlocks));
  return select(exists, count, number(0));
}

void SequenceReader::readSequences(int64_t block, int64_t start) {
  for (int64_t i = 0; i < each; ++i) {
    auto [sequence, exists] = findSequence(i);
    places.push_back(sequence);
    keys.push_back(emitKeys(sequence, exists));
    blocks.push_back(emitBlocks(keys.back(), exists, block, start));
  }
}

Value SequenceReader::emitSum(Value own) {
  for (int64_t distance = 1; distance < kLanes; distance *= 2)
    own = add(own,
              shuffle(own, number(distance), NVVM::ShflKind::bfly, kLanes - 1));
  return own;
}

Value SequenceReader::emitLargest(Value own) {
  for (int64_t distance = 1; distance < kLanes; distance *= 2)
    own = arith::MaxUIOp::create(
        b, own,
        shuffle(own, number(distance), NVVM::ShflKind::bfly, kLanes - 1));
  return own;
}

Value SequenceReader::sum(ArrayRef<Value> values) {
  Value all = number(0);
  for (Value value : values)
    all = add(all, value);
  return all;
}

void RunDealer::share(Run &found, Value owner, Value exists) {
  for (Value *value :
       {&found.sequence, &found.number, &found.count, &found.keys})
    if (*value)
      *value = select(exists, broadcast(*value, owner), number(0));
}

Run RunDealer::emit() {
  readSequences(DealRunOp::kBlockKeys, /*start=*/1);
  // As many runs of this length as there may be, beside one of each sequence
  // that is shorter.
  Value length = divideUp(emitSum(sum(blocks)), number(total - sequences));
  SmallVector<Value> runs;
  for (Value count : blocks)
    runs.push_back(
        arith::MinUIOp::create(b, divideUp(count, length), number(most)));
  Value own = sum(runs);
  Value last = emitPrefix(own);
  // The lane whose sequences have the run is the first one whose runs reach
  // behind it.
  Value owner = LLVM::CtPopOp::create(
      b, b.getI32Type(), vote(compare(arith::CmpIPredicate::ule, last, index)));
  Value exists = compare(arith::CmpIPredicate::ult, owner, number(kLanes));
  Value begin = subtract(last, own);
  Run found = {number(0), number(0), number(0), Value()};
  for (int64_t i = 0; i < each; ++i) {
    Value isLater = compare(arith::CmpIPredicate::uge, index, begin);
    found.sequence = select(isLater, places[i], found.sequence);
    found.number = select(isLater, subtract(index, begin), found.number);
    found.count = select(isLater, runs[i], found.count);
    begin = add(begin, runs[i]);
  }
  share(found, owner, exists);
  return found;
}

SmallVector<Value> WorkPlanner::emitRuns(Value length) {
  SmallVector<Value> runs;
  for (Value count : blocks)
    runs.push_back(divideUp(count, length));
  return runs;
}

Value WorkPlanner::emitLength() {
  Value all = emitSum(sum(blocks)), largest = number(0);
  for (Value count : blocks)
    largest = arith::MaxUIOp::create(b, largest, count);
  Value needed = divideUp(emitLargest(largest), number(most));
  // One run of each sequence that is shorter, and as many of this length as
  // there may be beside, are enough.
  auto bound = [&](int64_t runs) -> Value {
    return arith::MaxUIOp::create(b, divideUp(all, number(runs)), needed);
  };
  Value least = bound(total), enough = bound(total - sequences);
  auto loop = scf::WhileOp::create(
      b, TypeRange{least.getType(), least.getType()}, ValueRange{least, enough},
      [&](OpBuilder &builder, Location loc, ValueRange range) {
        Value isOpen = arith::CmpIOp::create(
            builder, loc, arith::CmpIPredicate::ult, range[0], range[1]);
        scf::ConditionOp::create(builder, loc, isOpen, range);
      },
      [&](OpBuilder &builder, Location, ValueRange range) {
        OpBuilder::InsertionGuard guard(b);
        b.restoreInsertionPoint(builder.saveInsertionPoint());
        Value middle =
            arith::DivUIOp::create(b, add(range[0], range[1]), number(2));
        Value isEnough = compare(arith::CmpIPredicate::ule,
                                 emitSum(sum(emitRuns(middle))), number(total));
        Value low = select(isEnough, range[0], add(middle, number(1)));
        Value high = select(isEnough, middle, range[1]);
        scf::YieldOp::create(b, ValueRange{low, high});
      });
  return loop.getResult(1);
}

SmallVector<Value> WorkPlanner::emitFirst(ArrayRef<Value> runs) {
  // Places without a sequence have no runs, and count for nobody.
  SmallVector<Value> own;
  for (auto [count, parts] : llvm::zip(blocks, runs))
    own.push_back(divideUp(
        count, arith::MaxUIOp::create(b, parts, number(1)).getResult()));
  SmallVector<Value> init(each, number(0));
  auto loop = scf::ForOp::create(
      b, number(0), number(kLanes), number(1), init,
      [&](OpBuilder &builder, Location, Value other, ValueRange carried) {
        OpBuilder::InsertionGuard guard(b);
        b.restoreInsertionPoint(builder.saveInsertionPoint());
        SmallVector<Value> before(carried);
        for (int64_t i = 0; i < each; ++i) {
          Value length = broadcast(own[i], other);
          Value count = broadcast(runs[i], other);
          Value sequence =
              add(arith::MulIOp::create(b, other, number(each)), number(i));
          for (int64_t k = 0; k < each; ++k) {
            // Of equal ones the first sequence's come first.
            Value reach =
                add(own[k],
                    arith::ExtUIOp::create(b, b.getI32Type(),
                                           compare(arith::CmpIPredicate::uge,
                                                   sequence, places[k])));
            Value isBefore = compare(arith::CmpIPredicate::uge, length, reach);
            before[k] = add(before[k], select(isBefore, count, number(0)));
          }
        }
        scf::YieldOp::create(b, before);
      });
  return llvm::to_vector(ValueRange(loop.getResults()));
}

Run WorkPlanner::emit() {
  readSequences(DealRunOp::kBlockKeys, /*start=*/1);
  SmallVector<Value> runs = emitRuns(emitLength());
  Run found = {number(0), number(0), number(0), number(0)};
  Value isMine = arith::ConstantIntOp::create(b, 0, 1);
  for (auto [i, first] : llvm::enumerate(emitFirst(runs))) {
    Value place = subtract(index, first);
    Value isHere = compare(arith::CmpIPredicate::ult, place, runs[i]);
    found.sequence = select(isHere, places[i], found.sequence);
    found.number = select(isHere, place, found.number);
    found.count = select(isHere, runs[i], found.count);
    found.keys = select(isHere, keys[i], found.keys);
    isMine = arith::OrIOp::create(b, isMine, isHere);
  }
  Value lanes = vote(isMine);
  Value exists = compare(arith::CmpIPredicate::ne, lanes, number(0));
  Value owner = LLVM::CountTrailingZerosOp::create(b, b.getI32Type(), lanes,
                                                   /*is_zero_poison=*/false);
  // No lane has a number that no run has.
  share(found, arith::AndIOp::create(b, owner, number(kLanes - 1)), exists);
  return found;
}

Value PieceCutter::cut(const Piece &piece, Value at) {
  Value inside = subtract(at, piece.place), zero = number(0);
  Value left = subtract(piece.all, inside);
  Value moved = select(compare(arith::CmpIPredicate::slt, left, number(fewest)),
                       piece.all, inside);
  moved =
      select(compare(arith::CmpIPredicate::slt, inside, number(start + fewest)),
             zero, moved);
  return select(compare(arith::CmpIPredicate::sle, left, zero), piece.all,
                moved);
}

Value PieceCutter::countPieces(const Piece &piece, Value length) {
  Value last = arith::DivUIOp::create(
      b, subtract(add(piece.place, piece.all), number(1)), length);
  // The last cut may have moved to the end.
  Value end = cut(piece, arith::MulIOp::create(b, last, length));
  Value isMoved = compare(arith::CmpIPredicate::eq, end, piece.all);
  Value count = add(subtract(last, index), number(1));
  return select(isMoved, subtract(count, number(1)), count);
}

Value PieceCutter::emitLeast(Value own, int64_t most) {
  return subtract(number(most), emitLargest(subtract(number(most), own)));
}

void PieceCutter::store(Value record, ArrayRef<Value> words) {
  storeNumbers(
      plan,
      arith::MulIOp::create(
          b, arith::ExtUIOp::create(b, b.getI64Type(), record),
          arith::ConstantIntOp::create(b, PlanPiecesOp::kRecordWords, 64)),
      words);
}

void PieceCutter::emit() {
  readSequences(block, start);
  Value own = sum(blocks), last = emitPrefix(own), zero = number(0);
  Value all = broadcast(last, number(kLanes - 1));
  Value length = arith::MaxUIOp::create(b, divideUp(all, number(runs)),
                                        number(2 * fewest));
  Value from = arith::MulIOp::create(b, index, length);
  Value to = add(from, length), place = subtract(last, own);
  // This lane's first record and the one after its last, the sequence whose
  // pieces are merged, and their number.
  Value first = number(kMostBlocks), end = zero, merged = zero, count = zero;
  for (int64_t i = 0; i < each; ++i) {
    Piece piece = {place, blocks[i], {}, {}, {}};
    piece.begin = cut(piece, from);
    piece.end = cut(piece, to);
    piece.exists = compare(arith::CmpIPredicate::slt, piece.begin, piece.end);
    place = add(place, blocks[i]);
    Value isFirst = compare(arith::CmpIPredicate::eq, piece.begin, zero);
    Value goesOn = compare(arith::CmpIPredicate::slt, piece.end, piece.all);
    Value record = add(places[i], index);
    ifThen(piece.exists, [&] {
      Value begin = select(isFirst, zero, subtract(piece.begin, number(start)));
      Value count = subtract(subtract(piece.end, number(start)), begin);
      store(add(record, number(runs)), {places[i], keys[i], begin, count});
    });
    first =
        select(piece.exists, arith::MinUIOp::create(b, first, record), first);
    end = select(piece.exists, add(record, number(1)), end);
    Value isMerged = arith::AndIOp::create(
        b, piece.exists, arith::AndIOp::create(b, isFirst, goesOn));
    merged = select(isMerged, places[i], merged);
    count = select(isMerged, countPieces(piece, length), count);
  }
  end = emitLargest(end);
  first = arith::MinUIOp::create(b, emitLeast(first, kMostBlocks), end);
  merged = emitLargest(merged);
  count = emitLargest(count);
  ifThen(compare(arith::CmpIPredicate::eq, lane, zero),
         [&] { store(index, {first, end, merged, count}); });
}

template <>
LogicalResult PartitionLowering::lower(DealRunOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Run run = RunDealer(op, b, lane()).emit();
  op.getSequence().replaceAllUsesWith(run.sequence);
  op.getRun().replaceAllUsesWith(run.number);
  op.getRuns().replaceAllUsesWith(run.count);
  return success();
}

template <>
LogicalResult PartitionLowering::lower(PlanWorkOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Run run = WorkPlanner(op, b, lane()).emit();
  Value zero = arith::ConstantIntOp::create(b, 0, 32);
  Value isFirst =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, lane(), zero);
  auto branch = scf::IfOp::create(b, isFirst, /*withElseRegion=*/false);
  b.setInsertionPointToStart(branch.thenBlock());
  Value first = arith::MulIOp::create(
      b, arith::ExtUIOp::create(b, b.getI64Type(), op.getIndex()),
      arith::ConstantIntOp::create(b, PlanWorkOp::kRecordWords, 64));
  Value record = LLVM::GEPOp::create(b, op.getPlan().getType(), b.getI32Type(),
                                     op.getPlan(), ValueRange{first});
  int32_t place = 0;
  for (Value word : {run.sequence, run.number, run.count, run.keys}) {
    Value address =
        LLVM::GEPOp::create(b, record.getType(), b.getI32Type(), record,
                            ArrayRef<LLVM::GEPArg>{place++});
    LLVM::StoreOp::create(b, word, address, 4);
  }
  return success();
}

template <>
LogicalResult PartitionLowering::lower(PlanPiecesOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  PieceCutter(op, b, lane()).emit();
  return success();
}

template <>
LogicalResult PartitionLowering::lower(PlanTilesOp op) {
  emitTilePlan(op, lane());
  return success();
}

template <>
LogicalResult PartitionLowering::lower(FindKeyOp op) {
  op.getKey().replaceAllUsesWith(
      emitFoundKey(op, inElect ? Value() : kernel.lane()));
  return success();
}

template <>
LogicalResult PartitionLowering::lower(InOrderOp op) {
  op.getOrdered().replaceAllUsesWith(emitOrder(op));
  return success();
}

void lowering::addWorkLowerings(LoweringTable &table) {
  table.addReplaced<DealRunOp>();
  table.addReplaced<PlanWorkOp>();
  table.addReplaced<PlanPiecesOp>();
  table.addReplaced<PlanTilesOp>();
  table.addReplaced<FindKeyOp>();
  table.addReplaced<InOrderOp>();
}
