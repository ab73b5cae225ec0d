//===- Mma.cpp - Matrix instructions --------------------------------------===//
//
// A tile product becomes mma.sync instructions, k-step by k-step. Operands that
// lie in shared memory are fetched fragment by fragment, a little ahead of
// their first use: enough to hide the latency of ldmatrix, few enough that the
// fragments of a whole operand are never live at once.
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
};

/// One mma.sync: the first packed value of each fragment.
struct Instruction {
  unsigned a = 0, b = 0, c = 0;
};

/// An ldmatrix, and the first instruction that needs what it returns.
struct Fetch {
  unsigned operand, access, neededBy;
};

/// Fetches that are in flight before the instruction that needs them.
constexpr unsigned kFetchesAhead = 2;

/// The instructions of one product.
class MmaProduct {
public:
  MmaProduct(PartitionLowering &partition, MmaOp op, TileValue accumulator,
             WarpGrid grid);

  /// Takes the operands; an error if no instruction can.
  LogicalResult readOperands();
  /// Emits the instructions; the accumulator's new registers.
  SmallVector<Value> emit();

private:
  FailureOr<Operand> readOperand(Value value, const TileLayout &layout);
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

FailureOr<Operand> MmaProduct::readOperand(Value value,
                                           const TileLayout &layout) {
  if (isa<BufferType>(value.getType())) {
    BufferValue buffer = partition.kernel.buffers.lookup(value);
    FailureOr<SharedLayout> memory = partition.layoutOf(op, buffer.type);
    if (failed(memory))
      return failure();
    llvm::Expected<MatrixPlan> plan = planMatrixAccess(layout, *memory);
    if (!plan)
      return op.emitOpError() << llvm::toString(plan.takeError());
    return Operand(std::move(*plan), buffer.base, layout.numRegisters(),
                   packing);
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

LogicalResult MmaProduct::readOperands() {
  if (shapeK == 0)
    return op.emitOpError("expected a contraction extent that is a multiple "
                          "of ")
           << (bits == 8 ? 16 : 8) << ", got " << contraction;
  // As tiles that the instruction could take from registers.
  llvm::Expected<TileLayout> a =
      dividesDepth ? mmaDepthOperandA(rows, depth, bits, grid)
                   : mmaOperandA(rows, depth, bits, shapeK, grid);
  llvm::Expected<TileLayout> b =
      dividesDepth ? mmaDepthOperandB(depth, columns, bits, grid)
                   : mmaOperandB(depth, columns, bits, shapeK, grid);
  if (!a || !b)
    return op.emitOpError()
           << llvm::toString(llvm::joinErrors(a.takeError(), b.takeError()));
  FailureOr<Operand> operandA = readOperand(op.getA(), *a);
  if (failed(operandA))
    return failure();
  FailureOr<Operand> operandB = readOperand(op.getB(), *b);
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
      for (unsigned reg : access.registers)
        accessOf[reg / packing] = index;
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
    for (auto [word, value] : llvm::enumerate(
             partition.loadMatrices(b, operand.base, operand.plan, access)))
      operand.values[access.registers[word * packing] / packing] =
          LLVM::BitcastOp::create(b, held, value);
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
  if (op.getColumn().value_or(0) % (8 * grid.n) != 0)
    return op.emitOpError("expected 'column' to be a multiple of ")
           << 8 * grid.n << ", 8 for each of " << grid.n
           << " warps along the columns, got " << *op.getColumn();
  if (int64_t parts = op.getDepthParts().value_or(1);
      parts > 1 && (parts != grid.n || !grid.columnRuns || grid.copies != 1))
    return op.emitOpError("expected as many warps along the columns as "
                          "'depth_parts', with a run of them each and without "
                          "copies, got ")
           << parts << " and " << layout;
  MmaProduct product(*this, op, *accumulator, grid);
  if (failed(product.readOperands()))
    return failure();
  setTile(op.getResult(), accumulator->layout, product.emit());
  return success();
}

void lowering::addMmaLowerings(LoweringTable &table) {
  table.addReplaced<MmaOp>();
}
