//===- FloatOps.cpp - Float arithmetic ------------------------------------===//
//
// Round-to-nearest f32 and f32x2 run as native vector loops. Everything else
// goes through one scalar function on doubles. The approximate instructions
// return the correctly rounded value, which is inside of every error bound
// that the ISA states for them.
//
//===----------------------------------------------------------------------===//

#include "Alu.h"
#include <cfenv>

using namespace mlir::attn::sim;
using llvm::Error;
using llvm::StringRef;

namespace {

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

struct FloatAux {
  FloatOp op = FloatOp::Add;
  Type type = Type::F32;
  Rounding rounding = Rounding::Nearest;
  bool ftz = false, sat = false, relu = false, nan = false, xorsign = false;
  bool approx = false;
  unsigned sources = 2;
  unsigned packed = 1; ///< elements in a register
};

bool isNaN(double v) { return v != v; }

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

/// One element of any format but f64.
uint32_t element(const FloatAux &o, uint32_t a, uint32_t b, uint32_t c) {
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

__attribute__((noinline)) double computeDouble(const FloatAux &o, double a,
                                               double b, double c) {
  static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD,
                              FE_UPWARD, FE_TONEAREST};
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
    r = std::fma(va, vb, vc);
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
    r = -va;
    break;
  case FloatOp::Abs:
    r = std::fabs(va);
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
  if (o.approx) {
    // rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 work on the upper half.
    uint64_t bits = bitCast<uint64_t>(result);
    result = bitCast<double>(bits & 0xffffffff00000000ull);
  }
  if (o.sat)
    result = isNaN(result) ? 0.0 : std::min(std::max(result, 0.0), 1.0);
  return result;
}

void execGeneric(Exec &x, const Inst &I) {
  const auto &o = *static_cast<const FloatAux *>(I.aux);
  auto source = [&](unsigned i, unsigned l) -> uint64_t {
    return i < o.sources ? x.read(I.ops[i + 1], l) : 0;
  };
  unsigned bits = bitWidth(o.type) / o.packed;
  forLanes(x.active, [&](unsigned l) {
    uint64_t a = source(0, l), b = source(1, l), c = source(2, l);
    uint64_t r;
    if (o.type == Type::F64) {
      double v = computeDouble(o, bitCast<double>(a), bitCast<double>(b),
                               bitCast<double>(c));
      r = isNaN(v) ? 0x7fffffffffffffffull : bitCast<uint64_t>(v);
    } else if (o.packed == 1) {
      r = element(o, a, b, c);
    } else {
      uint64_t mask = (uint64_t(1) << bits) - 1;
      r = element(o, a & mask, b & mask, c & mask) |
          uint64_t(
              element(o, a >> bits & mask, b >> bits & mask, c >> bits & mask))
              << bits;
    }
    x.write(I.ops[0], l, r);
  });
  if (o.op == FloatOp::Ex2)
    x.cluster.counters.ex2Lanes += llvm::popcount(x.active) * o.packed;
  if (o.sources == 1)
    x.propagate<1>(I);
  else if (o.sources == 2)
    x.propagate<2>(I);
  else
    x.propagate<3>(I);
}

// Native f32, round to nearest.
template <bool Ftz>
float in(float v) {
  return Ftz ? flush(v) : v;
}
#define ATTN_FLOAT2(Name, Expr)                                                \
  template <bool Ftz>                                                          \
  struct Name {                                                                \
    static float f(float a, float b) {                                         \
      a = in<Ftz>(a);                                                          \
      b = in<Ftz>(b);                                                          \
      return canonical(in<Ftz>(Expr));                                         \
    }                                                                          \
  };
ATTN_FLOAT2(FAdd, a + b)
ATTN_FLOAT2(FSub, a - b)
ATTN_FLOAT2(FMul, a *b)
template <bool Ftz>
struct FFma {
  static float f(float a, float b, float c) {
    return canonical(in<Ftz>(std::fma(in<Ftz>(a), in<Ftz>(b), in<Ftz>(c))));
  }
};
template <bool Max>
inline float pickFloat(float a, float b) {
  // Selection on integers keeps NaN and signed zero rules without branches.
  float lo = a < b ? a : b, hi = a < b ? b : a;
  if (a == b) {
    uint32_t ab = bitCast<uint32_t>(a), bb = bitCast<uint32_t>(b);
    return bitCast<float>(Max ? ab & bb : ab | bb);
  }
  if (a != a)
    return canonical(b);
  if (b != b)
    return a;
  return Max ? hi : lo;
}
template <bool Ftz>
struct FMin {
  static float f(float a, float b) {
    return pickFloat<false>(in<Ftz>(a), in<Ftz>(b));
  }
};
template <bool Ftz>
struct FMax {
  static float f(float a, float b) {
    return pickFloat<true>(in<Ftz>(a), in<Ftz>(b));
  }
};
template <bool Ftz>
struct FEx2 {
  static float f(float a) {
    a = in<Ftz>(a);
    return canonical(in<Ftz>(float(std::exp2(double(a)))));
  }
};

/// Two floats in a 64-bit register.
template <typename Op>
struct Two2 {
  static uint64_t f(uint64_t a, uint64_t b) {
    float lo = Op::f(bitCast<float>(uint32_t(a)), bitCast<float>(uint32_t(b)));
    float hi = Op::f(bitCast<float>(uint32_t(a >> 32)),
                     bitCast<float>(uint32_t(b >> 32)));
    return bitCast<uint32_t>(lo) | uint64_t(bitCast<uint32_t>(hi)) << 32;
  }
};
template <typename Op>
struct Two3 {
  static uint64_t f(uint64_t a, uint64_t b, uint64_t c) {
    float lo = Op::f(bitCast<float>(uint32_t(a)), bitCast<float>(uint32_t(b)),
                     bitCast<float>(uint32_t(c)));
    float hi = Op::f(bitCast<float>(uint32_t(a >> 32)),
                     bitCast<float>(uint32_t(b >> 32)),
                     bitCast<float>(uint32_t(c >> 32)));
    return bitCast<uint32_t>(lo) | uint64_t(bitCast<uint32_t>(hi)) << 32;
  }
};

void execEx2(Exec &x, const Inst &I) {
  I.flags ? exec1<float, float, FEx2<true>>(x, I)
          : exec1<float, float, FEx2<false>>(x, I);
  x.cluster.counters.ex2Lanes += llvm::popcount(x.active);
}

template <template <bool> class Op>
ExecFn float2(bool ftz) {
  return ftz ? exec2<float, float, float, Op<true>>
             : exec2<float, float, float, Op<false>>;
}
template <template <bool> class Op>
ExecFn packed2(bool ftz) {
  return ftz ? exec2<uint64_t, uint64_t, uint64_t, Two2<Op<true>>>
             : exec2<uint64_t, uint64_t, uint64_t, Two2<Op<false>>>;
}

Rounding takeRounding(Decoding &c, bool &given) {
  StringRef r = c.takeAny({"rn", "rz", "rm", "rp"});
  given = !r.empty();
  return r == "rz"   ? Rounding::Zero
         : r == "rm" ? Rounding::Down
         : r == "rp" ? Rounding::Up
                     : Rounding::Nearest;
}

Error decodeAny(Decoding &c, FloatOp op, unsigned sources) {
  FloatAux o;
  o.op = op;
  bool given;
  o.rounding = takeRounding(c, given);
  o.ftz = c.take("ftz");
  o.sat = c.take("sat");
  o.relu = c.take("relu");
  o.nan = c.take("NaN");
  bool abs = false;
  if (c.take("xorsign"))
    o.xorsign = abs = c.take("abs");
  o.approx = c.take("approx");
  bool full = c.take("full");
  o.type = c.takeType();
  if (o.op == FloatOp::Fma && c.take("oob"))
    return c.error("'.oob' is not supported");
  o.packed =
      o.type == Type::F16x2 || o.type == Type::BF16x2 || o.type == Type::F32x2
          ? 2
          : 1;
  if ((op == FloatOp::Min || op == FloatOp::Max) && c.numOps() == 4)
    sources = 3;
  o.sources = sources;
  bool needsRounding = op == FloatOp::Div || op == FloatOp::Rcp ||
                       op == FloatOp::Sqrt || op == FloatOp::Fma;
  if (needsRounding && !given && !o.approx && !full)
    return c.error("expected a rounding mode, '.approx' or '.full'");
  if (op >= FloatOp::Rsqrt && !o.approx)
    return c.error("expected '.approx'");
  ATTN_SIM_TRY(c.expectOps(sources + 1, sources + 1));
  ATTN_SIM_TRY(c.dst(c.ast.ops[0], o.type));
  for (unsigned i = 1; i <= sources; ++i)
    ATTN_SIM_TRY(c.src(c.ast.ops[i], o.type));
  InstClass cls = o.type == Type::F64 ? InstClass::Double
                  : o.type == Type::F32 || o.type == Type::F32x2
                      ? InstClass::Float
                      : InstClass::Half;
  if (op == FloatOp::Fma && cls == InstClass::Float)
    cls = InstClass::Fma;
  if (op == FloatOp::Ex2)
    cls = InstClass::Ex2;
  else if (op >= FloatOp::Rcp || (op == FloatOp::Div && o.type != Type::F64))
    cls = InstClass::Special;
  bool plain = o.rounding == Rounding::Nearest && !o.sat && !o.relu && !o.nan &&
               !o.xorsign && sources == (op == FloatOp::Fma ? 3 : 2);
  ExecFn fn = nullptr;
  if (plain && o.type == Type::F32) {
    switch (op) {
    case FloatOp::Add:
      fn = float2<FAdd>(o.ftz);
      break;
    case FloatOp::Sub:
      fn = float2<FSub>(o.ftz);
      break;
    case FloatOp::Mul:
      fn = float2<FMul>(o.ftz);
      break;
    case FloatOp::Min:
      fn = float2<FMin>(o.ftz);
      break;
    case FloatOp::Max:
      fn = float2<FMax>(o.ftz);
      break;
    case FloatOp::Fma:
      fn = o.ftz ? exec3<float, float, float, float, FFma<true>>
                 : exec3<float, float, float, float, FFma<false>>;
      break;
    default:
      break;
    }
  } else if (plain && o.type == Type::F32x2) {
    switch (op) {
    case FloatOp::Add:
      fn = packed2<FAdd>(o.ftz);
      break;
    case FloatOp::Sub:
      fn = packed2<FSub>(o.ftz);
      break;
    case FloatOp::Mul:
      fn = packed2<FMul>(o.ftz);
      break;
    case FloatOp::Fma:
      fn = o.ftz
               ? exec3<uint64_t, uint64_t, uint64_t, uint64_t, Two3<FFma<true>>>
               : exec3<uint64_t, uint64_t, uint64_t, uint64_t,
                       Two3<FFma<false>>>;
      break;
    default:
      break;
    }
  } else if (op == FloatOp::Ex2 && o.type == Type::F32) {
    c.inst.flags = o.ftz;
    fn = execEx2;
  }
  if (fn)
    return c.set(fn, cls);
  switch (o.type) {
  case Type::F16:
  case Type::BF16:
  case Type::F32:
  case Type::F64:
  case Type::F16x2:
  case Type::BF16x2:
  case Type::F32x2:
    break;
  default:
    return c.error("unknown type");
  }
  *c.makeAux<FloatAux>() = o;
  return c.set(execGeneric, cls);
}

void execCopysign(Exec &x, const Inst &I) {
  forLanes(x.active, [&](unsigned l) {
    uint64_t a = x.read(I.ops[1], l), b = x.read(I.ops[2], l);
    uint64_t sign = I.flags ? uint64_t(1) << 63 : 0x80000000u;
    x.write(I.ops[0], l, (b & ~sign) | (a & sign));
  });
  x.propagate<2>(I);
}

Error decodeCopysign(Decoding &c) {
  Type t = c.takeType();
  if (t != Type::F32 && t != Type::F64)
    return c.error("unknown type");
  ATTN_SIM_TRY(c.expectOps(3, 3));
  ATTN_SIM_TRY(c.dst(c.ast.ops[0], t));
  ATTN_SIM_TRY(c.src(c.ast.ops[1], t));
  ATTN_SIM_TRY(c.src(c.ast.ops[2], t));
  c.inst.flags = t == Type::F64;
  return c.set(execCopysign, InstClass::Alu);
}

void execTestp(Exec &x, const Inst &I) {
  uint32_t r = 0;
  forLanes(x.active, [&](unsigned l) {
    uint64_t bits = x.read(I.ops[1], l);
    double v =
        I.imm ? bitCast<double>(bits) : double(bitCast<float>(uint32_t(bits)));
    bool subnormal =
        I.imm ? std::fpclassify(v) == FP_SUBNORMAL
              : std::fpclassify(bitCast<float>(uint32_t(bits))) == FP_SUBNORMAL;
    bool t = false;
    switch (I.flags) {
    case 0:
      t = std::isfinite(v);
      break;
    case 1:
      t = std::isinf(v);
      break;
    case 2:
      t = !isNaN(v);
      break;
    case 3:
      t = isNaN(v);
      break;
    case 4:
      t = std::isfinite(v) && v != 0 && !subnormal;
      break;
    case 5:
      t = subnormal;
      break;
    }
    r |= uint32_t(t) << l;
  });
  x.setPred(I.ops[0], r);
  x.propagate<1>(I);
}

Error decodeTestp(Decoding &c) {
  StringRef names[] = {"finite",     "infinite", "number",
                       "notanumber", "normal",   "subnormal"};
  StringRef which = c.takeAny(names);
  if (which.empty())
    return c.error("expected a property");
  c.inst.flags = llvm::find(names, which) - names;
  Type t = c.takeType();
  c.inst.imm = t == Type::F64;
  ATTN_SIM_TRY(c.expectOps(2, 2));
  ATTN_SIM_TRY(c.dstPred(c.ast.ops[0]));
  ATTN_SIM_TRY(c.src(c.ast.ops[1], t));
  return c.set(execTestp, InstClass::Compare);
}

Error decodeUnary(Decoding &c) {
  FloatOp op = llvm::StringSwitch<FloatOp>(c.ast.base)
                   .Case("rcp", FloatOp::Rcp)
                   .Case("sqrt", FloatOp::Sqrt)
                   .Case("rsqrt", FloatOp::Rsqrt)
                   .Case("ex2", FloatOp::Ex2)
                   .Case("lg2", FloatOp::Lg2)
                   .Case("sin", FloatOp::Sin)
                   .Case("cos", FloatOp::Cos)
                   .Default(FloatOp::Tanh);
  return decodeAny(c, op, 1);
}

} // namespace

namespace mlir::attn::sim {
bool isFloatInstruction(const Decoding &c) {
  return llvm::any_of(c.mods, [](StringRef mod) {
    switch (parseType(mod)) {
    case Type::F16:
    case Type::BF16:
    case Type::F32:
    case Type::F64:
    case Type::F16x2:
    case Type::BF16x2:
    case Type::F32x2:
      return true;
    default:
      return false;
    }
  });
}

Error decodeFloatArithmetic(Decoding &c) {
  FloatOp op = llvm::StringSwitch<FloatOp>(c.ast.base)
                   .Case("add", FloatOp::Add)
                   .Case("sub", FloatOp::Sub)
                   .Case("mul", FloatOp::Mul)
                   .Case("mad", FloatOp::Fma)
                   .Case("fma", FloatOp::Fma)
                   .Case("div", FloatOp::Div)
                   .Case("neg", FloatOp::Neg)
                   .Case("abs", FloatOp::Abs)
                   .Case("min", FloatOp::Min)
                   .Case("max", FloatOp::Max)
                   .Default(FloatOp::Cos);
  if (op == FloatOp::Cos)
    return c.error("unknown instruction");
  unsigned sources = op == FloatOp::Fma                         ? 3
                     : op == FloatOp::Neg || op == FloatOp::Abs ? 1
                                                                : 2;
  return decodeAny(c, op, sources);
}
} // namespace mlir::attn::sim

void mlir::attn::sim::registerFloatOps(DecodeTable &table) {
  table["fma"] = decodeFloatArithmetic;
  for (StringRef name :
       {"rcp", "sqrt", "rsqrt", "ex2", "lg2", "sin", "cos", "tanh"})
    table[name] = decodeUnary;
  table["copysign"] = decodeCopysign;
  table["testp"] = decodeTestp;
}
