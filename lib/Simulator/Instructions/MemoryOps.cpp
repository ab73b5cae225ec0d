//===- MemoryOps.cpp - Loads and stores -----------------------------------===//

#include "../Sanitizer/OpenAccesses.h"
#include "../Sanitizer/Ordering.h"
#include "../Sanitizer/Races.h"
#include "MemoryTraffic.h"
#include "SyncInstructions.h"

using namespace mlir::attn::sim;
using llvm::Error;
using llvm::StringRef;

namespace {

struct MemAux {
  Space space = Space::Generic;
  unsigned count = 1; ///< elements
  unsigned bytes = 4; ///< of one element
  Type type = Type::B32;
  bool readOnly = false; ///< `.nc`
  MemorySemantics semantics;
};

/// That `discard` takes.
constexpr unsigned DiscardedBytes = 128;

uint64_t loadElement(Type t, const uint8_t *data, unsigned bytes) {
  uint64_t v = 0;
  std::memcpy(&v, data, std::min(bytes, 8u));
  switch (t) {
  case Type::S8:
    return uint64_t(int64_t(int8_t(v)));
  case Type::S16:
    return uint64_t(int64_t(int16_t(v)));
  case Type::S32:
    return uint64_t(int64_t(int32_t(v)));
  default:
    return v;
  }
}

void execLoad(Exec &x, const Inst &I) {
  const auto &o = *static_cast<const MemAux *>(I.aux);
  const Operand &base = I.ops[o.count];
  unsigned total = o.count * o.bytes;
  if (x.poisonOf(base))
    x.checkPoison(base, "an address");
  uint16_t flags = o.readOnly ? Stamp::ReadOnly : o.semantics.getFlags();
  uint32_t poisoned[16] = {};
  TrafficCounter traffic(total);
  ShadowDecision decided;
  Space seen = o.space;
  bool ok = true;
  forLanes(x.active, [&](unsigned lane) {
    if (!ok)
      return;
    uint64_t address = x.read(base, lane) + I.imm;
    if (base.cls == RegClass::R32)
      address = uint32_t(address);
    MemRef ref;
    if (!x.resolve(o.space, address, total, total, false, lane, ref)) {
      ok = false;
      return;
    }
    seen = ref.space;
    traffic.add(ref, lane);
    if (o.semantics.strong)
      observeStrong(x, o.semantics, ref);
    track(x, ref, total, false, flags, lane,
          o.semantics.strong ? nullptr : &decided);
    for (unsigned i = 0; i < o.count; ++i) {
      const uint8_t *data = ref.data + i * o.bytes;
      if (ref.valid)
        for (unsigned b = 0; b < o.bytes; ++b)
          if (!ref.valid[i * o.bytes + b]) {
            poisoned[i] |= 1u << lane;
            break;
          }
      const Operand &d = I.ops[i];
      if (d.cls == RegClass::R128)
        std::memcpy(&x.regs[d.off + 4 * lane], data, 16);
      else
        x.write(d, lane, loadElement(o.type, data, o.bytes));
    }
  });
  if (!ok)
    return;
  for (unsigned i = 0; i < o.count; ++i)
    x.setPoison(I.ops[i], poisoned[i], x.pc + 1);
  // Nothing goes on before an acquire has read.
  if (!o.semantics.acquire && (seen == Space::Shared || seen == Space::Global))
    noteLoad(x, I);
  traffic.finishLoad(x, seen, "ld.shared");
}

void execStore(Exec &x, const Inst &I) {
  const auto &o = *static_cast<const MemAux *>(I.aux);
  const Operand &base = I.ops[o.count];
  unsigned total = o.count * o.bytes;
  if (x.poisonOf(base))
    x.checkPoison(base, "an address");
  uint16_t flags = o.semantics.getFlags();
  TrafficCounter traffic(total);
  ShadowDecision decided;
  Space seen = o.space;
  bool ok = true, changes = false;
  forLanes(x.active, [&](unsigned lane) {
    if (!ok)
      return;
    uint64_t address = x.read(base, lane) + I.imm;
    if (base.cls == RegClass::R32)
      address = uint32_t(address);
    MemRef ref;
    if (!x.resolve(o.space, address, total, total, true, lane, ref)) {
      ok = false;
      return;
    }
    seen = ref.space;
    traffic.add(ref, lane);
    if (ref.space == Space::Shared && !ref.cta->mbarriers.empty())
      checkMbarrierOverlap(x, ref, total, lane);
    bool same = x.sanitizing();
    for (unsigned i = 0; i < o.count && same; ++i) {
      const Operand &s = I.ops[i];
      uint64_t v = s.cls == RegClass::R128 ? 0 : x.read(s, lane);
      same = s.cls != RegClass::R128 &&
             !std::memcmp(ref.data + i * o.bytes, &v, o.bytes) &&
             (!ref.valid || std::all_of(ref.valid + i * o.bytes,
                                        ref.valid + (i + 1) * o.bytes,
                                        [](uint8_t b) { return b; }));
    }
    changes |= !same;
    track(x, ref, total, true, same ? uint8_t(flags | Stamp::SameValue) : flags,
          lane, o.semantics.strong ? nullptr : &decided);
    for (unsigned i = 0; i < o.count; ++i) {
      const Operand &s = I.ops[i];
      bool bad = x.poison[s.meta] >> lane & 1;
      if (bad && ref.space == Space::Global && x.sanitizing()) {
        uint32_t saved = x.active;
        x.active = 1u << lane;
        x.checkPoison(s, "a value stored to global memory");
        x.active = saved;
        bad = false;
      }
      uint8_t *data = ref.data + i * o.bytes;
      if (s.cls == RegClass::R128) {
        std::memcpy(data, &x.regs[s.off + 4 * lane], 16);
      } else {
        uint64_t v = x.read(s, lane);
        std::memcpy(data, &v, o.bytes);
      }
      if (ref.valid)
        std::memset(ref.valid + i * o.bytes, bad ? 0 : 1, o.bytes);
    }
    if (o.semantics.strong)
      publishStrong(x, o.semantics, ref);
  });
  x.cluster.writes += changes;
  if (!ok)
    return;
  traffic.finishStore(x, seen, "st.shared");
}

InstClass loadClass(Space s) {
  switch (s) {
  case Space::Shared:
    return InstClass::LdShared;
  case Space::Local:
    return InstClass::LdLocal;
  case Space::Param:
    return InstClass::LdParam;
  default:
    return InstClass::LdGlobal;
  }
}
InstClass storeClass(Space s) {
  switch (s) {
  case Space::Shared:
    return InstClass::StShared;
  case Space::Local:
  case Space::Param:
    return InstClass::StLocal;
  default:
    return InstClass::StGlobal;
  }
}

Error decodeLoadStore(Decoding &c) {
  bool store = c.ast.base == "st";
  if (store && c.take("async"))
    return c.decodeAs("st.async");
  if (store && c.take("bulk"))
    return c.decodeAs("st.bulk");
  auto *o = c.makeAux<MemAux>();
  c.take("weak");
  o->readOnly = c.take("nc");
  ATTN_SIM_TRY(takeSemantics(c, o->semantics));
  StringRef space =
      c.takeAny({"global", "shared", "shared::cta", "shared::cluster", "local",
                 "param", "param::entry", "param::func", "const"});
  c.takeCacheHints();
  c.take("unified");
  o->space = space == "global" || space == "const" ? Space::Global
             : space.starts_with("shared")         ? Space::Shared
             : space == "local"                    ? Space::Local
             : space.starts_with("param")          ? Space::Param
                                                   : Space::Generic;
  o->count = c.takeVector();
  o->type = c.takeType();
  o->bytes = bitWidth(o->type) / 8;
  if (!o->bytes)
    return c.error("unknown type");
  if (o->bytes * o->count > 32)
    return c.error("expected at most 32 bytes a thread");
  // A cache-policy operand may follow.
  ATTN_SIM_TRY(c.expectOps(2, 3));
  const AstOperand &value = c.ast.ops[store ? 1 : 0];
  const AstOperand &address = c.ast.ops[store ? 0 : 1];
  if (address.kind != AstOperand::Address)
    return c.error("expected an address in brackets");
  ATTN_SIM_TRY(store ? c.srcVector(value, o->type, o->count)
                     : c.dstVector(value, o->type, o->count));
  ATTN_SIM_TRY(c.address(address, c.inst.imm));
  if (o->space == Space::Param &&
      address.elems.front().kind == AstOperand::Name) {
    // Parameters of device functions live in local memory.
    const Scope::Entry *e = c.d.lookup(address.elems.front().name);
    if (e && e->kind == Scope::Entry::Param)
      o->space = Space::Local;
  }
  ProgramImpl &p = c.program();
  unsigned total = o->bytes * o->count;
  if (o->space == Space::Shared || o->space == Space::Generic)
    p.sharedGranule = std::min(p.sharedGranule, total);
  if (o->space == Space::Global || o->space == Space::Generic)
    p.globalGranule = std::min(p.globalGranule, total);
  if (o->semantics.strong && o->space != Space::Shared)
    p.communicates = true;
  return c.set(store ? execStore : execLoad,
               store ? storeClass(o->space) : loadClass(o->space));
}

/// What was there is undefined until it is written again.
void execDiscard(Exec &x, const Inst &I) {
  x.checkPoison(I.ops[0], "an address");
  forLanes(x.active, [&](unsigned lane) {
    MemRef ref;
    if (x.action == Action::Fault ||
        !x.resolve(Space::Generic, x.read(I.ops[0], lane) + I.imm,
                   DiscardedBytes, DiscardedBytes, true, lane, ref))
      return;
    if (ref.space != Space::Global)
      return x.fault(FindingKind::InvalidOperation,
                     "expected an address in global memory", lane);
    track(x, ref, DiscardedBytes, true, 0, lane);
    if (ref.valid)
      std::memset(ref.valid, 0, DiscardedBytes);
  });
}

Error decodeDiscard(Decoding &c) {
  c.take("global");
  int64_t bytes;
  if (!c.take("L2"))
    return c.error("expected '.L2'");
  ATTN_SIM_TRY(c.expectOps(2, 2));
  ATTN_SIM_TRY(c.address(c.ast.ops[0], c.inst.imm));
  ATTN_SIM_TRY(c.immediate(c.ast.ops[1], bytes));
  if (bytes != DiscardedBytes)
    return c.error("expected a size of 128, got " + llvm::Twine(bytes));
  return c.set(execDiscard, InstClass::Other);
}

/// Hints: whatever they say, they read and write nothing.
Error decodePrefetch(Decoding &c) {
  c.mods.clear();
  return c.set([](Exec &, const Inst &) {}, InstClass::Other);
}

/// What a fence does; each bit is a part of it.
enum FenceFlags : uint8_t {
  FenceAcquire = 1,
  FenceRelease = 2,
  FenceAsync = 4, ///< generic accesses before, async ones after it
  FenceMbarrierInit = 8,
  FenceRestricted = 16, ///< to shared memory
};

/// The memory that a fence of the async proxy is about.
enum class FenceSpace : uint8_t { All, Global, SharedCta, SharedCluster };

/// Hands what the lanes know of generic accesses to the async proxy.
void passToAsyncProxy(Exec &x, FenceSpace space) {
  Warp &w = *x.warp;
  // Seen on hardware: stores are in place for other CTAs behind it.
  completeStores(x);
  Knowledge own = release(x);
  if (space == FenceSpace::All || space == FenceSpace::Global)
    w.order.know.asyncGlobal.join(own.generic);
  if (space == FenceSpace::Global)
    return;
  bool isOfOne = space == FenceSpace::SharedCta && x.cluster.ctas.size() > 1;
  Clock &shared =
      isOfOne ? w.order.know.asyncOf[x.cta->rank] : w.order.know.async;
  shared.join(own.generic);
  shared.join(own.genericShared);
}

/// `imm` is the scope, `imm2` the FenceSpace.
void execFence(Exec &x, const Inst &I) {
  if (!x.sanitizing())
    return;
  Warp &w = *x.warp;
  if (I.flags & FenceMbarrierInit)
    w.mbarriers.fencedInits = w.mbarriers.initialised;
  if (I.flags & FenceAcquire) {
    Knowledge acquired;
    for (unsigned s = firstScope(x); s <= unsigned(I.imm); ++s) {
      acquired.join(w.order.pendingAcquire[s]);
      // A later fence may acquire what this one leaves out.
      if (!(I.flags & FenceRestricted))
        w.order.pendingAcquire[s].clear();
    }
    if (I.flags & FenceRestricted)
      acquired.restrictToShared();
    acquire(x, acquired);
    if (I.flags & FenceAsync)
      w.order.know.async.join(acquired.genericShared);
  } else if (I.flags & FenceAsync) {
    passToAsyncProxy(x, FenceSpace(I.imm2));
  }
  if (I.flags & FenceRelease)
    releaseAtFence(x, SyncScope(I.imm), I.flags & FenceRestricted);
}

/// `.acquire` or `.release` of a fence that goes one way: its flag, or 0.
uint8_t takeDirection(Decoding &c) {
  if (c.take("acquire"))
    return FenceAcquire;
  return c.take("release") ? FenceRelease : 0;
}

/// `.sync_restrict`: acquires are about shared memory of the cluster, releases
/// about that of the CTA, and the scope is the cluster.
Error takeRestriction(Decoding &c) {
  bool acquires = c.inst.flags & FenceAcquire;
  if (!c.take(acquires ? "sync_restrict::shared::cluster"
                       : "sync_restrict::shared::cta") ||
      !c.take("cluster"))
    return c.error(llvm::Twine("expected '.") +
                   (acquires ? "sync_restrict::shared::cluster.cluster'"
                             : "sync_restrict::shared::cta.cluster'"));
  c.inst.flags |= FenceRestricted;
  c.inst.imm = unsigned(SyncScope::Cluster);
  c.program().narrowScopes = true;
  return Error::success();
}

Error decodeProxyFence(Decoding &c) {
  StringRef what =
      c.takeAny({"async", "async::generic", "alias", "tensormap::generic"});
  if (what.empty())
    return c.error("unknown proxy fence");
  if (what == "alias") // Simulated memory has one address for each byte.
    return c.expectOps(0, 0);
  if (what == "async") {
    c.program().usesAsyncProxy = true;
    c.inst.flags = FenceAsync;
    StringRef space = c.takeAny({"global", "shared::cta", "shared::cluster"});
    c.inst.imm2 = unsigned(space == "global"        ? FenceSpace::Global
                           : space == "shared::cta" ? FenceSpace::SharedCta
                           : space.empty() ? FenceSpace::All
                                           : FenceSpace::SharedCluster);
    return c.expectOps(0, 0);
  }
  c.inst.flags = takeDirection(c);
  if (!c.inst.flags)
    return c.error("expected '.acquire' or '.release'");
  if (what == "async::generic") {
    c.program().usesAsyncProxy = true;
    ATTN_SIM_TRY(takeRestriction(c));
    // The release is the generic side of the pair, the acquire the async one.
    if (c.inst.flags & FenceAcquire)
      c.inst.flags |= FenceAsync;
    return c.expectOps(0, 0);
  }
  // The map is read as other memory is, so that the pair is a release and an
  // acquire.
  c.inst.imm = unsigned(takeScope(c, SyncScope::Gpu));
  unsigned operands = c.inst.flags & FenceAcquire ? 2 : 0;
  return c.expectOps(operands, operands);
}

Error decodeFence(Decoding &c) {
  ATTN_SIM_TRY(c.set(execFence, InstClass::Fence));
  if (c.take("proxy"))
    return decodeProxyFence(c);
  if (c.take("mbarrier_init")) {
    if (!c.take("release") || !c.take("cluster"))
      return c.error("expected 'fence.mbarrier_init.release.cluster'");
    c.inst.flags = FenceMbarrierInit;
    return c.expectOps(0, 0);
  }
  c.inst.flags = takeDirection(c);
  bool isRestricted = llvm::any_of(
      c.mods, [](StringRef mod) { return mod.starts_with("sync_restrict"); });
  if (c.inst.flags && isRestricted) {
    ATTN_SIM_TRY(takeRestriction(c));
    return c.expectOps(0, 0);
  }
  if (!c.inst.flags) {
    c.inst.flags = FenceAcquire | FenceRelease;
    c.takeAny({"sc", "acq_rel"});
  }
  c.inst.imm = unsigned(takeScope(c, SyncScope::Gpu));
  c.take("gl");
  return c.expectOps(0, 0);
}

void execCreatePolicy(Exec &x, const Inst &I) {
  forLanes(x.active, [&](unsigned l) { x.write(I.ops[0], l, 0); });
  x.setPoison(I.ops[0], 0);
}

Error decodeCreatePolicy(Decoding &c) {
  c.mods.clear();
  ATTN_SIM_TRY(c.expectOps(1, 4));
  ATTN_SIM_TRY(c.dst(c.ast.ops[0], Type::B64));
  return c.set(execCreatePolicy, InstClass::Other);
}

} // namespace

void mlir::attn::sim::registerMemoryOps(DecodeTable &table) {
  table["ld"] = table["st"] = table["ldu"] = decodeLoadStore;
  table["prefetch"] = table["prefetchu"] = table["applypriority"] =
      decodePrefetch;
  table["discard"] = decodeDiscard;
  table["fence"] = table["membar"] = decodeFence;
  table["createpolicy"] = decodeCreatePolicy;
}
