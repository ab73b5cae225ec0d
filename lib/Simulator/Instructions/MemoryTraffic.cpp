//===- MemoryTraffic.cpp - What memory instructions share -----------------===//

#include "MemoryTraffic.h"
#include "../Sanitizer/Ordering.h"

using namespace mlir::attn::sim;
using llvm::Error;
using llvm::StringRef;

unsigned mlir::attn::sim::firstScope(const Exec &x) {
  return unsigned(x.machine.program.narrowScopes ? SyncScope::Cta
                                                 : SyncScope::Gpu);
}

//===----------------------------------------------------------------------===//
// Strong accesses
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
  Knowledge k = release(x, scope);
  if (isRestricted)
    k.restrictToShared();
  for (unsigned s = firstScope(x); s < unsigned(scope); ++s)
    x.warp->order.fenceRelease[s] = k;
  x.warp->order.fenceRelease[unsigned(scope)] = std::move(k);
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
      acquire(x, it->second);
    else
      x.warp->order.pendingAcquire[scope].join(it->second);
  }
}

void mlir::attn::sim::publishStrong(Exec &x, const MemorySemantics &s,
                                    const MemRef &ref) {
  if (!x.sanitizing())
    return;
  Knowledge own;
  if (s.release)
    own = release(x, s.scope);
  std::lock_guard<std::mutex> lock(x.machine.syncMutex);
  for (unsigned scope = firstScope(x); scope <= unsigned(s.scope); ++scope) {
    const Knowledge &k = s.release ? own : x.warp->order.fenceRelease[scope];
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
    // The different words of each bank, as chains.
    std::array<uint64_t, 64> words;
    std::array<uint8_t, 64> next;
    std::array<uint8_t, 32> heads{}, sizes{};
    unsigned used = 0, worst = 0;
    for (; i < count && lanes[i] / perGroup == group; ++i)
      for (uint64_t word = addresses[i] / 4,
                    last = (addresses[i] + bytes - 1) / 4;
           word <= last; ++word) {
        unsigned bank = word % 32, at = heads[bank];
        while (at && words[at - 1] != word)
          at = next[at - 1];
        if (at)
          continue;
        words[used] = word;
        next[used] = heads[bank];
        heads[bank] = ++used;
        worst = std::max<unsigned>(worst, ++sizes[bank]);
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
