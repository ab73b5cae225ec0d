//===- Mma.cpp - Matrix instructions --------------------------------------===//
//
// A tile product becomes mma.sync instructions, k-step by k-step. Operands that
// lie in shared memory are fetched fragment by fragment, a little ahead of
// their first use: enough to hide the latency of ldmatrix, few enough that the
// fragments of a whole operand are never live at once.
//
// 8-bit values beside 16-bit ones are fetched as pairs of neighbours in memory,
// which ldmatrix moves as one element, and widened in registers. Of a pair
// along the contraction both halves are where the instruction wants them, if a
// has the contraction in the same order. Pairs along the columns belong to two
// products, so that of two rows of pairs the first ones go to one, the second
// ones to the other: even and odd columns.
//
// 8-bit values beside 8-bit probabilities are fetched as such pairs, too. What
// ldmatrix gives a thread of two matrices are two neighbouring rows of each, of
// a pair of columns: in a word of the instruction for one column they are in
// the order in which an accumulator has its columns (attn.narrow_operand).
//
//===----------------------------------------------------------------------===//

#include "PartitionLowering.h"
#include "attn/Layout/DepthOperands.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::lowering;

namespace {

/// Where the fragments of an operand come from.
class Operand {
public:
  /// A register tile.
  explicit Operand(TileValue tile) : values(std::move(tile.values)) {}
  /// A buffer, read with ldmatrix.
  Operand(MatrixPlan plan, Value base, unsigned registers, unsigned packing)
      : values(registers / packing), plan(std::move(plan)), base(base) {}

  bool isBuffer() const { return static_cast<bool>(base); }

  SmallVector<Value> values;
  MatrixPlan plan;
  Value base;
  /// 8-bit floats that become those of the other operand.
  bool isWidened = false;
  /// 8-bit floats of which two rows of pairs of columns come in a word.
  bool isInterleaved = false;
};

/// One mma.sync: the first packed value of each fragment.
struct Instruction {
  unsigned a = 0, b = 0, c = 0;
};

/// An ldmatrix, and the first instruction that needs what it returns.
struct Fetch {
  unsigned operand, access, neededBy;
};

/// Where what ldmatrix returns goes: for each of its words, two values of the
/// operand, of the word's lower and upper half.
struct WidenedPlace {
  unsigned lower, upper;
};

/// Selectors of prmt: the first bytes of both halves, then the second ones; and
/// of two words the first or the second bytes of all halves.
constexpr int64_t kFirstThenSecond = 0x3120, kFirstBytes = 0x6420,
                  kSecondBytes = 0x7531;

/// Fetches that are in flight before the instruction that needs them.
constexpr unsigned kFetchesAhead = 2;

/// The instructions of one product.
class MmaProduct {
public:
  MmaProduct(PartitionLowering &partition, MmaOp op, TileValue accumulator,
             WarpGrid grid);

  /// True if the contraction of b is contiguous in its buffer.
  static bool isAlongDepth(MmaOp op) {
    return isa<TransposedLayoutAttr>(
        cast<BufferType>(op.getB().getType()).getLayout());
  }

  /// Takes the operands; an error if no instruction can.
  LogicalResult readOperands();
  /// Emits the instructions; the accumulator's new registers.
  SmallVector<Value> emit();

private:
  FailureOr<Operand> readOperand(Value value, const TileLayout &layout);
  /// The operand a in a buffer, beside 8-bit elements along the contraction.
  FailureOr<Operand> readQuads();
  /// An operand that ldmatrix reads from `buffer`, which lies in `memory`.
  FailureOr<Operand> readMatrices(const BufferValue &buffer,
                                  const SharedLayout &memory,
                                  const TileLayout &layout);
  /// The operand b of 8-bit floats that become those of a.
  FailureOr<Operand> readWidened();
  /// The operand b of 8-bit floats whose columns are contiguous, beside such an
  /// a.
  FailureOr<Operand> readInterleaved();
  /// Where word `word` of the plan of such an operand goes.
  WidenedPlace getWidenedPlace(unsigned word) const;
  /// The packed values that an access fills.
  SmallVector<unsigned> getFilled(const Operand &operand,
                                  const MatrixAccess &access) const;
  /// Sets what a loaded word of such an operand holds.
  void setWidened(Operand &operand, unsigned word, Value loaded);
  /// Where an even word of an interleaved operand and the next one go: the
  /// fragment's word of an even column, and of the odd one beside it.
  WidenedPlace getInterleavedPlace(unsigned word) const;
  /// Sets what the words of an access of such an operand hold.
  void setInterleaved(Operand &operand, const MatrixAccess &access,
                      ArrayRef<Value> loaded);
  void listInstructions();
  void listFetches();
  /// Emits the fetches that an instruction needs, and some of the next ones.
  void fetchUntil(unsigned instruction);
  /// Packed values in the form that instructions take.
  SmallVector<Value> getFragment(ArrayRef<Value> values, unsigned first,
                                 unsigned count);
  Value emitInstruction(const Instruction &instruction);
  /// The accumulator and the sums of f16 together.
  SmallVector<Value> addSums();

  PartitionLowering &partition;
  MmaOp op;
  ImplicitLocOpBuilder b;
  TileValue accumulator;
  /// What instructions add to: the accumulator, or sums of f16 beside it.
  SmallVector<Value> sums;
  WarpGrid grid;
  /// `contraction` is that of a warp, `depth` that of the operands.
  int64_t rows, columns, contraction, depth;
  /// Groups of 8 columns that a warp has of the accumulator, and the first one
  /// of the product.
  unsigned groups, firstGroup;
  /// Warps along the columns have parts of the contraction.
  bool dividesDepth;
  /// b is widened, and its contraction is contiguous in memory.
  bool widens, widensAlongDepth;
  Type elementType, elementTypeB;
  unsigned bits, packing, shapeK;
  /// Packed values in the fragments of one instruction.
  unsigned perA, perB, perC;
  /// Fragments of bf16 and of 8-bit types travel as 32-bit integers.
  Type held;
  Type structC;
  SmallVector<Operand, 2> operands;
  SmallVector<Instruction> instructions;
  /// In the order in which their results are first needed.
  SmallVector<Fetch> fetches;
  unsigned nextFetch = 0;
};

} // namespace

/// Shape and element type of a tile or a buffer.
static std::pair<ArrayRef<int64_t>, Type> getShapeAndType(Value value) {
  if (auto buffer = dyn_cast<BufferType>(value.getType()))
    return {buffer.getShape(), buffer.getElementType()};
  auto tensor = cast<RankedTensorType>(value.getType());
  return {tensor.getShape(), tensor.getElementType()};
}

MmaProduct::MmaProduct(PartitionLowering &partition, MmaOp op,
                       TileValue accumulator, WarpGrid grid)
    : partition(partition), op(op), b(op.getLoc(), op),
      accumulator(std::move(accumulator)), grid(grid) {
  auto type = cast<RankedTensorType>(op.getType());
  rows = type.getShape()[0];
  columns = getShapeAndType(op.getB()).first[1];
  groups = type.getShape()[1] / (8 * grid.n);
  dividesDepth = op.getDepthParts().value_or(1) > 1;
  firstGroup = op.getColumn().value_or(0) / (8 * grid.n);
  ArrayRef<int64_t> shapeA;
  std::tie(shapeA, elementType) = getShapeAndType(op.getA());
  elementTypeB = getShapeAndType(op.getB()).second;
  depth = contraction = shapeA[1];
  if (dividesDepth)
    contraction /= grid.n;
  widens = op.widensB();
  widensAlongDepth = widens && isAlongDepth(op);
  bits = elementType.getIntOrFloatBitWidth();
  packing = packingOf(elementType);
  shapeK = mmaShapeK(contraction, bits);
  Type sumType = op.getF16Sums() ? b.getF16Type() : type.getElementType();
  unsigned packingC = packingOf(sumType);
  perA = 16 * shapeK / 32 / packing;
  perB = 8 * shapeK / 32 / packing;
  perC = 16 * 8 / 32 / packingC;
  held = elementType.isF16() ? Type(VectorType::get(2, elementType))
                             : b.getI32Type();
  Type scalarC =
      packingC == 1 ? sumType : Type(VectorType::get(packingC, sumType));
  structC = LLVM::LLVMStructType::getLiteral(b.getContext(),
                                             SmallVector<Type>(perC, scalarC));
}

FailureOr<Operand> MmaProduct::readMatrices(const BufferValue &buffer,
                                            const SharedLayout &memory,
                                            const TileLayout &layout) {
  llvm::Expected<MatrixPlan> plan = planMatrixAccess(layout, memory);
  if (!plan)
    return op.emitOpError() << llvm::toString(plan.takeError());
  return Operand(std::move(*plan), buffer.base, layout.numRegisters(), packing);
}

FailureOr<Operand> MmaProduct::readQuads() {
  BufferValue buffer = partition.kernel.buffers.lookup(op.getA());
  auto attr = dyn_cast<SwizzledLayoutAttr>(buffer.type.getLayout());
  if (!attr || !attr.getColumnQuads())
    return op.emitOpError("expected 'a' in registers or a buffer with "
                          "column_quads beside 8-bit floats whose contraction "
                          "is contiguous, got ")
           << buffer.type;
  // Fragments and memory have their columns in the same other order.
  llvm::Expected<SharedLayout> memory =
      SwizzledLayoutAttr::get(b.getContext(), attr.getSpan())
          .toSharedLayout(buffer.type.getSlotShape(), bits);
  llvm::Expected<TileLayout> layout =
      mmaOperandA(rows, depth, bits, shapeK, grid);
  if (!memory || !layout)
    return op.emitOpError() << llvm::toString(
               llvm::joinErrors(memory.takeError(), layout.takeError()));
  return readMatrices(buffer, *memory, *layout);
}

FailureOr<Operand> MmaProduct::readOperand(Value value,
                                           const TileLayout &layout) {
  if (isa<BufferType>(value.getType())) {
    BufferValue buffer = partition.kernel.buffers.lookup(value);
    FailureOr<SharedLayout> memory = partition.layoutOf(op, buffer.type);
    if (failed(memory))
      return failure();
    return readMatrices(buffer, *memory, layout);
  }
  FailureOr<TileValue> registers = partition.tile(op, value);
  if (failed(registers))
    return failure();
  std::optional<SmallVector<unsigned>> same =
      layout.registersFrom(registers->layout);
  if (!same || !llvm::equal(*same, llvm::seq<unsigned>(0, same->size())))
    return op.emitOpError("expected operand tiles in the fragments of the "
                          "accumulator's instruction, got ")
           << value.getType();
  return Operand(*registers);
}

FailureOr<Operand> MmaProduct::readWidened() {
  BufferValue buffer = partition.kernel.buffers.lookup(op.getB());
  FailureOr<SharedLayout> memory = partition.layoutOf(op, buffer.type);
  if (failed(memory))
    return failure();
  if (depth % 16 != 0 || columns % 16 != 0)
    return op.emitOpError("expected multiples of 16 of 8-bit floats that "
                          "become f16, got ")
           << depth << " x " << columns;
  // As 8-bit elements with four neighbours along the contraction in a word, or
  // as pairs along the columns.
  llvm::Expected<SharedLayout> pairs =
      widensAlongDepth ? llvm::Expected<SharedLayout>(*memory)
                       : memory->inPairs();
  llvm::Expected<TileLayout> layout =
      widensAlongDepth ? mmaOperandB(depth, columns, 8, shapeK, grid)
                       : mmaOperandB(depth, columns / 2, 16, shapeK, grid);
  if (!pairs || !layout)
    return op.emitOpError() << llvm::toString(
               llvm::joinErrors(pairs.takeError(), layout.takeError()));
  llvm::Expected<MatrixPlan> plan = planMatrixAccess(*layout, *pairs);
  if (!plan)
    return op.emitOpError() << llvm::toString(plan.takeError());
  unsigned registers = 2 * layout->numRegisters() / plan->elementsPerWord;
  Operand operand(std::move(*plan), buffer.base, registers, /*packing=*/1);
  operand.isWidened = true;
  return operand;
}

WidenedPlace MmaProduct::getWidenedPlace(unsigned word) const {
  // One word for each k-step and 8 columns, whose halves are its fragment.
  if (widensAlongDepth)
    return {2 * word, 2 * word + 1};
  // Words of a k-step and 16 columns: half a fragment of even and of odd ones.
  unsigned steps = contraction / shapeK;
  unsigned half = word % 2, step = word / 2 % steps, group = word / 2 / steps;
  unsigned even = (2 * group * steps + step) * 2 + half;
  return {even, even + 2 * steps};
}

FailureOr<Operand> MmaProduct::readInterleaved() {
  BufferValue buffer = partition.kernel.buffers.lookup(op.getB());
  FailureOr<SharedLayout> memory = partition.layoutOf(op, buffer.type);
  if (failed(memory))
    return failure();
  if (depth % 32 != 0 || columns % (16 * grid.n) != 0)
    return op.emitOpError("expected multiples of 32 x ")
           << 16 * grid.n << " of 8-bit floats whose columns are contiguous, "
           << "got " << depth << " x " << columns;
  llvm::Expected<SharedLayout> pairs = memory->inPairs();
  llvm::Expected<TileLayout> layout =
      mmaOperandB(depth, columns / 2, /*elementBits=*/16, /*shapeK=*/16, grid);
  if (!pairs || !layout)
    return op.emitOpError() << llvm::toString(
               llvm::joinErrors(pairs.takeError(), layout.takeError()));
  llvm::Expected<MatrixPlan> plan = planMatrixAccess(*layout, *pairs);
  if (!plan)
    return op.emitOpError() << llvm::toString(plan.takeError());
  unsigned words = layout->numRegisters() / plan->elementsPerWord;
  Operand operand(std::move(*plan), buffer.base, words, /*packing=*/1);
  operand.isInterleaved = true;
  return operand;
}

WidenedPlace MmaProduct::getInterleavedPlace(unsigned word) const {
  // Four words of a k-step and 16 columns: a fragment of even and of odd ones.
  unsigned steps = contraction / shapeK;
  unsigned half = word / 2 % 2, step = word / 4 % steps,
           group = word / 4 / steps;
  unsigned even = (2 * group * steps + step) * 2 + half;
  return {even, even + 2 * steps};
}

SmallVector<unsigned> MmaProduct::getFilled(const Operand &operand,
                                            const MatrixAccess &access) const {
  SmallVector<unsigned> filled;
  unsigned perWord = operand.plan.elementsPerWord;
  for (unsigned i = 0; i < access.registers.size(); i += perWord) {
    unsigned word = access.registers[i] / perWord;
    if (!operand.isWidened && !operand.isInterleaved) {
      filled.push_back(word);
      continue;
    }
    if (operand.isInterleaved && word % 2 != 0)
      continue;
    WidenedPlace place =
        operand.isWidened ? getWidenedPlace(word) : getInterleavedPlace(word);
    filled.append({place.lower, place.upper});
  }
  return filled;
}

void MmaProduct::setInterleaved(Operand &operand, const MatrixAccess &access,
                                ArrayRef<Value> loaded) {
  unsigned perWord = operand.plan.elementsPerWord;
  llvm::SmallDenseMap<unsigned, Value> words;
  for (auto [index, value] : llvm::enumerate(loaded))
    words[access.registers[index * perWord] / perWord] = value;
  for (auto [index, value] : llvm::enumerate(loaded)) {
    unsigned word = access.registers[index * perWord] / perWord;
    if (word % 2 != 0)
      continue;
    // Rows in steps of 8 are what the plan groups first.
    Value next = words.lookup(word + 1);
    assert(next && "expected both words of a fragment's in one access");
    auto select = [&](int64_t bytes) -> Value {
      return NVVM::PermuteOp::create(b, b.getI32Type(), value, next,
                                     arith::ConstantIntOp::create(b, bytes, 32),
                                     NVVM::PermuteMode::DEFAULT);
    };
    WidenedPlace place = getInterleavedPlace(word);
    operand.values[place.lower] = select(kFirstBytes);
    operand.values[place.upper] = select(kSecondBytes);
  }
}

void MmaProduct::setWidened(Operand &operand, unsigned word, Value loaded) {
  if (!widensAlongDepth)
    loaded = NVVM::PermuteOp::create(
        b, b.getI32Type(), loaded, loaded,
        arith::ConstantIntOp::create(b, kFirstThenSecond, 32),
        NVVM::PermuteMode::DEFAULT);
  WidenedPlace place = getWidenedPlace(word);
  std::tie(operand.values[place.lower], operand.values[place.upper]) =
      partition.widenFrom8(b, loaded, elementTypeB);
}

LogicalResult MmaProduct::readOperands() {
  if (shapeK == 0)
    return op.emitOpError("expected a contraction extent that is a multiple "
                          "of ")
           << (bits == 8 ? 16 : 8) << ", got " << contraction;
  // As tiles that the instruction could take from registers.
  llvm::Expected<TileLayout> a =
      dividesDepth       ? mmaDepthOperandA(rows, depth, bits, grid)
      : widensAlongDepth ? mmaQuadOperandA(rows, depth, grid)
                         : mmaOperandA(rows, depth, bits, shapeK, grid);
  llvm::Expected<TileLayout> b =
      dividesDepth ? mmaDepthOperandB(depth, columns, bits, grid)
                   : mmaOperandB(depth, columns, bits, shapeK, grid);
  if (!a || !b)
    return op.emitOpError()
           << llvm::toString(llvm::joinErrors(a.takeError(), b.takeError()));
  bool readsQuads = widensAlongDepth && isa<BufferType>(op.getA().getType());
  FailureOr<Operand> operandA =
      readsQuads ? readQuads() : readOperand(op.getA(), *a);
  if (failed(operandA))
    return failure();
  FailureOr<Operand> operandB = widens ? readWidened()
                                : op.getInterleaved()
                                    ? readInterleaved()
                                    : readOperand(op.getB(), *b);
  if (failed(operandB))
    return failure();
  operands = {std::move(*operandA), std::move(*operandB)};
  listInstructions();
  listFetches();
  return success();
}

void MmaProduct::listInstructions() {
  unsigned repM = rows / (16 * grid.m);
  unsigned repN = columns / (dividesDepth ? 8 : 8 * grid.n);
  unsigned repK = contraction / shapeK;
  for (unsigned k = 0; k < repK; ++k)
    for (unsigned n = 0; n < repN; ++n)
      for (unsigned m = 0; m < repM; ++m)
        instructions.push_back({(m * repK + k) * perA, (n * repK + k) * perB,
                                (m * groups + firstGroup + n) * perC});
}

void MmaProduct::listFetches() {
  for (unsigned which = 0; which < 2; ++which) {
    const Operand &operand = operands[which];
    if (!operand.isBuffer())
      continue;
    // Which access fills a packed value.
    SmallVector<unsigned> accessOf(operand.values.size());
    for (auto [index, access] : llvm::enumerate(operand.plan.accesses))
      for (unsigned value : getFilled(operand, access))
        accessOf[value] = index;
    llvm::SmallBitVector seen(operand.plan.accesses.size());
    for (auto [index, instruction] : llvm::enumerate(instructions)) {
      unsigned first = which == 0 ? instruction.a : instruction.b;
      unsigned count = which == 0 ? perA : perB;
      for (unsigned i = 0; i < count; ++i) {
        unsigned access = accessOf[first + i];
        if (seen.test(access))
          continue;
        seen.set(access);
        fetches.push_back({which, access, static_cast<unsigned>(index)});
      }
    }
  }
  llvm::sort(fetches, [](const Fetch &lhs, const Fetch &rhs) {
    return std::tie(lhs.neededBy, lhs.operand, lhs.access) <
           std::tie(rhs.neededBy, rhs.operand, rhs.access);
  });
}

void MmaProduct::fetchUntil(unsigned instruction) {
  unsigned end = nextFetch;
  while (end < fetches.size() && fetches[end].neededBy <= instruction)
    ++end;
  if (end != nextFetch)
    end = std::min<unsigned>(end + kFetchesAhead, fetches.size());
  for (; nextFetch < end; ++nextFetch) {
    Operand &operand = operands[fetches[nextFetch].operand];
    const MatrixAccess &access =
        operand.plan.accesses[fetches[nextFetch].access];
    unsigned perWord = operand.plan.elementsPerWord;
    SmallVector<Value> loaded =
        partition.loadMatrices(b, operand.base, operand.plan, access);
    if (operand.isInterleaved) {
      setInterleaved(operand, access, loaded);
      continue;
    }
    for (auto [index, value] : llvm::enumerate(loaded)) {
      unsigned word = access.registers[index * perWord] / perWord;
      if (operand.isWidened)
        setWidened(operand, word, value);
      else
        operand.values[word] = LLVM::BitcastOp::create(b, held, value);
    }
  }
}

SmallVector<Value> MmaProduct::getFragment(ArrayRef<Value> values,
                                           unsigned first, unsigned count) {
  SmallVector<Value> words;
  for (Value value : values.slice(first, count))
    words.push_back(value.getType() == held
                        ? value
                        : LLVM::BitcastOp::create(b, held, value).getResult());
  return words;
}

Value MmaProduct::emitInstruction(const Instruction &instruction) {
  SmallVector<Value> fragmentA =
      getFragment(operands[0].values, instruction.a, perA);
  SmallVector<Value> fragmentB =
      getFragment(operands[1].values, instruction.b, perB);
  SmallVector<Value> c(ArrayRef<Value>(sums).slice(instruction.c, perC));
  if (bits == 8) {
    // The op's verifier refuses these types; the intrinsic exists.
    auto name = [](Type type) {
      return isa<Float8E4M3FNType>(type) ? "e4m3" : "e5m2";
    };
    std::string intrinsic =
        llvm::formatv("llvm.nvvm.mma.m16n8k{0}.row.col.f32.{1}.{2}.f32", shapeK,
                      name(elementType), name(elementTypeB));
    SmallVector<Value> all(fragmentA);
    llvm::append_range(all, fragmentB);
    llvm::append_range(all, c);
    return LLVM::CallIntrinsicOp::create(b, structC, b.getStringAttr(intrinsic),
                                         all)
        .getResults();
  }
  std::optional<std::array<NVVM::MMATypes, 2>> types;
  if (elementType.isBF16())
    types = {NVVM::MMATypes::bf16, NVVM::MMATypes::bf16};
  return NVVM::MmaOp::create(
      b, structC, fragmentA, fragmentB, c, ArrayRef<int64_t>{16, 8, shapeK},
      /*b1Op=*/std::nullopt, /*intOverflow=*/std::nullopt, types,
      std::array<NVVM::MMALayout, 2>{NVVM::MMALayout::row,
                                     NVVM::MMALayout::col});
}

SmallVector<Value> MmaProduct::emit() {
  sums = accumulator.values;
  if (op.getF16Sums()) {
    auto pair = VectorType::get(2, b.getF16Type());
    Value zero =
        arith::ConstantOp::create(b, cast<TypedAttr>(b.getZeroAttr(pair)));
    sums.assign(accumulator.values.size() / 2, zero);
  }
  for (auto [index, instruction] : llvm::enumerate(instructions)) {
    fetchUntil(index);
    Value product = emitInstruction(instruction);
    for (unsigned i = 0; i < perC; ++i)
      sums[instruction.c + i] = LLVM::ExtractValueOp::create(b, product, i);
  }
  return op.getF16Sums() ? addSums() : sums;
}

SmallVector<Value> MmaProduct::addSums() {
  SmallVector<Value> results = accumulator.values;
  unsigned first = firstGroup * perC, count = columns / (8 * grid.n) * perC;
  for (unsigned m = 0; m < rows / (16 * grid.m); ++m)
    for (unsigned i = 0; i < count; ++i) {
      unsigned index = m * groups * perC + first + i;
      auto pair = VectorType::get(2, b.getF32Type());
      Value wide = LLVM::FPExtOp::create(b, pair, sums[index]);
      for (unsigned half = 0; half < 2; ++half)
        results[2 * index + half] = arith::AddFOp::create(
            b, results[2 * index + half],
            LLVM::ExtractElementOp::create(
                b, wide, arith::ConstantIntOp::create(b, half, 32)));
    }
  return results;
}

template <>
LogicalResult PartitionLowering::lower(MmaOp op) {
  auto type = cast<RankedTensorType>(op.getType());
  auto layout = dyn_cast<MmaLayoutAttr>(type.getEncoding());
  if (!layout)
    return op.emitOpError("expected an accumulator with an #attn.mma layout, "
                          "got ")
           << type;
  FailureOr<TileValue> accumulator = tile(op, op.getC());
  if (failed(accumulator))
    return failure();
  WarpGrid grid = layout.getGrid();
  int64_t round = grid.columnQuads ? 16 : 8;
  if (op.getColumn().value_or(0) % (round * grid.n) != 0)
    return op.emitOpError("expected 'column' to be a multiple of ")
           << round * grid.n << ", " << round << " for each of " << grid.n
           << " warps along the columns, got " << *op.getColumn();
  if (int64_t parts = op.getDepthParts().value_or(1);
      parts > 1 && (parts != grid.n || !grid.columnRuns || grid.copies != 1))
    return op.emitOpError("expected as many warps along the columns as "
                          "'depth_parts', with a run of them each and without "
                          "copies, got ")
           << parts << " and " << layout;
  bool givesQuads =
      op.getInterleaved() || (op.widensB() && !MmaProduct::isAlongDepth(op));
  if (grid.columnQuads != givesQuads)
    return op.emitOpError("expected an accumulator ")
           << (givesQuads ? "with" : "without") << " column_quads, got "
           << layout;
  MmaProduct product(*this, op, *accumulator, grid);
  if (failed(product.readOperands()))
    return failure();
  setTile(op.getResult(), accumulator->layout, product.emit());
  return success();
}

void lowering::addMmaLowerings(LoweringTable &table) {
  table.addReplaced<MmaOp>();
}
