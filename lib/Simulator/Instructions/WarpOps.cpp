//===- WarpOps.cpp - Shuffles, votes, reductions within a warp ------------===//

#include "../Numerics/FloatFormat.h"
#include "../PTX/Decoder.h"
#include "SyncInstructions.h"
#include "WarpSync.h"

using namespace mlir::attn::sim;
using llvm::Error;
using llvm::StringRef;

namespace {

enum { ShflUp, ShflDown, ShflBfly, ShflIdx };

void shuffle(Exec &x, const Inst &I) {
  // ops: d, p, a, b, c, mask.
  uint32_t in[32], out[32], predicate = 0, poisoned = 0, absent = 0;
  const uint32_t *a = x.r32(I.ops[2]), *b = x.r32(I.ops[3]),
                 *c = x.r32(I.ops[4]);
  std::memcpy(in, a, sizeof(in));
  uint32_t sourcePoison = x.poison[I.ops[2].meta];
  forLanes(x.active, [&](unsigned lane) {
    unsigned segment = c[lane] >> 8 & 31, clampTo = c[lane] & 31;
    unsigned shift = b[lane] & 31;
    int maxLane = (lane & segment) | (clampTo & ~segment);
    int minLane = lane & segment;
    int j = 0;
    bool p = false;
    switch (I.flags) {
    case ShflUp:
      j = int(lane) - int(shift);
      p = j >= maxLane;
      break;
    case ShflDown:
      j = lane + shift;
      p = j <= maxLane;
      break;
    case ShflBfly:
      j = lane ^ shift;
      p = j <= maxLane;
      break;
    case ShflIdx:
      j = minLane | (shift & ~segment);
      p = j <= maxLane;
      break;
    }
    if (!p)
      j = lane;
    j &= 31;
    out[lane] = in[j];
    if (!(x.active >> j & 1))
      absent |= 1u << lane;
    if (!(x.active >> j & 1) || sourcePoison >> j & 1)
      poisoned |= 1u << lane;
    predicate |= uint32_t(p) << lane;
  });
  if (absent && x.sanitizing())
    x.report(FindingKind::InvalidOperation, Severity::Note,
             "takes the value of a lane that does not execute the shuffle: it "
             "is undefined",
             llvm::countr_zero(absent),
             "the member mask has to hold the lanes that values come from, and "
             "they have to be live");
  uint32_t *d = x.r32(I.ops[0]);
  forLanes(x.active, [&](unsigned lane) { d[lane] = out[lane]; });
  x.setPoison(I.ops[0], poisoned, x.origin[I.ops[2].meta]);
  if (I.ops[1].cls == RegClass::Pred) {
    x.setPred(I.ops[1], predicate);
    x.setPoison(I.ops[1], 0);
  }
}

void execShfl(Exec &x, const Inst &I) {
  forEachGroup(x, I.ops[5], [&](uint32_t) { shuffle(x, I); });
}

Error decodeShfl(Decoding &c) {
  if (!c.take("sync"))
    return c.error("expected '.sync'");
  StringRef mode = c.takeAny({"up", "down", "bfly", "idx"});
  c.inst.flags = llvm::StringSwitch<unsigned>(mode)
                     .Case("up", ShflUp)
                     .Case("down", ShflDown)
                     .Case("bfly", ShflBfly)
                     .Default(ShflIdx);
  if (mode.empty() || c.takeType() != Type::B32)
    return c.error("expected a mode and '.b32'");
  ATTN_SIM_TRY(c.expectOps(5, 5));
  const AstOperand &d = c.ast.ops[0];
  if (d.kind == AstOperand::Pair) {
    ATTN_SIM_TRY(c.dst(d.elems[0], Type::B32));
    ATTN_SIM_TRY(c.dstPred(d.elems[1]));
  } else {
    ATTN_SIM_TRY(c.dst(d, Type::B32));
    c.none();
  }
  for (unsigned i = 1; i < 5; ++i)
    ATTN_SIM_TRY(c.src(c.ast.ops[i], Type::B32));
  return c.set(execShfl, InstClass::Shuffle);
}

enum { VoteAll, VoteAny, VoteUni, VoteBallot };

void vote(Exec &x, const Inst &I) {
  uint32_t p = x.pred(I.ops[1]) & x.active;
  uint32_t poisoned = x.poisonOf(I.ops[1]) ? x.active : 0;
  uint32_t from = x.origin[I.ops[1].meta];
  if (I.flags == VoteBallot) {
    uint32_t *d = x.r32(I.ops[0]);
    forLanes(x.active, [&](unsigned lane) { d[lane] = p; });
  } else {
    bool all = p == x.active, any = p != 0;
    bool r = I.flags == VoteAll ? all : I.flags == VoteAny ? any : all || !any;
    x.setPred(I.ops[0], r ? ~0u : 0);
  }
  x.setPoison(I.ops[0], poisoned, from);
}

void execVote(Exec &x, const Inst &I) {
  forEachGroup(x, I.ops[2], [&](uint32_t) { vote(x, I); });
}

Error decodeVote(Decoding &c) {
  if (!c.take("sync"))
    return c.error("expected '.sync'");
  StringRef mode = c.takeAny({"all", "any", "uni", "ballot"});
  if (mode.empty())
    return c.error("expected a mode");
  c.inst.flags = llvm::StringSwitch<unsigned>(mode)
                     .Case("all", VoteAll)
                     .Case("any", VoteAny)
                     .Case("uni", VoteUni)
                     .Default(VoteBallot);
  Type t = c.takeType();
  ATTN_SIM_TRY(c.expectOps(3, 3));
  ATTN_SIM_TRY(c.dst(c.ast.ops[0], t));
  ATTN_SIM_TRY(c.srcPred(c.ast.ops[1]));
  ATTN_SIM_TRY(c.src(c.ast.ops[2], Type::B32));
  return c.set(execVote, InstClass::Vote);
}

void match(Exec &x, const Inst &I, uint32_t members) {
  // ops: d, p, a, mask.
  uint64_t first = x.read(I.ops[2], llvm::countr_zero(x.active));
  bool all = true;
  std::array<uint32_t, 32> masks{};
  forLanes(x.active, [&](unsigned lane) {
    uint64_t v = x.read(I.ops[2], lane);
    all &= v == first;
    forLanes(x.active, [&](unsigned other) {
      if (x.read(I.ops[2], other) == v)
        masks[lane] |= 1u << other;
    });
  });
  forLanes(x.active, [&](unsigned lane) {
    x.r32(I.ops[0])[lane] = I.flags ? (all ? members : 0) : masks[lane];
  });
  x.setPoison(I.ops[0], x.poisonOf(I.ops[2]), x.origin[I.ops[2].meta]);
  if (I.ops[1].cls == RegClass::Pred) {
    x.setPred(I.ops[1], all ? ~0u : 0);
    x.setPoison(I.ops[1], 0);
  }
}

void execMatch(Exec &x, const Inst &I) {
  forEachGroup(x, I.ops[3], [&](uint32_t members) { match(x, I, members); });
}

Error decodeMatch(Decoding &c) {
  c.take("sync");
  c.inst.flags = c.take("all");
  if (!c.inst.flags && !c.take("any"))
    return c.error("expected '.any' or '.all'");
  Type t = c.takeType();
  ATTN_SIM_TRY(c.expectOps(3, 3));
  const AstOperand &d = c.ast.ops[0];
  if (d.kind == AstOperand::Pair) {
    ATTN_SIM_TRY(c.dst(d.elems[0], Type::B32));
    ATTN_SIM_TRY(c.dstPred(d.elems[1]));
  } else {
    ATTN_SIM_TRY(c.dst(d, Type::B32));
    c.none();
  }
  ATTN_SIM_TRY(c.src(c.ast.ops[1], t));
  ATTN_SIM_TRY(c.src(c.ast.ops[2], Type::B32));
  return c.set(execMatch, InstClass::Vote);
}

void execActiveMask(Exec &x, const Inst &I) {
  forLanes(x.active, [&](unsigned lane) { x.r32(I.ops[0])[lane] = x.active; });
  x.setPoison(I.ops[0], 0);
}

Error decodeActiveMask(Decoding &c) {
  c.takeType();
  ATTN_SIM_TRY(c.expectOps(1, 1));
  ATTN_SIM_TRY(c.dst(c.ast.ops[0], Type::B32));
  return c.set(execActiveMask, InstClass::Vote);
}

enum { ReduxAdd, ReduxMin, ReduxMax, ReduxAnd, ReduxOr, ReduxXor };

void reduce(Exec &x, const Inst &I) {
  // flags: operation, 16 signed, 32 float, 64 abs, 128 NaN.
  const uint32_t *a = x.r32(I.ops[1]);
  unsigned op = I.flags & 15;
  bool first = true;
  uint32_t r = 0;
  bool sawNaN = false;
  forLanes(x.active, [&](unsigned lane) {
    uint32_t v = a[lane];
    if (I.flags & 64)
      v &= 0x7fffffff;
    if (I.flags & 32) {
      float f = bitCast<float>(v);
      if (f != f) {
        sawNaN = true;
        return;
      }
      if (first) {
        r = v;
      } else {
        float g = bitCast<float>(r);
        bool less = f < g || (f == g && (v >> 31) > (r >> 31));
        if (op == ReduxMin ? less : !less)
          r = v;
      }
      first = false;
      return;
    }
    if (first) {
      r = v;
      first = false;
      return;
    }
    switch (op) {
    case ReduxAdd:
      r += v;
      break;
    case ReduxMin:
      r = I.flags & 16 ? uint32_t(std::min(int32_t(r), int32_t(v)))
                       : std::min(r, v);
      break;
    case ReduxMax:
      r = I.flags & 16 ? uint32_t(std::max(int32_t(r), int32_t(v)))
                       : std::max(r, v);
      break;
    case ReduxAnd:
      r &= v;
      break;
    case ReduxOr:
      r |= v;
      break;
    default:
      r ^= v;
      break;
    }
  });
  if ((I.flags & 32) && (first || (sawNaN && I.flags & 128)))
    r = 0x7fffffff;
  uint32_t poisoned = x.poisonOf(I.ops[1]) ? x.active : 0;
  forLanes(x.active, [&](unsigned lane) { x.r32(I.ops[0])[lane] = r; });
  x.setPoison(I.ops[0], poisoned, x.origin[I.ops[1].meta]);
}

void execRedux(Exec &x, const Inst &I) {
  forEachGroup(x, I.ops[2], [&](uint32_t) { reduce(x, I); });
}

Error decodeRedux(Decoding &c) {
  if (!c.take("sync"))
    return c.error("expected '.sync'");
  StringRef op = c.takeAny({"add", "min", "max", "and", "or", "xor"});
  if (op.empty())
    return c.error("expected an operation");
  c.inst.flags = llvm::StringSwitch<unsigned>(op)
                     .Case("add", ReduxAdd)
                     .Case("min", ReduxMin)
                     .Case("max", ReduxMax)
                     .Case("and", ReduxAnd)
                     .Case("or", ReduxOr)
                     .Default(ReduxXor);
  if (c.take("abs"))
    c.inst.flags |= 64;
  if (c.take("NaN"))
    c.inst.flags |= 128;
  Type t = c.takeType();
  if (bitWidth(t) != 32)
    return c.error("unknown type");
  if (t == Type::S32)
    c.inst.flags |= 16;
  if (t == Type::F32)
    c.inst.flags |= 32;
  ATTN_SIM_TRY(c.expectOps(3, 3));
  ATTN_SIM_TRY(c.dst(c.ast.ops[0], t));
  ATTN_SIM_TRY(c.src(c.ast.ops[1], t));
  ATTN_SIM_TRY(c.src(c.ast.ops[2], Type::B32));
  return c.set(execRedux, InstClass::Shuffle);
}

void elect(Exec &x, const Inst &I, uint32_t members) {
  // ops: d, p, mask. The same mask elects the same lane each time.
  unsigned leader = llvm::countr_zero(x.active);
  if (x.machine.config.adversarial) {
    unsigned n = llvm::popcount(x.active);
    uint64_t hash =
        (uint64_t(members) + x.machine.config.seed) * 0x9E3779B97F4A7C15ull;
    unsigned skip = (hash >> 40) % n;
    uint32_t rest = x.active;
    while (skip--)
      rest &= rest - 1;
    leader = llvm::countr_zero(rest);
  }
  forLanes(x.active, [&](unsigned lane) { x.r32(I.ops[0])[lane] = leader; });
  x.setPoison(I.ops[0], 0);
  x.setPred(I.ops[1], 1u << leader);
  x.setPoison(I.ops[1], 0);
}

void execElect(Exec &x, const Inst &I) {
  forEachGroup(x, I.ops[2], [&](uint32_t members) { elect(x, I, members); });
}

Error decodeElect(Decoding &c) {
  if (!c.take("sync"))
    return c.error("expected '.sync'");
  ATTN_SIM_TRY(c.expectOps(2, 2));
  const AstOperand &d = c.ast.ops[0];
  if (d.kind != AstOperand::Pair)
    return c.error("expected a register and a predicate");
  ATTN_SIM_TRY(c.dst(d.elems[0], Type::B32));
  ATTN_SIM_TRY(c.dstPred(d.elems[1]));
  ATTN_SIM_TRY(c.src(c.ast.ops[1], Type::B32));
  return c.set(execElect, InstClass::Vote);
}

} // namespace

void mlir::attn::sim::registerWarpOps(DecodeTable &table) {
  table["shfl"] = decodeShfl;
  table["vote"] = decodeVote;
  table["match"] = decodeMatch;
  table["activemask"] = decodeActiveMask;
  table["redux"] = decodeRedux;
  table["elect"] = decodeElect;
}
