//===- FloatCompute.h - Scalar float arithmetic -----------------*- C++ -*-===//

#ifndef ATTN_LIB_SIMULATOR_NUMERICS_FLOATCOMPUTE_H
#define ATTN_LIB_SIMULATOR_NUMERICS_FLOATCOMPUTE_H

#include "FloatFormat.h"

namespace mlir::attn::sim {

/// What a float instruction computes.
enum class FloatOp : uint8_t {
  Add,
  Sub,
  Mul,
  Fma,
  Div,
  Neg,
  Abs,
  Min,
  Max,
  Rcp,
  Sqrt,
  Rsqrt,
  Ex2,
  Lg2,
  Sin,
  Cos,
  Tanh,
};

/// One float instruction.
struct FloatAux {
  FloatOp op = FloatOp::Add;
  Type type = Type::F32;
  Rounding rounding = Rounding::Nearest;
  bool ftz = false, sat = false, relu = false, nan = false, xorsign = false;
  bool approx = false;
  bool abs = false; ///< three-input min and max: of magnitudes
  bool oob = false; ///< fma: a source that marks an element out of bounds
  unsigned sources = 2;
  unsigned packed = 1; ///< elements in a register
  /// The first `narrowSources` sources have this type and become f32.
  Type narrow = Type::None;
  unsigned narrowSources = 0;
};

inline bool isNaN(double v) { return v != v; }

/// One element of any format but f64, as bits.
uint32_t computeElement(const FloatAux &o, uint32_t a, uint32_t b, uint32_t c);
double computeDouble(const FloatAux &o, double a, double b, double c);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_NUMERICS_FLOATCOMPUTE_H
