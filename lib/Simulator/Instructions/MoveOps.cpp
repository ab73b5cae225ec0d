//===- MoveOps.cpp - Moves, selections, address casts ---------------------===//

#include "../Sanitizer/PartPoison.h"
#include "Alu.h"
#include "SyncInstructions.h"
#include <chrono>

using namespace mlir::attn::sim;
using llvm::Error;
using llvm::StringRef;

namespace {

template <typename T>
struct Copy {
  static T f(T a) { return a; }
};

void execMovPred(Exec &x, const Inst &I) {
  x.setPred(I.ops[0], x.pred(I.ops[1]));
  x.propagate<1>(I);
}

void execMov128(Exec &x, const Inst &I) {
  forLanes(x.active, [&](unsigned l) {
    for (unsigned i = 0; i < 4; ++i)
      x.regs[I.ops[0].off + 4 * l + i] = x.regs[I.ops[1].off + 4 * l + i];
  });
  x.propagate<1>(I);
}

/// Reads `words` 32-bit pieces of a register as one little-endian value.
void readBits(Exec &x, const Operand &o, unsigned lane, uint32_t *out) {
  switch (o.cls) {
  case RegClass::R32:
    out[0] = x.r32(o)[lane];
    break;
  case RegClass::R64:
    out[0] = uint32_t(x.r64(o)[lane]);
    out[1] = uint32_t(x.r64(o)[lane] >> 32);
    break;
  case RegClass::R128:
    for (unsigned i = 0; i < 4; ++i)
      out[i] = x.regs[o.off + 4 * lane + i];
    break;
  default:
    break;
  }
}
void writeBits(Exec &x, const Operand &o, unsigned lane, const uint32_t *in) {
  switch (o.cls) {
  case RegClass::R32:
    x.r32(o)[lane] = in[0];
    break;
  case RegClass::R64:
    x.r64(o)[lane] = in[0] | uint64_t(in[1]) << 32;
    break;
  case RegClass::R128:
    for (unsigned i = 0; i < 4; ++i)
      x.regs[o.off + 4 * lane + i] = in[i];
    break;
  default:
    break;
  }
}

/// A move reads a register that a wgmma in flight accumulates into: under
/// assumption A11 the products up to it end now.
void takeInFlight(Exec &x, uint32_t meta) {
  if (!x.machine.config.assumes(Assumption::MovedResult))
    return;
  auto &products = x.warp->wgmma.products;
  size_t last = products.size();
  for (size_t i = 0; i < products.size(); ++i)
    if (products[i]->writes(meta))
      last = i;
  if (last == products.size())
    return;
  for (size_t i = 0; i <= last && x.action != Action::Fault; ++i)
    products[i]->finish(x);
}

/// The result of a wgmma, moved before the wait for it.
void settle(Exec &x, const Operand &s) {
  if ((x.poison[s.meta] & x.active) && (x.origin[s.meta] & InFlightOrigin))
    takeInFlight(x, s.meta);
}

void execMov32(Exec &x, const Inst &I) {
  settle(x, I.ops[1]);
  exec1<uint32_t, uint32_t, Copy<uint32_t>>(x, I);
}

/// mov.bN d, {a, b, …}: imm is the width of an element.
void execPack(Exec &x, const Inst &I) {
  unsigned bits = I.imm, n = I.numOps - 1;
  for (unsigned i = 1; i <= n; ++i)
    settle(x, I.ops[i]);
  forLanes(x.active, [&](unsigned l) {
    uint32_t out[4] = {};
    for (unsigned i = 0; i < n; ++i) {
      uint64_t v = x.read(I.ops[i + 1], l);
      if (bits < 64)
        v &= (uint64_t(1) << bits) - 1;
      unsigned at = i * bits;
      out[at / 32] |= uint32_t(v << (at % 32));
      if (bits == 64)
        out[at / 32 + 1] |= uint32_t(v >> 32);
    }
    writeBits(x, I.ops[0], l, out);
  });
  uint32_t from = 0;
  PartPoison parts = {};
  for (unsigned i = 0; i < n; ++i)
    if (uint32_t q = x.poisonOf(I.ops[i + 1])) {
      if (!from)
        from = x.origin[I.ops[i + 1].meta];
      unsigned first = i * 4 / n, last = std::max(first + 1, (i + 1) * 4 / n);
      for (unsigned part = first; part < last; ++part)
        parts[part] |= q;
    }
  setParts(x, I.ops[0], parts, from);
}

/// mov.bN {a, b, …}, s: the source is the last operand.
void execUnpack(Exec &x, const Inst &I) {
  unsigned bits = I.imm, n = I.numOps - 1;
  const Operand &s = I.ops[n];
  settle(x, s);
  uint32_t from = x.origin[s.meta];
  PartPoison parts = partsOf(x, s);
  forLanes(x.active, [&](unsigned l) {
    uint32_t in[4] = {};
    readBits(x, s, l, in);
    for (unsigned i = 0; i < n; ++i) {
      unsigned at = i * bits;
      uint64_t v = in[at / 32] >> (at % 32);
      if (bits < 32)
        v &= (1u << bits) - 1;
      if (bits == 64)
        v |= uint64_t(in[at / 32 + 1]) << 32;
      x.write(I.ops[i], l, v);
    }
  });
  // What was packed apart comes apart again.
  for (unsigned i = 0; i < n; ++i) {
    uint32_t p = 0;
    unsigned first = i * 4 / n, last = std::max(first + 1, (i + 1) * 4 / n);
    for (unsigned part = first; part < last; ++part)
      p |= parts[part];
    x.setPoison(I.ops[i], p, from);
  }
}

/// A special register that is a predicate.
void execMovFlag(Exec &x, const Inst &I) {
  uint32_t set = 0;
  forLanes(x.active,
           [&](unsigned l) { set |= uint32_t(x.r32(I.ops[1])[l] != 0) << l; });
  x.setPred(I.ops[0], set);
  x.setPoison(I.ops[0], 0);
}

/// Registers that change while a warp runs.
void execClock(Exec &x, const Inst &I) {
  uint64_t v = x.cluster.steps * 8;
  if (I.imm == 1)
    v >>= 32;
  else if (I.imm >= 2)
    v = 1000000000ull + x.cluster.steps * 4;
  if (I.imm == 3)
    v >>= 32;
  forLanes(x.active, [&](unsigned l) { x.write(I.ops[0], l, v); });
  x.setPoison(I.ops[0], 0);
}

Error decodeMov(Decoding &c) {
  Type t = c.takeType();
  if (t == Type::None)
    return c.error("expected a type");
  ATTN_SIM_TRY(c.expectOps(2, 2));
  const AstOperand &d = c.ast.ops[0], &s = c.ast.ops[1];
  if (t == Type::Pred) {
    ATTN_SIM_TRY(c.dstPred(d));
    if (s.kind == AstOperand::Name && s.name == "%is_explicit_cluster") {
      ATTN_SIM_TRY(c.src(s, Type::B32));
      return c.set(execMovFlag, InstClass::Move);
    }
    ATTN_SIM_TRY(c.srcPred(s));
    return c.set(execMovPred, InstClass::Move);
  }
  if (d.kind == AstOperand::Vector || s.kind == AstOperand::Vector) {
    bool pack = s.kind == AstOperand::Vector;
    const AstOperand &v = pack ? s : d;
    unsigned n = v.elems.size();
    if (!n || bitWidth(t) % n || bitWidth(t) / n < 8)
      return c.error("expected elements that fill the register");
    unsigned bits = bitWidth(t) / n;
    Type elem = bits == 8    ? Type::B8
                : bits == 16 ? Type::B16
                : bits == 32 ? Type::B32
                             : Type::B64;
    c.inst.imm = bits;
    if (pack) {
      ATTN_SIM_TRY(c.dst(d, t));
      for (const AstOperand &e : v.elems)
        ATTN_SIM_TRY(c.src(e, elem));
      return c.set(execPack, InstClass::Move);
    }
    for (const AstOperand &e : v.elems)
      ATTN_SIM_TRY(c.dst(e, elem));
    ATTN_SIM_TRY(c.src(s, t));
    return c.set(execUnpack, InstClass::Move);
  }
  ATTN_SIM_TRY(c.dst(d, t));
  if (s.kind == AstOperand::Name) {
    int which = llvm::StringSwitch<int>(s.name)
                    .Cases({"%clock", "%clock64"}, 0)
                    .Case("%clock_hi", 1)
                    .Cases({"%globaltimer", "%globaltimer_lo"}, 2)
                    .Case("%globaltimer_hi", 3)
                    .Default(-1);
    if (which >= 0) {
      c.inst.imm = which;
      return c.set(execClock, InstClass::Move);
    }
    // mov.u32 %r, %tid.x may also name a 16-bit destination.
  }
  ATTN_SIM_TRY(c.src(s, t));
  switch (bitWidth(t)) {
  case 16:
  case 32:
    return c.set(execMov32, InstClass::Move);
  case 64:
    return c.set(exec1<uint64_t, uint64_t, Copy<uint64_t>>, InstClass::Move);
  case 128:
    return c.set(execMov128, InstClass::Move);
  default:
    return c.error("unknown type");
  }
}

//===----------------------------------------------------------------------===//
// Selections
//===----------------------------------------------------------------------===//

template <typename T>
void execSelp(Exec &x, const Inst &I) {
  T *d = reinterpret_cast<T *>(x.regs + I.ops[0].off);
  const T *a = reinterpret_cast<const T *>(x.regs + I.ops[1].off);
  const T *b = reinterpret_cast<const T *>(x.regs + I.ops[2].off);
  uint32_t p = x.pred(I.ops[3]);
  uint32_t mask = x.active;
  if (mask == ~0u)
    for (unsigned l = 0; l < 32; ++l)
      d[l] = p >> l & 1 ? a[l] : b[l];
  else
    forLanes(mask, [&](unsigned l) { d[l] = p >> l & 1 ? a[l] : b[l]; });
  // Only the chosen operand matters.
  uint32_t pa = x.poison[I.ops[1].meta] & p, pb = x.poison[I.ops[2].meta] & ~p;
  uint32_t all = (pa | pb | x.poison[I.ops[3].meta]) & mask;
  x.setPoison(I.ops[0], all,
              all ? x.origin[I.ops[pa & mask   ? 1
                                   : pb & mask ? 2
                                               : 3]
                                 .meta]
                  : 0);
}

Error decodeSelp(Decoding &c) {
  Type t = c.takeType();
  ATTN_SIM_TRY(c.expectOps(4, 4));
  ATTN_SIM_TRY(c.dst(c.ast.ops[0], t));
  ATTN_SIM_TRY(c.src(c.ast.ops[1], t));
  ATTN_SIM_TRY(c.src(c.ast.ops[2], t));
  ATTN_SIM_TRY(c.srcPred(c.ast.ops[3]));
  if (bitWidth(t) != 16 && bitWidth(t) != 32 && bitWidth(t) != 64)
    return c.error("unknown type");
  return c.set(bitWidth(t) == 64 ? execSelp<uint64_t> : execSelp<uint32_t>,
               InstClass::Alu);
}

void execSlct(Exec &x, const Inst &I) {
  forLanes(x.active, [&](unsigned l) {
    // flags: 1 a float, 2 with subnormals as zeros. NaN is not at least 0.
    uint32_t s = x.r32(I.ops[3])[l];
    float value = bitCast<float>(s);
    bool first =
        I.flags ? (I.flags & 2 ? flush(value) : value) >= 0 : int32_t(s) >= 0;
    x.write(I.ops[0], l, x.read(I.ops[first ? 1 : 2], l));
  });
  x.propagate<3>(I);
}

Error decodeSlct(Decoding &c) {
  bool isFlushed = c.take("ftz");
  Type t = c.takeType(), s = c.takeType();
  if (isFlushed && s != Type::F32)
    return c.error("expected '.ftz' with a float");
  ATTN_SIM_TRY(c.expectOps(4, 4));
  ATTN_SIM_TRY(c.dst(c.ast.ops[0], t));
  ATTN_SIM_TRY(c.src(c.ast.ops[1], t));
  ATTN_SIM_TRY(c.src(c.ast.ops[2], t));
  ATTN_SIM_TRY(c.src(c.ast.ops[3], s));
  c.inst.flags = (s == Type::F32) | unsigned(isFlushed) << 1;
  return c.set(execSlct, InstClass::Alu);
}

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

/// flags: 0 to generic, 1 from generic; imm2 is the window.
void execCvta(Exec &x, const Inst &I) {
  bool to = I.flags;
  forLanes(x.active, [&](unsigned l) {
    uint64_t v = x.read(I.ops[1], l);
    if (!to)
      v = I.imm2 ? (v & 0xffffffff) + I.imm2 : v;
    else
      v = I.imm2 ? v - I.imm2 : v;
    x.write(I.ops[0], l, v);
  });
  x.propagate<1>(I);
}

Error decodeCvta(Decoding &c) {
  bool to = c.take("to");
  StringRef space =
      c.takeAny({"shared", "shared::cta", "shared::cluster", "global", "local",
                 "const", "param", "param::entry"});
  if (space.empty())
    return c.error("expected a state space");
  Type t = c.takeType();
  ATTN_SIM_TRY(c.expectOps(2, 2));
  ATTN_SIM_TRY(c.dst(c.ast.ops[0], t));
  int64_t displacement = 0;
  const AstOperand &s = c.ast.ops[1];
  ATTN_SIM_TRY(c.src(s, t));
  (void)displacement;
  c.inst.flags = to;
  c.inst.imm2 = space.starts_with("shared")  ? SharedWindow
                : space == "local"           ? LocalWindow
                : space.starts_with("param") ? ParamWindow
                                             : 0;
  return c.set(execCvta, InstClass::Move);
}

void execIsSpace(Exec &x, const Inst &I) {
  uint32_t r = 0;
  forLanes(x.active, [&](unsigned l) {
    uint64_t v = x.read(I.ops[1], l);
    bool shared = v >= SharedWindow && v < SharedWindow + WindowSize;
    bool local = v >= LocalWindow && v < LocalWindow + WindowSize;
    bool param = v >= ParamWindow && v < ParamWindow + WindowSize;
    bool is = false;
    switch (I.flags) {
    case 0:
      is = shared && (v >> 24 & 0xff) == x.cta->rank;
      break;
    case 1:
      is = shared;
      break;
    case 2:
      is = local;
      break;
    case 3:
      is = !shared && !local && !param;
      break;
    case 4:
      is = param;
      break;
    }
    r |= uint32_t(is) << l;
  });
  x.setPred(I.ops[0], r);
  x.propagate<1>(I);
}

Error decodeIsSpace(Decoding &c) {
  StringRef space =
      c.takeAny({"shared", "shared::cta", "shared::cluster", "global", "local",
                 "const", "param", "param::entry"});
  c.inst.flags = llvm::StringSwitch<unsigned>(space)
                     .Cases({"shared", "shared::cta"}, 0)
                     .Case("shared::cluster", 1)
                     .Case("local", 2)
                     .Case("global", 3)
                     .Cases({"param", "param::entry"}, 4)
                     .Default(5);
  ATTN_SIM_TRY(c.expectOps(2, 2));
  ATTN_SIM_TRY(c.dstPred(c.ast.ops[0]));
  ATTN_SIM_TRY(c.srcWide(c.ast.ops[1], Type::B32));
  return c.set(execIsSpace, InstClass::Compare);
}

void execMapa(Exec &x, const Inst &I) {
  forLanes(x.active, [&](unsigned l) {
    uint64_t v = x.read(I.ops[1], l);
    uint64_t rank = x.r32(I.ops[2])[l];
    x.write(I.ops[0], l, (v & ~uint64_t(0xff000000)) | rank << 24);
  });
  x.propagate<2>(I);
}

Error decodeMapa(Decoding &c) {
  c.take("shared::cluster");
  Type t = c.takeType();
  ATTN_SIM_TRY(c.expectOps(3, 3));
  ATTN_SIM_TRY(c.dst(c.ast.ops[0], t));
  ATTN_SIM_TRY(c.src(c.ast.ops[1], t));
  ATTN_SIM_TRY(c.src(c.ast.ops[2], Type::U32));
  return c.set(execMapa, InstClass::Move);
}

void execGetRank(Exec &x, const Inst &I) {
  forLanes(x.active, [&](unsigned l) {
    x.r32(I.ops[0])[l] = x.read(I.ops[1], l) >> 24 & 0xff;
  });
  x.propagate<1>(I);
}

Error decodeGetRank(Decoding &c) {
  c.take("shared::cluster");
  Type t = c.takeType();
  ATTN_SIM_TRY(c.expectOps(2, 2));
  ATTN_SIM_TRY(c.dst(c.ast.ops[0], Type::U32));
  ATTN_SIM_TRY(c.src(c.ast.ops[1], t));
  return c.set(execGetRank, InstClass::Move);
}

} // namespace

void mlir::attn::sim::registerMoveOps(DecodeTable &table) {
  table["mov"] = decodeMov;
  table["selp"] = decodeSelp;
  table["slct"] = decodeSlct;
  table["cvta"] = decodeCvta;
  table["isspacep"] = decodeIsSpace;
  table["mapa"] = decodeMapa;
  table["getctarank"] = decodeGetRank;
}
