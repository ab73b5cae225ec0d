//===- Masks.cpp - What masks keep of a tile ------------------------------===//

#include "Masks.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::lowering;

SmallVector<int64_t> lowering::registerCoordinates(const TileLayout &layout,
                                                   unsigned dim) {
  SmallVector<int64_t> coordinates;
  for (unsigned reg = 0; reg < layout.numRegisters(); ++reg)
    coordinates.push_back(layout.registerCoords(reg)[dim]);
  return coordinates;
}

/// With `quads` column u N/2 + 2t + i is key 4t + 2u + i. A thread's part of a
/// column, 2 t' below 8, is a part of 2t, which becomes 4t.
FailureOr<ColumnKeys>
lowering::getColumnKeys(Operation *op, const TileLayout &layout, bool quads) {
  ColumnKeys keys;
  // Values of rows are one column.
  if (layout.rank() == 1) {
    keys.registers.assign(layout.numRegisters(), 0);
    return keys;
  }
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

std::pair<Value, Value> MaskBounds::make(int64_t row) {
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
    behind = limit ? arith::MinSIOp::create(b, limit, band).getResult() : band;
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
