//===- Sanitizer.h - Clocks and shadow memory ----------------------*- C++
//-*-===//
//
// Happens-before race detection. Actors are warps and in-order asynchronous
// streams (cp.async of a warp, bulk groups of a warp, an mbarrier's transaction
// phases, wgmma of a warpgroup, tcgen05 of a thread). Each actor counts epochs;
// an access is stamped (actor, epoch); whoever may rely on it has an epoch at
// least as large in his clock. A warp's knowledge of its own accesses is kept
// for each lane until the lanes synchronise.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SIMULATOR_SANITIZER_H
#define ATTN_LIB_SIMULATOR_SANITIZER_H

#include "llvm/ADT/SmallVector.h"
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace mlir::attn::sim {

/// What a clock knows of one actor: everything up to epoch `full`; up to epoch
/// `part` what the lanes in `lanes` did (0: what the asking lane itself did).
struct Component {
  uint32_t full = 0;
  uint32_t part = 0;
  uint32_t lanes = 0;

  void join(const Component &o) {
    if (o.part > o.full && o.part > full) {
      if (part <= full || lanes == o.lanes) {
        part = std::max(part, o.part);
        lanes = o.lanes;
      } else {
        part = std::max(part, o.part);
        lanes |= o.lanes;
      }
    }
    full = std::max(full, o.full);
  }
};

/// A vector clock over the actors of one cluster, and what it has learnt of
/// other clusters through global memory.
class Clock {
public:
  uint32_t cluster = ~0u; ///< ~0: takes the first one that it joins
  llvm::SmallVector<Component, 0> comps;
  std::map<uint32_t, llvm::SmallVector<Component, 0>> foreign;

  const Component &get(unsigned actor) const {
    static const Component none;
    return actor < comps.size() ? comps[actor] : none;
  }
  Component &at(unsigned actor) {
    if (actor >= comps.size())
      comps.resize(actor + 1);
    return comps[actor];
  }
  void join(const Clock &o);
  void clear() {
    comps.clear();
    foreign.clear();
  }
  bool empty() const { return comps.empty() && foreign.empty(); }
};

/// What an actor may rely on: with generic accesses, with accesses through the
/// async proxy, and in tensor memory. Releases and acquires carry all three.
struct Knowledge {
  Clock generic, async, tensor;

  void join(const Knowledge &o) {
    generic.join(o.generic);
    async.join(o.async);
    tensor.join(o.tensor);
  }
  void clear() {
    generic.clear();
    async.clear();
    tensor.clear();
  }
  bool empty() const {
    return generic.empty() && async.empty() && tensor.empty();
  }
};

/// Who touched a cell, and when on his own count.
struct Stamp {
  uint32_t epoch = 0; ///< 0: nobody
  uint32_t inst = 0;
  uint32_t cluster = 0;
  uint32_t cta = 0; ///< linear index in the grid
  uint16_t actor = 0;
  uint8_t warp = 0xFF;
  uint8_t lane = AllLanes;
  uint8_t flags = 0;

  static constexpr uint8_t AllLanes = 32;
  enum Flags : uint8_t {
    Strong = 1,     ///< atomic or volatile: no race with another strong access
    Async = 2,      ///< by an asynchronous engine
    AsyncProxy = 4, ///< through the async proxy
    Tensor = 8,     ///< tensor memory
    SameValue = 16, ///< a write that changes nothing
  };
};

/// Clock components of one accessing lane, for the check.
struct Observer {
  const Clock *clock;
  uint32_t cluster;
  uint8_t lane; ///< 32: collective

  bool knows(const Stamp &s) const {
    const Component *c;
    if (s.cluster == cluster) {
      c = &clock->get(s.actor);
    } else {
      auto it = clock->foreign.find(s.cluster);
      if (it == clock->foreign.end() || s.actor >= it->second.size())
        return false;
      c = &it->second[s.actor];
    }
    if (s.epoch <= c->full)
      return true;
    if (s.epoch > c->part)
      return false;
    if (c->lanes == 0)
      return s.lane == lane || s.lane == Stamp::AllLanes;
    return s.lane == Stamp::AllLanes ? c->lanes == ~0u
                                     : (c->lanes >> s.lane) & 1;
  }
};

/// Last writer and set of readers for each granule of a memory.
class Shadow {
public:
  void init(uint64_t bytes, unsigned granuleBytes) {
    granule = granuleBytes;
    cells.assign((bytes + granule - 1) / granule, Cell());
    pool.assign(1, ReadNode());
    freeList = 0;
  }
  bool empty() const { return cells.empty(); }
  unsigned getGranule() const { return granule; }

  /// Checks and records an access to [offset, offset + bytes). Calls
  /// `conflict(stamp, earlierWasWrite, offset)` for each unordered earlier
  /// access. At most `maxReaders` readers are kept for a granule.
  template <typename Fn>
  void access(uint64_t offset, uint64_t bytes, bool write, const Stamp &stamp,
              const Observer &observer, unsigned maxReaders, Fn &&conflict) {
    uint64_t first = offset / granule, last = (offset + bytes - 1) / granule;
    last = std::min<uint64_t>(last, cells.size() - 1);
    for (uint64_t i = first; i <= last; ++i) {
      Cell &cell = cells[i];
      const Stamp &w = cell.write;
      if (w.epoch && !(w.flags & stamp.flags & Stamp::Strong) &&
          !observer.knows(w))
        conflict(w, true, i * granule);
      if (!write) {
        addReader(cell, stamp, observer, maxReaders);
        continue;
      }
      for (uint32_t n = cell.reads; n;) {
        ReadNode &node = pool[n];
        if (!(node.stamp.flags & stamp.flags & Stamp::Strong) &&
            !observer.knows(node.stamp))
          conflict(node.stamp, false, i * granule);
        uint32_t next = node.next;
        node.next = freeList;
        freeList = n;
        n = next;
      }
      cell.reads = 0;
      cell.write = stamp;
    }
  }

  /// The last writer of a granule.
  const Stamp &writer(uint64_t offset) const {
    return cells[offset / granule].write;
  }

  /// Forgets an area, as when memory gets a new owner.
  void reset(uint64_t offset, uint64_t bytes) {
    for (uint64_t i = offset / granule,
                  e = (offset + bytes + granule - 1) / granule;
         i < e && i < cells.size(); ++i)
      cells[i] = Cell();
  }

private:
  struct Cell {
    Stamp write;
    uint32_t reads = 0;
  };
  struct ReadNode {
    Stamp stamp;
    uint32_t next = 0;
  };
  std::vector<Cell> cells;
  std::vector<ReadNode> pool;
  uint32_t freeList = 0;
  unsigned granule = 4;

  void addReader(Cell &cell, const Stamp &stamp, const Observer &observer,
                 unsigned maxReaders) {
    unsigned count = 0;
    uint32_t reusable = 0;
    for (uint32_t n = cell.reads; n; n = pool[n].next) {
      ReadNode &node = pool[n];
      if (node.stamp.actor == stamp.actor &&
          node.stamp.cluster == stamp.cluster &&
          (node.stamp.flags & Stamp::Strong) == (stamp.flags & Stamp::Strong)) {
        if (node.stamp.epoch == stamp.epoch && node.stamp.lane != stamp.lane)
          node.stamp.lane = Stamp::AllLanes;
        else
          node.stamp = stamp;
        return;
      }
      // Whoever is ordered after this read is ordered after that one too.
      if (!reusable && !(node.stamp.flags & (Stamp::Async | Stamp::Strong)) &&
          observer.knows(node.stamp))
        reusable = n;
      ++count;
    }
    if (reusable) {
      pool[reusable].stamp = stamp;
      return;
    }
    if (count >= maxReaders)
      return;
    uint32_t n = freeList;
    if (n) {
      freeList = pool[n].next;
    } else {
      n = pool.size();
      pool.emplace_back();
    }
    pool[n].stamp = stamp;
    pool[n].next = cell.reads;
    cell.reads = n;
  }
};

/// Shadow of global memory, in pages that are made on first use. Usable from
/// several host threads.
class GlobalShadow {
public:
  static constexpr uint64_t PageBytes = 4096;
  void init(unsigned granuleBytes) { granule = granuleBytes; }

  template <typename Fn>
  void access(uint64_t address, uint64_t bytes, bool write, const Stamp &stamp,
              const Observer &observer, Fn &&conflict) {
    while (bytes) {
      uint64_t page = address / PageBytes, offset = address % PageBytes;
      uint64_t part = std::min(bytes, PageBytes - offset);
      Stripe &stripe = stripes[page % NumStripes];
      std::lock_guard<std::mutex> lock(stripe.mutex);
      Shadow &shadow = stripe.pages[page];
      if (shadow.empty())
        shadow.init(PageBytes, granule);
      shadow.access(offset, part, write, stamp, observer, 4,
                    [&](const Stamp &s, bool wasWrite, uint64_t at) {
                      conflict(s, wasWrite, page * PageBytes + at);
                    });
      address += part;
      bytes -= part;
    }
  }

private:
  static constexpr unsigned NumStripes = 64;
  struct Stripe {
    std::mutex mutex;
    std::unordered_map<uint64_t, Shadow> pages;
  };
  Stripe stripes[NumStripes];
  unsigned granule = 4;
};

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_SANITIZER_H
