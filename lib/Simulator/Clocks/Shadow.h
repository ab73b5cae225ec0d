//===- Shadow.h - Who touched which cell last -------------------*- C++ -*-===//
//
// Shadow memory of the race detector: last writer and readers of each granule.
// A cell holds one reader; further ones are in a list on the side, which cells
// in shared use by several warps need only.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SIMULATOR_CLOCKS_SHADOW_H
#define ATTN_LIB_SIMULATOR_CLOCKS_SHADOW_H

#include "Clock.h"
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace mlir::attn::sim {

/// Who touched a cell, and when on his own count.
struct Stamp {
  static constexpr uint8_t AllLanes = 32;
  static constexpr uint32_t NoWarp = 63;
  static constexpr uint32_t MaxClusters = 1u << 22;
  enum Flags : uint8_t {
    Strong = 1,     ///< atomic or volatile: no race with another strong access
    Async = 2,      ///< by an asynchronous engine
    AsyncProxy = 4, ///< through the async proxy
    Tensor = 8,     ///< tensor memory
    SameValue = 16, ///< a write that changes nothing
  };

  uint32_t epoch = 0; ///< 0: nobody
  uint32_t inst : 24;
  uint32_t lane : 8;
  uint32_t cluster : 22; ///< linear in the grid
  uint32_t rank : 4;     ///< of the CTA in the cluster
  uint32_t warp : 6;     ///< in the CTA
  uint16_t actor = 0;
  uint8_t flags = 0;
  uint8_t unused = 0;

  Stamp() : inst(0), lane(AllLanes), cluster(0), rank(0), warp(NoWarp) {}
  bool sameCta(const Stamp &o) const {
    return cluster == o.cluster && rank == o.rank;
  }
};
static_assert(sizeof(Stamp) == 16, "two stamps make a cell of half a line");

/// Clock components of one accessing lane, for the check.
class Observer {
public:
  Observer(const Clock &clock, uint32_t cluster, uint8_t lane)
      : clock(clock), cluster(cluster), lane(lane) {}

  bool knows(const Stamp &s) {
    if (s.actor != lastActor || s.cluster != cluster) {
      if (s.cluster != cluster)
        return knowsForeign(s);
      lastActor = s.actor;
      last = clock.get(s.actor);
    }
    return covers(last, s);
  }

private:
  const Clock &clock;
  uint32_t cluster;
  uint8_t lane; ///< 32: collective
  /// The component that was asked for last.
  uint32_t lastActor = ~0u;
  Component last;

  bool knowsForeign(const Stamp &s) const {
    auto it = clock.foreign.find(s.cluster);
    return it != clock.foreign.end() && covers(it->second.get(s.actor), s);
  }
  bool covers(const Component &c, const Stamp &s) const {
    if (s.epoch <= c.full)
      return true;
    if (s.epoch > c.part)
      return false;
    if (c.lanes == 0)
      return s.lane == lane || s.lane == Stamp::AllLanes;
    return s.lane == Stamp::AllLanes ? c.lanes == ~0u : (c.lanes >> s.lane) & 1;
  }
};

/// Last writer and set of readers for each granule of a memory.
class Shadow {
public:
  /// Cells are zero pages until they are touched.
  void init(uint64_t bytes, unsigned granuleBytes) {
    granule = granuleBytes;
    count = (bytes + granule - 1) / granule;
    cells.reset(static_cast<Cell *>(std::calloc(count + 1, sizeof(Cell))));
    heads.reset();
    pool.assign(1, Node());
    freeList = 0;
  }
  bool empty() const { return !cells; }
  unsigned getGranule() const { return granule; }

  /// Checks and records an access to [offset, offset + bytes). Calls
  /// `conflict(stamp, earlierWasWrite, offset)` for each unordered earlier
  /// access. At most `maxReaders` readers are kept for a granule. Neighbours
  /// in the same state are decided once.
  template <typename Fn>
  void access(uint64_t offset, uint64_t bytes, bool write, const Stamp &stamp,
              Observer &observer, unsigned maxReaders, Fn &&conflict) {
    uint64_t first = offset / granule, last = (offset + bytes - 1) / granule;
    last = std::min<uint64_t>(last, count - 1);
    Cell before, after;
    bool repeats = false;
    for (uint64_t i = first; i <= last; ++i) {
      Cell &cell = cells[i];
      if (repeats && !std::memcmp(&cell, &before, sizeof(Cell))) {
        cell = after;
        continue;
      }
      before = cell;
      repeats = !(cell.read.flags & HasMore);
      const Stamp &w = cell.write;
      if (w.epoch && !observer.knows(w) &&
          !(w.flags & stamp.flags & Stamp::Strong))
        conflict(w, true, i * granule);
      const Stamp &r = cell.read;
      if (!write) {
        if (!r.epoch)
          cell.read = stamp;
        else if (isSame(r, stamp))
          update(cell.read, stamp);
        else
          addReader(i, cell, stamp, observer, maxReaders);
        repeats &= !(cell.read.flags & HasMore);
        after = cell;
        continue;
      }
      if (r.epoch) {
        if (!observer.knows(r) && !(r.flags & stamp.flags & Stamp::Strong))
          conflict(r, false, i * granule);
        if (r.flags & HasMore)
          checkMore(i, stamp, observer, conflict);
        cell.read = Stamp();
      }
      cell.write = stamp;
      after = cell;
    }
  }

  /// Forgets an area, as when memory gets a new owner.
  void reset(uint64_t offset, uint64_t bytes) {
    for (uint64_t i = offset / granule,
                  e = (offset + bytes + granule - 1) / granule;
         i < e && i < count; ++i) {
      if (cells[i].read.flags & HasMore)
        dropMore(i);
      cells[i] = Cell();
    }
  }

private:
  struct Cell {
    Stamp write, read;
  };
  /// A further reader; 0 ends a list.
  struct Node {
    Stamp stamp;
    uint32_t next = 0;
  };
  struct Free {
    void operator()(void *p) const { std::free(p); }
  };
  /// Set in Cell::read: there are more readers on the side.
  static constexpr uint8_t HasMore = 128;

  std::unique_ptr<Cell[], Free> cells;
  std::unique_ptr<uint32_t[], Free> heads; ///< made when there are any
  std::vector<Node> pool;
  uint32_t freeList = 0;
  uint64_t count = 0;
  unsigned granule = 4;

  static bool isSame(const Stamp &a, const Stamp &b) {
    return a.actor == b.actor && a.cluster == b.cluster &&
           !((a.flags ^ b.flags) & Stamp::Strong);
  }
  static void update(Stamp &to, const Stamp &stamp) {
    uint8_t keep = to.flags & HasMore;
    if (to.epoch == stamp.epoch && to.lane != stamp.lane) {
      to.lane = Stamp::AllLanes;
    } else {
      to = stamp;
      to.flags |= keep;
    }
  }

  template <typename Fn>
  void checkMore(uint64_t i, const Stamp &stamp, Observer &observer,
                 Fn &&conflict) {
    for (uint32_t n = heads[i]; n; n = pool[n].next) {
      const Stamp &r = pool[n].stamp;
      if (!observer.knows(r) && !(r.flags & stamp.flags & Stamp::Strong))
        conflict(r, false, i * granule);
    }
    dropMore(i);
  }
  /// Gives the list of a cell back.
  void dropMore(uint64_t i) {
    uint32_t last = heads[i];
    while (pool[last].next)
      last = pool[last].next;
    pool[last].next = freeList;
    freeList = heads[i];
    heads[i] = 0;
  }

  void addReader(uint64_t i, Cell &cell, const Stamp &stamp, Observer &observer,
                 unsigned maxReaders);
};

/// Shadow of global memory, in pages that are made on first use. Usable from
/// several host threads.
class GlobalShadow {
public:
  static constexpr uint64_t PageBytes = 4096;
  unsigned getGranule() const { return granule; }
  void init(unsigned granuleBytes) {
    granule = granuleBytes;
    for (Stripe &s : stripes) {
      s.pages.clear();
      s.lastPage = ~uint64_t(0);
    }
  }

  template <typename Fn>
  void access(uint64_t address, uint64_t bytes, bool write, const Stamp &stamp,
              Observer &observer, Fn &&conflict) {
    while (bytes) {
      uint64_t page = address / PageBytes, offset = address % PageBytes;
      uint64_t part = std::min(bytes, PageBytes - offset);
      Stripe &stripe = stripes[page % NumStripes];
      std::lock_guard<std::mutex> lock(stripe.mutex);
      if (stripe.lastPage != page) {
        stripe.lastPage = page;
        stripe.last = &stripe.pages[page];
        if (stripe.last->empty())
          stripe.last->init(PageBytes, granule);
      }
      stripe.last->access(offset, part, write, stamp, observer, 4,
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
    uint64_t lastPage = ~uint64_t(0);
    Shadow *last = nullptr;
  };
  Stripe stripes[NumStripes];
  unsigned granule = 4;
};

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_CLOCKS_SHADOW_H
