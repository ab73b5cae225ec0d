//===- MatrixOperand.cpp - Operands of products in shared memory ----------===//

#include "MatrixOperand.h"
#include "PartitionLowering.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::lowering;

Value PartitionLowering::descriptorWord(ImplicitLocOpBuilder &b,
                                        const BufferValue &buffer,
                                        uint32_t fields) {
  auto constant = [](ImplicitLocOpBuilder &b, int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, value, 32);
  };
  Value &word = kernel.descriptorWords[{buffer.allocation, fields}];
  if (!word) {
    ImplicitLocOpBuilder entry = kernel.entryBuilder();
    Value address =
        LLVM::PtrToIntOp::create(entry, entry.getI32Type(), buffer.allocation);
    // The upper bits of an address are the CTA's rank in its cluster.
    Value field = arith::AndIOp::create(
        entry, arith::ShRUIOp::create(entry, address, constant(entry, 4)),
        constant(entry, 0x3fff));
    word = arith::OrIOp::create(entry, field,
                                constant(entry, static_cast<int32_t>(fields)));
  }
  if (!buffer.slot)
    return word;
  return arith::AddIOp::create(
      b, word,
      arith::MulIOp::create(b, buffer.slot,
                            constant(b, buffer.slotBytes / 16)));
}

FailureOr<MatrixOperand>
lowering::describeOperand(Operation *op, const SharedLayout &layout,
                          int64_t contraction, int64_t step,
                          MatrixInstruction instruction) {
  llvm::Expected<MatrixDescriptor> descriptor =
      describeMatrix(layout, instruction);
  if (!descriptor) {
    op->emitOpError() << llvm::toString(descriptor.takeError());
    return failure();
  }
  MatrixOperand operand;
  operand.descriptor = *descriptor;
  operand.instruction = instruction;
  for (int64_t k = 0; k < contraction; k += step)
    operand.steps.push_back(layout.offset({0, k}) / 16);
  return operand;
}

void lowering::setDescriptor(llvm::raw_ostream &os, StringRef name,
                             const MatrixOperand &operand, int64_t offset) {
  std::string word = operand.word;
  if (offset != 0) {
    os << "add.s32 t, " << word << ", " << offset << ";\n";
    word = "t";
  }
  os << "mov.b64 " << name << ", {" << word << ", " << (operand.fields() >> 32)
     << "};\n";
}
