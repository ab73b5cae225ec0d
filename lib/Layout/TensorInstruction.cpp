//===- TensorInstruction.cpp - Shapes of tcgen05.mma ----------------------===//

#include "attn/Layout/TensorInstruction.h"
#include "Errors.h"

using namespace mlir::attn;
using llvm::Error;
using llvm::Expected;

/// Bytes of a row of an operand that an instruction contracts.
static constexpr int64_t kStepBytes = 32;

llvm::StringRef mlir::attn::getTensorKind(TensorOperand operand) {
  switch (operand) {
  case TensorOperand::F16:
  case TensorOperand::BF16:
    return "f16";
  case TensorOperand::E4M3:
  case TensorOperand::E5M2:
    return "f8f6f4";
  }
  llvm_unreachable("covered switch");
}

/// Returns the number of a type among those of its kind.
static uint32_t getFormat(TensorOperand operand) {
  switch (operand) {
  case TensorOperand::F16:
  case TensorOperand::E4M3:
    return 0;
  case TensorOperand::BF16:
  case TensorOperand::E5M2:
    return 1;
  }
  llvm_unreachable("covered switch");
}

uint32_t TensorInstruction::encode(TensorOperand a, bool mnMajorA,
                                   TensorOperand b, bool mnMajorB) const {
  constexpr uint32_t accumulatorF32 = 1;
  return accumulatorF32 << 4 | getFormat(a) << 7 | getFormat(b) << 10 |
         uint32_t(mnMajorA) << 15 | uint32_t(mnMajorB) << 16 |
         static_cast<uint32_t>(n >> 3) << 17 |
         static_cast<uint32_t>(m >> 4) << 24;
}

/// An error unless `extent` is a positive multiple of `step`.
static Error checkStep(const char *name, int64_t extent, int64_t step,
                       int64_t m) {
  if (extent >= step && extent % step == 0)
    return Error::success();
  int64_t below = extent / step * step;
  if (extent < step)
    return makeError("expected {0} in steps of {1} for M = {2}, got {3}; the "
                     "nearest is {1}",
                     name, step, m, extent);
  return makeError("expected {0} in steps of {1} for M = {2}, got {3}; the "
                   "nearest are {4} and {5}",
                   name, step, m, extent, below, below + step);
}

/// Columns of the widest instruction.
static constexpr int64_t kWidest = 256;

Expected<TensorInstruction>
mlir::attn::choosePairInstruction(int64_t rows, int64_t n, int64_t k,
                                  unsigned elementBits, int64_t span) {
  if (rows != 64 && rows != 128)
    return makeError("expected 64 or 128 rows in each CTA of a pair, got {0}",
                     rows);
  // PTX ISA, matrix shapes: an MN-major B of 8 bits has N in steps of 32.
  int64_t stepN = elementBits == 8 && span > 1 ? 32 : 16;
  if (Error error = checkStep("N", n, stepN, 2 * rows))
    return std::move(error);
  if (n > kWidest)
    return makeError("expected at most {0} columns in a product of a pair, got "
                     "{1}",
                     kWidest, n);
  int64_t stepK = 8 * kStepBytes / elementBits;
  if (Error error = checkStep("K", k, stepK, 2 * rows))
    return std::move(error);
  return TensorInstruction{2 * rows, n, stepK};
}

Expected<TensorInstruction>
mlir::attn::chooseTensorInstruction(int64_t m, int64_t n, int64_t k,
                                    unsigned elementBits, int64_t span) {
  if (m != 64 && m != 128) {
    if (m > 64 && m < 128)
      return makeError("expected M = 64 or M = 128, got {0}; the nearest are "
                       "64 and 128",
                       m);
    return makeError("expected M = 64 or M = 128, got {0}; the nearest is {1}",
                     m, m < 64 ? 64 : 128);
  }
  // PTX ISA, matrix shapes: an MN-major B of 8 bits has N in steps of 16.
  bool isFine = m == 64 && (elementBits != 8 || span == 1);
  int64_t stepN = isFine ? 8 : 16, stepK = 8 * kStepBytes / elementBits;
  if (Error error = checkStep("N", n, stepN, m))
    return std::move(error);
  if (Error error = checkStep("K", k, stepK, m))
    return std::move(error);
  int64_t most = n;
  if (n > kWidest) {
    most = kWidest;
    while (n % most != 0 || most % stepN != 0 || most % span != 0)
      if (--most == 0)
        return makeError("expected {0} columns to be pieces of whole spans of "
                         "{1} in steps of {2}, got none",
                         n, span, stepN);
  }
  return TensorInstruction{m, most, stepK};
}
