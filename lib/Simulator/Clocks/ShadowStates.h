//===- ShadowStates.h - States that cells of a shadow share -----*- C++ -*-===//
//
// Most cells of a memory are in few states: a warp's instruction reads or
// writes many, of which only the lanes differ. So a cell is the number of a
// state and two lanes, and costs the fourth part of a stamp.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SIMULATOR_CLOCKS_SHADOWSTATES_H
#define ATTN_LIB_SIMULATOR_CLOCKS_SHADOWSTATES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <array>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <vector>

namespace mlir::attn::sim {

/// The actor that touched a cell, and when on its own count.
struct Stamp {
  static constexpr uint8_t AllLanes = 32;
  static constexpr uint32_t NoWarp = 63;
  static constexpr uint32_t MaxClusters = (1u << 22) - 1;
  /// In the place of a cluster: the launch before, which may still run.
  static constexpr uint32_t EarlierLaunch = MaxClusters;
  enum Flags : uint16_t {
    Strong = 1,     ///< atomic or volatile: no race with another strong access
    Async = 2,      ///< by an asynchronous engine
    AsyncProxy = 4, ///< through the async proxy
    Tensor = 8,     ///< tensor memory
    SameValue = 16, ///< a write that changes nothing
    Sent = 32,      ///< by st.async or red.async, as if from another CTA
    ReadOnly = 64,  ///< a read that holds only where nothing ever writes
    Written = 128,  ///< a plain write, among the readers: atomics followed
    OfCta = 256,    ///< a strong access that is one for its CTA alone
  };

  uint32_t epoch = 0; ///< 0: nobody
  uint32_t inst : 24;
  uint32_t lane : 8;     ///< at most AllLanes
  uint32_t cluster : 22; ///< linear in the grid
  uint32_t rank : 4;     ///< of the CTA in the cluster
  uint32_t warp : 6;     ///< in the CTA
  uint16_t actor = 0;
  uint16_t flags = 0;

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
static_assert(sizeof(Stamp) == 16, "two stamps make a state of half a line");

/// Lists of readers that states share. A list belongs to at least one state;
/// what several share never changes.
class ReaderLists {
public:
  static constexpr uint32_t None = 0;

  /// The newest comes last.
  llvm::ArrayRef<Stamp> get(uint32_t list) const {
    if (list == None)
      return {};
    return lists[list - 1].readers;
  }
  llvm::SmallVectorImpl<Stamp> &getOwn(uint32_t list) {
    return lists[list - 1].readers;
  }
  /// A list of the same readers that belongs to one state, not yet said which.
  uint32_t copy(uint32_t list);
  bool isShared(uint32_t list) const { return lists[list - 1].states > 1; }
  bool areIdentical(uint32_t a, uint32_t b) const {
    if (a == b)
      return true;
    llvm::ArrayRef<Stamp> left = get(a), right = get(b);
    return left.size() == right.size() &&
           !std::memcmp(left.data(), right.data(), left.size() * sizeof(Stamp));
  }
  void retain(uint32_t list) {
    if (list != None)
      ++lists[list - 1].states;
  }
  void release(uint32_t list) {
    if (list != None && --lists[list - 1].states == 0)
      free.push_back(list);
  }

private:
  struct List {
    llvm::SmallVector<Stamp, 4> readers;
    uint32_t states = 0;
  };
  std::vector<List> lists;
  std::vector<uint32_t> free;
};

/// Holds the accesses that a granule has seen.
struct ShadowState {
  Stamp write, read;
  uint32_t more = ReaderLists::None; ///< further readers
};

/// A granule: the number of its state, which says all but two lanes.
struct ShadowCell {
  static constexpr unsigned StateBits = 20, LaneBits = 6;
  static constexpr uint32_t State = (1u << StateBits) - 1;
  static constexpr uint32_t WriteLane = ((1u << LaneBits) - 1) << StateBits;
  static constexpr uint32_t ReadLane = WriteLane << LaneBits;

  uint32_t bits = 0;

  ShadowCell() = default;
  ShadowCell(uint32_t state, uint32_t writeLane, uint32_t readLane)
      : bits(state | writeLane << StateBits |
             readLane << (StateBits + LaneBits)) {}
  uint32_t getState() const { return bits & State; }
  uint32_t getWriteLane() const { return (bits & WriteLane) >> StateBits; }
  uint32_t getReadLane() const { return bits >> (StateBits + LaneBits); }
};
static_assert(sizeof(ShadowCell) == 4, "one for a few bytes of memory");

/// The states of a shadow's cells, without lanes. That of number 0 is the one
/// of cells that nobody has touched.
class ShadowStates {
public:
  ShadowState get(ShadowCell cell) const {
    const Entry &entry = entries[cell.getState()];
    ShadowState state{entry.write, entry.read, entry.more};
    state.write.lane = cell.getWriteLane();
    state.read.lane = cell.getReadLane();
    return state;
  }
  /// Returns what a cell becomes that gets this state, which was made from its
  /// own.
  ShadowCell change(ShadowCell cell, const ShadowState &to);
  /// So many cells in one state get another one.
  void move(uint32_t from, uint32_t to, uint32_t count) {
    entries[to].cells += count;
    release(from, count);
  }
  /// So many cells in a state are forgotten.
  void release(uint32_t state, uint32_t count) {
    if (state && (entries[state].cells -= count) == 0)
      drop(state);
  }

  llvm::ArrayRef<Stamp> getReaders(const ShadowState &state) const {
    return lists.get(state.more);
  }
  /// The further readers of a state that was got for a cell, to change.
  llvm::SmallVectorImpl<Stamp> &changeReaders(ShadowCell cell,
                                              ShadowState &state);
  /// Changes where the meaning of a number may: numbers are given again.
  uint64_t getVersion() const { return version; }

private:
  struct Entry {
    Stamp write, read;
    uint32_t more = ReaderLists::None;
    uint32_t cells = 0; ///< in this state
  };
  static constexpr unsigned NumRecent = 4;

  std::vector<Entry> entries = std::vector<Entry>(1);
  std::vector<uint32_t> free;
  ReaderLists lists;
  /// The states that were made last: cells beside each other become the same.
  std::array<uint32_t, NumRecent> recent{};
  unsigned newest = 0;
  uint64_t version = 0;

  void drop(uint32_t state) {
    ++version;
    lists.release(entries[state].more);
    free.push_back(state);
  }
  bool areIdentical(const Entry &a, const Entry &b) const {
    return a.write.isIdentical(b.write) && a.read.isIdentical(b.read) &&
           lists.areIdentical(a.more, b.more);
  }
  /// The number of such a state; 0 where none of the last ones is.
  uint32_t find(const Entry &entry, uint32_t own) const;
  uint32_t add(const Entry &entry);
};

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_CLOCKS_SHADOWSTATES_H
