//===- Tcgen05.cpp - Matrix instructions into tensor memory ---------------===//
//
// A product is one statement of inline assembly: an instruction for each piece
// of N and each step of the contraction. The first step of a piece adds to what
// is there if the product does, the others always. LLVM is told that the
// statement touches memory: it cannot know that the tensor core reads shared
// memory.
//
//===----------------------------------------------------------------------===//

#include "MatrixOperand.h"
#include "PartitionLowering.h"
#include "Statement.h"
#include "attn/Dialect/Attn/IR/TensorProducts.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::lowering;

namespace {

/// The statement of one product.
class TensorProduct {
public:
  TensorProduct(PartitionLowering &partition, Tcgen05MmaOp op)
      : partition(partition), op(op), builder(op.getLoc(), op) {}

  /// Takes the operands and emits the statement.
  LogicalResult emit();

private:
  LogicalResult readA();
  LogicalResult readB();
  /// The predicate of the first step of a piece.
  std::string readAccumulate();
  /// An operand in shared memory, with its descriptor's word.
  FailureOr<MatrixOperand> readOperand(Value buffer,
                                       const SharedLayout &layout);
  void writePiece(llvm::raw_ostream &os, int64_t first, StringRef accumulate);

  PartitionLowering &partition;
  Tcgen05MmaOp op;
  ImplicitLocOpBuilder builder;
  TensorInstruction shape;
  StringRef kind;
  /// A in shared memory, or the address of its first column.
  std::optional<MatrixOperand> a;
  std::string columnsOfA;
  MatrixOperand b;
  /// B as (N, K).
  SharedLayout layoutB;
  std::string d;
  Statement statement;
};

} // namespace

FailureOr<MatrixOperand>
TensorProduct::readOperand(Value buffer, const SharedLayout &layout) {
  FailureOr<MatrixOperand> operand =
      describeOperand(op, layout, op.getStart() + op.getContraction(), shape.k,
                      MatrixInstruction::Tcgen05);
  if (failed(operand))
    return failure();
  Value word = partition.descriptorWord(
      builder, partition.kernel.buffers.lookup(buffer), operand->fields());
  operand->word = statement.input(word);
  return operand;
}

LogicalResult TensorProduct::readA() {
  if (op.getA().getType().isTmem()) {
    columnsOfA =
        statement.input(partition.kernel.buffers.lookup(op.getA()).base);
    return success();
  }
  FailureOr<SharedLayout> layout = partition.layoutOf(op, op.getA().getType());
  if (failed(layout))
    return failure();
  FailureOr<MatrixOperand> operand = readOperand(op.getA(), *layout);
  if (failed(operand))
    return failure();
  a = *operand;
  return success();
}

LogicalResult TensorProduct::readB() {
  FailureOr<MatrixOperand> operand = readOperand(op.getB(), layoutB);
  if (failed(operand))
    return failure();
  b = *operand;
  return success();
}

std::string TensorProduct::readAccumulate() {
  IntegerAttr constant;
  if (matchPattern(op.getAccumulate(), m_Constant(&constant)))
    return constant.getValue().isZero() ? "0" : "1";
  Value number =
      arith::ExtUIOp::create(builder, builder.getI32Type(), op.getAccumulate());
  statement.text +=
      ".reg .pred p;\nsetp.ne.b32 p, " + statement.input(number) + ", 0;\n";
  return "p";
}

/// "[$2+64]".
static std::string formatColumn(StringRef base, int64_t column) {
  std::string text = "[" + base.str();
  if (column != 0)
    text += "+" + std::to_string(column);
  return text + "]";
}

void TensorProduct::writePiece(llvm::raw_ostream &os, int64_t first,
                               StringRef accumulate) {
  // Columns of 32 bits of A that a step takes.
  int64_t stepColumns = MatrixDescriptor::kStepBytes / 4;
  int64_t start = op.getStart() / shape.k;
  for (int64_t step = start, count = b.steps.size(); step < count; ++step) {
    if (a)
      setDescriptor(os, "da", *a, a->steps[step]);
    setDescriptor(os, "db", b, layoutB.offset({first, step * shape.k}) / 16);
    os << "tcgen05.mma.cta_group::" << (op.getPair() ? 2 : 1)
       << ".kind::" << kind << " " << formatColumn(d, first) << ", "
       << (a ? "da" : formatColumn(columnsOfA, step * stepColumns))
       << ", db, i, " << (step == start ? accumulate : "1") << ";\n";
  }
}

/// The type of an operand in the instruction descriptor.
static TensorOperand getOperandKind(BufferType type) {
  Type element = type.getElementType();
  if (isa<Float8E4M3FNType>(element))
    return TensorOperand::E4M3;
  if (isa<Float8E5M2Type>(element))
    return TensorOperand::E5M2;
  return element.isBF16() ? TensorOperand::BF16 : TensorOperand::F16;
}

LogicalResult TensorProduct::emit() {
  BufferType typeA = op.getA().getType(), typeB = op.getB().getType();
  ArrayRef<int64_t> extents = op.getD().getType().getShape();
  FailureOr<SharedLayout> memoryB = partition.layoutOf(op, typeB);
  if (failed(memoryB))
    return failure();
  llvm::Expected<TensorInstruction> chosen = chooseTensorInstruction(op);
  if (!chosen)
    return op.emitOpError() << llvm::toString(chosen.takeError());
  shape = *chosen;
  kind = getTensorKind(getOperandKind(typeB));
  layoutB = memoryB->transposed();
  d = statement.input(partition.kernel.buffers.lookup(op.getD()).base);
  if (failed(readA()) || failed(readB()))
    return failure();
  uint32_t instruction =
      shape.encode(getOperandKind(typeA), a && a->descriptor.mnMajor,
                   getOperandKind(typeB), b.descriptor.mnMajor);
  statement.text = "{\n.reg .b32 t, i;\n.reg .b64 da, db;\nmov.b32 i, " +
                   std::to_string(instruction) + ";\n";
  std::string accumulate = readAccumulate();
  llvm::raw_string_ostream os(statement.text);
  for (int64_t first = 0; first < extents[1]; first += shape.n)
    writePiece(os, first, accumulate);
  os << "}";
  statement.create(builder);
  return success();
}

template <>
LogicalResult PartitionLowering::lower(Tcgen05MmaOp op) {
  return TensorProduct(*this, op).emit();
}

template <>
LogicalResult PartitionLowering::lower(Tcgen05CommitOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Value pointer = barrierPointer(b, op.getBarriers(), op.getIndex());
  SmallVector<Value> operands = {
      LLVM::PtrToIntOp::create(b, b.getI32Type(), pointer)};
  std::string text = llvm::formatv(
      "tcgen05.commit.cta_group::{0}.mbarrier::arrive::one.shared::cluster",
      op.getPair() ? 2 : 1);
  if (std::optional<int64_t> ctas = op.getCtas()) {
    operands.push_back(getMask(b, *ctas, op.getRankBits()));
    text += ".multicast::cluster.b64 [$0], $1;";
  } else {
    text += ".b64 [$0];";
  }
  // The intrinsic says that it touches the barrier alone, so that LLVM may move
  // the products that it is for behind it.
  LLVM::InlineAsmOp::create(b, TypeRange(), operands, text,
                            op.getCtas() ? "r,h,~{memory}" : "r,~{memory}",
                            /*has_side_effects=*/true, /*is_align_stack=*/false,
                            LLVM::tailcallkind::TailCallKind::None,
                            LLVM::AsmDialectAttr(), ArrayAttr());
  return success();
}

void lowering::addTcgen05Lowerings(LoweringTable &table) {
  table.addReplaced<Tcgen05MmaOp, Tcgen05CommitOp>();
}
