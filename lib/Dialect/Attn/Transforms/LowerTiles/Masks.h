//===- Masks.h - What masks keep of a tile ----------------------*- C++ -*-===//

#ifndef ATTN_LIB_DIALECT_ATTN_TRANSFORMS_LOWERTILES_MASKS_H
#define ATTN_LIB_DIALECT_ATTN_TRANSFORMS_LOWERTILES_MASKS_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Layout/TileLayout.h"

namespace mlir::attn::lowering {

/// Returns the coordinate along `dim` of each register in lane 0 of warp 0.
SmallVector<int64_t> registerCoordinates(const TileLayout &layout,
                                         unsigned dim);

/// The keys that a tile's columns stand for: those of its registers, less what
/// the thread adds, which is `threadStep` times its column.
struct ColumnKeys {
  SmallVector<int64_t> registers;
  int64_t threadStep = 1;
};

/// Returns the keys of the columns, in the order of quads where that is true.
FailureOr<ColumnKeys> getColumnKeys(Operation *op, const TileLayout &layout,
                                    bool quads);

/// Keys by rows, as lane 0 of warp 0 numbers these.
using RowValues = llvm::DenseMap<int64_t, Value>;

/// Finds what a mask keeps of a row, as columns from a first one on: one bound
/// on each side, in which the sequence's end, the band and the row's own keys
/// are fused.
class MaskBounds {
public:
  /// Finds them for the rows of a thread, from `threadRow` on. `from` and `to`
  /// are the keys that rows keep; none where nothing says so.
  MaskBounds(ImplicitLocOpBuilder &b, ApplyMaskOp op, Value threadRow,
             Value column, const RowValues &from, const RowValues &to)
      : b(b), column(column), group(op.getGroup()), lower(op.getLower()),
        upper(op.getUpper()), from(from), to(to) {
    if (op.getLimit())
      limit = arith::SubIOp::create(b, op.getLimit(), column);
    firstRow = arith::AddIOp::create(b, op.getRow(), threadRow);
    rowBase = arith::SubIOp::create(b, firstRow, column);
  }

  /// Returns the first column that is kept of row `row`, and the first one
  /// behind those; null where there is no bound.
  std::pair<Value, Value> of(int64_t row) {
    auto [it, inserted] = bounds.try_emplace(row);
    if (inserted)
      it->second = make(row);
    return it->second;
  }

private:
  std::pair<Value, Value> make(int64_t row);

  ImplicitLocOpBuilder &b;
  Value column, limit, firstRow, rowBase;
  std::optional<uint64_t> group;
  Value lower, upper;
  const RowValues &from, &to;
  llvm::DenseMap<int64_t, std::pair<Value, Value>> bounds;
};

} // namespace mlir::attn::lowering

#endif // ATTN_LIB_DIALECT_ATTN_TRANSFORMS_LOWERTILES_MASKS_H
