//===- MbarrierOps.cpp - mbarrier objects ---------------------------------===//
//
// A phase completes when no arrival is pending and the transaction count is
// zero; the count is signed, so bytes may be announced after they have come.
// Everybody who arrives publishes to those who wait for the phase. Completed
// transactions publish the copy itself only: it is stamped with the barrier's
// own actor and the number of the phase, which a wait makes known.
//
//===----------------------------------------------------------------------===//

#include "MbarrierOps.h"
#include "../Machine/TraceRecorder.h"
#include "../PTX/Decoder.h"
#include "../Sanitizer/OpenAccesses.h"
#include "../Sanitizer/Ordering.h"
#include "../Sanitizer/PhaseChecks.h"
#include "../Sanitizer/Races.h"
#include "AsyncInstructions.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir::attn::sim;
using llvm::Error;
using llvm::StringRef;
using llvm::Twine;

/// Stamps of copies that signal in phase k carry k + 2; 1 is the
/// initialisation.
uint32_t mlir::attn::sim::phaseEpoch(const Mbarrier &b) { return b.phase + 2; }

Knowledge *mlir::attn::sim::gatheringOf(Mbarrier &b, const Cta &owner,
                                        const Cta &from, bool clusterScope) {
  if (&owner == &from ||
      owner.cluster->machine->config.assumes(Assumption::ClusterScope))
    return &b.gathering;
  return clusterScope ? &b.remoteGathering : nullptr;
}

uint16_t mlir::attn::sim::signalActor(const Mbarrier &b, const Cta &owner,
                                      const Cta &issuer) {
  return &owner == &issuer ? b.actor : b.remoteActor;
}

void mlir::attn::sim::checkPhase(Cluster &cluster, Mbarrier &b) {
  auto publish = [&](Knowledge &to, Knowledge &from, uint16_t actor) {
    to.join(from);
    for (Clock *clock : to.getStreams()) {
      clock->cluster = cluster.linear;
      clock->raise(actor, phaseEpoch(b));
    }
    from.clear();
  };
  while (b.pending == 0 && b.tx == 0) {
    checkCompletion(cluster, b);
    publish(b.published, b.gathering, b.actor);
    if (b.remoteActor != b.actor)
      publish(b.remotePublished, b.remoteGathering, b.remoteActor);
    ++b.phase;
    b.pending = b.expected;
    cluster.advance();
    if (b.expected == 0)
      break;
  }
}

Mbarrier *mlir::attn::sim::findMbarrier(Exec &x, uint32_t address, int lane,
                                        Cta **owner) {
  MemRef ref;
  if (!x.resolve(Space::Shared, address, 8, 8, false, lane, ref))
    return nullptr;
  auto it = ref.cta->mbarriers.find(ref.offset);
  if (it == ref.cta->mbarriers.end()) {
    Finding f;
    f.kind = FindingKind::MbarrierMisuse;
    f.message = "uses an mbarrier that is not initialised";
    f.second = x.here(lane);
    // A signal from another CTA that comes too late to matter: hardware counts
    // it in a word that nobody uses any more.
    auto dead = ref.cta->invalidated.find(ref.offset);
    bool late =
        dead != ref.cta->invalidated.end() && ref.cta != x.cta &&
        std::none_of(ref.valid, ref.valid + 8, [](uint8_t v) { return v; });
    if (late) {
      f.message = "signals an mbarrier that its CTA has invalidated already";
      f.first = x.siteOf(dead->second, ref.cta, -1, -1);
    }
    f.space = "shared";
    f.offset = ref.offset;
    f.address = address;
    f.bytes = 8;
    if (late) {
      f.hint = "the CTA has to wait for all signals of its peers before "
               "mbarrier.inval";
      if (x.machine.config.assumes(Assumption::LateSignal))
        f.severity = Severity::Note;
      x.report(std::move(f));
      return nullptr;
    }
    f.hint = "mbarrier.init has to come first, and be published to this thread";
    x.fault(std::move(f));
    return nullptr;
  }
  if (owner)
    *owner = ref.cta;
  // Races with init and inval only: the operations themselves are atomic.
  if (x.sanitizing()) {
    // With an actor of its own, since relaxed cluster barriers order the
    // operations on mbarriers though they publish no memory.
    Warp &w = *x.warp;
    Stamp stamp = x.stampHere(lane);
    stamp.actor = w.mbarriers.stream.actor;
    stamp.epoch = ++w.mbarriers.stream.epoch;
    stamp.flags = Stamp::Strong;
    w.order.know.generic.raise(w.mbarriers.stream.actor,
                               w.mbarriers.stream.epoch);
    trackAs(x, stamp, w.order.know.generic, ref, 8, false);
  }
  return &it->second;
}

void mlir::attn::sim::arriveOn(Exec &x, Mbarrier &b, uint32_t count, int lane) {
  if (int64_t(count) > b.pending) {
    Finding f;
    f.kind = FindingKind::MbarrierMisuse;
    f.message =
        llvm::formatv("arrives {0} times in phase {1} of an mbarrier that "
                      "expects {2} more arrivals",
                      count, b.phase, b.pending)
            .str();
    f.first = x.siteOf(b.initInst, nullptr, -1, -1);
    f.second = x.here(lane);
    f.hint = "the initial count has to cover all arrivals of a phase, and an "
             "arrival has to wait for the previous phase";
    x.fault(std::move(f));
    return;
  }
  if (x.cluster.recorder)
    x.cluster.recorder->signal(b, x.warp);
  b.pending -= count;
  checkPhase(x.cluster, b);
}

void mlir::attn::sim::completeTx(Cluster &cluster, Mbarrier &b, int64_t bytes) {
  if (cluster.recorder)
    cluster.recorder->signal(b, nullptr);
  b.tx -= bytes;
  checkPhase(cluster, b);
}

namespace {

struct MbarrierAux {
  bool remote = false;
  bool noComplete = false;
  bool drop = false;
  bool expectTx = false;
  bool parity = false;
  bool relaxed = false;
  bool clusterScope = false;
  bool tryWait = false;
};

uint32_t addressOf(Exec &x, const Operand &base, int64_t displacement,
                   unsigned lane) {
  uint64_t v = x.read(base, lane) + displacement;
  // Generic addresses of shared memory are accepted where no space is named.
  if (v >= SharedWindow && v < SharedWindow + WindowSize)
    v -= SharedWindow;
  return v;
}

/// Only signals go to mbarriers of other CTAs.
bool expectOwn(Exec &x, const Cta *owner, StringRef what, int lane) {
  if (owner == x.cta)
    return true;
  x.fault(FindingKind::MbarrierMisuse,
          what + " an mbarrier of another CTA: only arrivals and transaction "
                 "counts go there",
          lane);
  return false;
}

void execInit(Exec &x, const Inst &I) {
  // ops: address, count.
  x.checkPoison(I.ops[0], "an mbarrier's address");
  forLanes(x.active, [&](unsigned lane) {
    if (x.action == Action::Fault)
      return;
    uint32_t address = addressOf(x, I.ops[0], I.imm, lane);
    MemRef ref;
    if (!x.resolve(Space::Shared, address, 8, 8, true, lane, ref))
      return;
    if (!expectOwn(x, ref.cta, "initialises", lane))
      return;
    uint32_t count = x.r32(I.ops[1])[lane];
    if (count == 0 || count > (1u << 20) - 1)
      return x.fault(FindingKind::MbarrierMisuse,
                     "expected an arrival count between 1 and 1048575, got " +
                         Twine(count),
                     lane);
    auto it = ref.cta->mbarriers.find(ref.offset);
    if (it != ref.cta->mbarriers.end()) {
      Finding f;
      f.kind = FindingKind::MbarrierMisuse;
      f.message = "initialises an mbarrier that is in use";
      f.first = x.siteOf(it->second.initInst, ref.cta, -1, -1);
      f.second = x.here(lane);
      f.space = "shared";
      f.offset = ref.offset;
      f.address = ref.address;
      f.bytes = 8;
      f.hint = "mbarrier.inval has to come before the second initialisation";
      x.report(std::move(f));
    }
    Mbarrier b;
    b.pending = b.expected = count;
    b.initInst = x.pc;
    b.rank = ref.cta->rank;
    b.actor = b.remoteActor = x.cluster.newActor();
    if (x.cluster.ctas.size() > 1 &&
        !x.machine.config.assumes(Assumption::ClusterScope))
      b.remoteActor = x.cluster.newActor();
    b.phaseIndex = x.cluster.newPhaseIndex();
    if (x.sanitizing()) {
      // Conflicts of what came before, then a stamp that only mbarriers have.
      track(x, ref, 8, true, 0, lane);
      ref.cta->shadow.reset(ref.offset, 8);
      Stamp stamp;
      stamp.epoch = 1;
      stamp.inst = x.pc;
      stamp.cluster = x.cluster.linear;
      stamp.rank = x.cta->rank;
      stamp.actor = b.actor;
      stamp.warp = x.warp->id;
      Component own;
      own.full = 1;
      x.warp->order.know.generic.set(b.actor, own);
      trackAs(x, stamp, x.warp->order.know.generic, ref, 8, true);
      x.warp->mbarriers.initialised.push_back(b.actor);
    }
    std::memset(ref.valid, 1, 8);
    ref.cta->invalidated.erase(ref.offset);
    ref.cta->mbarriers[ref.offset] = std::move(b);
  });
  x.cluster.advance();
}

void execInval(Exec &x, const Inst &I) {
  forLanes(x.active, [&](unsigned lane) {
    if (x.action == Action::Fault)
      return;
    Cta *owner;
    uint32_t address = addressOf(x, I.ops[0], I.imm, lane);
    if (!findMbarrier(x, address, lane, &owner) ||
        !expectOwn(x, owner, "invalidates", lane))
      return;
    uint32_t offset = (address & 0xffffff) - SharedBase;
    MemRef ref;
    if (x.resolve(Space::Shared, address, 8, 8, true, lane, ref))
      track(x, ref, 8, true, 0, lane);
    if (x.sanitizing() && !x.machine.config.assumes(Assumption::LateSignal))
      checkLanded(x.cluster, *owner, owner->mbarriers[offset],
                  x.warp->order.know.control, x.here(lane),
                  "an mbarrier is invalidated");
    owner->mbarriers.erase(offset);
    owner->invalidated[offset] = x.pc;
    std::memset(owner->sharedValid.data() + offset, 0, 8);
  });
}

/// Lanes arrive in no order, so none of them knows that it opens a new phase.
void reportSpread(Exec &x, const Mbarrier &b, int lane) {
  Finding f;
  f.kind = FindingKind::MbarrierMisuse;
  f.message = llvm::formatv("lanes of one instruction arrive in phases {0} and "
                            "{1} of an mbarrier",
                            b.phase - 1, b.phase)
                  .str();
  f.first = x.siteOf(b.initInst, nullptr, -1, -1);
  f.second = x.here(lane);
  f.hint = "the count given at initialisation is that of all threads that "
           "arrive in a phase";
  x.report(std::move(f));
}

void execArrive(Exec &x, const Inst &I) {
  // ops: state or none, address, count or bytes or none.
  const auto &o = *static_cast<const MbarrierAux *>(I.aux);
  x.checkPoison(I.ops[1], "an mbarrier's address");
  Knowledge published;
  Clock before = x.warp->order.know.control;
  if (x.sanitizing())
    published = o.relaxed ? releaseControl(x)
                          : release(x, o.clusterScope ? SyncScope::Cluster
                                                      : SyncScope::Cta);
  // Lanes that arrive at one barrier in one phase publish the same.
  uint64_t phase = 0;
  bool spread = false;
  Mbarrier *b = nullptr, *last = nullptr;
  Cta *owner = nullptr;
  uint32_t found = ~0u;
  forLanes(x.active, [&](unsigned lane) {
    if (x.action == Action::Fault)
      return;
    uint32_t address = addressOf(x, I.ops[1], I.imm, lane);
    if (address != found)
      b = findMbarrier(x, address, lane, &owner);
    if (!b)
      return;
    found = address;
    uint32_t value = I.ops[2].cls == RegClass::Sink ? 1 : x.r32(I.ops[2])[lane];
    uint32_t count = o.expectTx ? 1 : value;
    if (I.ops[0].cls == RegClass::R64)
      x.r64(I.ops[0])[lane] = uint64_t(b->phase) << 32 | uint32_t(b->pending);
    if (o.expectTx)
      b->tx += value;
    Knowledge *to = gatheringOf(*b, *owner, *x.cta, o.clusterScope);
    if (b == last && phase != b->phase && !spread) {
      spread = true;
      reportSpread(x, *b, lane);
    }
    if (b != last || phase != b->phase) {
      if (owner != x.cta)
        nameSignal(published, x.pc);
      if (to)
        to->join(published);
      if (to != &b->gathering)
        b->gathering.control.join(published.control);
      noteSignal(x, *b, *owner, PhaseEvent::Arrive, before,
                 published.control.fullOf(x.warp->index));
    }
    last = b;
    phase = b->phase;
    if (o.drop)
      b->expected -= count;
    if (o.noComplete && count >= uint32_t(b->pending) && b->tx == 0)
      return x.fault(FindingKind::MbarrierMisuse,
                     "'.noComplete' completes the phase", lane);
    arriveOn(x, *b, count, lane);
  });
  if (I.ops[0].cls == RegClass::R64)
    x.setPoison(I.ops[0], 0);
  x.cluster.advance();
}

void execTx(Exec &x, const Inst &I) {
  // mbarrier.expect_tx and complete_tx; flags 1: complete.
  forLanes(x.active, [&](unsigned lane) {
    if (x.action == Action::Fault)
      return;
    Mbarrier *b =
        findMbarrier(x, addressOf(x, I.ops[0], I.imm, lane), lane, nullptr);
    if (!b)
      return;
    uint32_t bytes = x.r32(I.ops[1])[lane];
    if (I.flags & 1)
      completeTx(x.cluster, *b, bytes);
    else
      b->tx += bytes;
  });
  x.cluster.advance();
}

/// A wait by parity takes the last phase for the one that it is meant for. Its
/// parity is that of every other phase, so the two are the same in all orders
/// only if the warp knows that the phase before it is complete: else the wait
/// also passes two phases earlier.
void checkWaitedPhase(Exec &x, const Mbarrier &b, int lane) {
  if (!x.sanitizing())
    return;
  uint64_t &last = x.warp->mbarriers.waitedPhases[b.actor];
  last = std::max(last, knownPhases(x, b));
  if (b.phase >= last + 2) {
    bool isLate = (b.phase - last) % 2 == 1;
    Finding f;
    f.kind = isLate ? FindingKind::PhaseSlip : FindingKind::EarlyWait;
    if (isLate)
      f.message = llvm::formatv("the wait takes phase {0} of the mbarrier for "
                                "phase {1}: the barrier went on without this "
                                "thread",
                                b.phase - 1, last)
                      .str();
    else
      f.message = llvm::formatv("the wait for phase {0} of the mbarrier is not "
                                "ordered after the completion of phase {1}: in "
                                "another order phase {2} satisfies it",
                                b.phase - 1, b.phase - 2, int64_t(b.phase) - 3)
                      .str();
    f.first = x.siteOf(b.initInst, nullptr, -1, -1);
    f.second = x.here(lane);
    f.hint = isLate ? "each phase has to be waited for before the next one can "
                      "complete"
                    : "wait for the phase before first, or for something that "
                      "follows its completion";
    x.report(std::move(f));
  }
  last = b.phase;
}

void execWait(Exec &x, const Inst &I) {
  // ops: predicate, address, parity or state, time limit or none.
  const auto &o = *static_cast<const MbarrierAux *>(I.aux);
  x.checkPoison(I.ops[1], "an mbarrier's address");
  uint32_t done = 0;
  uint32_t waitingOn = 0;
  bool spurious =
      o.tryWait && x.machine.config.adversarial && x.cluster.rng() % 4 == 0;
  // Lanes of a warp look at one barrier as a rule.
  Mbarrier *b = nullptr;
  uint32_t found = ~0u, acquired = ~0u;
  bool isOne = true;
  forLanes(x.active, [&](unsigned lane) {
    if (x.action == Action::Fault)
      return;
    uint32_t address = addressOf(x, I.ops[1], I.imm, lane);
    Cta *owner = nullptr;
    if (address != found)
      b = findMbarrier(x, address, lane, &owner);
    if (!b || (owner && !expectOwn(x, owner, "waits on", lane)))
      return;
    isOne &= found == ~0u || found == address;
    found = address;
    bool complete;
    if (o.parity) {
      uint32_t parity = x.r32(I.ops[2])[lane];
      if (parity > 1)
        return x.fault(
            FindingKind::MbarrierMisuse,
            llvm::formatv("expected a parity of 0 or 1, got {0}", parity)
                .str());
      complete = (b->phase & 1) != parity;
    } else {
      complete = uint32_t(b->phase) != uint32_t(x.r64(I.ops[2])[lane] >> 32);
    }
    complete &= !spurious;
    if (complete) {
      done |= 1u << lane;
      if (acquired == address)
        return;
      acquired = address;
      checkWaitedPhase(x, *b, lane);
      noteWait(x, *b);
      if (!o.relaxed) {
        acquire(x, b->published);
        if (o.clusterScope)
          acquire(x, b->remotePublished);
      }
    } else {
      waitingOn = address;
    }
  });
  if (x.action == Action::Fault)
    return;
  if (done != 0 && isOne && !o.relaxed)
    acquireOwn(x, b->published, done);
  x.setPred(I.ops[0], done);
  x.setPoison(I.ops[0], 0);
  if (x.cluster.recorder && b)
    x.cluster.recorder->polled(x, *b, done == x.active);
  x.countWait("mbarrier", done != x.active);
  if (done != x.active) {
    x.split->pollProgress = x.cluster.progress;
    x.split->pollAddress = waitingOn;
    x.action = Action::Yield;
  }
}

void execPendingCount(Exec &x, const Inst &I) {
  forLanes(x.active, [&](unsigned lane) {
    x.r32(I.ops[0])[lane] = uint32_t(x.r64(I.ops[1])[lane]) & 0xfffff;
  });
  x.propagate<1>(I);
}

Error decodeMbarrier(Decoding &c) {
  auto *o = c.makeAux<MbarrierAux>();
  static const StringRef kinds[] = {
      "init",        "inval",    "arrive",    "arrive_drop",  "expect_tx",
      "complete_tx", "try_wait", "test_wait", "pending_count"};
  // `arrive.expect_tx` names two; the first one decides.
  StringRef kind;
  for (StringRef mod : c.ast.mods)
    if (llvm::is_contained(kinds, mod)) {
      kind = mod;
      break;
    }
  if (kind.empty())
    return c.error("unknown mbarrier operation");
  c.take(kind);
  o->noComplete = c.take("noComplete");
  o->expectTx = kind.starts_with("arrive") && c.take("expect_tx");
  o->drop = kind == "arrive_drop";
  o->parity = c.take("parity");
  o->tryWait = kind == "try_wait";
  o->relaxed = c.take("relaxed");
  c.takeAny({"acquire", "release"});
  o->clusterScope = c.takeAny({"cta", "cluster"}) == "cluster";
  StringRef space = c.takeAny({"shared", "shared::cta", "shared::cluster"});
  o->remote = space == "shared::cluster";
  c.take("b64");
  c.program().sharedGranule = std::min(c.program().sharedGranule, 8u);
  const auto &ops = c.ast.ops;
  if (kind == "init") {
    ATTN_SIM_TRY(c.expectOps(2, 2));
    ATTN_SIM_TRY(c.address(ops[0], c.inst.imm));
    ATTN_SIM_TRY(c.src(ops[1], Type::U32));
    return c.set(execInit, InstClass::Mbarrier);
  }
  if (kind == "inval") {
    ATTN_SIM_TRY(c.expectOps(1, 1));
    ATTN_SIM_TRY(c.address(ops[0], c.inst.imm));
    return c.set(execInval, InstClass::Mbarrier);
  }
  if (kind == "arrive" || kind == "arrive_drop") {
    size_t i = 0;
    if (ops.empty())
      return c.error("expected an address");
    if (ops[0].kind == AstOperand::Address) {
      c.none();
    } else if (ops[0].kind == AstOperand::Sink) {
      c.none();
      ++i;
    } else {
      ATTN_SIM_TRY(c.dst(ops[0], Type::B64));
      ++i;
    }
    if (i >= ops.size() || ops[i].kind != AstOperand::Address)
      return c.error("expected an address");
    ATTN_SIM_TRY(c.address(ops[i++], c.inst.imm));
    if (i < ops.size())
      ATTN_SIM_TRY(c.src(ops[i++], Type::U32));
    else if (o->expectTx)
      return c.error("expected a transaction count");
    else
      c.none();
    if (i != ops.size())
      return c.error("too many operands");
    return c.set(execArrive, InstClass::Mbarrier);
  }
  if (kind == "expect_tx" || kind == "complete_tx") {
    ATTN_SIM_TRY(c.expectOps(2, 2));
    ATTN_SIM_TRY(c.address(ops[0], c.inst.imm));
    ATTN_SIM_TRY(c.src(ops[1], Type::U32));
    c.inst.flags = kind == "complete_tx";
    return c.set(execTx, InstClass::Mbarrier);
  }
  if (kind == "pending_count") {
    ATTN_SIM_TRY(c.expectOps(2, 2));
    ATTN_SIM_TRY(c.dst(ops[0], Type::B32));
    ATTN_SIM_TRY(c.src(ops[1], Type::B64));
    return c.set(execPendingCount, InstClass::Mbarrier);
  }
  ATTN_SIM_TRY(c.expectOps(3, 4));
  ATTN_SIM_TRY(c.dstPred(ops[0]));
  if (ops[1].kind != AstOperand::Address)
    return c.error("expected an address");
  ATTN_SIM_TRY(c.address(ops[1], c.inst.imm));
  ATTN_SIM_TRY(c.src(ops[2], o->parity ? Type::B32 : Type::B64));
  return c.set(execWait, InstClass::Mbarrier);
}

} // namespace

void mlir::attn::sim::registerMbarrierOps(DecodeTable &table) {
  table["mbarrier"] = decodeMbarrier;
}
