//===- Shadow.h - Who touched which cell last -------------------*- C++ -*-===//
//
// Shadow memory of the race detector: last writer and readers of each granule.
// A cell holds one reader; further ones are in lists on the side. Cells that
// the same warps have read share one, so that a tile of an operand, which all
// warps of a product read, is decided once for each of them.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SIMULATOR_CLOCKS_SHADOW_H
#define ATTN_LIB_SIMULATOR_CLOCKS_SHADOW_H

#include "Clock.h"
#include "ZeroPages.h"
#include "attn/Simulator/Clocks/TouchedRange.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
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
  static constexpr uint32_t MaxClusters = (1u << 22) - 1;
  /// In the place of a cluster: the launch before, which may still run.
  static constexpr uint32_t EarlierLaunch = MaxClusters;
  enum Flags : uint8_t {
    Strong = 1,     ///< atomic or volatile: no race with another strong access
    Async = 2,      ///< by an asynchronous engine
    AsyncProxy = 4, ///< through the async proxy
    Tensor = 8,     ///< tensor memory
    SameValue = 16, ///< a write that changes nothing
    Sent = 32,      ///< by st.async or red.async, as if from another CTA
    ReadOnly = 64,  ///< a read that holds only where nothing ever writes
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
  bool isOfEarlierLaunch() const { return cluster == EarlierLaunch; }
  /// True for an access of this launch.
  bool isOwn() const { return epoch && !isOfEarlierLaunch(); }
  bool isIdentical(const Stamp &o) const {
    return !std::memcmp(this, &o, sizeof(Stamp));
  }
};
static_assert(sizeof(Stamp) == 16, "two stamps make a cell of half a line");

/// Clock components of one accessing lane, for the check.
class Observer {
public:
  Observer(const Clock &clock, const Stamp &stamp)
      : clock(clock), cluster(stamp.cluster), rank(stamp.rank),
        lane(stamp.lane), isSent(stamp.flags & Stamp::Sent) {}

  /// May rely on the read, on the write.
  bool knowsRead(const Stamp &s) {
    return knowsEpoch(s) && ((s.rank == rank && !isSent) || !isUnused(s));
  }
  bool knowsWrite(const Stamp &s) {
    return knowsEpoch(s) && (s.rank == rank || !isUnreleased(s));
  }
  /// Whoever may rely on what the observer does may rely on the read.
  bool knowsForAll(const Stamp &s) { return knowsEpoch(s) && !isUnused(s); }

private:
  const Clock &clock;
  uint32_t cluster;
  uint8_t rank; ///< of the CTA
  uint8_t lane; ///< 32: collective
  bool isSent;
  /// The component that was asked for last.
  uint32_t lastActor = ~0u;
  Component last;

  bool isUnused(const Stamp &s) const {
    return !clock.unused.empty() && s.cluster == cluster &&
           clock.findUnused(s.actor, s.epoch, s.inst);
  }
  bool isUnreleased(const Stamp &s) const {
    return !clock.unreleased.empty() && s.cluster == cluster &&
           clock.findUnreleased(s.actor, s.epoch);
  }
  bool knowsEpoch(const Stamp &s) {
    if (s.actor != lastActor || s.cluster != cluster) {
      if (s.cluster != cluster)
        return knowsForeign(s);
      lastActor = s.actor;
      last = clock.get(s.actor);
    }
    return covers(last, s);
  }
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

/// Lists of readers that cells share. A list belongs to at least one cell; what
/// several share never changes.
class ReaderLists {
public:
  static constexpr uint32_t None = 0;

  ReaderLists() : lists(1) {}
  /// The newest comes last.
  llvm::ArrayRef<Stamp> get(uint32_t list) const { return lists[list].readers; }
  void retain(uint32_t list) { ++lists[list].cells; }
  void release(uint32_t list) {
    if (list != None && --lists[list].cells == 0)
      free.push_back(list);
  }
  /// The list of one cell that had `list` before, to change.
  uint32_t makeOwn(uint32_t list);
  llvm::SmallVectorImpl<Stamp> &getOwn(uint32_t list) {
    return lists[list].readers;
  }

private:
  struct List {
    llvm::SmallVector<Stamp, 4> readers;
    uint32_t cells = 0;
  };
  std::vector<List> lists;
  std::vector<uint32_t> free;
};

/// The state of one granule.
struct ShadowCell {
  Stamp write, read;
  uint32_t more = ReaderLists::None; ///< further readers

  bool operator==(const ShadowCell &o) const {
    return more == o.more && write.isIdentical(o.write) &&
           read.isIdentical(o.read);
  }
};

/// An access of one or several areas of a memory, and what orders it.
struct ShadowAccess {
  ShadowAccess(const Stamp &stamp, bool write, const Clock &clock)
      : stamp(stamp), write(write), observer(clock, stamp) {}

  Stamp stamp;
  bool write;
  Observer observer;
  /// At most so many readers are kept for a granule.
  unsigned maxReaders = ~0u;

  /// What comes is in another shadow, or others have had it since.
  void forgetCells() { repeats = false; }

private:
  friend class Shadow;
  /// The cell that was decided last, if another one in its state becomes the
  /// same.
  bool repeats = false;
  ShadowCell before, after;
};

/// Says how a granule was touched: written by strong accesses alone, or at all.
enum class ShadowTouch { Read, Write, Atomic };

/// Last writer and set of readers for each granule of a memory.
class Shadow {
public:
  /// Cells are zero pages until they are touched.
  void init(uint64_t bytes, unsigned granuleBytes) {
    granule = granuleBytes;
    count = (bytes + granule - 1) / granule;
    cells = ZeroPages<ShadowCell>(count + 1);
    lists = ReaderLists();
  }
  bool empty() const { return !cells; }
  Shadow clone() const;

  /// Checks and records an access to [offset, offset + bytes). Calls
  /// `conflict(stamp, earlierWasWrite, offset)` for each unordered earlier
  /// access. Cells in the same state are decided once.
  template <typename Fn>
  void access(uint64_t offset, uint64_t bytes, ShadowAccess &access,
              Fn &&conflict) {
    uint64_t first = offset / granule, last = (offset + bytes - 1) / granule;
    last = std::min<uint64_t>(last, count - 1);
    bool clean = true;
    auto note = [&](const Stamp &s, bool wasWrite, uint64_t at) {
      clean = false;
      conflict(s, wasWrite, at);
    };
    for (uint64_t i = first; i <= last; ++i) {
      ShadowCell &cell = cells[i];
      if (access.repeats && cell == access.before) {
        lists.retain(access.after.more);
        lists.release(cell.more);
        cell = access.after;
        continue;
      }
      access.before = cell;
      access.repeats = true;
      if (access.write)
        write(cell, i * granule, access, note);
      else
        read(cell, i * granule, access, note);
      access.after = cell;
    }
    // A conflict elsewhere counts anew.
    access.repeats &= clean;
  }

  /// Calls `touched(offset, bytes, kind)` for each area that was touched, in
  /// their order.
  template <typename Fn>
  void forEachTouched(Fn &&touched) const {
    using Kind = ShadowTouch;
    auto isStrong = [](const Stamp &stamp) {
      return !stamp.epoch || stamp.flags & Stamp::Strong;
    };
    auto isOwn = [](const Stamp &stamp) { return stamp.isOwn(); };
    auto kindOf = [&](uint64_t i) -> std::optional<Kind> {
      if (i >= count)
        return std::nullopt;
      const ShadowCell &cell = cells[i];
      if (!cell.write.isOwn())
        return cell.read.isOwn() || llvm::any_of(lists.get(cell.more), isOwn)
                   ? std::optional(Kind::Read)
                   : std::nullopt;
      return isStrong(cell.write) && isStrong(cell.read) ? Kind::Atomic
                                                         : Kind::Write;
    };
    for (uint64_t i = 0; i < count;) {
      std::optional<Kind> kind = kindOf(i);
      uint64_t first = i++;
      while (i < count && kindOf(i) == kind)
        ++i;
      if (kind)
        touched(first * granule, (i - first) * granule, *kind);
    }
  }

  /// Notes what the launch before did to an area.
  void seed(uint64_t offset, uint64_t bytes, const TouchedRange &range);

  /// Forgets an area, as when memory gets a new owner.
  void reset(uint64_t offset, uint64_t bytes) {
    for (uint64_t i = offset / granule,
                  e = (offset + bytes + granule - 1) / granule;
         i < e && i < count; ++i) {
      lists.release(cells[i].more);
      cells[i] = ShadowCell();
    }
  }

private:
  ZeroPages<ShadowCell> cells;
  ReaderLists lists;
  uint64_t count = 0;
  unsigned granule = 4;

  static bool isSame(const Stamp &a, const Stamp &b) {
    return a.actor == b.actor && a.cluster == b.cluster &&
           !((a.flags ^ b.flags) & (Stamp::Strong | Stamp::ReadOnly));
  }
  static void update(Stamp &to, const Stamp &stamp) {
    bool isOfOthers = to.epoch == stamp.epoch && to.lane != stamp.lane;
    to = stamp;
    if (isOfOthers)
      to.lane = Stamp::AllLanes;
  }
  static bool areStrong(const Stamp &earlier, const ShadowAccess &access) {
    return earlier.flags & access.stamp.flags & Stamp::Strong;
  }
  static bool isReadOrdered(const Stamp &earlier, ShadowAccess &access) {
    return !(earlier.flags & Stamp::ReadOnly) &&
           (access.observer.knowsRead(earlier) || areStrong(earlier, access));
  }
  static bool isWriteOrdered(const Stamp &earlier, ShadowAccess &access) {
    if (isEarlierLaunchOver(earlier, access))
      return true;
    return !(access.stamp.flags & Stamp::ReadOnly) &&
           (access.observer.knowsWrite(earlier) || areStrong(earlier, access));
  }
  /// A launch that is over has nothing to do with how this one loads.
  static bool isEarlierLaunchOver(const Stamp &earlier, ShadowAccess &access) {
    return earlier.isOfEarlierLaunch() && access.observer.knowsWrite(earlier);
  }

  template <typename Fn>
  void read(ShadowCell &cell, uint64_t at, ShadowAccess &access,
            Fn &&conflict) {
    if (cell.write.epoch && !isWriteOrdered(cell.write, access))
      conflict(cell.write, true, at);
    if (!cell.read.epoch)
      cell.read = access.stamp;
    else if (isSame(cell.read, access.stamp))
      update(cell.read, access.stamp);
    else
      addReader(cell, access);
  }
  template <typename Fn>
  void write(ShadowCell &cell, uint64_t at, ShadowAccess &access,
             Fn &&conflict) {
    if (cell.write.epoch && !isWriteOrdered(cell.write, access))
      conflict(cell.write, true, at);
    cell.write = access.stamp;
    if (!cell.read.epoch)
      return;
    if (!isReadOrdered(cell.read, access))
      conflict(cell.read, false, at);
    for (const Stamp &reader : llvm::reverse(lists.get(cell.more)))
      if (!isReadOrdered(reader, access))
        conflict(reader, false, at);
    lists.release(cell.more);
    cell.more = ReaderLists::None;
    cell.read = Stamp();
  }
  void addReader(ShadowCell &cell, ShadowAccess &access);
};

/// Shadow of global memory, in pages that are made on first use. Usable from
/// several host threads.
class GlobalShadow {
public:
  static constexpr uint64_t PageBytes = 4096;
  unsigned getGranule() const { return granule; }
  /// `earlier` is what the launch before has touched, by address; it outlives
  /// this.
  void init(unsigned granuleBytes, llvm::ArrayRef<TouchedRange> earlier) {
    granule = granuleBytes;
    seeds = earlier;
    for (Stripe &s : stripes) {
      s.pages.clear();
      s.lastPage = ~uint64_t(0);
    }
  }

  /// Like Shadow::access.
  template <typename Fn>
  void access(uint64_t address, uint64_t bytes, ShadowAccess &access,
              Fn &&conflict) {
    access.maxReaders = 4;
    while (bytes) {
      uint64_t page = address / PageBytes, offset = address % PageBytes;
      uint64_t part = std::min(bytes, PageBytes - offset);
      Stripe &stripe = stripes[page % NumStripes];
      std::lock_guard<std::mutex> lock(stripe.mutex);
      if (stripe.lastPage != page) {
        stripe.lastPage = page;
        stripe.last = &stripe.pages[page];
        if (stripe.last->empty())
          make(*stripe.last, page);
      }
      // Each page has lists of its own.
      access.forgetCells();
      stripe.last->access(offset, part, access,
                          [&](const Stamp &s, bool wasWrite, uint64_t at) {
                            conflict(s, wasWrite, page * PageBytes + at);
                          });
      address += part;
      bytes -= part;
    }
  }

  /// Like Shadow::forEachTouched, with addresses.
  template <typename Fn>
  void forEachTouched(Fn &&touched) const {
    std::vector<std::pair<uint64_t, const Shadow *>> pages;
    for (const Stripe &stripe : stripes)
      for (const auto &[page, shadow] : stripe.pages)
        pages.push_back({page, &shadow});
    llvm::sort(pages, llvm::less_first());
    for (const auto &[page, shadow] : pages)
      shadow->forEachTouched([&, first = page * PageBytes](uint64_t offset,
                                                           uint64_t bytes,
                                                           ShadowTouch kind) {
        touched(first + offset, bytes, kind);
      });
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
  llvm::ArrayRef<TouchedRange> seeds;

  /// Begins a page with what the launch before has done to it.
  void make(Shadow &shadow, uint64_t page) const;
};

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_CLOCKS_SHADOW_H
