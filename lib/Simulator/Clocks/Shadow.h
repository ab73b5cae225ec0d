//===- Shadow.h - Who touched which cell last -------------------*- C++ -*-===//
//
// Shadow memory of the race detector: last writer and readers of each granule.
// Cells in the same state share it, so that a tile of an operand, which all
// warps of a product read, is decided once for each of them.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SIMULATOR_CLOCKS_SHADOW_H
#define ATTN_LIB_SIMULATOR_CLOCKS_SHADOW_H

#include "Clock.h"
#include "ShadowStates.h"
#include "ZeroPages.h"
#include "attn/Simulator/Clocks/TouchedRange.h"
#include "llvm/ADT/STLExtras.h"
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace mlir::attn::sim {

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
  /// Becomes true when an answer depends on lanes; whoever asks clears it
  /// before.
  bool usedLanes = false;

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
  bool knowsForeign(const Stamp &s) {
    auto it = clock.foreign.find(s.cluster);
    return it != clock.foreign.end() && covers(it->second.get(s.actor), s);
  }
  bool covers(const Component &c, const Stamp &s) {
    if (s.epoch <= c.full)
      return true;
    if (s.epoch > c.part)
      return false;
    usedLanes = true;
    if (c.lanes == 0)
      return s.lane == lane || s.lane == Stamp::AllLanes;
    return s.lane == Stamp::AllLanes ? c.lanes == ~0u : (c.lanes >> s.lane) & 1;
  }
};

class Shadow;

/// Holds how an access without conflicts changes a cell, so that other cells in
/// the same state are changed without deciding again.
struct ShadowDecision {
  const Shadow *shadow = nullptr; ///< whose cell; null without a decision
  uint64_t version = 0;           ///< of the shadow
  ShadowCell before, after;
  /// The bits of a cell that have to be as before, and those that stay.
  uint32_t decides = 0, stays = 0;
  bool forLanes = false; ///< the same whichever lane accesses
  uint16_t flags = 0;    ///< of the access

  bool holdsFor(ShadowCell cell) const {
    return !((cell.bits ^ before.bits) & decides);
  }
  void apply(ShadowCell &cell) const {
    cell.bits = after.bits | (cell.bits & stays);
  }
};

/// An access of one or several areas of a memory, and what orders it.
class ShadowAccess {
public:
  /// Goes on from `decision`, and leaves there what is decided last: lanes of
  /// one instruction decide alike if nothing is learnt between them.
  ShadowAccess(const Stamp &stamp, bool write, const Clock &clock,
               ShadowDecision *decision = nullptr)
      : stamp(stamp), write(write), observer(clock, stamp),
        last(decision ? *decision : own) {
    if (last.forLanes && last.flags == stamp.flags)
      setLanes(last.after.getState());
    else
      last.shadow = nullptr;
  }
  ShadowAccess(const ShadowAccess &) = delete;

  const Stamp stamp;
  const bool write;
  Observer observer;
  /// At most so many readers are kept for a granule.
  unsigned maxReaders = ~0u;

private:
  friend class Shadow;
  ShadowDecision own;
  ShadowDecision &last;

  /// Cells come into a state, by this access where it does not leave the lane.
  void setLanes(uint32_t state) {
    bool reads = !write && !(last.stays & ShadowCell::ReadLane);
    last.after =
        ShadowCell(state, write ? stamp.lane : 0, reads ? stamp.lane : 0);
  }
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
    assert(count < 1u << ShadowCell::StateBits && "each may have its own");
    cells = ZeroPages<ShadowCell>(count + 1);
    states = ShadowStates();
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
    ShadowDecision &decision = access.last;
    if (decision.version != states.getVersion())
      decision.shadow = nullptr;
    for (uint64_t i = first; i <= last; ++i) {
      if (decision.shadow == this)
        i = repeat(decision, i, last);
      if (i <= last)
        decide(cells[i], i * granule, access, note);
    }
    decision.version = states.getVersion();
    // A conflict elsewhere counts anew.
    if (!clean)
      decision.shadow = nullptr;
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
      ShadowState state = states.get(cells[i]);
      if (!state.write.isOwn())
        return state.read.isOwn() ||
                       llvm::any_of(states.getReaders(state), isOwn)
                   ? std::optional(Kind::Read)
                   : std::nullopt;
      return isStrong(state.write) && isStrong(state.read) &&
                     llvm::none_of(states.getReaders(state), isWritten)
                 ? Kind::Atomic
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

  /// Notes what a launch before did to an area, with its epoch.
  void seed(uint64_t offset, uint64_t bytes, const TouchedRange &range,
            uint32_t epoch);

  /// Forgets an area, as when memory gets a new owner.
  void reset(uint64_t offset, uint64_t bytes) {
    for (uint64_t i = offset / granule,
                  e = (offset + bytes + granule - 1) / granule;
         i < e && i < count; ++i) {
      states.release(cells[i].getState(), 1);
      cells[i] = ShadowCell();
    }
  }

private:
  ZeroPages<ShadowCell> cells;
  ShadowStates states;
  uint64_t count = 0;
  unsigned granule = 4;

  static bool isSame(const Stamp &a, const Stamp &b) {
    return a.actor == b.actor && a.cluster == b.cluster &&
           !((a.flags ^ b.flags) &
             (Stamp::Strong | Stamp::ReadOnly | Stamp::Written | Stamp::OfCta));
  }
  static void update(Stamp &to, ShadowAccess &access) {
    bool isSameEpoch = to.epoch == access.stamp.epoch;
    bool isOfOthers = isSameEpoch && to.lane != access.stamp.lane;
    access.observer.usedLanes |= isSameEpoch;
    to = access.stamp;
    if (isOfOthers)
      to.lane = Stamp::AllLanes;
  }
  static bool areStrong(const Stamp &earlier, const ShadowAccess &access) {
    const Stamp &own = access.stamp;
    return (earlier.flags & own.flags & Stamp::Strong) &&
           (!((earlier.flags | own.flags) & Stamp::OfCta) ||
            earlier.sameCta(own));
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

  /// Does what was decided for the cells from `i` on for which it holds.
  /// Returns the first other one.
  uint64_t repeat(const ShadowDecision &decision, uint64_t i, uint64_t last) {
    uint64_t first = i;
    for (; i <= last && decision.holdsFor(cells[i]); ++i)
      decision.apply(cells[i]);
    if (i != first)
      states.move(decision.before.getState(), decision.after.getState(),
                  i - first);
    return i;
  }
  template <typename Fn>
  void decide(ShadowCell &cell, uint64_t at, ShadowAccess &access, Fn &&note) {
    ShadowState state = states.get(cell);
    ShadowDecision &decision = access.last;
    decision.shadow = this;
    decision.before = cell;
    decision.stays = access.write ? 0 : ShadowCell::WriteLane;
    decision.forLanes = true;
    decision.flags = access.stamp.flags;
    access.observer.usedLanes = false;
    if (access.write)
      write(cell, state, at, access, note);
    else
      read(cell, state, at, access, note);
    decision.after = cell = states.change(cell, state);
    decision.decides = ShadowCell::State;
    if (access.observer.usedLanes) {
      decision.decides = ~0u;
      decision.stays = 0;
      decision.forLanes = false;
    } else {
      access.setLanes(cell.getState());
    }
  }
  template <typename Fn>
  void read(ShadowCell cell, ShadowState &state, uint64_t at,
            ShadowAccess &access, Fn &&conflict) {
    if (state.write.epoch && !isWriteOrdered(state.write, access))
      conflict(state.write, true, at);
    if (state.write.flags & Stamp::Strong)
      checkPlainWrite(state, at, access, conflict);
    if (!state.read.epoch)
      state.read = access.stamp;
    else if (isSame(state.read, access.stamp))
      update(state.read, access);
    else
      addReader(cell, state, access);
  }
  template <typename Fn>
  void write(ShadowCell cell, ShadowState &state, uint64_t at,
             ShadowAccess &access, Fn &&conflict) {
    if (state.write.epoch && !isWriteOrdered(state.write, access))
      conflict(state.write, true, at);
    checkPlainWrite(state, at, access, conflict);
    if (state.read.epoch && !isReadOrdered(state.read, access))
      conflict(state.read, false, at);
    for (const Stamp &reader : llvm::reverse(states.getReaders(state)))
      if (!isWritten(reader) && !isReadOrdered(reader, access))
        conflict(reader, false, at);
    Stamp before = std::exchange(state.write, access.stamp);
    if (state.more != ReaderLists::None || access.stamp.flags & Stamp::Strong)
      keepPlainWrite(cell, state, before, access);
    state.read = Stamp();
  }
  static bool isWritten(const Stamp &reader) {
    return reader.flags & Stamp::Written;
  }
  /// Strong accesses are no races with each other, but the last of them says
  /// nothing of a plain write before all: that stays among the readers.
  template <typename Fn>
  void checkPlainWrite(const ShadowState &state, uint64_t at,
                       ShadowAccess &access, Fn &&conflict) {
    for (const Stamp &reader : states.getReaders(state))
      if (isWritten(reader) && !isWriteOrdered(reader, access))
        conflict(reader, true, at);
  }
  /// Keeps it where a strong write follows the write `before`, or others.
  void keepPlainWrite(ShadowCell cell, ShadowState &state, const Stamp &before,
                      ShadowAccess &access);
  /// Adds to the readers of a state that was got for a cell.
  void addReader(ShadowCell cell, ShadowState &state, ShadowAccess &access);
};

/// Shadow of global memory, in pages that are made on first use. Usable from
/// several host threads.
class GlobalShadow {
public:
  static constexpr uint64_t PageBytes = 4096;
  unsigned getGranule() const { return granule; }
  /// `earlier` is what launches before have touched, each by address, the last
  /// one first; it outlives this.
  void init(unsigned granuleBytes,
            llvm::ArrayRef<llvm::ArrayRef<TouchedRange>> earlier) {
    granule = granuleBytes;
    seeds.assign(earlier.begin(), earlier.end());
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
  llvm::SmallVector<llvm::ArrayRef<TouchedRange>, 2> seeds;

  /// Begins a page with what launches before have done to it.
  void make(Shadow &shadow, uint64_t page) const;
};

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_CLOCKS_SHADOW_H
