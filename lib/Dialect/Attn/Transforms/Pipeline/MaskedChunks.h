//===- MaskedChunks.h - Masked scores in chunks of columns ------*- C++ -*-===//
//
// Private to the expansion of attn.online_softmax with a `chunk`. Rows of a
// warp are neighbours, so that a mask excludes whole runs of keys for all of
// them: on a causal diagonal warp w of four has keys of w + 1 of four chunks of
// 32, and one of these is cut. Each warp decides by a vote of its rows, so that
// it does not matter where the diagonal lies.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_ATTN_TRANSFORMS_PIPELINE_MASKEDCHUNKS_H
#define ATTN_LIB_DIALECT_ATTN_TRANSFORMS_PIPELINE_MASKEDCHUNKS_H

#include "attn/Dialect/Attn/IR/Attn.h"

namespace mlir::attn {

class MaskedChunks {
public:
  /// Those of a step whose scores a mask made for it alone, masked at the
  /// builder; none if there are none.
  static std::optional<MaskedChunks> create(OpBuilder &builder,
                                            OnlineSoftmaxOp op);

  /// For `columns` columns from `first` on, what `emit` makes of scores and
  /// their place behind `first`; zeros where a warp has no key.
  Value emitColumns(int64_t first, int64_t columns,
                    function_ref<Value(Value, int64_t)> emit);

private:
  MaskedChunks(OpBuilder &builder, OnlineSoftmaxOp op, ApplyMaskOp mask)
      : builder(builder), loc(op.getLoc()), op(op), source(mask.getSource()),
        row(mask.getRow()), key(mask.getColumn()), limit(mask.getLimit()),
        lower(mask.getLower()), upper(mask.getUpper()),
        group(mask.getGroupAttr()) {}

  RankedTensorType typeOf(int64_t columns);
  Value emitSlice(Value tile, int64_t first, int64_t columns);
  Value emitConstant(int64_t columns, double value);
  /// The key of column `first`.
  Value emitKey(int64_t first);
  /// The rows that have, or lack, a key of the chunk that holds a column. Votes
  /// on them that stood in front of the scores' load saved 1 % at 512 keys, but
  /// their results took registers that ptxas did not have at D 128.
  Value emitRows(int64_t column, bool lacking);
  /// What `emit` makes where `condition` is true for a row of the warp.
  Value emitWhere(Value condition, Value other, function_ref<Value()> emit);
  /// Calls `emit` for each chunk's part of some columns.
  void forChunks(int64_t first, int64_t columns,
                 function_ref<void(int64_t, int64_t)> emit);
  Value emitMasked();

  OpBuilder &builder;
  Location loc;
  OnlineSoftmaxOp op;
  /// Operands of the mask, which goes.
  Value source, row, key, limit, lower, upper;
  IntegerAttr group;
};

} // namespace mlir::attn

#endif // ATTN_LIB_DIALECT_ATTN_TRANSFORMS_PIPELINE_MASKEDCHUNKS_H
