//===- NarrowOperands.cpp - 8-bit operands of wgmma -----------------------===//
//
// Operand a from an accumulator and operand b from rows of values, with the
// contraction's index in one order (attn.narrow_operand,
// attn.local_transpose): so chosen that no element of a moves between threads
// and that b is transposed without shuffles.
//
//===----------------------------------------------------------------------===//

#include "TileLowering.h"
#include "attn/Layout/NamedLayouts.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::lowering;

LogicalResult TileLowering::lowerNarrowOperand(NarrowOperandOp op) {
  FailureOr<TileValue> source = tile(op, op.getSource());
  FailureOr<TileLayout> layout = layoutOf(op, op.getType());
  if (failed(source) || failed(layout))
    return failure();
  auto type = cast<RankedTensorType>(op.getType());
  int64_t rows = type.getShape()[0], columns = type.getShape()[1];
  auto isLayout = [](const TileLayout &layout,
                     llvm::Expected<TileLayout> expected) {
    if (!expected) {
      llvm::consumeError(expected.takeError());
      return false;
    }
    return layout == *expected;
  };
  unsigned groups = std::max<int64_t>(rows / 64, 1);
  if (!isLayout(source->layout, wgmmaAccumulator(rows, columns, groups)) ||
      !isLayout(*layout, wgmmaOperandA(rows, columns, 8, groups)))
    return op.emitOpError("expected an accumulator of wgmma to become its "
                          "operand, got ")
           << op.getSource().getType() << " and " << type;
  // Word (step, half, h) takes the pairs of the units 2 half and 2 half + 1.
  SmallVector<Value> scalars;
  for (int64_t pair = 0; pair < columns / 16; ++pair)
    for (int64_t h : {0, 1})
      for (int64_t u : {0, 1})
        for (int64_t i : {0, 1})
          scalars.push_back(source->values[4 * (2 * pair + u) + 2 * h + i]);
  ImplicitLocOpBuilder b(op.getLoc(), op);
  setTile(op.getResult(), *layout,
          truncateTo8(b, scalars, type.getElementType()));
  return success();
}

LogicalResult TileLowering::lowerLocalTranspose(LocalTransposeOp op) {
  BufferValue source = buffers.lookup(op.getSource());
  BufferValue dest = buffers.lookup(op.getDest());
  FailureOr<SharedLayout> from = layoutOf(op, source.type);
  FailureOr<SharedLayout> to = layoutOf(op, dest.type);
  if (failed(from) || failed(to))
    return failure();
  // Addresses take the low bits of the warp's number in the CTA.
  if (firstWarp % partitionWarps != 0)
    return op.emitOpError("expected a partition of ")
           << partitionWarps << " warps to start at a multiple of that, got "
           << firstWarp;
  llvm::Expected<TransposeTiles> tiles =
      transposeTiles(from->shape()[0], from->shape()[1], partitionWarps);
  if (!tiles)
    return op.emitOpError() << llvm::toString(tiles.takeError());
  llvm::Expected<SharedLayout> rows = from->inPairs(), columns = to->inPairs();
  if (columns)
    columns = columns->interleavedRows();
  if (!rows || !columns)
    return op.emitOpError() << llvm::toString(
               llvm::joinErrors(rows.takeError(), columns.takeError()));
  llvm::Expected<MatrixPlan> loads = planMatrixAccess(tiles->source, *rows);
  llvm::Expected<MatrixPlan> stores = planMatrixAccess(tiles->dest, *columns);
  if (!loads || !stores)
    return op.emitOpError() << llvm::toString(
               llvm::joinErrors(loads.takeError(), stores.takeError()));
  assert(loads->trans && !stores->trans && "as the tiles are made");

  ImplicitLocOpBuilder b(op.getLoc(), op);
  // Bytes of even or odd columns of two words; which of them a lane stores
  // first is described at transposeTiles.
  Value first, second;
  {
    Value id = lane();
    ImplicitLocOpBuilder entry = entryBuilder(kernel.getLoc());
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIntOp::create(entry, value, 32);
    };
    Value isLower = arith::CmpIOp::create(entry, arith::CmpIPredicate::ult, id,
                                          constant(16));
    Value even = constant(0x6420), odd = constant(0x7531);
    first = arith::SelectOp::create(entry, isLower, even, odd);
    second = arith::SelectOp::create(entry, isLower, odd, even);
  }
  SmallVector<Value> loaded(tiles->source.numRegisters() / 2);
  auto word = [&](unsigned reg) -> Value {
    if (!loaded[reg / 2]) {
      const MatrixAccess &access =
          loads->accesses[loads->sourceOf(reg)->access];
      for (auto [index, value] :
           llvm::enumerate(loadMatrices(b, source.base, *loads, access)))
        loaded[access.registers[2 * index] / 2] = value;
    }
    return loaded[reg / 2];
  };
  // Stores whose words are there go first: few words wait for others then.
  SmallVector<const MatrixAccess *> left = llvm::map_to_vector(
      stores->accesses, [](const MatrixAccess &access) { return &access; });
  auto countMissing = [&](const MatrixAccess *access) {
    return llvm::count_if(access->registers, [&](unsigned reg) {
      unsigned base = (reg & ~3u) / 2;
      return !loaded[base] || !loaded[base + 1];
    });
  };
  auto shape = NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8);
  while (!left.empty()) {
    auto *next = llvm::min_element(
        left, [&](const MatrixAccess *x, const MatrixAccess *y) {
          return countMissing(x) < countMissing(y);
        });
    const MatrixAccess &access = **next;
    left.erase(next);
    SmallVector<Value> words;
    for (unsigned i = 0; i < access.num; ++i) {
      // Dest registers 4q + 2s come from source registers 4q and 4q + 2.
      unsigned reg = access.registers[2 * i];
      unsigned base = reg & ~3u;
      words.push_back(NVVM::PermuteOp::create(
          b, b.getI32Type(), word(base), word(base + 2),
          reg & 2 ? second : first, NVVM::PermuteMode::DEFAULT));
    }
    NVVM::StMatrixOp::create(
        b, address(b, dest.base, stores->forms, access.address), words,
        NVVM::MMALayout::row, shape, NVVM::LdStMatrixEltType::B16);
  }
  return success();
}
