//===- IntegerOps.cpp - Integer and logic instructions --------------------===//

#include "Alu.h"
#include "FloatOps.h"
#include "SyncInstructions.h"

using namespace mlir::attn::sim;
using llvm::Error;
using llvm::StringRef;

Error mlir::attn::sim::decodeSame(Decoding &c, ExecFn fn, Type t,
                                  unsigned sources, InstClass cls) {
  if (!fn)
    return c.error("unknown type");
  ATTN_SIM_TRY(c.expectOps(sources + 1, sources + 1));
  ATTN_SIM_TRY(c.dst(c.ast.ops[0], t));
  for (unsigned i = 1; i <= sources; ++i)
    ATTN_SIM_TRY(c.src(c.ast.ops[i], t));
  return c.set(fn, cls);
}

namespace {

#define ATTN_OP1(Name, Expr)                                                   \
  template <typename T>                                                        \
  struct Name {                                                                \
    using W = Wrap<T>;                                                         \
    static T f(T a) { return Expr; }                                           \
  };
#define ATTN_OP2(Name, Expr)                                                   \
  template <typename T>                                                        \
  struct Name {                                                                \
    using W = Wrap<T>;                                                         \
    static T f(T a, T b) { return Expr; }                                      \
  };
#define ATTN_OP3(Name, Expr)                                                   \
  template <typename T>                                                        \
  struct Name {                                                                \
    using W = Wrap<T>;                                                         \
    static T f(T a, T b, T c) { return Expr; }                                 \
  };

template <typename T>
T mulHigh(T a, T b) {
  if constexpr (sizeof(T) == 8) {
    if constexpr (std::is_signed_v<T>)
      return T((__int128(a) * b) >> 64);
    else
      return T((static_cast<unsigned __int128>(a) * b) >> 64);
  } else {
    return T((int64_t(a) * int64_t(b)) >> (sizeof(T) * 8));
  }
}
template <>
uint32_t mulHigh(uint32_t a, uint32_t b) {
  return uint32_t((uint64_t(a) * b) >> 32);
}

// Division by zero is undefined; the hardware gives all ones for both results.
template <typename T>
T divide(T a, T b) {
  if (b == 0)
    return T(~T(0));
  if constexpr (std::is_signed_v<T>)
    if (b == T(-1))
      return T(Wrap<T>(0) - Wrap<T>(a));
  return T(a / b);
}
template <typename T>
T remainder(T a, T b) {
  if (b == 0)
    return T(~T(0));
  if constexpr (std::is_signed_v<T>)
    if (b == T(-1))
      return 0;
  return T(a % b);
}
template <typename T>
T saturate(__int128 v) {
  __int128 lo = std::numeric_limits<T>::min(),
           hi = std::numeric_limits<T>::max();
  return T(v < lo ? lo : v > hi ? hi : v);
}

ATTN_OP2(Add, T(W(a) + W(b)))
ATTN_OP2(AddSat, saturate<T>(__int128(a) + b))
ATTN_OP2(Sub, T(W(a) - W(b)))
ATTN_OP2(SubSat, saturate<T>(__int128(a) - b))
ATTN_OP2(MulLo, T(W(a) * W(b)))
ATTN_OP2(MulHi, mulHigh<T>(a, b))
ATTN_OP2(Div, divide<T>(a, b))
ATTN_OP2(Rem, remainder<T>(a, b))
ATTN_OP2(Min, (a < b ? a : b))
ATTN_OP2(Max, (a > b ? a : b))
ATTN_OP2(MinRelu, (a < b ? (a < 0 ? 0 : a) : (b < 0 ? 0 : b)))
ATTN_OP2(MaxRelu, (a > b ? (a < 0 ? 0 : a) : (b < 0 ? 0 : b)))
ATTN_OP2(And, T(a &b))
ATTN_OP2(Or, T(a | b))
ATTN_OP2(Xor, T(a ^ b))
ATTN_OP1(Not, T(~a))
ATTN_OP1(CNot, T(a == 0))
ATTN_OP1(Neg, T(W(0) - W(a)))
ATTN_OP1(Abs, (a < 0 ? T(W(0) - W(a)) : a))
ATTN_OP3(MadLo, T(W(a) * W(b) + W(c)))
ATTN_OP3(MadHi, T(W(mulHigh<T>(a, b)) + W(c)))
ATTN_OP3(MadHiSat, saturate<T>(__int128(mulHigh<T>(a, b)) + c))
ATTN_OP3(Sad, T(W(c) + (a < b ? W(b) - W(a) : W(a) - W(b))))

template <typename T>
struct Shl {
  static T f(T a, uint32_t b) {
    return b >= sizeof(T) * 8 ? T(0) : T(Wrap<T>(a) << b);
  }
};
template <typename T>
struct Shr {
  static T f(T a, uint32_t b) {
    constexpr uint32_t bits = sizeof(T) * 8;
    if (std::is_signed_v<T>)
      return T(a >> std::min(b, bits - 1));
    return b >= bits ? T(0) : T(a >> b);
  }
};

template <typename T>
using Wide = std::conditional_t<
    sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>,
    std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;
template <typename T>
struct MulWide {
  static Wide<T> f(T a, T b) {
    return Wide<T>(Wrap<Wide<T>>(Wide<T>(a)) * Wrap<Wide<T>>(Wide<T>(b)));
  }
};
template <typename T>
struct MadWide {
  static Wide<T> f(T a, T b, Wide<T> c) {
    return Wide<T>(Wrap<Wide<T>>(MulWide<T>::f(a, b)) + Wrap<Wide<T>>(c));
  }
};

template <template <typename> class Op>
ExecFn binary(Type t) {
  return pickInteger(t, [](auto z) -> ExecFn {
    using T = decltype(z);
    return exec2<T, T, T, Op<T>>;
  });
}
template <template <typename> class Op>
ExecFn unary(Type t) {
  return pickInteger(t, [](auto z) -> ExecFn {
    using T = decltype(z);
    return exec1<T, T, Op<T>>;
  });
}

/// Two 16-bit halves in a register: add/min/max.
template <typename T, template <typename> class Op>
struct Halves {
  static uint32_t f(uint32_t a, uint32_t b) {
    uint32_t lo = uint16_t(Op<T>::f(T(a), T(b)));
    uint32_t hi = uint16_t(Op<T>::f(T(a >> 16), T(b >> 16)));
    return lo | hi << 16;
  }
};
template <template <typename> class Op>
ExecFn halves(Type t) {
  if (t == Type::U16x2)
    return exec2<uint32_t, uint32_t, uint32_t, Halves<uint16_t, Op>>;
  return exec2<uint32_t, uint32_t, uint32_t, Halves<int16_t, Op>>;
}

bool isPackedHalf(Type t) { return t == Type::U16x2 || t == Type::S16x2; }

//===----------------------------------------------------------------------===//
// Carry chain: one condition-code bit a lane, kept in a hidden register.
//===----------------------------------------------------------------------===//

template <typename T>
void execCarry(Exec &x, const Inst &I) {
  // flags: 1 subtract, 2 carry in, 4 carry out, 8 multiply low, 16 high.
  using U = std::make_unsigned_t<T>;
  auto *d = lanesOf<T>(x, I.ops[0]);
  const auto *a = lanesOf<T>(x, I.ops[1]);
  const auto *b = lanesOf<T>(x, I.ops[2]);
  const Operand &cc = I.ops[3];
  const bool mad = I.flags & 24;
  const auto *c = mad ? lanesOf<T>(x, I.ops[4]) : nullptr;
  uint32_t carry = x.regs[cc.off];
  forLanes(x.active, [&](unsigned l) {
    unsigned __int128 av = U(a[l]), bv = U(b[l]);
    if (mad) {
      av = I.flags & 8 ? U(U(a[l]) * U(b[l])) : U(mulHigh<T>(a[l], b[l]));
      bv = U(c[l]);
    }
    uint32_t in = I.flags & 2 ? carry >> l & 1 : 0;
    unsigned __int128 r = I.flags & 1 ? av - bv - in : av + bv + in;
    d[l] = U(r);
    uint32_t out = uint32_t(r >> (sizeof(T) * 8)) & 1;
    if (I.flags & 4)
      carry = (carry & ~(1u << l)) | out << l;
  });
  x.regs[cc.off] = carry;
  x.propagate<2>(I);
}

Operand conditionCode(Decoding &c) {
  Scope *s = c.d.scope;
  while (s->parent && s->parent->parent)
    s = s->parent;
  auto it = s->entries.find("%cc");
  if (it == s->entries.end()) {
    Scope::Entry e;
    e.kind = Scope::Entry::Register;
    e.bits = 1;
    e.reg = c.d.newRegister(1);
    it = s->entries.try_emplace("%cc", e).first;
  }
  return it->second.reg;
}

Error carry(Decoding &c, Type t, uint32_t flags) {
  bool mad = flags & 24;
  ATTN_SIM_TRY(c.expectOps(mad ? 4 : 3, mad ? 4 : 3));
  for (unsigned i = 0; i < 3; ++i)
    ATTN_SIM_TRY(i ? c.src(c.ast.ops[i], t) : c.dst(c.ast.ops[i], t));
  c.ops.push_back(conditionCode(c));
  if (mad)
    ATTN_SIM_TRY(c.src(c.ast.ops[3], t));
  c.inst.flags = flags;
  ExecFn fn = t == Type::U32   ? execCarry<uint32_t>
              : t == Type::S32 ? execCarry<int32_t>
              : t == Type::U64 ? execCarry<uint64_t>
              : t == Type::S64 ? execCarry<int64_t>
                               : nullptr;
  if (!fn)
    return c.error("unknown type");
  return c.set(fn, InstClass::Alu);
}

} // namespace

namespace {

/// The qualifiers of an integer instruction.
struct IntegerAux {
  bool sat = false, relu = false, cc = false;
  bool lo = false, hi = false, wide = false;
  Type type = Type::None;
};

/// add, sub, min, max.
Error decodeSum(Decoding &c, const IntegerAux &o) {
  StringRef base = c.ast.base;
  Type t = o.type;
  ExecFn fn;
  if (isPackedHalf(t))
    fn = base == "add"   ? halves<Add>(t)
         : base == "sub" ? halves<Sub>(t)
         : base == "min" ? (o.relu ? halves<MinRelu>(t) : halves<Min>(t))
                         : (o.relu ? halves<MaxRelu>(t) : halves<Max>(t));
  else
    fn = base == "add"   ? (o.sat ? binary<AddSat>(t) : binary<Add>(t))
         : base == "sub" ? (o.sat ? binary<SubSat>(t) : binary<Sub>(t))
         : base == "min" ? (o.relu ? binary<MinRelu>(t) : binary<Min>(t))
                         : (o.relu ? binary<MaxRelu>(t) : binary<Max>(t));
  return decodeSame(c, fn, t, 2, InstClass::Alu);
}

/// mul.wide and mad.wide: the product has twice the width of its factors.
Error decodeWide(Decoding &c, Type from, bool isMad) {
  ExecFn mul = nullptr, mad = nullptr;
  Type to = Type::None;
  switch (from) {
  case Type::U16:
    mul = exec2<uint32_t, uint16_t, uint16_t, MulWide<uint16_t>>;
    mad = exec3<uint32_t, uint16_t, uint16_t, uint32_t, MadWide<uint16_t>>;
    to = Type::U32;
    break;
  case Type::S16:
    mul = exec2<int32_t, int16_t, int16_t, MulWide<int16_t>>;
    mad = exec3<int32_t, int16_t, int16_t, int32_t, MadWide<int16_t>>;
    to = Type::S32;
    break;
  case Type::U32:
    mul = exec2<uint64_t, uint32_t, uint32_t, MulWide<uint32_t>>;
    mad = exec3<uint64_t, uint32_t, uint32_t, uint64_t, MadWide<uint32_t>>;
    to = Type::U64;
    break;
  case Type::S32:
    mul = exec2<int64_t, int32_t, int32_t, MulWide<int32_t>>;
    mad = exec3<int64_t, int32_t, int32_t, int64_t, MadWide<int32_t>>;
    to = Type::S64;
    break;
  default:
    return c.error("unknown type");
  }
  ATTN_SIM_TRY(c.expectOps(3 + isMad, 3 + isMad));
  ATTN_SIM_TRY(c.dst(c.ast.ops[0], to));
  ATTN_SIM_TRY(c.src(c.ast.ops[1], from));
  ATTN_SIM_TRY(c.src(c.ast.ops[2], from));
  if (isMad)
    ATTN_SIM_TRY(c.src(c.ast.ops[3], to));
  return c.set(isMad ? mad : mul, InstClass::Imad);
}

Error decodeProduct(Decoding &c, const IntegerAux &o) {
  bool isMad = c.ast.base == "mad";
  Type t = o.type;
  if (o.wide)
    return decodeWide(c, t, isMad);
  if (o.lo == o.hi)
    return c.error("expected '.lo', '.hi' or '.wide'");
  if (!isMad)
    return decodeSame(c, o.lo ? binary<MulLo>(t) : binary<MulHi>(t), t, 2,
                      InstClass::Imad);
  ExecFn fn = pickInteger(t, [&](auto z) -> ExecFn {
    using T = decltype(z);
    return o.lo    ? exec3<T, T, T, T, MadLo<T>>
           : o.sat ? exec3<T, T, T, T, MadHiSat<T>>
                   : exec3<T, T, T, T, MadHi<T>>;
  });
  return decodeSame(c, fn, t, 3, InstClass::Imad);
}

Error decodeSad(Decoding &c, Type t) {
  ExecFn fn = pickInteger(t, [](auto z) -> ExecFn {
    using T = decltype(z);
    return exec3<T, T, T, T, Sad<T>>;
  });
  return decodeSame(c, fn, t, 3, InstClass::Alu);
}

Error decodeArithmetic(Decoding &c) {
  if (isFloatInstruction(c))
    return decodeFloatArithmetic(c);
  StringRef base = c.ast.base;
  IntegerAux o;
  o.sat = c.take("sat");
  o.relu = c.take("relu");
  o.cc = c.take("cc");
  o.lo = c.take("lo");
  o.hi = c.take("hi");
  o.wide = c.take("wide");
  o.type = c.takeType();
  bool canSaturate = o.type == Type::S32 && (base == "add" || base == "sub" ||
                                             (base == "mad" && o.hi));
  if (o.sat && !canSaturate)
    return c.error("expected '.sat' with s32 add, sub or mad.hi only");
  if (o.relu && base != "min" && base != "max")
    return c.error("expected '.relu' with min and max only");
  if (o.cc || base == "addc" || base == "subc" || base == "madc") {
    uint32_t flags = (base.starts_with("sub") ? 1 : 0) |
                     (base.ends_with("c") ? 2 : 0) | (o.cc ? 4 : 0) |
                     (base.starts_with("mad") ? (o.hi ? 16 : 8) : 0);
    return carry(c, o.type, flags);
  }
  if (base == "add" || base == "sub" || base == "min" || base == "max")
    return decodeSum(c, o);
  if (base == "mul" || base == "mad")
    return decodeProduct(c, o);
  if (base == "div")
    return decodeSame(c, binary<Div>(o.type), o.type, 2, InstClass::Alu);
  if (base == "rem")
    return decodeSame(c, binary<Rem>(o.type), o.type, 2, InstClass::Alu);
  if (base == "neg")
    return decodeSame(c, unary<Neg>(o.type), o.type, 1, InstClass::Alu);
  if (base == "abs")
    return decodeSame(c, unary<Abs>(o.type), o.type, 1, InstClass::Alu);
  if (base == "sad")
    return decodeSad(c, o.type);
  return c.error("unknown instruction");
}

} // namespace

/// Half of the 48-bit product of the low 24 bits: bits 0 to 31 or 16 to 47.
template <typename T, bool High>
struct Mul24 {
  static T f(T a, T b) {
    auto low24 = [](T v) { return int64_t(T(uint32_t(v) << 8)) >> 8; };
    int64_t product = low24(a) * low24(b);
    return T(High ? product >> 16 : product);
  }
};
template <typename T, bool High, bool Sat>
struct Mad24 {
  static T f(T a, T b, T c) {
    T product = Mul24<T, High>::f(a, b);
    return Sat ? saturate<T>(__int128(product) + c)
               : T(Wrap<T>(product) + Wrap<T>(c));
  }
};

template <typename T>
static ExecFn pickMul24(bool mad, bool high, bool sat) {
  if (!mad)
    return high ? exec2<T, T, T, Mul24<T, true>>
                : exec2<T, T, T, Mul24<T, false>>;
  if (sat)
    return exec3<T, T, T, T, Mad24<T, true, true>>;
  return high ? exec3<T, T, T, T, Mad24<T, true, false>>
              : exec3<T, T, T, T, Mad24<T, false, false>>;
}

static Error decodeMul24(Decoding &c) {
  bool mad = c.ast.base == "mad24";
  bool lo = c.take("lo"), hi = c.take("hi"), sat = c.take("sat");
  Type t = c.takeType();
  if (lo == hi)
    return c.error("expected '.lo' or '.hi'");
  if (t != Type::U32 && t != Type::S32)
    return c.error("unknown type");
  if (sat && (!mad || !hi || t != Type::S32))
    return c.error("expected '.sat' with mad24.hi.s32 only");
  ExecFn fn = t == Type::U32 ? pickMul24<uint32_t>(mad, hi, sat)
                             : pickMul24<int32_t>(mad, hi, sat);
  return decodeSame(c, fn, t, mad ? 3 : 2, InstClass::Imad);
}

/// and/or/xor/not on predicates: masks of lanes.
static void execPredLogic(Exec &x, const Inst &I) {
  uint32_t a = x.pred(I.ops[1]);
  uint32_t r;
  if (I.flags == 3) {
    r = ~a;
  } else {
    uint32_t b = x.pred(I.ops[2]);
    r = I.flags == 0 ? a & b : I.flags == 1 ? a | b : a ^ b;
    // A defined operand that decides the result makes it defined.
    uint32_t pa = x.poison[I.ops[1].meta], pb = x.poison[I.ops[2].meta];
    if (I.flags != 2 && (pa | pb) & x.active) {
      uint32_t decided =
          I.flags == 0 ? (~pa & ~a) | (~pb & ~b) : (~pa & a) | (~pb & b);
      x.setPred(I.ops[0], r);
      uint32_t p = (pa | pb) & ~decided & x.active;
      x.setPoison(I.ops[0], p,
                  x.origin[pa & x.active ? I.ops[1].meta : I.ops[2].meta]);
      return;
    }
  }
  x.setPred(I.ops[0], r);
  if (I.flags == 3)
    x.propagate<1>(I);
  else
    x.propagate<2>(I);
}

static Error decodeLogic(Decoding &c) {
  StringRef base = c.ast.base;
  Type t = c.takeType();
  bool isNot = base == "not";
  if (t == Type::Pred) {
    c.inst.flags = base == "and" ? 0 : base == "or" ? 1 : isNot ? 3 : 2;
    ATTN_SIM_TRY(c.expectOps(isNot ? 2 : 3, isNot ? 2 : 3));
    ATTN_SIM_TRY(c.dstPred(c.ast.ops[0]));
    for (unsigned i = 1; i < c.numOps(); ++i)
      ATTN_SIM_TRY(c.srcPred(c.ast.ops[i]));
    return c.set(execPredLogic, InstClass::Alu);
  }
  if (base == "cnot")
    return decodeSame(c, unary<CNot>(t), t, 1, InstClass::Alu);
  if (isNot)
    return decodeSame(c, unary<Not>(t), t, 1, InstClass::Alu);
  ExecFn fn = base == "and"  ? binary<And>(t)
              : base == "or" ? binary<Or>(t)
                             : binary<Xor>(t);
  return decodeSame(c, fn, t, 2, InstClass::Alu);
}

static Error decodeShift(Decoding &c) {
  Type t = c.takeType();
  bool left = c.ast.base == "shl";
  ExecFn fn = pickInteger(t, [&](auto z) -> ExecFn {
    using T = decltype(z);
    return left ? exec2<T, T, uint32_t, Shl<T>> : exec2<T, T, uint32_t, Shr<T>>;
  });
  if (!fn)
    return c.error("unknown type");
  ATTN_SIM_TRY(c.expectOps(3, 3));
  ATTN_SIM_TRY(c.dst(c.ast.ops[0], t));
  ATTN_SIM_TRY(c.src(c.ast.ops[1], t));
  ATTN_SIM_TRY(c.src(c.ast.ops[2], Type::U32));
  return c.set(fn, InstClass::Alu);
}

void mlir::attn::sim::registerIntegerOps(DecodeTable &table) {
  for (StringRef name : {"add", "sub", "mul", "mad", "div", "rem", "min", "max",
                         "neg", "abs", "sad", "addc", "subc", "madc"})
    table[name] = decodeArithmetic;
  table["mul24"] = table["mad24"] = decodeMul24;
  for (StringRef name : {"and", "or", "xor", "not", "cnot"})
    table[name] = decodeLogic;
  table["shl"] = table["shr"] = decodeShift;
}
