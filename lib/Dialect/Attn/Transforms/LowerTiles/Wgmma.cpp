//===- Wgmma.cpp - Matrix instructions of a warpgroup ---------------------===//
//
// A product is one statement of inline assembly: fence, one instruction for
// each step of the contraction, commit. Registers in flight are ordinary values
// that only the wait gives back, as tied operands, so that LLVM cannot move a
// use above it. Steps along the contraction add to the descriptors inside the
// statement: LLVM would hoist such additions out of loops into registers.
//
//===----------------------------------------------------------------------===//

#include "MatrixOperand.h"
#include "PartitionLowering.h"
#include "Statement.h"
#include "attn/Layout/NamedLayouts.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::lowering;

/// The type's name in an instruction.
static StringRef spellType(Type type) {
  if (type.isF16())
    return "f16";
  if (type.isBF16())
    return "bf16";
  return isa<Float8E4M3FNType>(type) ? "e4m3" : "e5m2";
}

/// Columns of the instructions that `columns` take together, each with up to
/// `most`. All but the last are multiples of 64, so that each starts at a whole
/// swizzle span.
static SmallVector<int64_t, 2> divideColumns(int64_t columns, int64_t most) {
  constexpr int64_t kSpanColumns = 64;
  int64_t groups = llvm::divideCeil(columns, most);
  int64_t group = groups == 1 ? columns
                              : llvm::alignTo(llvm::divideCeil(columns, groups),
                                              kSpanColumns);
  SmallVector<int64_t, 2> result;
  for (; columns > 0; columns -= group)
    result.push_back(std::min(group, columns));
  return result;
}

namespace {

/// The statement of one product.
class WgmmaProduct {
public:
  WgmmaProduct(PartitionLowering &partition, WgmmaOp op);

  /// Takes the operands and emits the statement.
  LogicalResult emit();

private:
  LogicalResult readAccumulator();
  LogicalResult readA();
  LogicalResult readRegisters();
  LogicalResult readB();
  /// Adds to a descriptor `bytes` for each warpgroup in front of the own one.
  Value addWarpgroup(Value word, int64_t bytes);
  void writeText();

  PartitionLowering &partition;
  WgmmaOp op;
  ImplicitLocOpBuilder builder;
  InFlightType type;
  /// Warps that hold the accumulator, of which columns are divided.
  WarpGrid grid;
  int64_t m, contraction, step;
  /// Of each instruction of a step.
  SmallVector<int64_t, 2> columns;
  unsigned bits;
  std::optional<TileLayout> layoutC;
  Type typeA;
  /// A in shared memory, or its registers.
  std::optional<MatrixOperand> a;
  SmallVector<std::string> fragments;
  MatrixOperand b;
  /// Units of 16 bytes from the start of B, for the columns of each instruction
  /// and each step of the contraction.
  SmallVector<SmallVector<int64_t>, 2> stepsOfB;
  /// Bytes from the columns of a warpgroup to those of the next one.
  int64_t bytesOfRun = 0;
  Statement statement;
};

} // namespace

WgmmaProduct::WgmmaProduct(PartitionLowering &partition, WgmmaOp op)
    : partition(partition), op(op), builder(op.getLoc(), op),
      type(cast<InFlightType>(op.getType())) {
  m = type.getShape()[0];
  if (auto layout = dyn_cast_or_null<MmaLayoutAttr>(type.getLayout()))
    grid = layout.getGrid();
  columns =
      divideColumns(type.getShape()[1] / grid.n,
                    2 * getMostInstructionRegisters(partition.kernel.func));
  BufferType typeB = op.getB().getType();
  contraction = op.getDepth() ? static_cast<int64_t>(*op.getDepth())
                              : typeB.getShape()[0];
  bits = typeB.getElementType().getIntOrFloatBitWidth();
  step = MatrixDescriptor::kStepBytes * 8 / bits;
}

LogicalResult WgmmaProduct::readAccumulator() {
  FailureOr<TileLayout> layout = partition.layoutOf(op, type);
  if (failed(layout))
    return failure();
  layoutC = *layout;
  if (!op.getC()) {
    statement.results(
        SmallVector<Type>(layoutC->numRegisters(), type.getElementType()));
    return success();
  }
  FailureOr<TileValue> c = partition.tile(op, op.getC());
  if (failed(c))
    return failure();
  std::optional<SmallVector<unsigned>> same = layoutC->registersFrom(c->layout);
  if (!same || !llvm::equal(*same, llvm::seq<unsigned>(0, same->size())))
    return op.emitOpError("expected an accumulator in the fragments of the "
                          "kernel's warps, got ")
           << op.getC().getType();
  statement.tiedResults(c->values);
  return success();
}

Value WgmmaProduct::addWarpgroup(Value word, int64_t bytes) {
  KernelLowering &kernel = partition.kernel;
  Value &offset = kernel.entryCache[partition.threadKey() + "warpgroup rows" +
                                    std::to_string(bytes)];
  if (!offset) {
    Value group = partition.warpgroup();
    ImplicitLocOpBuilder entry = kernel.entryBuilder();
    offset = arith::MulIOp::create(
        entry, group, arith::ConstantIntOp::create(entry, bytes / 16, 32));
  }
  return arith::AddIOp::create(builder, word, offset);
}

/// A: a descriptor of the warpgroup's 64 rows, or registers.
LogicalResult WgmmaProduct::readA() {
  auto bufferType = dyn_cast<BufferType>(op.getA().getType());
  if (!bufferType)
    return readRegisters();
  typeA = bufferType.getElementType();
  FailureOr<SharedLayout> layout = partition.layoutOf(op, bufferType);
  if (failed(layout))
    return failure();
  FailureOr<MatrixOperand> described =
      describeOperand(op, *layout, contraction, step);
  if (failed(described))
    return failure();
  a = *described;
  Value word = partition.descriptorWord(
      builder, partition.kernel.buffers.lookup(op.getA()),
      a->descriptor.fields());
  if (m > 64)
    word = addWarpgroup(word, layout->offset({64, 0}));
  a->word = statement.input(word, "r");
  return success();
}

LogicalResult WgmmaProduct::readRegisters() {
  FailureOr<TileValue> registers = partition.tile(op, op.getA());
  if (failed(registers))
    return failure();
  typeA = registers->elementType;
  int64_t k = registers->layout.shape()[1];
  // Those of mma.sync, which says what other warps hold.
  llvm::Expected<TileLayout> fragment =
      type.getLayout() ? mmaOperandA(m, k, bits, step, grid)
                       : wgmmaOperandA(m, k, bits, m / 64);
  if (!fragment)
    return op.emitOpError() << llvm::toString(fragment.takeError());
  std::optional<SmallVector<unsigned>> same =
      fragment->registersFrom(registers->layout);
  if (!same || !llvm::equal(*same, llvm::seq<unsigned>(0, same->size())))
    return op.emitOpError("expected 'a' in the fragments of the "
                          "instruction, got ")
           << op.getA().getType();
  // Four registers for each step; a prefix of the columns is one of them.
  for (Value value :
       ArrayRef<Value>(registers->values).take_front(contraction / step * 4))
    fragments.push_back(statement.input(
        LLVM::BitcastOp::create(builder, builder.getI32Type(), value), "r"));
  return success();
}

LogicalResult WgmmaProduct::readB() {
  FailureOr<SharedLayout> layout = partition.layoutOf(op, op.getB().getType());
  if (failed(layout))
    return failure();
  FailureOr<MatrixOperand> described =
      describeOperand(op, layout->transposed(), contraction, step);
  if (failed(described))
    return failure();
  b = *described;
  bytesOfRun = layout->offset({0, type.getShape()[1] / grid.n});
  int64_t start = op.getStart(), first = 0;
  for (int64_t part : columns) {
    SmallVector<int64_t> &steps = stepsOfB.emplace_back();
    for (int64_t k = 0; k < contraction; k += step)
      steps.push_back(layout->offset({start + k, first}) / 16);
    first += part;
  }
  return success();
}

void WgmmaProduct::writeText() {
  SmallVector<std::string> names;
  for (unsigned i = 0; i < layoutC->numRegisters(); ++i)
    names.push_back("$" + std::to_string(i));
  llvm::raw_string_ostream os(statement.text);
  os << "{\n.reg .b32 t;\n.reg .b64 da, db;\n"
     << "wgmma.fence.sync.aligned;\n";
  bool hasTranspose = bits == 16;
  Type typeB = op.getB().getType().getElementType();
  for (unsigned i = 0; i < contraction / step; ++i) {
    std::string first = "da";
    if (a)
      setDescriptor(os, "da", *a, a->steps[i]);
    else
      first = bracket(ArrayRef<std::string>(fragments).slice(4 * i, 4));
    ArrayRef<std::string> left = names;
    for (auto [n, steps] : llvm::zip_equal(columns, stepsOfB)) {
      setDescriptor(os, "db", b, steps[i]);
      // Half a register for each column of 64 rows.
      os << "wgmma.mma_async.sync.aligned.m64n" << n << 'k' << step << ".f32."
         << spellType(typeA) << '.' << spellType(typeB) << ' '
         << bracket(left.take_front(n / 2)) << ", " << first << ", db, "
         << (op.getC() || i > 0 ? 1 : 0) << ", 1, 1";
      left = left.drop_front(n / 2);
      if (hasTranspose) {
        if (a)
          os << ", " << a->descriptor.mnMajor;
        os << ", " << b.descriptor.mnMajor;
      }
      os << ";\n";
    }
  }
  os << "wgmma.commit_group.sync.aligned;\n}";
}

LogicalResult WgmmaProduct::emit() {
  if (failed(readB()) || failed(readAccumulator()) || failed(readA()))
    return failure();
  Value word = partition.descriptorWord(
      builder, partition.kernel.buffers.lookup(op.getB()),
      b.descriptor.fields());
  if (grid.n > 1)
    word = addWarpgroup(word, bytesOfRun);
  b.word = statement.input(word, "r");
  writeText();
  partition.setTile(op.getResult(), *layoutC, statement.create(builder));
  return success();
}

template <>
LogicalResult PartitionLowering::lower(WgmmaOp op) {
  FailureOr<std::pair<int64_t, int64_t>> grid = getGrid(op);
  if (failed(grid))
    return failure();
  auto type = cast<InFlightType>(op.getType());
  if (auto layout = dyn_cast_or_null<MmaLayoutAttr>(type.getLayout())) {
    if (int64_t(layout.getGrid().getWarps()) != grid->first * grid->second)
      return op.emitOpError("expected an accumulator in the kernel's ")
             << grid->first * grid->second << " warps, got " << type;
    return WgmmaProduct(*this, op).emit();
  }
  int64_t m = type.getShape()[0];
  if (grid->second != 1 || m != grid->first * 16)
    return op.emitOpError("expected 16 rows for each warp of a grid of one "
                          "column, got ")
           << m << " rows and a grid of " << grid->first << " x "
           << grid->second;
  return WgmmaProduct(*this, op).emit();
}

template <>
LogicalResult PartitionLowering::lower(WgmmaWaitOp op) {
  SmallVector<Value> values;
  SmallVector<TileValue, 1> sources;
  for (Value source : op.getSources()) {
    FailureOr<TileValue> registers = tile(op, source);
    if (failed(registers))
      return failure();
    llvm::append_range(values, registers->values);
    sources.push_back(*registers);
  }
  Statement statement;
  statement.tiedResults(values);
  statement.text =
      "wgmma.wait_group.sync.aligned " + std::to_string(op.getPending()) + ";";
  ImplicitLocOpBuilder b(op.getLoc(), op);
  SmallVector<Value> results = statement.create(b);
  unsigned next = 0;
  for (auto [source, result] : llvm::zip(sources, op.getResults())) {
    FailureOr<TileLayout> layout = layoutOf(op, result.getType());
    if (failed(layout))
      return failure();
    std::optional<SmallVector<unsigned>> same =
        source.layout.registersFrom(*layout);
    if (!same || !llvm::equal(*same, llvm::seq<unsigned>(0, same->size())))
      return op.emitOpError("expected a result in the fragments of the "
                            "kernel's warps, got ")
             << result.getType();
    unsigned count = source.values.size();
    setTile(result, *layout,
            SmallVector<Value>(ArrayRef<Value>(results).slice(next, count)));
    next += count;
  }
  return success();
}

template <>
LogicalResult PartitionLowering::lower(WgmmaResumeOp op) {
  FailureOr<TileValue> source = tile(op, op.getSource());
  FailureOr<TileLayout> layout = layoutOf(op, op.getType());
  if (failed(source) || failed(layout))
    return failure();
  std::optional<SmallVector<unsigned>> same =
      layout->registersFrom(source->layout);
  if (!same || !llvm::equal(*same, llvm::seq<unsigned>(0, same->size())))
    return op.emitOpError("expected a tile in the fragments of the kernel's "
                          "warps, got ")
           << op.getSource().getType();
  setTile(op.getResult(), *layout, source->values);
  return success();
}

template <>
LogicalResult PartitionLowering::lower(ExtendColumnsOp op) {
  FailureOr<TileValue> source = tile(op, op.getSource());
  FailureOr<TileLayout> layout = layoutOf(op, op.getType());
  if (failed(source) || failed(layout))
    return failure();
  auto places = matchSlice(source->layout, *layout, /*column=*/0);
  unsigned packing = source->packing;
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Type held = source->values.front().getType();
  SmallVector<Value> values(layout->numRegisters() / packing);
  bool isWhole = places.has_value();
  for (unsigned reg = 0; isWhole && reg < places->size(); ++reg) {
    // Elements that share a register stay together.
    unsigned first = (*places)[reg - reg % packing];
    isWhole = (*places)[reg] == first + reg % packing && first % packing == 0;
    if (isWhole)
      values[first / packing] = source->values[reg / packing];
  }
  if (!isWhole)
    return op.emitOpError("expected layouts in which threads keep the source's "
                          "elements, got ")
           << op.getSource().getType() << " and " << op.getType();
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(held));
  for (Value &value : values)
    if (!value)
      value = zero;
  setTile(op.getResult(), *layout, values);
  return success();
}

void lowering::addWgmmaLowerings(LoweringTable &table) {
  table.addReplaced<WgmmaOp, WgmmaWaitOp, WgmmaResumeOp, ExtendColumnsOp>();
}
