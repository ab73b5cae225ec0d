//===- Masks.cpp - Masks and scalar regions of tiles ----------------------===//

#include "FindKey.h"
#include "PartitionLowering.h"
#include "Rows.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include <limits>

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::lowering;

namespace {
/// The keys that a tile's columns stand for: those of its registers, less what
/// the thread adds, which is `threadStep` times its column.
struct ColumnKeys {
  SmallVector<int64_t> registers;
  int64_t threadStep = 1;
};
} // namespace

/// With `quads` column u N/2 + 2t + i is key 4t + 2u + i. A thread's part of a
/// column, 2 t' below 8, is a part of 2t, which becomes 4t.
static FailureOr<ColumnKeys>
getColumnKeys(Operation *op, const TileLayout &layout, bool quads) {
  ColumnKeys keys;
  keys.registers = registerCoordinates(layout, 1);
  if (!quads)
    return keys;
  keys.threadStep = 2;
  int64_t half = layout.shape()[1] / 2;
  SmallVector<int64_t> bases(layout.laneBases(1));
  llvm::append_range(bases, layout.warpBases(1));
  for (int64_t basis : bases)
    if (basis % 2 != 0 || basis >= 8)
      return op->emitOpError("expected a thread's columns to be neighbours "
                             "in every 8 for 'quads', got layout ")
             << layout.str();
  for (int64_t &column : keys.registers) {
    int64_t inHalf = column % half;
    column = 2 * (inHalf - inHalf % 2) + 2 * (column / half) + inHalf % 2;
  }
  return keys;
}

namespace {
/// What a mask keeps of a row, as columns from a first one on: one bound on
/// each side, in which the sequence's end and the band are fused.
class MaskBounds {
public:
  /// For the rows of a thread, from `threadRow` on. `from` and `to` are the
  /// keys that rows keep, as rows are numbered; none where nothing says so.
  MaskBounds(ImplicitLocOpBuilder &b, ApplyMaskOp op, Value threadRow,
             Value column, const llvm::DenseMap<int64_t, Value> &from,
             const llvm::DenseMap<int64_t, Value> &to)
      : b(b), column(column), group(op.getGroup()), lower(op.getLower()),
        upper(op.getUpper()), from(from), to(to) {
    if (op.getLimit())
      limit = arith::SubIOp::create(b, op.getLimit(), column);
    firstRow = arith::AddIOp::create(b, op.getRow(), threadRow);
    rowBase = arith::SubIOp::create(b, firstRow, column);
  }

  /// The first column that is kept of row `row`, and the first one behind
  /// those; null where there is no bound.
  std::pair<Value, Value> of(int64_t row) {
    auto [it, inserted] = bounds.try_emplace(row);
    if (inserted)
      it->second = make(row);
    return it->second;
  }

private:
  std::pair<Value, Value> make(int64_t row) {
    Value step = arith::ConstantIntOp::create(b, row, 32);
    Value diagonal;
    if (group) {
      Value query =
          arith::DivUIOp::create(b, arith::AddIOp::create(b, firstRow, step),
                                 arith::ConstantIntOp::create(b, *group, 32));
      diagonal = arith::SubIOp::create(b, query, column);
    } else {
      diagonal = arith::AddIOp::create(b, rowBase, step);
    }
    Value first, behind = limit;
    if (upper) {
      Value one = arith::ConstantIntOp::create(b, 1, 32);
      Value band = arith::AddIOp::create(
          b, arith::AddIOp::create(b, diagonal, upper), one);
      behind =
          limit ? arith::MinSIOp::create(b, limit, band).getResult() : band;
    }
    if (lower)
      first = arith::AddIOp::create(b, diagonal, lower);
    if (Value key = to.lookup(row)) {
      Value end = arith::SubIOp::create(b, key, column);
      behind = behind ? arith::MinSIOp::create(b, behind, end).getResult() : end;
    }
    if (Value key = from.lookup(row)) {
      Value begin = arith::SubIOp::create(b, key, column);
      first = first ? arith::MaxSIOp::create(b, first, begin).getResult() : begin;
    }
    return {first, behind};
  }

  ImplicitLocOpBuilder &b;
  Value column, limit, firstRow, rowBase;
  std::optional<uint64_t> group;
  Value lower, upper;
  const llvm::DenseMap<int64_t, Value> &from, &to;
  llvm::DenseMap<int64_t, std::pair<Value, Value>> bounds;
};
} // namespace

/// The registers of row values, by the rows of lane 0 of warp 0; none for no
/// value.
static FailureOr<llvm::DenseMap<int64_t, Value>>
findRowValues(PartitionLowering &lowering, Operation *op,
              const TileLayout &layout, Value rows) {
  llvm::DenseMap<int64_t, Value> values;
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

/// Clones the operations of a scalar region and returns what it yields. Failure
/// after a diagnostic.
static FailureOr<SmallVector<Value>>
inlineScalars(PartitionLowering &lowering, ImplicitLocOpBuilder &b, Block &body,
              IRMapping &mapping) {
  for (Operation &inner : body.without_terminator()) {
    // Scalars take the same approximate instructions as tiles.
    if (inner.getNumOperands() == 1 && inner.getNumResults() == 1)
      if (Value value = lowerApproximate(
              b, &inner, mapping.lookupOrDefault(inner.getOperand(0)))) {
        mapping.map(inner.getResult(0), value);
        continue;
      }
    Operation *copy = b.clone(inner, mapping);
    if (auto find = dyn_cast<FindKeyOp>(copy)) {
      mapping.map(inner.getResult(0), emitFoundKey(find));
      copy->erase();
      continue;
    }
    for (Region &region : copy->getRegions())
      for (Block &block : region)
        if (failed(lowering.lowerBlock(block)))
          return failure();
  }
  return llvm::map_to_vector(
      body.getTerminator()->getOperands(),
      [&](Value value) { return mapping.lookupOrDefault(value); });
}

template <>
LogicalResult PartitionLowering::lower(MapElementsOp op) {
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
  SmallVector<Value> scalars = unpack(b, *source);
  SmallVector<Type> types(scalars.size(), source->elementType);
  scf::IfOp branch;
  if (op.getUnless()) {
    branch = scf::IfOp::create(b, types, op.getUnless(), /*addThenBlock=*/true,
                               /*addElseBlock=*/true);
    b.setInsertionPointToEnd(branch.thenBlock());
    scf::YieldOp::create(b, scalars);
    b.setInsertionPointToEnd(branch.elseBlock());
  }
  Value rowBase = arith::AddIOp::create(b, op.getRow(), threadRow);
  Value columnBase = arith::AddIOp::create(b, op.getColumn(), threadColumn);
  SmallVector<int64_t> rows = registerCoordinates(layout, 0);
  SmallVector<Value> results;
  Block &body = op.getBody().front();
  for (auto [scalar, row, column] : llvm::zip(scalars, rows, keys->registers)) {
    IRMapping mapping;
    mapping.map(body.getArgument(0), scalar);
    mapping.map(body.getArgument(1),
                arith::AddIOp::create(
                    b, rowBase, arith::ConstantIntOp::create(b, row, 32)));
    mapping.map(
        body.getArgument(2),
        arith::AddIOp::create(b, columnBase,
                              arith::ConstantIntOp::create(b, column, 32)));
    FailureOr<SmallVector<Value>> yielded =
        inlineScalars(*this, b, body, mapping);
    if (failed(yielded))
      return failure();
    results.push_back(yielded->front());
  }
  if (branch) {
    scf::YieldOp::create(b, results);
    b.setInsertionPointAfter(branch);
    results = llvm::to_vector_of<Value>(branch.getResults());
  }
  setTile(op.getResult(), layout, pack(b, results, source->elementType));
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
  for (int64_t row : rows) {
    IRMapping mapping;
    mapping.map(op.getBody().getArgument(0),
                arith::AddIOp::create(
                    b, rowBase, arith::ConstantIntOp::create(b, row, 32)));
    FailureOr<SmallVector<Value>> yielded =
        inlineScalars(*this, b, op.getBody().front(), mapping);
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

void lowering::addMaskLowerings(LoweringTable &table) {
  table.addReplaced<ApplyMaskOp, MapElementsOp, RowKeysOp>();
}
