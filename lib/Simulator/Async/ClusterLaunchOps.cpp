//===- ClusterLaunchOps.cpp - clusterlaunchcontrol, st.async --------------===//
//
// Work stealing: a cluster takes over one that has not been launched yet. The
// response is written by the async proxy and signals sixteen bytes. st.async
// writes a few bytes into a peer's shared memory and signals them in the same
// way.
//
//===----------------------------------------------------------------------===//

#include "../Instructions/MemoryTraffic.h"
#include "../Sanitizer/PhaseChecks.h"
#include "../Sanitizer/Races.h"
#include "AsyncInstructions.h"
#include "BulkCopy.h"
#include "EngineOps.h"
#include "MbarrierOps.h"

using namespace mlir::attn::sim;
using llvm::Error;
using llvm::StringRef;

namespace {

/// Bytes that arrive in shared memory with a signal.
struct DeliveryOp : EngineOp {
  struct To {
    Cta *cta;
    uint32_t offset, barrier;
  };
  llvm::SmallVector<To, 2> to;
  llvm::SmallVector<uint8_t, 16> data;
  bool defined = true;
  const char *name = "a st.async";
  /// Combined with what is there, when it has a type.
  AtomicOp reduction = AtomicOp::Add;
  Type type = Type::None;

  void complete(Cluster &cluster) override {
    for (const To &t : to) {
      uint8_t *bytes = t.cta->shared.data() + t.offset;
      uint8_t *valid = t.cta->sharedValid.data() + t.offset;
      if (type != Type::None) {
        uint64_t value = 0;
        std::memcpy(&value, data.data(), data.size());
        applyAtomic(reduction, type, value, defined, data.size(), bytes, valid);
      } else {
        std::memcpy(bytes, data.data(), data.size());
        std::memset(valid, defined, data.size());
      }
      signalBytes(cluster, *this, t.cta, t.barrier, data.size());
    }
  }
  std::string describe() const override { return name; }
  bool touches(const Cta *cta) const override {
    return llvm::any_of(to, [&](const To &t) { return t.cta == cta; });
  }
};

uint32_t sharedAddress(Exec &x, const Operand &o, int64_t displacement,
                       unsigned lane) {
  uint64_t v = x.read(o, lane) + displacement;
  return uint32_t(v >= SharedWindow && v < SharedWindow + WindowSize
                      ? v - SharedWindow
                      : v);
}

/// Adds a destination, checked and recorded under the barrier's actor.
bool addDestination(Exec &x, DeliveryOp &op, Cta *cta, uint32_t address,
                    uint32_t barrier, unsigned bytes, uint8_t flags,
                    unsigned lane) {
  uint32_t rank = cta->rank << 24;
  MemRef ref;
  if (!x.resolve(Space::Shared, rank | (address & 0xffffff), bytes, bytes, true,
                 lane, ref))
    return false;
  Mbarrier *b = findMbarrier(x, rank | (barrier & 0xffffff), lane, nullptr);
  if (!b)
    return false;
  if (x.sanitizing()) {
    checkMbarrierOverlap(x, ref, bytes, lane);
    Stamp stamp = x.stampHere(lane);
    stamp.actor = signalActor(*b, *cta, *x.cta);
    stamp.epoch = phaseEpoch(*b);
    stamp.flags = flags;
    Clock space;
    const Knowledge &know = x.warp->order.know;
    trackAs(x, stamp,
            flags & Stamp::AsyncProxy ? know.getAsync(true, cta->rank, space)
                                      : know.getGeneric(true, space),
            ref, bytes, true);
  }
  op.to.push_back(
      {cta, uint32_t(ref.offset), (barrier & 0xffffff) - SharedBase});
  return true;
}

void deliver(Exec &x, std::unique_ptr<DeliveryOp> op) {
  if (x.machine.config.asyncWrites == AsyncTiming::Issue) {
    op->complete(x.cluster);
    x.cluster.advance();
  } else {
    x.cluster.engine.push_back(std::move(op));
  }
}

/// Reports a request by a warp that can tell that an earlier one was denied.
void checkDenials(Exec &x) {
  if (!x.sanitizing())
    return;
  for (const auto &[index, denial] : x.cluster.denials) {
    if (!hasSeen(x, denial))
      continue;
    const Warp &from = *x.cluster.warps[index];
    Finding f;
    f.kind = FindingKind::InvalidOperation;
    f.message = "requests another cluster after a request was denied, which is "
                "undefined";
    f.first = x.siteOf(denial.inst, from.cta, from.id, -1);
    f.second = x.here();
    f.hint = "the first denial has to end the requests of the cluster";
    x.report(std::move(f));
    return;
  }
}

// ops: response address, barrier. flags 1: multicast.
void execTryCancel(Exec &x, const Inst &I) {
  checkDenials(x);
  x.checkPoison(I.ops[0], "an address");
  x.checkPoison(I.ops[1], "an mbarrier's address");
  forLanes(x.active, [&](unsigned lane) {
    if (x.action == Action::Fault)
      return;
    auto op = std::make_unique<DeliveryOp>();
    op->inst = x.pc;
    op->issuer = x.warp;
    op->control = controlOf(x);
    op->name = "a clusterlaunchcontrol.try_cancel";
    uint32_t address = sharedAddress(x, I.ops[0], I.imm, lane);
    uint32_t barrier = sharedAddress(x, I.ops[1], int64_t(I.imm2), lane);
    for (const auto &cta : x.cluster.ctas)
      if (I.flags & 1 || cta.get() == x.cta)
        if (!addDestination(x, *op, cta.get(), address, barrier, 16,
                            Stamp::Async | Stamp::AsyncProxy, lane))
          return;
    uint32_t response[4] = {0, 0, 0, 0};
    std::array<uint32_t, 3> id;
    if (x.machine.claimCluster(id)) {
      for (unsigned i = 0; i < 3; ++i)
        response[i] = id[i] * x.machine.config.cluster[i];
      response[3] = 1;
    }
    op->data.resize(16);
    std::memcpy(op->data.data(), response, 16);
    deliver(x, std::move(op));
  });
}

uint32_t responseWord(Exec &x, const Operand &o, unsigned lane, unsigned word) {
  return x.regs[o.off + 4 * lane + word];
}

void execIsCanceled(Exec &x, const Inst &I) {
  uint32_t r = 0;
  forLanes(x.active, [&](unsigned lane) {
    r |= uint32_t(responseWord(x, I.ops[1], lane, 3) & 1) << lane;
  });
  if (x.active & ~r & ~x.poison[I.ops[1].meta])
    x.cluster.denials.try_emplace(
        x.warp->index, WarpEvent{x.warp->index, x.warp->order.epoch, x.pc});
  x.setPred(I.ops[0], r);
  x.propagate<1>(I);
}

// flags: first word; ops: destinations, handle.
void execFirstCtaid(Exec &x, const Inst &I) {
  unsigned n = I.numOps - 1;
  const Operand &handle = I.ops[n];
  x.checkPoison(handle, "the response of a cancellation");
  forLanes(x.active, [&](unsigned lane) {
    if (x.action == Action::Fault)
      return;
    if (!(responseWord(x, handle, lane, 3) & 1))
      return x.fault(FindingKind::InvalidOperation,
                     "asks for the first CTA of a cancellation that failed",
                     lane);
    for (unsigned i = 0; i < n; ++i)
      x.r32(I.ops[i])[lane] =
          I.flags + i < 3 ? responseWord(x, handle, lane, I.flags + i) : 0;
  });
  for (unsigned i = 0; i < n; ++i)
    x.setPoison(I.ops[i], 0);
}

Error decodeLaunchControl(Decoding &c) {
  const auto &ops = c.ast.ops;
  c.program().usesAsyncProxy = true;
  if (c.take("try_cancel")) {
    if (!c.take("async") || !c.take("mbarrier::complete_tx::bytes"))
      return c.error("expected '.async' and its completion mechanism");
    c.takeAny({"shared::cta", "shared"});
    c.inst.flags = c.take("multicast::cluster::all");
    c.take("b128");
    ATTN_SIM_TRY(c.expectOps(2, 2));
    int64_t displacement;
    ATTN_SIM_TRY(c.address(ops[0], c.inst.imm));
    ATTN_SIM_TRY(c.address(ops[1], displacement));
    c.inst.imm2 = displacement;
    c.program().communicates = true;
    c.program().cancelsLaunches = true;
    c.program().sharedGranule = std::min(c.program().sharedGranule, 16u);
    return c.set(execTryCancel, InstClass::Bulk);
  }
  if (!c.take("query_cancel"))
    return c.error("expected '.try_cancel' or '.query_cancel'");
  ATTN_SIM_TRY(c.expectOps(2, 2));
  if (c.take("is_canceled")) {
    c.take("pred");
    c.take("b128");
    ATTN_SIM_TRY(c.dstPred(ops[0]));
    ATTN_SIM_TRY(c.src(ops[1], Type::B128));
    return c.set(execIsCanceled, InstClass::Other);
  }
  unsigned n = 1;
  if (c.take("get_first_ctaid")) {
    if (!c.take("v4"))
      return c.error("expected '.v4'");
    n = 4;
  } else {
    StringRef which = c.takeAny(
        {"get_first_ctaid::x", "get_first_ctaid::y", "get_first_ctaid::z"});
    if (which.empty())
      return c.error("unknown query");
    c.inst.flags = which.back() - 'x';
  }
  c.take("b32");
  c.take("b128");
  ATTN_SIM_TRY(c.dstVector(ops[0], Type::B32, n));
  ATTN_SIM_TRY(c.src(ops[1], Type::B128));
  return c.set(execFirstCtaid, InstClass::Other);
}

struct AsyncStoreAux {
  unsigned count = 1, bytes = 4;
  AtomicOp reduction = AtomicOp::Add;
  Type type = Type::None; ///< of a reduction
};

// ops: values, address, barrier.
void execAsyncStore(Exec &x, const Inst &I) {
  const auto &o = *static_cast<const AsyncStoreAux *>(I.aux);
  const Operand &base = I.ops[o.count], &barrierOp = I.ops[o.count + 1];
  if (!checkClusterLaunch(x, o.type == Type::None ? "st.async" : "red.async"))
    return;
  x.checkPoison(base, "an address");
  x.checkPoison(barrierOp, "an mbarrier's address");
  forLanes(x.active, [&](unsigned lane) {
    if (x.action == Action::Fault)
      return;
    uint32_t address = sharedAddress(x, base, I.imm, lane);
    uint32_t barrier = sharedAddress(x, barrierOp, int64_t(I.imm2), lane);
    uint32_t rank = address >> 24;
    if (rank >= x.cluster.ctas.size() || barrier >> 24 != rank)
      return x.fault(FindingKind::MbarrierMisuse,
                     "expected the mbarrier in the CTA of the destination",
                     lane);
    auto op = std::make_unique<DeliveryOp>();
    op->inst = x.pc;
    op->issuer = x.warp;
    op->control = controlOf(x);
    uint8_t flags = Stamp::Async | Stamp::Sent;
    if (o.type != Type::None) {
      op->name = "a red.async";
      op->reduction = o.reduction;
      op->type = o.type;
      flags |= Stamp::Strong;
    }
    if (!addDestination(x, *op, x.cluster.ctas[rank].get(), address, barrier,
                        o.bytes * o.count, flags, lane))
      return;
    for (unsigned i = 0; i < o.count; ++i) {
      uint64_t v = x.read(I.ops[i], lane);
      const auto *p = reinterpret_cast<const uint8_t *>(&v);
      op->data.append(p, p + o.bytes);
      op->defined &= !(x.poison[I.ops[i].meta] >> lane & 1);
    }
    deliver(x, std::move(op));
  });
}

} // namespace

bool mlir::attn::sim::checkClusterLaunch(Exec &x, StringRef what) {
  const auto &cluster = x.machine.config.cluster;
  if (cluster[0] * cluster[1] * cluster[2] > 1 ||
      x.machine.kernel.reqnctapercluster[0])
    return true;
  x.fault(FindingKind::InvalidOperation,
          "expected a launch with clusters for " + what + ", got one without");
  return false;
}

static Error decodeAsyncStore(Decoding &c) {
  auto *o = c.makeAux<AsyncStoreAux>();
  bool reduces = c.ast.base == "red";
  if (reduces) {
    if (!c.take("relaxed") || !c.take("cluster"))
      return c.error("expected 'red.async.relaxed.cluster'");
    if (!parseAtomicOp(
            c.takeAny({"add", "min", "max", "inc", "dec", "and", "or", "xor"}),
            o->reduction))
      return c.error("expected a reduction");
  }
  c.take("weak");
  c.take("shared::cluster");
  if (!c.take("mbarrier::complete_tx::bytes"))
    return c.error("expected '.mbarrier::complete_tx::bytes'");
  o->count = c.takeVector();
  Type t = c.takeType();
  o->bytes = bitWidth(t) / 8;
  if (o->bytes != 4 && o->bytes != 8)
    return c.error("unknown type");
  if (reduces)
    o->type = t;
  ATTN_SIM_TRY(c.expectOps(3, 3));
  ATTN_SIM_TRY(c.srcVector(c.ast.ops[1], t, o->count));
  int64_t displacement;
  ATTN_SIM_TRY(c.address(c.ast.ops[0], c.inst.imm));
  ATTN_SIM_TRY(c.address(c.ast.ops[2], displacement));
  c.inst.imm2 = displacement;
  c.program().sharedGranule =
      std::min(c.program().sharedGranule, o->bytes * o->count);
  return c.set(execAsyncStore, InstClass::StShared);
}

void mlir::attn::sim::registerClusterLaunchOps(DecodeTable &table) {
  table["clusterlaunchcontrol"] = decodeLaunchControl;
  table["st.async"] = table["red.async"] = decodeAsyncStore;
}
