//===- Mma.cpp - Matrix instructions --------------------------------------===//
//
// A tile product becomes mma.sync instructions, k-step by k-step. Operands that
// lie in shared memory are fetched fragment by fragment, a little ahead of
// their first use: enough to hide the latency of ldmatrix, few enough that the
// fragments of a whole operand are never live at once.
//
//===----------------------------------------------------------------------===//

#include "PartitionLowering.h"
#include "attn/Layout/NamedLayouts.h"
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

} // namespace

template <>
LogicalResult PartitionLowering::lower(MmaOp op) {
  auto accumulatorType = cast<RankedTensorType>(op.getType());
  auto parent = dyn_cast<MmaLayoutAttr>(accumulatorType.getEncoding());
  if (!parent)
    return op.emitOpError("expected an accumulator with an #attn.mma layout, "
                          "got ")
           << accumulatorType;
  FailureOr<TileValue> accumulator = tile(op, op.getC());
  if (failed(accumulator))
    return failure();
  WarpGrid grid{static_cast<unsigned>(parent.getWarps()[0]),
                static_cast<unsigned>(parent.getWarps()[1])};
  int64_t rows = accumulatorType.getShape()[0];
  int64_t columns = accumulatorType.getShape()[1];

  // The operands, as tiles that the instruction could take from registers.
  auto shapeOf = [](Value value) {
    if (auto buffer = dyn_cast<BufferType>(value.getType()))
      return std::pair(buffer.getShape(), buffer.getElementType());
    auto tensor = cast<RankedTensorType>(value.getType());
    return std::pair(tensor.getShape(), tensor.getElementType());
  };
  auto [shapeA, elementType] = shapeOf(op.getA());
  Type elementTypeB = shapeOf(op.getB()).second;
  int64_t contraction = shapeA[1];
  unsigned bits = elementType.getIntOrFloatBitWidth();
  unsigned packing = packingOf(elementType);
  unsigned shapeK = mmaShapeK(contraction, bits);
  if (shapeK == 0)
    return op.emitOpError("expected a contraction extent that is a multiple "
                          "of ")
           << (bits == 8 ? 16 : 8) << ", got " << contraction;
  llvm::Expected<TileLayout> layouts[2] = {
      mmaOperandA(rows, contraction, bits, shapeK, grid),
      mmaOperandB(contraction, columns, bits, shapeK, grid)};
  for (llvm::Expected<TileLayout> &layout : layouts)
    if (!layout) {
      op.emitOpError() << llvm::toString(layout.takeError());
      for (llvm::Expected<TileLayout> &other : layouts)
        if (!other)
          llvm::consumeError(other.takeError());
      return failure();
    }

  SmallVector<Operand, 2> operands;
  const std::array<Value, 2> values = {op.getA(), op.getB()};
  for (auto [value, layout] : llvm::zip(values, layouts)) {
    if (isa<BufferType>(value.getType())) {
      BufferValue buffer = kernel.buffers.lookup(value);
      FailureOr<SharedLayout> memory = layoutOf(op, buffer.type);
      if (failed(memory))
        return failure();
      llvm::Expected<MatrixPlan> plan = planMatrixAccess(*layout, *memory);
      if (!plan)
        return op.emitOpError() << llvm::toString(plan.takeError());
      operands.emplace_back(std::move(*plan), buffer.base,
                            layout->numRegisters(), packing);
      continue;
    }
    FailureOr<TileValue> registers = tile(op, value);
    if (failed(registers))
      return failure();
    std::optional<SmallVector<unsigned>> same =
        layout->registersFrom(registers->layout);
    if (!same || !llvm::equal(*same, llvm::seq<unsigned>(0, same->size())))
      return op.emitOpError("expected operand tiles in the fragments of the "
                            "accumulator's instruction, got ")
             << value.getType();
    operands.emplace_back(*registers);
  }

  // Register counts of one instruction's fragments, in packed values.
  unsigned perA = 16 * shapeK / 32 / packing, perB = 8 * shapeK / 32 / packing;
  unsigned packingC = packingOf(accumulator->elementType);
  unsigned perC = 16 * 8 / 32 / packingC;
  unsigned repM = rows / (16 * grid.m), repN = columns / (8 * grid.n);
  unsigned repK = contraction / shapeK;
  SmallVector<Instruction> instructions;
  for (unsigned k = 0; k < repK; ++k)
    for (unsigned n = 0; n < repN; ++n)
      for (unsigned m = 0; m < repM; ++m)
        instructions.push_back({(m * repK + k) * perA, (n * repK + k) * perB,
                                (m * repN + n) * perC});

  // The order in which ldmatrix results are first needed.
  struct Fetch {
    unsigned operand, access, neededBy;
  };
  SmallVector<Fetch> fetches;
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

  ImplicitLocOpBuilder b(op.getLoc(), op);
  // Fragments of bf16 and of 8-bit types travel as 32-bit integers.
  Type held = elementType.isF16() ? Type(VectorType::get(2, elementType))
                                  : b.getI32Type();
  auto fragment = [&](ArrayRef<Value> values, unsigned first, unsigned count) {
    SmallVector<Value> words;
    for (Value value : values.slice(first, count))
      words.push_back(
          value.getType() == held
              ? value
              : LLVM::BitcastOp::create(b, held, value).getResult());
    return words;
  };
  SmallVector<Value> results = accumulator->values;
  Type scalarC =
      packingC == 1 ? accumulator->elementType
                    : Type(VectorType::get(packingC, accumulator->elementType));
  Type structC = LLVM::LLVMStructType::getLiteral(
      b.getContext(), SmallVector<Type>(perC, scalarC));
  // How many fetches are in flight before the instruction that needs them.
  constexpr unsigned ahead = 2;
  unsigned next = 0;
  auto fetchUntil = [&](unsigned instruction) {
    unsigned end = next;
    while (end < fetches.size() && fetches[end].neededBy <= instruction)
      ++end;
    if (end != next)
      end = std::min<unsigned>(end + ahead, fetches.size());
    for (; next < end; ++next) {
      Operand &operand = operands[fetches[next].operand];
      const MatrixAccess &access = operand.plan.accesses[fetches[next].access];
      for (auto [word, value] :
           llvm::enumerate(loadMatrices(b, operand.base, operand.plan, access)))
        operand.values[access.registers[word * packing] / packing] =
            LLVM::BitcastOp::create(b, held, value);
    }
  };

  for (auto [index, instruction] : llvm::enumerate(instructions)) {
    fetchUntil(index);
    SmallVector<Value> a = fragment(operands[0].values, instruction.a, perA);
    SmallVector<Value> bFragment =
        fragment(operands[1].values, instruction.b, perB);
    SmallVector<Value> c(ArrayRef<Value>(results).slice(instruction.c, perC));
    Value product;
    if (bits == 8) {
      // The op's verifier refuses these types; the intrinsic exists.
      auto name = [](Type type) {
        return isa<Float8E4M3FNType>(type) ? "e4m3" : "e5m2";
      };
      std::string intrinsic =
          llvm::formatv("llvm.nvvm.mma.m16n8k{0}.row.col.f32.{1}.{2}.f32",
                        shapeK, name(elementType), name(elementTypeB));
      SmallVector<Value> all(a);
      llvm::append_range(all, bFragment);
      llvm::append_range(all, c);
      product = LLVM::CallIntrinsicOp::create(b, structC,
                                              b.getStringAttr(intrinsic), all)
                    .getResults();
    } else {
      std::optional<std::array<NVVM::MMATypes, 2>> types;
      if (elementType.isBF16())
        types = {NVVM::MMATypes::bf16, NVVM::MMATypes::bf16};
      product = NVVM::MmaOp::create(
          b, structC, a, bFragment, c, ArrayRef<int64_t>{16, 8, shapeK},
          /*b1Op=*/std::nullopt, /*intOverflow=*/std::nullopt, types,
          std::array<NVVM::MMALayout, 2>{NVVM::MMALayout::row,
                                         NVVM::MMALayout::col});
    }
    for (unsigned i = 0; i < perC; ++i)
      results[instruction.c + i] = LLVM::ExtractValueOp::create(b, product, i);
  }
  setTile(op.getResult(), accumulator->layout, results);
  return success();
}

void lowering::addMmaLowerings(LoweringTable &table) {
  table.addReplaced<MmaOp>();
}
