//===- ScaleOffsets.cpp - Where kernels store scales in tiles -------------===//

#include "attn/Dialect/Attn/IR/ScaleOffsets.h"
#include "attn/Problem/ScaleTiles.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::attn;

/// Returns `x` times `y` and `z`, which may be null.
static Value emitSum(ImplicitLocOpBuilder &b, Value x, Value y, Value z) {
  Value product = arith::MulIOp::create(b, x, y);
  return z ? arith::AddIOp::create(b, product, z).getResult() : product;
}

Value attn::emitScaleRow(ImplicitLocOpBuilder &b, Value batch, Value queries,
                         Value query) {
  return emitSum(b, batch, queries, query);
}

Value attn::emitScaleColumn(ImplicitLocOpBuilder &b, Value head, Value groups,
                            Value group) {
  return emitSum(b, head, groups, group);
}

Value attn::emitScaleTileOffset(ImplicitLocOpBuilder &b, Value row,
                                Value column, Value padded) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, value, 64);
  };
  auto times = [&](Value value, int64_t by) -> Value {
    return arith::MulIOp::create(b, value, constant(by));
  };
  auto quotient = [&](Value value, int64_t by) -> Value {
    return arith::DivUIOp::create(b, value, constant(by));
  };
  auto rest = [&](Value value, int64_t by) -> Value {
    return arith::RemUIOp::create(b, value, constant(by));
  };
  constexpr int64_t kNear = kScaleTileSize / kScaleTileLines;
  Value inRow = rest(quotient(row, kScaleTileLines), kNear / kScaleTileColumns);
  Value terms[] = {
      arith::MulIOp::create(
          b, times(quotient(row, kScaleTileRows), kScaleTileRows), padded),
      times(quotient(column, kScaleTileColumns), kScaleTileSize),
      times(rest(row, kScaleTileLines), kNear), times(inRow, kScaleTileColumns),
      rest(column, kScaleTileColumns)};
  Value offset = terms[0];
  for (Value term : llvm::drop_begin(terms))
    offset = arith::AddIOp::create(b, offset, term);
  return offset;
}
