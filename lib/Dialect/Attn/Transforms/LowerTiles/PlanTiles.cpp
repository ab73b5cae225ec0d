//===- PlanTiles.cpp - Tiles that begin where documents do ----------------===//
//
// One CTA looks at all numbers: the lanes of a warp at 32 neighbouring ones at
// a time, and each warp at a part of all, so that the documents that begin
// there follow those of the warps before it. Tiles with equally many blocks are
// neighbours; how many there are is counted first. The attention waits for this
// kernel, whose time is that of its loads.
//
//===----------------------------------------------------------------------===//

#include "PlanTiles.h"
#include "FindKey.h"
#include "WarpNumbers.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::lowering;

/// Numbers of which a thread asks for all before it awaits the first.
static constexpr int64_t kTogether = 16;
/// Rounds of sums over all threads.
static constexpr int64_t kRounds = 3;

namespace {

/// The code of one thread. Numbers are i32.
class TilePlanner : public WarpNumbers {
public:
  TilePlanner(PlanTilesOp op, ImplicitLocOpBuilder &b, Value lane)
      : WarpNumbers(b, lane), op(op), capacity(op.getCapacity()),
        wordSums(PlanTilesOp::kRecordWords * (capacity + 1)),
        wordTiles(wordSums + kRounds * kWarps),
        wordBegins(wordTiles + PlanTilesOp::kThreads) {}
  void emit();

private:
  static constexpr int64_t kWarps = PlanTilesOp::kThreads / kLanes;

  /// Parts of the rows, of a number for each lane, that are this warp's.
  struct Parts {
    Value first, end, ofRow;
  };
  /// A number that a lane looks at: its place in all rows, if it begins a
  /// document, and if it is less than the one before.
  struct Number {
    Value place, begins, falls;
  };
  /// A tile: its batch, and its first query, the end of the queries and its
  /// keys, all counted from the begin of the batch.
  struct Tile {
    Value batch, query, queries, begin, end;
  };

  /// Calls `body` for the numbers of `kTogether` parts at a time with what is
  /// carried.
  ValueRange forNumbers(
      ValueRange inits,
      function_ref<SmallVector<Value>(ArrayRef<Number>, ValueRange)> body);
  SmallVector<Number> loadNumbers(Value part);
  /// Counts the begins in this warp's parts. Returns them, and 1 if this lane's
  /// numbers decrease.
  std::pair<Value, Value> countBegins();
  /// Writes the begins, counted through all batches, from number `index` on.
  void writeBegins(Value index);
  /// Writes the begins of all documents. Returns how many there are, 0 where
  /// numbers decrease and where they are too many; sets `ordered` to whether no
  /// number decreases.
  Value findDocuments(Value &ordered);
  /// Calls `body` for each tile of this warp's documents that is this lane's.
  void forTiles(Value documents, function_ref<void(const Tile &)> body);
  /// Returns how many blocks of keys a tile has, and to which of the lengths it
  /// belongs.
  Value countBlocks(const Tile &tile);
  Value findLength(const Tile &tile);
  /// Returns the place from which the tile's numbers count.
  Value getOrigin(const Tile &tile) {
    return subtract(tile.begin, arith::RemUIOp::create(b, tile.begin,
                                                       number(op.getAlign())));
  }
  /// Returns by how many blocks one length differs from the next.
  Value getBlocksOfLength() {
    Value most = divideUp(op.getCount(), number(op.getBlockN()));
    return divideUp(add(most, number(1)), number(PlanTilesOp::kThreads - 1));
  }
  /// Writes record `index`, of a tile of one document or not.
  void writeTile(Value index, const Tile &tile, bool isOne);
  /// Writes the records of tiles that do not follow documents.
  void writeUncut(Value ordered);
  /// Stores this warp's sum of round `round`. After a barrier `loadSum` returns
  /// the sum over the warps before this one, and over all.
  void storeSum(Value sum, int64_t round);
  std::pair<Value, Value> loadSum(int64_t round);

  void meet() { NVVM::BarrierOp::create(b); }
  Value widen(Value value) {
    return arith::ExtUIOp::create(b, b.getI64Type(), value);
  }
  Value word(int64_t first, Value index) {
    Value place = arith::AddIOp::create(
        b, widen(index), arith::ConstantIntOp::create(b, first, 64));
    return LLVM::GEPOp::create(b, op.getPlan().getType(), b.getI32Type(),
                               op.getPlan(), ValueRange{place});
  }
  Value load(int64_t first, Value index) {
    return LLVM::LoadOp::create(b, b.getI32Type(), word(first, index), 4);
  }
  void store(Value value, int64_t first, Value index) {
    LLVM::StoreOp::create(b, value, word(first, index), 4);
  }
  /// Adds 1 to a number. Returns what it was.
  Value increment(int64_t first, Value index) {
    return LLVM::AtomicRMWOp::create(b, LLVM::AtomicBinOp::add,
                                     word(first, index), number(1),
                                     LLVM::AtomicOrdering::monotonic);
  }
  Value getRow(Value row) {
    Value place = arith::MulIOp::create(b, widen(row), op.getStride());
    return LLVM::GEPOp::create(b, op.getNumbers().getType(), op.getElement(),
                               op.getNumbers(), ValueRange{place});
  }
  Value loadNumber(Value row, Value place) {
    Value address = LLVM::GEPOp::create(b, row.getType(), op.getElement(), row,
                                        ValueRange{widen(place)});
    return LLVM::LoadOp::create(b, op.getElement(), address,
                                op.getElement().getIntOrFloatBitWidth() / 8);
  }
  /// Emits a loop and goes on in it while `body` runs.
  ValueRange forRange(Value from, Value to, Value step, ValueRange inits,
                      function_ref<SmallVector<Value>(Value, ValueRange)> body);

  PlanTilesOp op;
  int64_t capacity;
  /// Where the op's own numbers begin.
  int64_t wordSums, wordTiles, wordBegins;
  Value thread, warp;
  Parts parts;
};

} // namespace

ValueRange TilePlanner::forRange(
    Value from, Value to, Value step, ValueRange inits,
    function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  auto loop = scf::ForOp::create(
      b, from, to, step, inits,
      [&](OpBuilder &builder, Location, Value index, ValueRange carried) {
        OpBuilder::InsertionGuard guard(b);
        b.restoreInsertionPoint(builder.saveInsertionPoint());
        scf::YieldOp::create(b, body(index, carried));
      });
  return loop.getResults();
}

//===----------------------------------------------------------------------===//
// Documents
//===----------------------------------------------------------------------===//

SmallVector<TilePlanner::Number> TilePlanner::loadNumbers(Value part) {
  Value zero = number(0), one = number(1);
  Value row = arith::DivUIOp::create(b, part, parts.ofRow);
  Value place =
      add(multiply(subtract(part, multiply(row, parts.ofRow)), number(kLanes)),
          lane);
  Value ends = multiply(parts.ofRow, number(kLanes));
  Value lastRow = subtract(op.getRows(), one);
  Value lastPlace = subtract(op.getCount(), one);
  SmallVector<Number> numbers;
  SmallVector<std::pair<Value, Value>> pairs;
  for (int64_t i = 0; i < kTogether; ++i) {
    // Places beyond the warp's parts or a row's end have no number.
    Value exists = arith::AndIOp::create(
        b, compare(arith::CmpIPredicate::slt, add(part, number(i)), parts.end),
        compare(arith::CmpIPredicate::sle, place, lastPlace));
    Value base = getRow(arith::MinSIOp::create(b, row, lastRow));
    Value inside = arith::MinSIOp::create(b, place, lastPlace);
    Value before =
        arith::MaxSIOp::create(b, subtract(inside, one), zero).getResult();
    pairs.push_back({loadNumber(base, before), loadNumber(base, inside)});
    numbers.push_back({add(multiply(row, op.getCount()), place),
                       compare(arith::CmpIPredicate::eq, place, zero), exists});
    Value next = add(place, number(kLanes));
    Value isLast = compare(arith::CmpIPredicate::sge, next, ends);
    row = select(isLast, add(row, one), row);
    place = select(isLast, lane, next);
  }
  for (auto [each, pair] : llvm::zip(numbers, pairs)) {
    Value exists = each.falls;
    auto [before, own] = pair;
    each.falls = arith::AndIOp::create(
        b, exists, compare(arith::CmpIPredicate::sgt, before, own));
    each.begins = arith::AndIOp::create(
        b, exists,
        arith::OrIOp::create(b, each.begins,
                             compare(arith::CmpIPredicate::ne, before, own)));
  }
  return numbers;
}

ValueRange TilePlanner::forNumbers(
    ValueRange inits,
    function_ref<SmallVector<Value>(ArrayRef<Number>, ValueRange)> body) {
  return forRange(parts.first, parts.end, number(kTogether), inits,
                  [&](Value part, ValueRange carried) {
                    return body(loadNumbers(part), carried);
                  });
}

std::pair<Value, Value> TilePlanner::countBegins() {
  Value zero = number(0);
  ValueRange found = forNumbers({zero, zero}, [&](ArrayRef<Number> numbers,
                                                  ValueRange carried) {
    Value count = carried[0], bad = carried[1];
    for (const Number &each : numbers) {
      count = add(count,
                  LLVM::CtPopOp::create(b, b.getI32Type(), vote(each.begins)));
      bad = arith::OrIOp::create(
          b, bad, arith::ExtUIOp::create(b, b.getI32Type(), each.falls));
    }
    return SmallVector<Value>{count, bad};
  });
  return {found[0], found[1]};
}

void TilePlanner::writeBegins(Value index) {
  Value one = number(1);
  Value lanesBefore = subtract(arith::ShLIOp::create(b, one, lane), one);
  auto count = [&](Value lanes) -> Value {
    return LLVM::CtPopOp::create(b, b.getI32Type(), lanes);
  };
  forNumbers(index, [&](ArrayRef<Number> numbers, ValueRange carried) {
    Value next = carried.front();
    for (const Number &each : numbers) {
      Value lanes = vote(each.begins);
      Value own =
          add(next, count(arith::AndIOp::create(b, lanes, lanesBefore)));
      Value fits = compare(arith::CmpIPredicate::ult, own, number(capacity));
      ifThen(arith::AndIOp::create(b, each.begins, fits),
             [&] { store(each.place, wordBegins, own); });
      next = add(next, count(lanes));
    }
    return SmallVector<Value>{next};
  });
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

void TilePlanner::forTiles(Value documents,
                           function_ref<void(const Tile &)> body) {
  Value rows = number(op.getBlockM());
  forRange(warp, documents, number(kWarps), {},
           [&](Value document, ValueRange) {
             Value begin = load(wordBegins, document);
             Value end = load(wordBegins, add(document, number(1)));
             Tile tile;
             tile.batch = arith::DivUIOp::create(b, begin, op.getCount());
             Value before = multiply(tile.batch, op.getCount());
             tile.begin = subtract(begin, before);
             tile.queries = tile.end = subtract(end, before);
             Value first = add(tile.begin, multiply(lane, rows));
             Value step = number(op.getBlockM() * kLanes);
             forRange(first, tile.end, step, {}, [&](Value query, ValueRange) {
               tile.query = query;
               body(tile);
               return SmallVector<Value>();
             });
             return SmallVector<Value>();
           });
}

Value TilePlanner::countBlocks(const Tile &tile) {
  Value size = number(op.getBlockN()), rows = number(op.getBlockM());
  Value begin = tile.begin, end = tile.end;
  auto least = [&](Value x, Value y) -> Value {
    return arith::MinSIOp::create(b, x, y);
  };
  auto most = [&](Value x, Value y) -> Value {
    return arith::MaxSIOp::create(b, x, y);
  };
  MaskAttr mask = op.getMask();
  if (mask.hasRight()) {
    Value last = least(add(tile.query, rows), tile.queries);
    end = least(end, most(add(last, number(mask.rightBound())), begin));
  }
  if (mask.hasLeft())
    begin = least(most(add(tile.query, number(mask.leftBound())), begin), end);
  Value origin = getOrigin(tile);
  return subtract(divideUp(subtract(end, origin), size),
                  arith::DivUIOp::create(b, subtract(begin, origin), size));
}

Value TilePlanner::findLength(const Tile &tile) {
  // Equal lengths have a number of their own while there are enough.
  Value share =
      arith::DivUIOp::create(b, countBlocks(tile), getBlocksOfLength());
  return arith::MinUIOp::create(b, share, number(PlanTilesOp::kThreads - 1));
}

void TilePlanner::writeTile(Value index, const Tile &tile, bool isOne) {
  Value first =
      multiply(add(index, number(1)), number(PlanTilesOp::kRecordWords));
  Value origin = getOrigin(tile);
  SmallVector<Value> words = {tile.batch, origin};
  for (Value place : {tile.query, tile.queries, tile.begin, tile.end})
    words.push_back(subtract(place, origin));
  words.push_back(number(isOne));
  storeNumbers(op.getPlan(), widen(first), words);
}

void TilePlanner::writeUncut(Value ordered) {
  Value rows = number(op.getBlockM());
  Value ofBatch = divideUp(op.getCount(), rows);
  Value all = multiply(ofBatch, op.getRows()), zero = number(0);
  forRange(thread, all, number(PlanTilesOp::kThreads), {},
           [&](Value index, ValueRange) {
             Value batch = arith::DivUIOp::create(b, index, ofBatch);
             Value query =
                 multiply(subtract(index, multiply(batch, ofBatch)), rows);
             Value end = add(query, rows);
             Value last = subtract(
                 arith::MinUIOp::create(b, end, op.getCount()), number(1));
             Value numbers = getRow(batch);
             auto find = [&](KeySearch search) {
               auto key = FindKeyOp::create(b, b.getI32Type(), search, numbers,
                                            ValueRange(), zero, op.getCount(),
                                            numbers, ValueRange(), query, last,
                                            ordered, op.getElement());
               Value found = emitFoundKey(key);
               key.erase();
               return found;
             };
             Tile tile = {batch, query, op.getCount(), find(KeySearch::First),
                          find(KeySearch::Last)};
             writeTile(index, tile, /*isOne=*/false);
             return SmallVector<Value>();
           });
  ifThen(compare(arith::CmpIPredicate::eq, thread, zero),
         [&] { store(all, 0, zero); });
}

//===----------------------------------------------------------------------===//
// The plan
//===----------------------------------------------------------------------===//

void TilePlanner::storeSum(Value sum, int64_t round) {
  ifThen(compare(arith::CmpIPredicate::eq, lane, number(kLanes - 1)),
         [&] { store(sum, wordSums + round * kWarps, warp); });
}

std::pair<Value, Value> TilePlanner::loadSum(int64_t round) {
  Value ofWarp = load(wordSums + round * kWarps, lane);
  Value sums = emitPrefix(ofWarp);
  return {subtract(broadcast(sums, warp), broadcast(ofWarp, warp)),
          broadcast(sums, number(kLanes - 1))};
}

Value TilePlanner::findDocuments(Value &ordered) {
  auto [own, falls] = countBegins();
  storeSum(own, 0);
  auto met = NVVM::BarrierOp::create(
      b, b.getI32Type(), /*barrierId=*/Value(), /*numberOfThreads=*/Value(),
      NVVM::BarrierReductionAttr::get(b.getContext(),
                                      NVVM::BarrierReduction::OR),
      falls);
  std::pair<Value, Value> found = loadSum(0);
  Value before = found.first, documents = found.second;
  writeBegins(before);
  Value zero = number(0), most = number(capacity);
  ifThen(compare(arith::CmpIPredicate::eq, thread, zero), [&] {
    Value end = arith::MinUIOp::create(b, documents, most);
    store(multiply(op.getRows(), op.getCount()), wordBegins, end);
  });
  meet();
  ordered = compare(arith::CmpIPredicate::eq, met.getRes(), zero);
  Value isKnown = arith::AndIOp::create(
      b, ordered, compare(arith::CmpIPredicate::ule, documents, most));
  return select(isKnown, documents, zero);
}

void TilePlanner::emit() {
  thread = arith::IndexCastOp::create(
      b, b.getI32Type(), gpu::ThreadIdOp::create(b, gpu::Dimension::x));
  warp = arith::DivUIOp::create(b, thread, number(kLanes));
  Value zero = number(0);
  store(zero, wordTiles, thread);
  parts.ofRow = divideUp(op.getCount(), number(kLanes));
  Value all = multiply(parts.ofRow, op.getRows());
  Value each = divideUp(all, number(kWarps));
  parts.first = arith::MinUIOp::create(b, multiply(warp, each), all);
  parts.end = arith::MinUIOp::create(b, add(parts.first, each), all);

  Value ordered, documents = findDocuments(ordered);
  forTiles(documents,
           [&](const Tile &tile) { increment(wordTiles, findLength(tile)); });
  meet();
  // No tile has more blocks than the last one of its length.
  Value longest = subtract(
      multiply(add(thread, number(1)), getBlocksOfLength()), number(1));
  Value ofLength = load(wordTiles, thread);
  Value sum = emitPrefix(ofLength);
  storeSum(sum, 1);
  storeSum(emitPrefix(multiply(ofLength, longest)), 2);
  meet();
  std::pair<Value, Value> counted = loadSum(1);
  Value before = counted.first, tiles = counted.second;
  Value blocks = loadSum(2).second;
  store(add(before, subtract(sum, ofLength)), wordTiles, thread);
  meet();
  Value isLess = arith::AndIOp::create(
      b, compare(arith::CmpIPredicate::ule, tiles, number(capacity)),
      compare(arith::CmpIPredicate::ule, blocks, number(op.getMost())));
  Value fits = arith::AndIOp::create(
      b, compare(arith::CmpIPredicate::ne, documents, zero), isLess);
  auto branch = scf::IfOp::create(b, fits, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  forTiles(documents, [&](const Tile &tile) {
    writeTile(increment(wordTiles, findLength(tile)), tile, /*isOne=*/true);
  });
  ifThen(compare(arith::CmpIPredicate::eq, thread, zero),
         [&] { store(tiles, 0, zero); });
  b.setInsertionPointToStart(branch.elseBlock());
  writeUncut(ordered);
}

void lowering::emitTilePlan(PlanTilesOp op, Value lane) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  TilePlanner(op, b, lane).emit();
}
