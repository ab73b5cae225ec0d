//===- FloatCompute.cpp - Scalar float arithmetic -------------------------===//
//
// Everything but f64 is computed in doubles, rounded to odd and then to the
// format. The approximate instructions return the correctly rounded value,
// which is inside of every error bound that the ISA states for them.
//
//===----------------------------------------------------------------------===//

#include "FloatCompute.h"
#include <algorithm>
#include <cfenv>

using namespace mlir::attn::sim;

namespace {

/// Moves a rounded result that is not exact onto its odd neighbour.
double stickyOdd(double r, double err) {
  if (err == 0 || !std::isfinite(r) || !std::isfinite(err) ||
      (bitCast<uint64_t>(r) & 1) || r == 0)
    return r;
  bool up = (err > 0) == (r > 0);
  return bitCast<double>(bitCast<uint64_t>(r) + (up ? 1 : -1));
}

double compute(FloatOp op, double a, double b, double c) {
  switch (op) {
  case FloatOp::Add:
    return addOdd(a, b);
  case FloatOp::Sub:
    return addOdd(a, -b);
  case FloatOp::Mul:
    return a * b;
  case FloatOp::Fma:
    return fmaOdd(a, b, c);
  case FloatOp::Div: {
    double q = a / b;
    return stickyOdd(q, std::fma(-q, b, a) * (b < 0 ? -1 : 1));
  }
  case FloatOp::Rcp: {
    double q = 1 / a;
    return stickyOdd(q, std::fma(-q, a, 1.0) * (a < 0 ? -1 : 1));
  }
  case FloatOp::Sqrt: {
    double s = std::sqrt(a);
    return stickyOdd(s, std::fma(-s, s, a));
  }
  case FloatOp::Rsqrt:
    return 1 / std::sqrt(a);
  case FloatOp::Ex2:
    return std::exp2(a);
  case FloatOp::Lg2:
    return std::log2(a);
  case FloatOp::Sin:
    return std::sin(a);
  case FloatOp::Cos:
    return std::cos(a);
  case FloatOp::Tanh:
    return std::tanh(a);
  default:
    return a;
  }
}

} // namespace

uint32_t mlir::attn::sim::computeElement(const FloatAux &o, uint32_t a,
                                         uint32_t b, uint32_t c) {
  const Format &f = formatOf(o.type);
  uint32_t signMask = 1u << f.signBit();
  uint32_t expMask = ((1u << f.expBits) - 1) << f.manBits;
  auto flushBits = [&](uint32_t v) {
    return o.ftz && !(v & expMask) ? v & signMask : v;
  };
  a = flushBits(a);
  b = flushBits(b);
  c = flushBits(c);
  auto nan = [&](uint32_t v) { return (v & ~signMask) > expMask; };
  // Copies fill elements out of bounds with this NaN.
  if (o.oob && (a == OutOfBoundsNaN || b == OutOfBoundsNaN))
    return 0;
  uint32_t r;
  switch (o.op) {
  case FloatOp::Neg:
    r = nan(a) ? f.nan : a ^ signMask;
    return r;
  case FloatOp::Abs:
    r = nan(a) ? f.nan : a & ~signMask;
    return r;
  case FloatOp::Min:
  case FloatOp::Max: {
    auto pick = [&](uint32_t p, uint32_t q) {
      uint32_t sign = 0;
      if (o.xorsign) {
        sign = (p ^ q) & signMask;
      }
      if (o.xorsign || o.abs) {
        p &= ~signMask;
        q &= ~signMask;
      }
      if (nan(p) || nan(q)) {
        if (o.nan || (nan(p) && nan(q)))
          return f.nan;
        return (nan(p) ? q : p) | sign;
      }
      // Signed magnitude as an ordered integer; -0 is below +0.
      auto key = [&](uint32_t v) -> int64_t {
        int64_t m = v & ~signMask;
        return v & signMask ? -m - 1 : m;
      };
      bool less = key(p) < key(q);
      uint32_t chosen = (o.op == FloatOp::Min) == less ? p : q;
      return chosen | sign;
    };
    r = pick(a, b);
    if (o.sources == 3)
      r = pick(r, c);
    break;
  }
  default: {
    double x = decodeFloat(a, f), y = decodeFloat(b, f), z = decodeFloat(c, f);
    double value = compute(o.op, x, y, z);
    if (o.rounding == Rounding::Down && value == 0) {
      // Terms that cancel give -0 when rounding down.
      double p = o.op == FloatOp::Fma ? x * y : x;
      double q = o.op == FloatOp::Fma ? z : o.op == FloatOp::Sub ? -y : y;
      bool sum =
          o.op == FloatOp::Add || o.op == FloatOp::Sub || o.op == FloatOp::Fma;
      if (sum && (std::signbit(p) || std::signbit(q)))
        value = -0.0;
    }
    if (o.op == FloatOp::Div && o.approx) {
      double divisor = std::fabs(decodeFloat(b, f));
      if (divisor > 8.507059173023462e37 && std::isfinite(divisor))
        value = std::isinf(decodeFloat(a, f)) ? NAN : std::copysign(0.0, value);
    }
    if (o.sat)
      value = isNaN(value) ? 0.0 : value <= 0 ? 0.0 : value > 1 ? 1.0 : value;
    r = isNaN(value) ? f.nan : encodeFloat(value, f, o.rounding, false);
    r = flushBits(r);
    break;
  }
  }
  if (o.relu) {
    if (nan(r))
      r = f.nan;
    else if (r & signMask)
      r = 0;
  }
  return r;
}

__attribute__((noinline)) double
mlir::attn::sim::computeDouble(const FloatAux &o, double a, double b,
                               double c) {
  static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD,
                              FE_UPWARD, FE_TONEAREST};
  if (o.ftz && std::fpclassify(a) == FP_SUBNORMAL)
    a = std::copysign(0.0, a);
  volatile double va = a, vb = b, vc = c, r = 0;
  if (o.rounding != Rounding::Nearest)
    std::fesetround(modes[int(o.rounding)]);
  switch (o.op) {
  case FloatOp::Add:
    r = va + vb;
    break;
  case FloatOp::Sub:
    r = va - vb;
    break;
  case FloatOp::Mul:
    r = va * vb;
    break;
  case FloatOp::Fma:
    // Of several NaNs hardware passes on this one.
    r = isNaN(b) ? b : isNaN(c) ? c : std::fma(va, vb, vc);
    break;
  case FloatOp::Div:
    r = va / vb;
    break;
  case FloatOp::Rcp:
    r = 1 / va;
    break;
  case FloatOp::Sqrt:
    r = std::sqrt(va);
    break;
  case FloatOp::Rsqrt:
    r = 1 / std::sqrt(va);
    break;
  case FloatOp::Neg:
    r = isNaN(a) ? a : -va;
    break;
  case FloatOp::Abs:
    r = isNaN(a) ? a : std::fabs(va);
    break;
  case FloatOp::Min:
    r = isNaN(a)                                 ? b
        : isNaN(b)                               ? a
        : (a < b || (a == b && std::signbit(a))) ? a
                                                 : b;
    break;
  case FloatOp::Max:
    r = isNaN(a)                                  ? b
        : isNaN(b)                                ? a
        : (a > b || (a == b && !std::signbit(a))) ? a
                                                  : b;
    break;
  default:
    r = compute(o.op, a, b, c);
    break;
  }
  if (o.rounding != Rounding::Nearest)
    std::fesetround(FE_TONEAREST);
  double result = r;
  if (o.approx && o.ftz) {
    // rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 work on the upper half.
    if (isNaN(result))
      return bitCast<double>(0x7fffffff00000000ull);
    uint64_t bits = bitCast<uint64_t>(result);
    if (std::isfinite(result))
      bits += 0x80000000u;
    result = bitCast<double>(bits & 0xffffffff00000000ull);
  }
  if (o.sat)
    result = isNaN(result) ? 0.0 : std::min(std::max(result, 0.0), 1.0);
  return result;
}
