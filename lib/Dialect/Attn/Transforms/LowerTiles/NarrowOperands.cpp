//===- NarrowOperands.cpp - 8-bit operands --------------------------------===//
//
// Operand a from an accumulator and operand b from rows of values, with the
// contraction's index in one order (attn.narrow_operand,
// attn.local_transpose): so chosen that no element of a moves between threads
// and that b is transposed without shuffles. Where b lies in memory as it is
// needed and the accumulator's columns are in its order too, words of four
// elements are exchanged between the four threads that share a row.
//
//===----------------------------------------------------------------------===//

#include "PartitionLowering.h"
#include "attn/Layout/NamedLayouts.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::lowering;

template <>
LogicalResult PartitionLowering::lower(NarrowOperandOp op) {
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
  auto accumulator = dyn_cast_or_null<MmaLayoutAttr>(
      cast<RankedTensorType>(op.getSource().getType()).getEncoding());
  WarpGrid grid = accumulator ? accumulator.getGrid() : WarpGrid();
  if (!accumulator || grid.n != 1 || grid.columnQuads ||
      !isLayout(source->layout, mmaAccumulator(rows, columns, grid)) ||
      !isLayout(*layout, mmaOperandA(rows, columns, 8, 32, grid)))
    return op.emitOpError("expected an accumulator whose warps have whole rows "
                          "to become an operand, got ")
           << op.getSource().getType() << " and " << type;
  // Word (step, half, h) takes the pairs of two units of 8 columns: neighbours,
  // or those at the same place in both halves of the columns.
  bool quads = op.getOrder() == KeyOrder::Quads;
  int64_t count = columns / 16;
  SmallVector<Value> scalars;
  for (int64_t m = 0; m < rows / (16 * grid.m); ++m)
    for (int64_t pair = 0; pair < count; ++pair)
      for (int64_t h : {0, 1})
        for (int64_t u : {0, 1})
          for (int64_t i : {0, 1}) {
            int64_t unit = quads ? u * count + pair : 2 * pair + u;
            unit += m * 2 * count;
            scalars.push_back(source->values[4 * unit + 2 * h + i]);
          }
  ImplicitLocOpBuilder b(op.getLoc(), op);
  SmallVector<Value> words = truncateTo8(b, scalars, type.getElementType());
  if (op.getOrder() == KeyOrder::Plain)
    gatherQuads(b, words);
  setTile(op.getResult(), *layout, words);
  return success();
}

/// Thread t of the four that share a row has columns 2t, 2t+1 (pair 0) and
/// 8+2t, 8+2t+1 (pair 1) of 16 in a word and is to have 4t to 4t+3: pair t/2 of
/// the threads 2t and 2t+1 modulo 4. Two words are exchanged together: a
/// shuffle gives the same pair of both. In the first one even threads give pair
/// 0 and odd ones pair 1, in the second one the others, so that each gives what
/// one thread takes: thread t takes from 0, 2, 1, 3, then from 1, 3, 0, 2,
/// which are in the order of columns for t < 2 and the other way round for the
/// others.
void PartitionLowering::gatherQuads(ImplicitLocOpBuilder &b,
                                    SmallVectorImpl<Value> &words) {
  Value id = lane();
  Value firstPairs, secondPairs, firstWord, secondWord, from, fromNext;
  {
    ImplicitLocOpBuilder entry = kernel.entryBuilder();
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIntOp::create(entry, value, 32);
    };
    auto isClear = [&](int64_t bit) -> Value {
      return arith::CmpIOp::create(
          entry, arith::CmpIPredicate::eq,
          arith::AndIOp::create(entry, id, constant(bit)), constant(0));
    };
    auto select = [&](Value condition, int64_t x, int64_t y) -> Value {
      return arith::SelectOp::create(entry, condition, constant(x),
                                     constant(y));
    };
    // Selectors of prmt: the lower or the upper halves of two words.
    constexpr int64_t lower = 0x5410, upper = 0x7632;
    Value isEven = isClear(1), isFirst = isClear(2);
    firstPairs = select(isEven, lower, upper);
    secondPairs = select(isEven, upper, lower);
    // Of what came with the first and with the second shuffle: word 0 and word
    // 1 of each pair, in the order of columns.
    firstWord = select(isFirst, 0x5410, 0x1054);
    secondWord = select(isFirst, 0x7632, 0x3276);
    // 0, 2, 1, 3: the two bits of t exchanged.
    Value rest = arith::AndIOp::create(entry, id, constant(28));
    Value swapped = arith::OrIOp::create(
        entry,
        arith::AndIOp::create(
            entry, arith::ShLIOp::create(entry, id, constant(1)), constant(2)),
        arith::AndIOp::create(entry,
                              arith::ShRUIOp::create(entry, id, constant(1)),
                              constant(1)));
    from = arith::OrIOp::create(entry, rest, swapped);
    fromNext = arith::XOrIOp::create(entry, from, constant(1));
  }
  Type word = b.getI32Type();
  Value all = arith::ConstantIntOp::create(b, -1, 32);
  Value clamp = arith::ConstantIntOp::create(b, 31, 32);
  auto permute = [&](Value x, Value y, Value selector) -> Value {
    return NVVM::PermuteOp::create(b, word, x, y, selector,
                                   NVVM::PermuteMode::DEFAULT);
  };
  auto shuffle = [&](Value value, Value source) -> Value {
    return NVVM::ShflOp::create(b, word, all, value, source, clamp,
                                NVVM::ShflKind::idx, UnitAttr());
  };
  for (unsigned i = 0; i < words.size(); i += 2) {
    Type type = words[i].getType();
    Value x = LLVM::BitcastOp::create(b, word, words[i]);
    Value y = LLVM::BitcastOp::create(b, word, words[i + 1]);
    Value first = shuffle(permute(x, y, firstPairs), from);
    Value second = shuffle(permute(x, y, secondPairs), fromNext);
    words[i] =
        LLVM::BitcastOp::create(b, type, permute(first, second, firstWord));
    words[i + 1] =
        LLVM::BitcastOp::create(b, type, permute(first, second, secondWord));
  }
}

template <>
LogicalResult PartitionLowering::lower(LocalTransposeOp op) {
  BufferValue source = kernel.buffers.lookup(op.getSource());
  BufferValue dest = kernel.buffers.lookup(op.getDest());
  FailureOr<SharedLayout> from = layoutOf(op, source.type);
  FailureOr<SharedLayout> to = layoutOf(op, dest.type);
  if (failed(from) || failed(to))
    return failure();
  llvm::Expected<TransposeTiles> tiles =
      transposeTiles(from->shape()[0], from->shape()[1], warps);
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
    ImplicitLocOpBuilder entry = kernel.entryBuilder();
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

void lowering::addNarrowOperandLowerings(LoweringTable &table) {
  table.addReplaced<NarrowOperandOp, LocalTransposeOp>();
}
