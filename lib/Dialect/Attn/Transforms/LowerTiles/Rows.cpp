//===- Rows.cpp - Reductions, broadcasts, masks and layout conversions ----===//

#include "Masks.h"
#include "PartitionLowering.h"
#include "attn/Layout/Convert.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include <limits>

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::lowering;

/// Finds for each register of `of` the register of `in` with the same row, or
/// with the column `dim` = 1 of `of` that is element of `in`.
static FailureOr<SmallVector<unsigned>> matchRows(Operation *op,
                                                  const TileLayout &of,
                                                  const TileLayout &in,
                                                  unsigned dim = 0) {
  llvm::DenseMap<int64_t, unsigned> rows;
  for (auto [reg, row] : llvm::enumerate(registerCoordinates(in, 0)))
    rows.try_emplace(row, reg);
  SmallVector<unsigned> matches;
  for (int64_t row : registerCoordinates(of, dim)) {
    auto it = rows.find(row);
    if (it == rows.end() || of.laneBases(dim) != in.laneBases(0) ||
        of.warpBases(dim) != in.warpBases(0))
      return op->emitOpError("expected layouts that keep ")
             << (dim == 0 ? "rows" : "columns") << " in their threads, got "
             << of.str() << " and " << in.str();
    matches.push_back(it->second);
  }
  return matches;
}

static Value combine(ImplicitLocOpBuilder &b, ReduceKind kind, Value lhs,
                     Value rhs) {
  if (kind == ReduceKind::Add)
    return arith::AddFOp::create(b, lhs, rhs);
  if (kind == ReduceKind::Maximum)
    return arith::MaximumFOp::create(b, lhs, rhs);
  return arith::MaxNumFOp::create(b, lhs, rhs);
}

static LogicalResult checkOneWarp(Operation *op, const TileLayout &layout) {
  if (layout.warpBitsAlong(1).empty())
    return success();
  return op->emitOpError("expected a row to be held by one warp, got a tile "
                         "whose rows cross warps");
}

template <>
LogicalResult PartitionLowering::lower(ReduceOp op) {
  FailureOr<TileValue> source = tile(op, op.getSource());
  FailureOr<TileLayout> layout = layoutOf(op, op.getType());
  if (failed(source) || failed(layout))
    return failure();
  if (!op.getPartial() && failed(checkOneWarp(op, source->layout)))
    return failure();
  FailureOr<SmallVector<unsigned>> target =
      matchRows(op, source->layout, *layout);
  if (failed(target))
    return failure();
  ImplicitLocOpBuilder b(op.getLoc(), op);
  SmallVector<Value> scalars = unpack(b, *source);

  // A few independent chains: one would expose the latency of each step.
  constexpr unsigned chains = 4;
  // A thread has one row, whose pairs are added up before their sums are.
  bool inPairs = op.getKind() == ReduceKind::Add &&
                 layout->numRegisters() == 1 &&
                 computesInPairs(op.getSource().getType());
  SmallVector<SmallVector<Value>> columns(layout->numRegisters());
  for (unsigned reg = 0; reg < scalars.size(); reg += inPairs ? 2 : 1)
    columns[(*target)[reg]].push_back(
        inPairs ? joinPair(b, scalars[reg], scalars[reg + 1]) : scalars[reg]);
  SmallVector<Value> results;
  for (ArrayRef<Value> column : columns) {
    SmallVector<Value, chains> partial(
        column.take_front(std::min<size_t>(chains, column.size())));
    for (unsigned i = partial.size(); i < column.size(); ++i)
      partial[i % chains] =
          combine(b, op.getKind(), partial[i % chains], column[i]);
    while (partial.size() > 1) {
      for (unsigned i = 0; i + 1 < partial.size(); i += 2)
        partial[i / 2] = combine(b, op.getKind(), partial[i], partial[i + 1]);
      if (partial.size() % 2)
        partial[partial.size() / 2] = partial.back();
      partial.resize((partial.size() + 1) / 2);
    }
    if (inPairs) {
      auto [first, second] = splitPair(b, partial.front());
      partial.front() = combine(b, op.getKind(), first, second);
    }
    results.push_back(partial.front());
  }
  if (!op.getPartial()) {
    Value all = arith::ConstantIntOp::create(b, -1, 32);
    Value clamp = arith::ConstantIntOp::create(b, 31, 32);
    for (unsigned bit : source->layout.laneBitsAlong(1)) {
      Value distance = arith::ConstantIntOp::create(b, int64_t(1) << bit, 32);
      for (Value &result : results) {
        Value other =
            NVVM::ShflOp::create(b, result.getType(), all, result, distance,
                                 clamp, NVVM::ShflKind::bfly, UnitAttr());
        result = combine(b, op.getKind(), result, other);
      }
    }
  }
  setTile(op.getResult(), *layout, pack(b, results, source->elementType));
  return success();
}

template <>
LogicalResult PartitionLowering::lower(BroadcastOp op) {
  FailureOr<TileValue> source = tile(op, op.getSource());
  FailureOr<TileLayout> layout = layoutOf(op, op.getType());
  if (failed(source) || failed(layout))
    return failure();
  FailureOr<SmallVector<unsigned>> from =
      matchRows(op, *layout, source->layout, op.getSourceDim());
  if (failed(from))
    return failure();
  ImplicitLocOpBuilder b(op.getLoc(), op);
  SmallVector<Value> scalars = unpack(b, *source), results;
  for (unsigned reg : *from)
    results.push_back(scalars[reg]);
  setTile(op.getResult(), *layout, pack(b, results, source->elementType));
  return success();
}

/// Returns the lane bits that are set in the lane of a row that has the element
/// `distance` columns behind that of lane 0; none where no lane has it.
static std::optional<int64_t> findLaneOf(const TileLayout &layout,
                                         int64_t distance) {
  int64_t lane = 0;
  if (distance < 0)
    return std::nullopt;
  SmallVector<int64_t, 5> bases = layout.laneBases(1);
  for (unsigned bit : layout.laneBitsAlong(1)) {
    if ((distance & bases[bit]) != bases[bit])
      continue;
    lane |= int64_t(1) << bit;
    distance -= bases[bit];
  }
  return distance == 0 ? std::optional(lane) : std::nullopt;
}

template <>
LogicalResult PartitionLowering::lower(ColumnOp op) {
  FailureOr<TileValue> source = tile(op, op.getSource());
  FailureOr<TileLayout> layout = layoutOf(op, op.getType());
  if (failed(source) || failed(layout))
    return failure();
  const TileLayout &from = source->layout;
  if (failed(checkOneWarp(op, from)))
    return failure();
  FailureOr<SmallVector<unsigned>> target = matchRows(op, from, *layout);
  if (failed(target))
    return failure();
  ImplicitLocOpBuilder b(op.getLoc(), op);
  int64_t ofRow = 0;
  for (unsigned bit : from.laneBitsAlong(1))
    ofRow |= int64_t(1) << bit;
  Value first = arith::AndIOp::create(
      b, lane(), arith::ConstantIntOp::create(b, ~ofRow, 32).getResult());
  Value all = arith::ConstantIntOp::create(b, -1, 32);
  Value clamp = arith::ConstantIntOp::create(b, 31, 32);
  SmallVector<Value> scalars = unpack(b, *source);
  SmallVector<Value> results(layout->numRegisters());
  llvm::DenseMap<int64_t, Value> holders;
  for (auto [reg, column] : llvm::enumerate(registerCoordinates(from, 1))) {
    auto bits = findLaneOf(from, op.getColumn() - column);
    if (!bits)
      continue;
    Value &holder = holders[*bits];
    if (!holder)
      holder = arith::AddIOp::create(
          b, first, arith::ConstantIntOp::create(b, *bits, 32).getResult());
    results[(*target)[reg]] =
        NVVM::ShflOp::create(b, scalars[reg].getType(), all, scalars[reg],
                             holder, clamp, NVVM::ShflKind::idx, UnitAttr());
  }
  assert(!llvm::is_contained(results, Value()) &&
         "expected each element in a lane of its row");
  setTile(op.getResult(), *layout, pack(b, results, source->elementType));
  return success();
}

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

std::optional<SmallVector<unsigned>>
lowering::matchSlice(const TileLayout &slice, const TileLayout &tile,
                     int64_t column) {
  llvm::DenseMap<std::pair<int64_t, int64_t>, unsigned> registers;
  for (unsigned reg = 0; reg < tile.numRegisters(); ++reg) {
    auto coords = tile.registerCoords(reg);
    registers.try_emplace({coords[0], coords[1]}, reg);
  }
  for (unsigned dim : {0u, 1u})
    if (slice.laneBases(dim) != tile.laneBases(dim) ||
        slice.warpBases(dim) != tile.warpBases(dim))
      return std::nullopt;
  SmallVector<unsigned> matches;
  for (unsigned reg = 0; reg < slice.numRegisters(); ++reg) {
    auto coords = slice.registerCoords(reg);
    auto it = registers.find({coords[0], coords[1] + column});
    if (it == registers.end())
      return std::nullopt;
    matches.push_back(it->second);
  }
  return matches;
}

template <>
LogicalResult PartitionLowering::lower(SliceOp op) {
  FailureOr<TileValue> source = tile(op, op.getSource());
  FailureOr<TileLayout> layout = layoutOf(op, op.getType());
  if (failed(source) || failed(layout))
    return failure();
  std::optional<SmallVector<unsigned>> from =
      matchSlice(*layout, source->layout, op.getColumn());
  unsigned packing = source->packing;
  SmallVector<Value> results;
  for (unsigned reg = 0; from && reg < from->size(); reg += packing) {
    // Elements that share a register stay together.
    for (unsigned i = 0; i < packing && from; ++i)
      if ((*from)[reg + i] != (*from)[reg] + i || (*from)[reg] % packing != 0)
        from = std::nullopt;
    if (from)
      results.push_back(source->values[(*from)[reg] / packing]);
  }
  if (!from)
    return op.emitOpError("expected a slice whose elements stay in their "
                          "threads and registers, got columns ")
           << op.getColumn() << " to "
           << op.getColumn() + op.getType().getShape()[1] << " of "
           << source->layout.str();
  setTile(op.getResult(), *layout, results);
  return success();
}

//===----------------------------------------------------------------------===//
// Layout conversions
//===----------------------------------------------------------------------===//

/// A value moved as 32 bits.
static Value shuffle(ImplicitLocOpBuilder &b, Value value, Value lane,
                     NVVM::ShflKind kind) {
  Type type = value.getType();
  bool narrow = !type.isF32() && !type.isInteger(32);
  Value word =
      narrow ? LLVM::BitcastOp::create(b, b.getI32Type(), value).getResult()
             : value;
  Value all = arith::ConstantIntOp::create(b, -1, 32);
  Value clamp = arith::ConstantIntOp::create(b, 31, 32);
  Value moved = NVVM::ShflOp::create(b, word.getType(), all, word, lane, clamp,
                                     kind, UnitAttr());
  return narrow ? LLVM::BitcastOp::create(b, type, moved).getResult() : moved;
}

/// Exchanges registers among lanes as a plan says; each holds `packing`
/// elements of a tile. `combine` returns the sum of numbers that a lane's bits
/// stand for.
static void exchangeRegisters(ImplicitLocOpBuilder &b,
                              const ConversionPlan &plan, unsigned packing,
                              Value lane,
                              function_ref<Value(ArrayRef<int64_t>)> combine,
                              MutableArrayRef<Value> registers) {
  for (const ShuffleRound &round : plan.rounds) {
    if (round.kind == ShuffleRound::Kind::Permute) {
      SmallVector<int64_t> constants(round.sourceLanes.begin(),
                                     round.sourceLanes.end());
      Value sourceLane = combine(constants);
      for (Value &value : registers)
        value = shuffle(b, value, sourceLane, NVVM::ShflKind::idx);
      continue;
    }
    unsigned bit = round.registerBit - llvm::Log2_32(packing);
    Value distance =
        arith::ConstantIntOp::create(b, int64_t(1) << round.laneBit, 32);
    Value isClear = arith::CmpIOp::create(
        b, arith::CmpIPredicate::eq,
        arith::AndIOp::create(b, lane, distance).getResult(),
        arith::ConstantIntOp::create(b, 0, 32).getResult());
    for (unsigned low = 0; low < registers.size(); ++low) {
      unsigned high = low ^ (1u << bit);
      if (low > high)
        continue;
      Value lowValue = registers[low], highValue = registers[high];
      Value give = arith::SelectOp::create(b, isClear, highValue, lowValue);
      Value got = shuffle(b, give, distance, NVVM::ShflKind::bfly);
      registers[low] = arith::SelectOp::create(b, isClear, lowValue, got);
      registers[high] = arith::SelectOp::create(b, isClear, got, highValue);
    }
  }
}

/// Returns true if a layout's registers are pairs of neighbours, one behind the
/// other.
static bool holdsPairs(const TileLayout &layout) {
  auto pairs = findPairs(layout);
  for (auto [number, pair] : llvm::enumerate(pairs))
    if (pair != std::pair(unsigned(2 * number), unsigned(2 * number + 1)))
      return false;
  return !pairs.empty();
}

/// The bytes of f4E2M1FN pairs, four of them a register on their way.
static FailureOr<SmallVector<Value>>
exchangePairs(ImplicitLocOpBuilder &b, const ConversionPlan &plan,
              const TileValue &source, const TileLayout &target, Value lane,
              function_ref<Value(ArrayRef<int64_t>)> combine) {
  constexpr unsigned kElements = 2 * kWordBytes;
  unsigned count = plan.initialRegisters.size();
  if (plan.kind != ConversionKind::Shuffles || count % kElements != 0 ||
      !plan.movesPacks(kElements) || !holdsPairs(source.layout) ||
      !holdsPairs(target))
    return failure();
  SmallVector<Value> words;
  for (unsigned reg = 0; reg < count; reg += kElements)
    words.push_back(
        joinBytes(b, ArrayRef(source.values)
                         .slice(plan.initialRegisters[reg] / 2, kWordBytes)));
  exchangeRegisters(b, plan, kElements, lane, combine, words);
  SmallVector<SmallVector<Value>> ofWords;
  for (Value word : words)
    ofWords.push_back(splitWord(b, word));
  SmallVector<Value> bytes;
  for (unsigned reg = 0; reg < plan.finalRegisters.size(); reg += 2) {
    unsigned from = plan.finalRegisters[reg];
    if (from % 2 != 0 || plan.finalRegisters[reg + 1] != from + 1)
      return failure();
    bytes.push_back(ofWords[from / kElements][from % kElements / 2]);
  }
  return bytes;
}

/// Registers that stay in their threads, `from` those of the source: renaming,
/// on whole packed values where the pairs stay together.
static SmallVector<Value> renameRegisters(PartitionLowering &lowering,
                                          ImplicitLocOpBuilder &b,
                                          const TileValue &source,
                                          ArrayRef<unsigned> from) {
  unsigned packing = source.packing;
  bool whole = true;
  for (unsigned reg = 0; reg < from.size(); ++reg)
    whole &= from[reg] % packing == reg % packing &&
             from[reg] / packing == from[reg - reg % packing] / packing;
  SmallVector<Value> results;
  if (whole) {
    for (unsigned reg = 0; reg < from.size(); reg += packing)
      results.push_back(source.values[from[reg] / packing]);
    return results;
  }
  SmallVector<Value> scalars = lowering.unpack(b, source);
  for (unsigned reg : from)
    results.push_back(scalars[reg]);
  return lowering.pack(b, results, source.elementType);
}

template <>
LogicalResult PartitionLowering::lower(ConvertLayoutOp op) {
  FailureOr<TileValue> source = tile(op, op.getSource());
  FailureOr<TileLayout> layout = layoutOf(op, op.getType());
  if (failed(source) || failed(layout))
    return failure();
  ImplicitLocOpBuilder b(op.getLoc(), op);
  unsigned bits = source->elementType.getIntOrFloatBitWidth();
  bool isPaired = isa<Float4E2M1FNType>(source->elementType);
  auto kept = layout->registersFrom(source->layout);
  if (kept && !isPaired) {
    setTile(op.getResult(), *layout, renameRegisters(*this, b, *source, *kept));
    return success();
  }

  llvm::Expected<ConversionPlan> plan =
      planConversion(source->layout, *layout, bits);
  if (!plan)
    return op.emitOpError() << llvm::toString(plan.takeError());
  constexpr StringLiteral beyondWarps =
      "expected a conversion inside warps; attn-materialize-scratch places the "
      "others";
  auto combine = [&](ArrayRef<int64_t> numbers) {
    return linearForm(b, lane(), numbers, /*forXor=*/true);
  };
  if (isPaired) {
    auto bytes = exchangePairs(b, *plan, *source, *layout, lane(), combine);
    if (failed(bytes))
      return op.emitOpError(beyondWarps);
    setTile(op.getResult(), *layout, *bytes);
    return success();
  }
  // Elements that share a register travel together.
  unsigned packing = source->packing;
  if (plan->kind != ConversionKind::Shuffles || !plan->movesPacks(packing))
    return op.emitOpError(beyondWarps);

  SmallVector<Value> current;
  for (unsigned reg = 0; reg < plan->initialRegisters.size(); reg += packing)
    current.push_back(source->values[plan->initialRegisters[reg] / packing]);
  exchangeRegisters(b, *plan, packing, lane(), combine, current);
  SmallVector<Value> results;
  if (plan->keepsPacks(packing)) {
    for (unsigned reg = 0; reg < plan->finalRegisters.size(); reg += packing)
      results.push_back(current[plan->finalRegisters[reg] / packing]);
  } else {
    // Bytes of several registers make up one of the result.
    TileValue moved = *source;
    moved.values = current;
    SmallVector<Value> scalars = unpack(b, moved), ordered;
    for (unsigned reg : plan->finalRegisters)
      ordered.push_back(scalars[reg]);
    results = pack(b, ordered, source->elementType);
  }
  setTile(op.getResult(), *layout, results);
  return success();
}

//===----------------------------------------------------------------------===//
// Masks and scalar regions
//===----------------------------------------------------------------------===//

/// The registers of row values, by the rows of lane 0 of warp 0; none for no
/// value.
static FailureOr<RowValues> findRowValues(PartitionLowering &lowering,
                                          Operation *op,
                                          const TileLayout &layout,
                                          Value rows) {
  RowValues values;
  if (!rows)
    return values;
  FailureOr<TileValue> tile = lowering.tile(op, rows);
  if (failed(tile))
    return failure();
  FailureOr<SmallVector<unsigned>> from = matchRows(op, layout, tile->layout);
  if (failed(from))
    return failure();
  for (auto [row, reg] : llvm::zip(registerCoordinates(layout, 0), *from))
    values[row] = tile->values[reg];
  return values;
}

template <>
LogicalResult PartitionLowering::lower(ApplyMaskOp op) {
  FailureOr<TileValue> source = tile(op, op.getSource());
  if (failed(source))
    return failure();
  const TileLayout &layout = source->layout;
  FailureOr<ColumnKeys> keys = getColumnKeys(op, layout, op.getQuads());
  if (failed(keys))
    return failure();
  Value threadRow = threadCoordinate(layout, 0);
  Value threadColumn = threadCoordinate(layout, 1, keys->threadStep);
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Type elementType = source->elementType;
  Value minusInfinity = arith::ConstantOp::create(
      b, b.getFloatAttr(elementType, -std::numeric_limits<double>::infinity()));

  // Everything is compared with the register's constant column.
  Value columnBase = arith::AddIOp::create(b, op.getColumn(), threadColumn);
  auto from = findRowValues(*this, op, layout, op.getFrom());
  auto to = findRowValues(*this, op, layout, op.getTo());
  if (failed(from) || failed(to))
    return failure();
  MaskBounds bounds(b, op, threadRow, columnBase, *from, *to);

  SmallVector<int64_t> rows = registerCoordinates(layout, 0);
  SmallVector<Value> scalars = unpack(b, *source), results;
  for (auto [scalar, row, column] : llvm::zip(scalars, rows, keys->registers)) {
    auto [lower, upper] = bounds.of(row);
    Value position = arith::ConstantIntOp::create(b, column, 32);
    Value keep;
    if (upper)
      keep =
          arith::CmpIOp::create(b, arith::CmpIPredicate::slt, position, upper);
    if (lower) {
      Value inside =
          arith::CmpIOp::create(b, arith::CmpIPredicate::sge, position, lower);
      keep = keep ? arith::AndIOp::create(b, keep, inside).getResult() : inside;
    }
    results.push_back(arith::SelectOp::create(b, keep, scalar, minusInfinity));
  }
  setTile(op.getResult(), layout, pack(b, results, elementType));
  return success();
}

void lowering::addRowLowerings(LoweringTable &table) {
  table.addReplaced<ReduceOp, BroadcastOp, ColumnOp, SliceOp, ConvertLayoutOp,
                    ApplyMaskOp>();
}
