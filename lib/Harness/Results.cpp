//===- Results.cpp - Results against arrays -------------------------------===//
#include "attn/Harness/Results.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir::attn;
using namespace mlir::attn::sim;
using llvm::createStringError;
using llvm::Expected;

double sim::getDefaultTolerance(DType q, DType o,
                                const AttentionProblem *problem) {
  double tolerance = 2e-3;
  if (problem && problem->narrowResults)
    tolerance = 4e-3;
  if (problem && problem->narrowScores)
    tolerance = 1e-2;
  for (DType dtype : {q, o}) {
    if (dtype == DType::BF16)
      tolerance = std::max(tolerance, 1.6e-2);
    if (dtype == DType::F8E4M3FN || dtype == DType::F8E5M2)
      tolerance = std::max(tolerance, 8e-2);
    // A number of f4E2M1FN is off by a sixth of its group's largest one at
    // most.
    if (dtype == DType::I8)
      tolerance = std::max(tolerance, 1.3e-1);
  }
  return tolerance;
}

/// The type that an array's elements are compared as.
static std::optional<DType> getElementType(const NpyArray &array,
                                           DType preferred) {
  for (DType dtype : {preferred, DType::F32, DType::F64})
    if (array.holds(dtype))
      return dtype;
  return std::nullopt;
}

Expected<ComparedResult> sim::compareResult(const HarnessTensor &tensor,
                                            const NpyArray &expected,
                                            double tolerance) {
  const TensorArgument &argument = tensor.argument;
  std::optional<DType> dtype = getElementType(expected, argument.dtype);
  if (!dtype)
    return createStringError("expected elements of " +
                             stringifyDType(argument.dtype) +
                             ", f32 or f64, got " + expected.getTypeName());
  auto print = [](llvm::ArrayRef<int64_t> shape) {
    return llvm::formatv("[{0:$[, ]}]",
                         llvm::make_range(shape.begin(), shape.end()))
        .str();
  };
  if (llvm::ArrayRef(expected.shape) != llvm::ArrayRef(argument.shape))
    return createStringError("expected shape " + print(argument.shape) +
                             ", got " + print(expected.shape));
  AttentionResult reference;
  reference.shape = expected.shape;
  unsigned width = getByteWidth(*dtype);
  for (int64_t i = 0; i < expected.getNumElements(); ++i)
    reference.o.push_back(decodeElement(*dtype, &expected.data[width * i]));
  reference.defined.assign(reference.o.size(), 1);
  ComparedResult result;
  result.name = argument.name;
  bool isExact = !isFloat(argument.dtype);
  if (isExact) {
    reference.lse = std::move(reference.o);
    reference.shape.push_back(1);
  }
  Expected<Deviation> deviation =
      isExact ? compareLSE(tensor.getView(), reference)
              : compareOutput(tensor.getView(), reference);
  if (!deviation)
    return deviation.takeError();
  result.deviation = std::move(*deviation);
  if (!isExact)
    result.tolerance =
        tolerance >= 0 ? tolerance
                       : getDefaultTolerance(argument.dtype, argument.dtype);
  return std::move(result);
}
