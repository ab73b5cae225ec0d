//===- Rows.cpp - Reductions, broadcasts, masks and layout conversions ----===//

#include "Exchange.h"
#include "ScalarRegion.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
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

namespace {

/// A tile of scores and where its elements are: a register at its own row and
/// key, behind the row and the column that its thread has.
struct PlacedScores {
  TileValue tile;
  ColumnKeys keys;
  /// Null for the column of a tile that has rows only.
  Value threadRow, threadColumn;
};

} // namespace

/// Finds the elements of the tile that `op` takes.
template <typename OpTy>
static FailureOr<PlacedScores> placeScores(PartitionLowering &lowering,
                                           OpTy op) {
  FailureOr<TileValue> source = lowering.tile(op, op.getSource());
  if (failed(source))
    return failure();
  const TileLayout &layout = source->layout;
  FailureOr<ColumnKeys> keys = getColumnKeys(op, layout, op.getQuads());
  if (failed(keys))
    return failure();
  PlacedScores scores = {*source, *keys, lowering.threadCoordinate(layout, 0),
                         Value()};
  if (layout.rank() > 1)
    scores.threadColumn =
        lowering.threadCoordinate(layout, 1, keys->threadStep);
  return scores;
}

template <>
LogicalResult PartitionLowering::lower(ApplyMaskOp op) {
  FailureOr<PlacedScores> scores = placeScores(*this, op);
  if (failed(scores))
    return failure();
  const TileValue &source = scores->tile;
  const TileLayout &layout = source.layout;
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Type elementType = source.elementType;
  Value minusInfinity = arith::ConstantOp::create(
      b, b.getFloatAttr(elementType, -std::numeric_limits<double>::infinity()));

  // Everything is compared with the register's constant column.
  Value columnBase =
      arith::AddIOp::create(b, op.getColumn(), scores->threadColumn);
  auto from = findRowValues(*this, op, layout, op.getFrom());
  auto to = findRowValues(*this, op, layout, op.getTo());
  if (failed(from) || failed(to))
    return failure();
  MaskBounds bounds(b, op, scores->threadRow, columnBase, *from, *to);

  SmallVector<int64_t> rows = registerCoordinates(layout, 0);
  SmallVector<Value> scalars = unpack(b, source), results;
  for (auto [scalar, row, column] :
       llvm::zip(scalars, rows, scores->keys.registers)) {
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

/// Inlines operations of a scalar region and returns what it yields. Failure
/// after a diagnostic.
static FailureOr<SmallVector<Value>>
inlineRegion(PartitionLowering &lowering, ImplicitLocOpBuilder &b, Block &body,
             ArrayRef<Operation *> operations, IRMapping &mapping) {
  if (failed(inlineScalars(lowering, b, operations, mapping)))
    return failure();
  return llvm::map_to_vector(
      body.getTerminator()->getOperands(),
      [&](Value value) { return mapping.lookupOrDefault(value); });
}

template <>
LogicalResult PartitionLowering::lower(MapElementsOp op) {
  FailureOr<PlacedScores> scores = placeScores(*this, op);
  if (failed(scores))
    return failure();
  const TileValue &source = scores->tile;
  const TileLayout &layout = source.layout;
  ImplicitLocOpBuilder b(op.getLoc(), op);
  SmallVector<Value> scalars = unpack(b, source);
  SmallVector<Type> types(scalars.size(), source.elementType);
  scf::IfOp branch;
  if (op.getUnless()) {
    branch = scf::IfOp::create(b, types, op.getUnless(), /*addThenBlock=*/true,
                               /*addElseBlock=*/true);
    b.setInsertionPointToEnd(branch.thenBlock());
    scf::YieldOp::create(b, scalars);
    b.setInsertionPointToEnd(branch.elseBlock());
  }
  Value rowBase = arith::AddIOp::create(b, op.getRow(), scores->threadRow);
  Value columnBase = op.getColumn();
  if (scores->threadColumn)
    columnBase = arith::AddIOp::create(b, columnBase, scores->threadColumn);
  SmallVector<int64_t> rows = registerCoordinates(layout, 0);
  SmallVector<Value> results;
  Block &body = op.getBody().front();
  KeyBits bits(*this, op, layout, scores->keys);
  if (failed(bits.emit(b, scores->threadColumn)))
    return failure();
  for (auto [scalar, row, column] :
       llvm::zip(scalars, rows, scores->keys.registers)) {
    IRMapping mapping;
    mapping.map(body.getArgument(0), scalar);
    mapping.map(body.getArgument(1),
                arith::AddIOp::create(
                    b, rowBase, arith::ConstantIntOp::create(b, row, 32)));
    mapping.map(
        body.getArgument(2),
        arith::AddIOp::create(b, columnBase,
                              arith::ConstantIntOp::create(b, column, 32)));
    bits.map(b, column, mapping);
    FailureOr<SmallVector<Value>> yielded =
        inlineRegion(*this, b, body, bits.getOthers(), mapping);
    if (failed(yielded))
      return failure();
    results.push_back(yielded->front());
  }
  if (branch) {
    scf::YieldOp::create(b, results);
    b.setInsertionPointAfter(branch);
    results = llvm::to_vector_of<Value>(branch.getResults());
  }
  setTile(op.getResult(), layout, pack(b, results, source.elementType));
  return success();
}

template <>
LogicalResult PartitionLowering::lower(RowKeysOp op) {
  FailureOr<TileLayout> layout = layoutOf(op, op.getFrom().getType());
  if (failed(layout))
    return failure();
  Value threadRow = threadCoordinate(*layout, 0);
  ImplicitLocOpBuilder b(op.getLoc(), op);
  SmallVector<int64_t> rows = registerCoordinates(*layout, 0);
  SmallVector<Type> types(2 * rows.size(), b.getI32Type());
  types.push_back(b.getI1Type());
  auto branch = scf::IfOp::create(b, types, op.getSame(), /*addThenBlock=*/true,
                                  /*addElseBlock=*/true);
  b.setInsertionPointToEnd(branch.thenBlock());
  SmallVector<Value> known(rows.size(), op.getBegin());
  known.append(rows.size(), op.getEnd());
  Value yes = arith::ConstantIntOp::create(b, 1, 1);
  known.push_back(yes);
  scf::YieldOp::create(b, known);

  b.setInsertionPointToEnd(branch.elseBlock());
  Value rowBase = arith::AddIOp::create(b, op.getRow(), threadRow);
  Value exact = arith::ConstantIntOp::create(b, 1, 1);
  SmallVector<Value> from, to;
  Block &body = op.getBody().front();
  SmallVector<Operation *> operations = listOperations(body);
  for (int64_t row : rows) {
    IRMapping mapping;
    mapping.map(body.getArgument(0),
                arith::AddIOp::create(
                    b, rowBase, arith::ConstantIntOp::create(b, row, 32)));
    FailureOr<SmallVector<Value>> yielded =
        inlineRegion(*this, b, body, operations, mapping);
    if (failed(yielded))
      return failure();
    ArrayRef<Value> range = *yielded;
    from.push_back(range[0]);
    to.push_back(range[1]);
    for (auto [full, bound] :
         {std::pair(range[2], range[0]), std::pair(range[1], range[3])})
      exact = arith::AndIOp::create(
          b, exact,
          arith::CmpIOp::create(b, arith::CmpIPredicate::sle, full, bound));
  }
  Value all = arith::ConstantIntOp::create(b, -1, 32);
  exact = NVVM::VoteSyncOp::create(b, b.getI1Type(), all, exact,
                                   NVVM::VoteSyncKind::all);
  SmallVector<Value> found = from;
  llvm::append_range(found, to);
  found.push_back(exact);
  scf::YieldOp::create(b, found);

  ValueRange results = branch.getResults();
  setTile(op.getFrom(), *layout,
          llvm::to_vector(results.take_front(rows.size())));
  setTile(op.getTo(), *layout,
          llvm::to_vector(results.drop_back().take_back(rows.size())));
  op.getExact().replaceAllUsesWith(results.back());
  return success();
}

void lowering::addRowLowerings(LoweringTable &table) {
  table.addReplaced<ReduceOp, BroadcastOp, ColumnOp, SliceOp, ConvertLayoutOp,
                    ApplyMaskOp, MapElementsOp, RowKeysOp>();
}
