//===- MatrixOperand.h - Operands of products in shared memory --*- C++ -*-===//
//
// A matrix in shared memory as operand of wgmma or tcgen05.mma: its descriptor
// and where each step of the contraction starts.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_ATTN_TRANSFORMS_LOWERTILES_MATRIXOPERAND_H
#define ATTN_LIB_DIALECT_ATTN_TRANSFORMS_LOWERTILES_MATRIXOPERAND_H

#include "attn/Layout/MatrixDescriptor.h"
#include "mlir/IR/Operation.h"

namespace mlir::attn::lowering {

/// An operand in shared memory.
struct MatrixOperand {
  MatrixDescriptor descriptor;
  MatrixInstruction instruction = MatrixInstruction::Wgmma;
  /// Units of 16 bytes from the start, for each step of the contraction.
  SmallVector<int64_t> steps;
  /// The lower word of the descriptor in a statement of assembly.
  std::string word;

  uint64_t fields() const { return descriptor.fields(instruction); }
};

/// Describes a buffer as operand of `op`; `layout` is (MN, K). An error at the
/// op for layouts that no descriptor expresses.
FailureOr<MatrixOperand>
describeOperand(Operation *op, const SharedLayout &layout, int64_t contraction,
                int64_t step,
                MatrixInstruction instruction = MatrixInstruction::Wgmma);

/// Writes what sets the 64-bit register `name` to the descriptor of what lies
/// `offset` units of 16 bytes behind the operand's start. `t` is a register for
/// the sum.
void setDescriptor(llvm::raw_ostream &os, StringRef name,
                   const MatrixOperand &operand, int64_t offset);

} // namespace mlir::attn::lowering

#endif // ATTN_LIB_DIALECT_ATTN_TRANSFORMS_LOWERTILES_MATRIXOPERAND_H
