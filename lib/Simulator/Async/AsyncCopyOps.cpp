//===- AsyncCopyOps.cpp - cp.async ----------------------------------------===//
//
// Non-bulk asynchronous copies. A copy is pending until its thread waits for
// its group, or until the schedule finishes it earlier. The shadow knows its
// writes under the warp's cp.async actor, so that even the issuing thread is
// told when it reads too early.
//
//===----------------------------------------------------------------------===//

#include "../Instructions/MemoryTraffic.h"
#include "../Sanitizer/Ordering.h"
#include "../Sanitizer/Races.h"
#include "AsyncInstructions.h"
#include "CpAsync.h"
#include "EngineOps.h"
#include "MbarrierOps.h"

using namespace mlir::attn::sim;
using llvm::Error;
using llvm::StringRef;

namespace {

void readData(Exec &x, CpAsyncOp &op) {
  if (op.dataRead)
    return;
  op.dataRead = true;
  forLanes(op.mask, [&](unsigned lane) {
    auto &data = op.data[lane];
    data.fill(0);
    op.valid[lane] = 0xffff;
    unsigned bytes = op.srcBytes[lane];
    if (!bytes)
      return;
    Allocation *a = x.machine.memory.find(op.src[lane], bytes);
    if (!a)
      return;
    uint64_t offset = op.src[lane] - a->address;
    std::memcpy(data.data(), a->storage.bytes + offset, bytes);
    for (unsigned i = 0; i < bytes; ++i)
      if (!a->isValid(offset + i))
        op.valid[lane] &= ~(1u << i);
  });
}

void writeData(Cluster &cluster, CpAsyncOp &op, uint32_t lanes) {
  forLanes(lanes, [&](unsigned lane) {
    Cta &cta = *cluster.ctas[op.dst[lane] >> 32];
    uint32_t offset = uint32_t(op.dst[lane]);
    std::memcpy(cta.shared.data() + offset, op.data[lane].data(), op.cpBytes);
    for (unsigned i = 0; i < op.cpBytes; ++i)
      cta.sharedValid[offset + i] = op.valid[lane] >> i & 1;
  });
}

// ops: dst, src, src-size or none, ignore predicate or none. imm, imm2 are the
// displacements; flags is cp-size.
void execCpAsync(Exec &x, const Inst &I) {
  CpAsyncOp op;
  op.inst = x.pc;
  op.mask = op.uncommitted = x.active;
  op.cpBytes = I.flags;
  op.epoch = ++x.warp->cpAsync.stream.epoch;
  op.group.fill(~0u);
  x.checkPoison(I.ops[0], "an address");
  uint32_t ignore = I.ops[3].cls == RegClass::Pred ? x.pred(I.ops[3]) : 0;
  if (I.ops[2].cls != RegClass::Sink)
    x.checkPoison(I.ops[2], "the source size of a copy");
  TrafficCounter sharedTraffic(op.cpBytes), globalTraffic(op.cpBytes);
  Stamp stamp;
  stamp.epoch = op.epoch;
  stamp.inst = x.pc;
  stamp.cluster = x.cluster.linear;
  stamp.rank = x.cta->rank;
  stamp.actor = x.warp->cpAsync.stream.actor;
  stamp.warp = x.warp->id;
  stamp.flags = Stamp::Async;
  // Copies of one lane to the same place are ordered among themselves only
  // through a wait: the clock is what the lane knows now.
  Clock space;
  const Knowledge &know = x.warp->order.know;
  const Clock &issue = know.getGeneric(/*isShared=*/true, space);
  ShadowDecision written, read;
  forLanes(x.active, [&](unsigned lane) {
    if (x.action == Action::Fault)
      return;
    uint64_t to = x.read(I.ops[0], lane) + I.imm;
    if (I.ops[0].cls == RegClass::R32)
      to = uint32_t(to);
    MemRef dst, src;
    if (!x.resolve(Space::Shared, to, op.cpBytes, op.cpBytes, true, lane, dst))
      return;
    unsigned bytes = op.cpBytes;
    if (I.ops[2].cls != RegClass::Sink) {
      uint32_t size = x.r32(I.ops[2])[lane];
      if (size > op.cpBytes)
        return x.fault(FindingKind::InvalidOperation,
                       "expected a source size of at most " +
                           llvm::Twine(unsigned(op.cpBytes)) + ", got " +
                           llvm::Twine(size),
                       lane);
      bytes = size;
    }
    if (ignore >> lane & 1)
      bytes = 0;
    op.dst[lane] = uint64_t(dst.cta->rank) << 32 | dst.offset;
    op.srcBytes[lane] = bytes;
    op.src[lane] = x.read(I.ops[1], lane) + I.imm2;
    sharedTraffic.add(dst, lane);
    stamp.lane = lane;
    trackAs(x, stamp, issue, dst, op.cpBytes, true, &written);
    if (x.sanitizing() && !dst.cta->mbarriers.empty())
      checkMbarrierOverlap(x, dst, op.cpBytes, lane);
    if (!bytes)
      return;
    uint32_t poisoned = x.poison[I.ops[1].meta] >> lane & 1;
    if (poisoned)
      x.checkPoison(I.ops[1], "an address");
    if (op.src[lane] & (op.cpBytes - 1))
      return x.fault(FindingKind::Misaligned,
                     "reads from an address that is not a multiple of the "
                     "copy's size",
                     lane);
    if (!x.resolve(Space::Generic, op.src[lane], bytes, 1, false, lane, src))
      return;
    if (src.space != Space::Global)
      return x.fault(FindingKind::InvalidOperation,
                     "expected a source in global memory", lane);
    globalTraffic.add(src, lane);
    // The source is read any time until the copy is waited for.
    trackAs(x, stamp, know.generic, src, bytes, false, &read);
  });
  if (x.action == Action::Fault)
    return;
  sharedTraffic.shared(x, "cp.async");
  globalTraffic.finishLoad(x, Space::Global, "");
  const LaunchConfig &config = x.machine.config;
  if (decideNow(x.cluster, config.asyncReads))
    readData(x, op);
  if (decideNow(x.cluster, config.asyncWrites)) {
    readData(x, op);
    writeData(x.cluster, op, op.mask);
    op.dataWritten = true;
  }
  x.warp->cpAsync.ops.push_back(std::move(op));
}

/// Lanes of the operation are done: their writes are there.
void finishLanes(Exec &x, Warp &warp, CpAsyncOp &op, uint32_t lanes) {
  lanes &= op.mask;
  if (!lanes)
    return;
  if (op.arrives) {
    forLanes(lanes, [&](unsigned lane) {
      if (x.action == Action::Fault)
        return;
      uint32_t address = op.dst[lane];
      Cta *owner = nullptr;
      MemRef ref;
      if (!x.resolve(Space::Shared, address, 8, 8, false, lane, ref))
        return;
      owner = ref.cta;
      auto it = owner->mbarriers.find(ref.offset);
      if (it == owner->mbarriers.end())
        return x.fault(FindingKind::MbarrierMisuse,
                       "an mbarrier was invalidated before a copy that "
                       "signals it has finished",
                       lane);
      Mbarrier &b = it->second;
      if (x.sanitizing()) {
        b.gathering.generic.cluster = x.cluster.linear;
        b.gathering.control.join(op.control);
        Clock &to = b.gathering.generic;
        Component mine = to.get(warp.cpAsync.stream.actor);
        if (op.epoch > mine.full && op.epoch >= mine.part) {
          uint32_t lanesBefore = mine.part == op.epoch ? mine.lanes : 0;
          to.setPart(warp.cpAsync.stream.actor, op.epoch,
                     lanesBefore | 1u << lane);
          if ((lanesBefore | 1u << lane) == ~0u)
            to.raise(warp.cpAsync.stream.actor, op.epoch);
        }
      }
      arriveOn(x, b, 1, lane);
    });
  } else {
    readData(x, op);
    if (!op.dataWritten)
      writeData(x.cluster, op, lanes);
  }
  op.mask &= ~lanes;
}

void prune(Warp &warp) {
  while (!warp.cpAsync.ops.empty() && !warp.cpAsync.ops.front().mask)
    warp.cpAsync.ops.pop_front();
}

/// Notes that `lanes` have waited for a copy, as if they wrote its bytes now.
void trackWaited(Exec &x, const CpAsyncOp &op, uint32_t lanes) {
  Clock clock = x.warp->order.know.generic;
  uint32_t actor = x.warp->cpAsync.stream.actor;
  clock.setPart(actor, std::max(clock.get(actor).part, op.epoch), 0);
  ShadowDecision decided;
  forLanes(lanes, [&](unsigned lane) {
    MemRef ref;
    ref.space = Space::Shared;
    ref.cta = x.cluster.ctas[op.dst[lane] >> 32].get();
    ref.offset = uint32_t(op.dst[lane]);
    ref.address = ref.offset + SharedBase;
    Stamp stamp = x.stampHere(lane);
    stamp.inst = op.inst;
    trackAs(x, stamp, clock, ref, op.cpBytes, true, &decided);
  });
}

/// Waits of `lanes` for everything up to `group` of each lane.
void waitFor(Exec &x, uint32_t lanes, int64_t keep, bool uncommittedToo) {
  Warp &w = *x.warp;
  // The shadow's epochs are by instruction: a wait makes known every copy
  // before the oldest that stays in flight for a lane of the warp.
  uint32_t known = w.cpAsync.stream.epoch;
  llvm::SmallVector<std::pair<const CpAsyncOp *, uint32_t>> waited;
  for (CpAsyncOp &op : w.cpAsync.ops) {
    uint32_t finished = 0;
    forLanes(lanes & op.mask, [&](unsigned lane) {
      bool committed = !(op.uncommitted >> lane & 1);
      if (op.arrives) {
        // The signal follows the copies; nothing to wait for by itself.
        return;
      }
      if (uncommittedToo ||
          (committed &&
           int64_t(op.group[lane]) < int64_t(w.cpAsync.committed[lane]) - keep))
        finished |= 1u << lane;
    });
    finishLanes(x, w, op, finished);
    if (!op.arrives && (op.mask & w.live))
      known = std::min(known, op.epoch - 1);
    // Lanes on a branch of their own may have issued older groups later.
    if (finished && x.sanitizing() && op.epoch > known)
      waited.emplace_back(&op, finished);
  }
  for (auto [op, finished] : waited)
    trackWaited(x, *op, finished);
  // Signals whose copies are all there.
  uint32_t running = 0;
  for (CpAsyncOp &op : w.cpAsync.ops) {
    if (op.arrives)
      finishLanes(x, w, op, op.mask & ~running);
    else
      running |= op.mask;
  }
  prune(w);
  if (!x.sanitizing())
    return;
  Component c = w.order.know.generic.get(w.cpAsync.stream.actor);
  if (known > c.part || (lanes == w.live && c.lanes != 0))
    w.order.know.generic.setPart(w.cpAsync.stream.actor,
                                 std::max(c.part, known), 0);
}

void execCommit(Exec &x, const Inst &I) {
  Warp &w = *x.warp;
  for (CpAsyncOp &op : w.cpAsync.ops) {
    uint32_t lanes = op.uncommitted & x.active;
    if (op.arrives)
      continue;
    forLanes(lanes, [&](unsigned lane) {
      op.group[lane] = w.cpAsync.committed[lane];
    });
    op.uncommitted &= ~lanes;
  }
  forLanes(x.active, [&](unsigned lane) { ++w.cpAsync.committed[lane]; });
}

void execWaitGroup(Exec &x, const Inst &I) {
  waitFor(x, x.active, I.imm, I.flags);
}

void execCpAsyncArrive(Exec &x, const Inst &I) {
  // flags 1: noinc.
  CpAsyncOp op;
  op.inst = x.pc;
  op.arrives = true;
  op.mask = op.uncommitted = x.active;
  op.epoch = x.warp->cpAsync.stream.epoch;
  op.control = releaseControl(x).control;
  op.group.fill(~0u);
  forLanes(x.active, [&](unsigned lane) {
    if (x.action == Action::Fault)
      return;
    uint64_t address = x.read(I.ops[0], lane) + I.imm;
    if (address >= SharedWindow)
      address -= SharedWindow;
    op.dst[lane] = uint32_t(address);
    Mbarrier *b = findMbarrier(x, uint32_t(address), lane, nullptr);
    if (b && !(I.flags & 1))
      ++b->pending;
  });
  if (x.action != Action::Fault)
    x.warp->cpAsync.ops.push_back(std::move(op));
}

} // namespace

void mlir::attn::sim::completeCpAsync(Exec &x, Warp &warp) {
  CpAsyncOp &oldest = warp.cpAsync.ops.front();
  finishLanes(x, warp, oldest, oldest.mask);
  prune(warp);
}

static Error decodeCpAsync(Decoding &c) {
  if (!c.take("async"))
    return c.error("unknown instruction");
  if (llvm::is_contained(c.mods, "reduce") &&
      !llvm::is_contained(c.mods, "bulk"))
    return c.error("unknown instruction");
  if (llvm::is_contained(c.mods, "bulk"))
    return c.decodeAs("cp.async.bulk");
  const auto &ops = c.ast.ops;
  if (c.take("commit_group")) {
    ATTN_SIM_TRY(c.expectOps(0, 0));
    return c.set(execCommit, InstClass::CpAsync);
  }
  if (c.take("wait_group")) {
    ATTN_SIM_TRY(c.expectOps(1, 1));
    ATTN_SIM_TRY(c.immediate(ops[0], c.inst.imm));
    return c.set(execWaitGroup, InstClass::CpAsync);
  }
  if (c.take("wait_all")) {
    ATTN_SIM_TRY(c.expectOps(0, 0));
    c.inst.flags = 1;
    return c.set(execWaitGroup, InstClass::CpAsync);
  }
  if (c.take("mbarrier")) {
    if (!c.take("arrive"))
      return c.error("expected '.arrive'");
    c.inst.flags = c.take("noinc");
    c.takeAny({"shared", "shared::cta"});
    c.take("b64");
    ATTN_SIM_TRY(c.expectOps(1, 1));
    ATTN_SIM_TRY(c.address(ops[0], c.inst.imm));
    return c.set(execCpAsyncArrive, InstClass::CpAsync);
  }
  bool cg = llvm::is_contained(c.mods, "cg");
  c.takeCacheHints();
  if (c.takeAny({"shared", "shared::cta"}).empty() || !c.take("global"))
    return c.error("expected '.shared.global'");
  if (ops.size() < 3 || ops.size() > 5 || ops[0].kind != AstOperand::Address ||
      ops[1].kind != AstOperand::Address)
    return c.error("expected two addresses and a size");
  ATTN_SIM_TRY(c.address(ops[0], c.inst.imm));
  int64_t displacement, size;
  ATTN_SIM_TRY(c.address(ops[1], displacement));
  c.inst.imm2 = displacement;
  ATTN_SIM_TRY(c.immediate(ops[2], size));
  if (size != 16 && (cg || (size != 4 && size != 8)))
    return c.error("expected a copy of 4, 8 or 16 bytes");
  c.inst.flags = size;
  c.program().sharedGranule =
      std::min(c.program().sharedGranule, uint32_t(size));
  c.program().globalGranule = std::min(c.program().globalGranule, 4u);
  // What follows: a source size or an ignore predicate, then a cache policy.
  size_t i = 3;
  Operand sizeOp, ignoreOp;
  if (i < ops.size()) {
    const AstOperand &op = ops[i];
    Operand reg;
    uint32_t bits = 0;
    if (op.kind == AstOperand::Name)
      c.d.lookup(op.name, &reg, &bits);
    if (op.kind == AstOperand::NotName || bits == 1) {
      ATTN_SIM_TRY(c.srcPred(op));
      ignoreOp = c.ops.back();
      c.ops.pop_back();
      ++i;
    } else if (bits != 64) {
      ATTN_SIM_TRY(c.src(op, Type::U32));
      sizeOp = c.ops.back();
      c.ops.pop_back();
      ++i;
    }
  }
  c.ops.push_back(sizeOp);
  c.ops.push_back(ignoreOp);
  if (i < ops.size())
    ++i; // cache policy
  if (i != ops.size())
    return c.error("too many operands");
  return c.set(execCpAsync, InstClass::CpAsync);
}

void mlir::attn::sim::registerAsyncCopyOps(DecodeTable &table) {
  table["cp"] = decodeCpAsync;
}
