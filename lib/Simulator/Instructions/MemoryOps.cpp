//===- MemoryOps.cpp - Loads and stores -----------------------------------===//

#include "Alu.h"
#include "MemoryTraffic.h"

using namespace mlir::attn::sim;
using llvm::Error;
using llvm::StringRef;

namespace {

struct MemAux {
  Space space = Space::Generic;
  unsigned count = 1; ///< elements
  unsigned bytes = 4; ///< of one element
  Type type = Type::B32;
  MemorySemantics semantics;
};

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
  uint8_t flags = o.semantics.strong ? Stamp::Strong : 0;
  uint32_t poisoned[16] = {};
  TrafficCounter traffic(total);
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
    x.track(ref, total, false, flags, lane);
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
  traffic.finishLoad(x, seen, "ld.shared");
}

void execStore(Exec &x, const Inst &I) {
  const auto &o = *static_cast<const MemAux *>(I.aux);
  const Operand &base = I.ops[o.count];
  unsigned total = o.count * o.bytes;
  if (x.poisonOf(base))
    x.checkPoison(base, "an address");
  uint8_t flags = o.semantics.strong ? Stamp::Strong : 0;
  TrafficCounter traffic(total);
  Space seen = o.space;
  bool ok = true;
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
    bool same = ref.valid && x.sanitizing();
    for (unsigned i = 0; i < o.count && same; ++i) {
      const Operand &s = I.ops[i];
      uint64_t v = s.cls == RegClass::R128 ? 0 : x.read(s, lane);
      same = s.cls != RegClass::R128 &&
             !std::memcmp(ref.data + i * o.bytes, &v, o.bytes) &&
             std::all_of(ref.valid + i * o.bytes, ref.valid + (i + 1) * o.bytes,
                         [](uint8_t b) { return b; });
    }
    x.track(ref, total, true, same ? uint8_t(flags | Stamp::SameValue) : flags,
            lane);
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
    return decodeAsyncStore(c);
  if (store && c.take("bulk"))
    return decodeBulkStore(c);
  auto *o = c.makeAux<MemAux>();
  c.take("weak");
  c.take("nc");
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

Error decodePrefetch(Decoding &c) {
  c.mods.clear();
  return c.set([](Exec &, const Inst &) {}, InstClass::Other);
}

/// Where every scope is that of the GPU the narrower ones are not kept.
unsigned firstScope(const Exec &x) {
  return unsigned(x.machine.program.narrowScopes ? SyncScope::Cta
                                                 : SyncScope::Gpu);
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
  Knowledge own = x.release();
  if (space == FenceSpace::All || space == FenceSpace::Global)
    w.know.asyncGlobal.join(own.generic);
  if (space == FenceSpace::Global)
    return;
  bool isOfOne = space == FenceSpace::SharedCta && x.cluster.ctas.size() > 1;
  Clock &shared = isOfOne ? w.know.asyncOf[x.cta->rank] : w.know.async;
  shared.join(own.generic);
  shared.join(own.genericShared);
}

/// `imm` is the scope, `imm2` the FenceSpace.
void execFence(Exec &x, const Inst &I) {
  if (!x.sanitizing())
    return;
  Warp &w = *x.warp;
  if (I.flags & FenceMbarrierInit)
    w.fencedInits = w.initialised;
  if (I.flags & FenceAcquire) {
    Knowledge acquired;
    for (unsigned s = firstScope(x); s <= unsigned(I.imm); ++s) {
      acquired.join(w.pendingAcquire[s]);
      // A later fence may acquire what this one leaves out.
      if (!(I.flags & FenceRestricted))
        w.pendingAcquire[s].clear();
    }
    if (I.flags & FenceRestricted)
      acquired.restrictToShared();
    x.acquire(acquired);
    if (I.flags & FenceAsync)
      w.know.async.join(acquired.genericShared);
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

//===----------------------------------------------------------------------===//
// Shared with the other memory instructions
//===----------------------------------------------------------------------===//

Error mlir::attn::sim::takeSemantics(Decoding &c, MemorySemantics &s) {
  if (c.take("volatile") || c.take("relaxed"))
    s.strong = true;
  if (c.take("acquire"))
    s.strong = s.acquire = true;
  if (c.take("release"))
    s.strong = s.release = true;
  if (c.take("acq_rel"))
    s.strong = s.acquire = s.release = true;
  if (c.take("mmio"))
    s.strong = true;
  s.scope = takeScope(c, SyncScope::Gpu);
  return Error::success();
}

SyncScope mlir::attn::sim::takeScope(Decoding &c, SyncScope otherwise) {
  StringRef name = c.takeAny({"cta", "cluster", "gpu", "sys"});
  SyncScope scope = name == "cta"       ? SyncScope::Cta
                    : name == "cluster" ? SyncScope::Cluster
                    : name.empty()      ? otherwise
                                        : SyncScope::Gpu;
  c.program().narrowScopes |= scope != SyncScope::Gpu;
  return scope;
}

void mlir::attn::sim::releaseAtFence(Exec &x, SyncScope scope,
                                     bool isRestricted) {
  Knowledge k = x.release();
  if (isRestricted)
    k.restrictToShared();
  for (unsigned s = firstScope(x); s < unsigned(scope); ++s)
    x.warp->fenceRelease[s] = k;
  x.warp->fenceRelease[unsigned(scope)] = std::move(k);
}

/// What is published to a location for those who share the scope.
static std::pair<uint64_t, uint64_t> syncKey(Exec &x, const MemRef &ref,
                                             unsigned scope) {
  bool shared = ref.space == Space::Shared;
  uint64_t who = scope == unsigned(SyncScope::Cta) ? x.cta->linear
                 : shared || scope == unsigned(SyncScope::Cluster)
                     ? x.cluster.linear
                     : ~0u;
  uint64_t address =
      shared ? SharedWindow + (uint64_t(ref.cta->rank) << 24) + ref.offset
             : ref.address;
  return {address, uint64_t(scope) << 32 | who};
}

void mlir::attn::sim::observeStrong(Exec &x, const MemorySemantics &s,
                                    const MemRef &ref) {
  if (!x.sanitizing())
    return;
  std::lock_guard<std::mutex> lock(x.machine.syncMutex);
  for (unsigned scope = firstScope(x); scope <= unsigned(s.scope); ++scope) {
    auto it = x.machine.syncVariables.find(syncKey(x, ref, scope));
    if (it == x.machine.syncVariables.end())
      continue;
    if (s.acquire)
      x.acquire(it->second);
    else
      x.warp->pendingAcquire[scope].join(it->second);
  }
}

void mlir::attn::sim::publishStrong(Exec &x, const MemorySemantics &s,
                                    const MemRef &ref) {
  if (!x.sanitizing())
    return;
  Knowledge own;
  if (s.release)
    own = x.release();
  std::lock_guard<std::mutex> lock(x.machine.syncMutex);
  for (unsigned scope = firstScope(x); scope <= unsigned(s.scope); ++scope) {
    const Knowledge &k = s.release ? own : x.warp->fenceRelease[scope];
    if (!k.empty())
      x.machine.syncVariables[syncKey(x, ref, scope)].join(k);
  }
}

void mlir::attn::sim::checkMbarrierOverlap(Exec &x, const MemRef &ref,
                                           uint64_t bytes, int lane) {
  auto it = ref.cta->mbarriers.lower_bound(
      ref.offset >= 7 ? uint32_t(ref.offset) - 7 : 0);
  if (it == ref.cta->mbarriers.end() || it->first >= ref.offset + bytes ||
      it->first + 8 <= ref.offset)
    return;
  Finding f;
  f.kind = FindingKind::MbarrierMisuse;
  f.message = "writes over an mbarrier that is in use";
  f.first = x.siteOf(it->second.initInst, ref.cta, -1, -1);
  f.second = x.here(lane);
  f.space = "shared";
  f.offset = ref.offset;
  f.address = ref.address;
  f.bytes = bytes;
  f.hint = "mbarrier.inval has to come before the memory is used otherwise";
  x.report(std::move(f));
}

//===----------------------------------------------------------------------===//
// Traffic
//===----------------------------------------------------------------------===//

void TrafficCounter::add(const MemRef &ref, unsigned lane) {
  if (ref.space == Space::Shared || ref.space == Space::Global) {
    addresses[count] = ref.space == Space::Shared ? ref.offset : ref.address;
    lanes[count++] = lane;
  }
}

/// Wavefronts of one access: lanes are served in groups that together move 128
/// bytes; within a group each bank delivers one word a wavefront.
void TrafficCounter::shared(Exec &x, const char *name) {
  if (!count)
    return;
  SharedTraffic &t = x.cluster.counters.shared[name];
  unsigned perGroup = bytes <= 4 ? 32 : std::max(1u, 128 / bytes);
  unsigned wavefronts = 0, least = 0;
  for (unsigned i = 0; i < count;) {
    unsigned group = lanes[i] / perGroup;
    std::array<llvm::SmallVector<uint64_t, 4>, 32> banks;
    unsigned worst = 0;
    for (; i < count && lanes[i] / perGroup == group; ++i)
      for (uint64_t word = addresses[i] / 4,
                    last = (addresses[i] + bytes - 1) / 4;
           word <= last; ++word) {
        auto &list = banks[word % 32];
        if (!llvm::is_contained(list, word))
          list.push_back(word);
        worst = std::max<unsigned>(worst, list.size());
      }
    wavefronts += worst;
    ++least;
  }
  ++t.instructions;
  t.wavefronts += wavefronts;
  t.conflicts += wavefronts - least;
  t.bytes += uint64_t(bytes) * count;
}

unsigned TrafficCounter::sectors() const {
  llvm::SmallVector<uint64_t, 64> list;
  for (unsigned i = 0; i < count; ++i)
    for (uint64_t s = addresses[i] / 32, e = (addresses[i] + bytes - 1) / 32;
         s <= e; ++s)
      if (list.empty() || list.back() != s)
        list.push_back(s);
  llvm::sort(list);
  return std::unique(list.begin(), list.end()) - list.begin();
}

void TrafficCounter::finishLoad(Exec &x, Space space, const char *name) {
  if (space == Space::Shared) {
    shared(x, name);
  } else if (space == Space::Global) {
    Counters &c = x.cluster.counters;
    ++c.globalLoadInstructions;
    unsigned asked = sectors();
    c.globalLoadSectors += asked;
    c.l2.readBytes += 32 * asked;
    c.l2.deliveredBytes += 32 * asked;
    c.globalLoadBytes += uint64_t(count) * bytes;
  }
}
void TrafficCounter::finishStore(Exec &x, Space space, const char *name) {
  if (space == Space::Shared) {
    shared(x, name);
  } else if (space == Space::Global) {
    Counters &c = x.cluster.counters;
    ++c.globalStoreInstructions;
    unsigned asked = sectors();
    c.globalStoreSectors += asked;
    c.l2.writtenBytes += 32 * asked;
    c.globalStoreBytes += uint64_t(count) * bytes;
  }
}

void mlir::attn::sim::registerMemoryOps(DecodeTable &table) {
  table["ld"] = table["st"] = table["ldu"] = decodeLoadStore;
  table["prefetch"] = table["prefetchu"] = table["applypriority"] =
      table["discard"] = decodePrefetch;
  table["fence"] = table["membar"] = decodeFence;
  table["createpolicy"] = decodeCreatePolicy;
}
