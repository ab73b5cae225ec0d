//===- RegionArithmetic.h - What arith and math ops compute -----*- C++ -*-===//

#ifndef ATTN_LIB_ANALYSIS_FLOW_REGIONARITHMETIC_H
#define ATTN_LIB_ANALYSIS_FLOW_REGIONARITHMETIC_H

#include "attn/Analysis/Flow/RegionNumber.h"
#include "mlir/IR/Operation.h"
#include "llvm/Support/Error.h"
#include <functional>

namespace mlir::attn {

/// Computes the only result of an operation from up to three operands; false
/// where it is undefined.
using Arithmetic =
    std::function<bool(const RegionNumber *operands, RegionNumber &result)>;

/// Bits of an integer or index type.
unsigned getWidth(Type type);

/// The number of an integer constant, if the kernel's type can hold it.
std::optional<int64_t> getConstantNumber(Value value);

/// True for a difference that promises no more than to be of numbers without a
/// sign, and not below 0: whether it is can be seen.
bool isPromisedCount(Operation *op);

/// What `op` computes; empty for an operation that is not known.
Arithmetic getArithmetic(Operation *op);
/// The same where that is what the kernel computes in any case: not where an op
/// promises something that is not true, such as that it does not overflow, nor
/// where an index has more bits than it has in the kernel.
Arithmetic getPlainArithmetic(Operation *op);

/// True for floats, index, and integers of up to 64 bits.
bool isNumberType(Type type);

/// The error for another type.
llvm::Error makeTypeError(Type type);

} // namespace mlir::attn

#endif // ATTN_LIB_ANALYSIS_FLOW_REGIONARITHMETIC_H
