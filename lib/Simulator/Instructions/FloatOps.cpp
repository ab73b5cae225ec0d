//===- FloatOps.cpp - Float arithmetic ------------------------------------===//
//
// Round-to-nearest f32 and f32x2 run as native vector loops. Everything else
// goes through one scalar function.
//
//===----------------------------------------------------------------------===//

#include "FloatOps.h"
#include "../Numerics/FloatCompute.h"
#include "../Sanitizer/PartPoison.h"
#include "Alu.h"
#include "SyncInstructions.h"

using namespace mlir::attn::sim;
using llvm::Error;
using llvm::StringRef;

namespace {

/// Returns the poison of a pair that follows from its sources': each half from
/// the same half of these.
PartPoison getPairPoison(const Exec &x, const Inst &I, unsigned sources) {
  uint32_t low = 0, high = 0;
  for (unsigned i = 1; i <= sources; ++i) {
    if (!x.poisonOf(I.ops[i]))
      continue;
    PartPoison parts = partsOf(x, I.ops[i]);
    low |= parts[0] | parts[1];
    high |= parts[2] | parts[3];
  }
  return {low, low, high, high};
}

/// Keeps the halves of a pair apart: what is undefined in one leaves the other
/// one as it is. The result's poison has been set, and with it where it is
/// from.
void setPairPoison(Exec &x, const Inst &I, const PartPoison &parts) {
  if (parts[0] | parts[2])
    setParts(x, I.ops[0], parts, x.origin[I.ops[0].meta]);
}

/// Executes an instruction on pairs by `Run`.
template <ExecFn Run, unsigned Sources>
void execPair(Exec &x, const Inst &I) {
  PartPoison parts = getPairPoison(x, I, Sources);
  Run(x, I);
  setPairPoison(x, I, parts);
}

void execGeneric(Exec &x, const Inst &I) {
  const auto &o = *static_cast<const FloatAux *>(I.aux);
  auto source = [&](unsigned i, unsigned l) -> uint64_t {
    uint64_t v = i < o.sources ? x.read(I.ops[i + 1], l) : 0;
    if (i >= o.narrowSources)
      return v;
    return bitCast<uint32_t>(o.narrow == Type::BF16 ? bfloatToFloat(v)
                                                    : halfToFloat(v));
  };
  unsigned bits = bitWidth(o.type) / o.packed;
  PartPoison parts = {};
  if (o.packed == 2)
    parts = getPairPoison(x, I, o.sources);
  forLanes(x.active, [&](unsigned l) {
    uint64_t a = source(0, l), b = source(1, l), c = source(2, l);
    uint64_t r;
    if (o.type == Type::F64) {
      r = bitCast<uint64_t>(computeDouble(
          o, bitCast<double>(a), bitCast<double>(b), bitCast<double>(c)));
    } else if (o.packed == 1) {
      r = computeElement(o, a, b, c);
    } else {
      uint64_t mask = (uint64_t(1) << bits) - 1;
      r = computeElement(o, a & mask, b & mask, c & mask) |
          uint64_t(computeElement(o, a >> bits & mask, b >> bits & mask,
                                  c >> bits & mask))
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
  setPairPoison(x, I, parts);
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
  using Pair = uint64_t;
  return ftz ? execPair<exec2<Pair, Pair, Pair, Two2<Op<true>>>, 2>
             : execPair<exec2<Pair, Pair, Pair, Two2<Op<false>>>, 2>;
}

Rounding takeRounding(Decoding &c, bool &given) {
  StringRef r = c.takeAny({"rn", "rz", "rm", "rp"});
  given = !r.empty();
  return r == "rz"   ? Rounding::Zero
         : r == "rm" ? Rounding::Down
         : r == "rp" ? Rounding::Up
                     : Rounding::Nearest;
}

Error takeQualifiers(Decoding &c, FloatAux &o) {
  FloatOp op = o.op;
  bool given;
  o.rounding = takeRounding(c, given);
  o.ftz = c.take("ftz");
  o.sat = c.take("sat");
  o.relu = c.take("relu");
  o.nan = c.take("NaN");
  o.xorsign = c.take("xorsign");
  if ((op == FloatOp::Min || op == FloatOp::Max) && c.take("abs"))
    o.abs = true;
  if (o.xorsign != (o.abs && c.numOps() == 3))
    return c.error("expected '.xorsign.abs' with two sources, '.abs' with "
                   "three");
  o.approx = c.take("approx");
  bool full = c.take("full");
  o.type = c.takeType();
  o.oob = op == FloatOp::Fma && c.take("oob");
  if (o.type == Type::F32 &&
      (op == FloatOp::Add || op == FloatOp::Sub || op == FloatOp::Fma)) {
    o.narrow = c.takeType();
    if (o.narrow != Type::None && o.narrow != Type::F16 &&
        o.narrow != Type::BF16)
      return c.error("expected a narrow type of 'f16' or 'bf16'");
    if (o.narrow != Type::None)
      o.narrowSources = op == FloatOp::Fma ? 2 : 1;
  }
  bool needsRounding = op == FloatOp::Div || op == FloatOp::Rcp ||
                       op == FloatOp::Sqrt || op == FloatOp::Fma;
  if (needsRounding && !given && !o.approx && !full)
    return c.error("expected a rounding mode, '.approx' or '.full'");
  if (op >= FloatOp::Rsqrt && !o.approx)
    return c.error("expected '.approx'");
  return Error::success();
}

InstClass instClassOf(FloatOp op, Type type) {
  if (op == FloatOp::Ex2)
    return InstClass::Ex2;
  if (op >= FloatOp::Rcp || (op == FloatOp::Div && type != Type::F64))
    return InstClass::Special;
  if (type == Type::F64)
    return InstClass::Double;
  if (type != Type::F32 && type != Type::F32x2)
    return InstClass::Half;
  return op == FloatOp::Fma ? InstClass::Fma : InstClass::Float;
}

/// The vector loop of an f32 instruction; null when there is none.
ExecFn pickSingle(FloatOp op, bool ftz) {
  switch (op) {
  case FloatOp::Add:
    return float2<FAdd>(ftz);
  case FloatOp::Sub:
    return float2<FSub>(ftz);
  case FloatOp::Mul:
    return float2<FMul>(ftz);
  case FloatOp::Min:
    return float2<FMin>(ftz);
  case FloatOp::Max:
    return float2<FMax>(ftz);
  case FloatOp::Fma:
    return ftz ? exec3<float, float, float, float, FFma<true>>
               : exec3<float, float, float, float, FFma<false>>;
  default:
    return nullptr;
  }
}

/// The same for f32x2.
ExecFn pickPair(FloatOp op, bool ftz) {
  using Pair = uint64_t;
  switch (op) {
  case FloatOp::Add:
    return packed2<FAdd>(ftz);
  case FloatOp::Sub:
    return packed2<FSub>(ftz);
  case FloatOp::Mul:
    return packed2<FMul>(ftz);
  case FloatOp::Fma:
    return ftz ? execPair<exec3<Pair, Pair, Pair, Pair, Two3<FFma<true>>>, 3>
               : execPair<exec3<Pair, Pair, Pair, Pair, Two3<FFma<false>>>, 3>;
  default:
    return nullptr;
  }
}

ExecFn pickVector(const FloatAux &o) {
  bool isPlain = o.rounding == Rounding::Nearest && !o.sat && !o.relu &&
                 !o.nan && !o.xorsign && !o.narrowSources &&
                 o.sources == (o.op == FloatOp::Fma ? 3 : 2);
  if (isPlain && o.type == Type::F32)
    return pickSingle(o.op, o.ftz);
  if (isPlain && o.type == Type::F32x2)
    return pickPair(o.op, o.ftz);
  return o.op == FloatOp::Ex2 && o.type == Type::F32 ? execEx2 : nullptr;
}

Error decodeAny(Decoding &c, FloatOp op, unsigned sources) {
  FloatAux o;
  o.op = op;
  if ((op == FloatOp::Min || op == FloatOp::Max) && c.numOps() == 4)
    sources = 3;
  o.sources = sources;
  ATTN_SIM_TRY(takeQualifiers(c, o));
  o.packed =
      o.type == Type::F16x2 || o.type == Type::BF16x2 || o.type == Type::F32x2
          ? 2
          : 1;
  ATTN_SIM_TRY(c.expectOps(sources + 1, sources + 1));
  ATTN_SIM_TRY(c.dst(c.ast.ops[0], o.type));
  for (unsigned i = 1; i <= sources; ++i)
    ATTN_SIM_TRY(c.src(c.ast.ops[i], i <= o.narrowSources ? o.narrow : o.type));
  InstClass cls = instClassOf(op, o.type);
  if (ExecFn fn = pickVector(o)) {
    if (fn == execEx2)
      c.inst.flags = o.ftz;
    return c.set(fn, cls);
  }
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
      // Hardware counts zeros among the normal numbers.
      t = std::isfinite(v) && !subnormal;
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
