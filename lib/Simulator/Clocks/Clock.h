//===- Clock.h - Vector clocks of the race detector -------------*- C++ -*-===//
//
// Actors are warps and in-order asynchronous streams (cp.async of a warp, bulk
// groups of a warp, an mbarrier's transaction phases, wgmma of a warpgroup,
// tcgen05 of a thread). Each actor counts epochs; an access is stamped (actor,
// epoch); whoever may rely on it has an epoch at least as large in his clock. A
// warp's knowledge of its own accesses is kept for each lane until the lanes
// synchronise.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SIMULATOR_CLOCKS_CLOCK_H
#define ATTN_LIB_SIMULATOR_CLOCKS_CLOCK_H

#include "llvm/ADT/SmallVector.h"
#include <algorithm>
#include <array>
#include <cstdint>
#include <map>

namespace mlir::attn::sim {

/// What a clock knows of one actor: everything up to epoch `full`; up to epoch
/// `part` what the lanes in `lanes` did (0: what the asking lane itself did).
struct Component {
  uint32_t full = 0;
  uint32_t part = 0;
  uint32_t lanes = 0;
};

/// Epochs of the actors of one cluster. Almost all components are whole, so
/// those that hold for some lanes only stand in a list.
class ActorEpochs {
public:
  bool empty() const { return full.empty() && partials.empty(); }
  void clear() {
    full.clear();
    partials.clear();
  }
  uint32_t fullOf(unsigned actor) const {
    return actor < full.size() ? full[actor] : 0;
  }
  Component get(unsigned actor) const {
    Component c;
    c.full = fullOf(actor);
    for (const Partial &p : partials)
      if (p.actor == actor) {
        c.part = p.part;
        c.lanes = p.lanes;
      }
    return c;
  }
  /// Everything up to an epoch is known.
  void raise(unsigned actor, uint32_t epoch) {
    if (actor >= full.size())
      full.resize(actor + 1);
    full[actor] = std::max(full[actor], epoch);
  }
  /// Up to an epoch, what some lanes did; forgets earlier partial knowledge.
  void setPart(unsigned actor, uint32_t epoch, uint32_t lanes);
  void dropPart(unsigned actor);
  /// Replaces what is known.
  void set(unsigned actor, const Component &c);
  /// Knows at most this epoch.
  void limit(unsigned actor, uint32_t epoch) {
    if (actor < full.size())
      full[actor] = std::min(full[actor], epoch);
  }
  void join(const ActorEpochs &o);

private:
  struct Partial {
    uint32_t actor, part, lanes;
  };
  llvm::SmallVector<uint32_t, 0> full;
  llvm::SmallVector<Partial, 4> partials;
};

/// A load of which no instruction has used a register: its warp goes on before
/// it has read. Its accesses are those of one instruction in one epoch.
struct UnusedLoad {
  uint32_t epoch = 0;
  uint32_t inst = 0;
  uint32_t signal = 0; ///< that told another CTA nevertheless, + 1
  uint16_t actor = 0;
  uint8_t rank = 0; ///< of the CTA
};

/// Generic stores of a warp, from an epoch on, that nothing with the scope of
/// the cluster has released.
struct UnreleasedStores {
  uint32_t from = 0;
  uint32_t signal = 0; ///< that told another CTA nevertheless, + 1
  uint16_t actor = 0;
  uint8_t rank = 0; ///< of the CTA
};

/// A vector clock over the actors of one cluster, and what it has learnt of
/// other clusters through global memory.
class Clock : public ActorEpochs {
public:
  uint32_t cluster = ~0u; ///< ~0: takes the first one that it joins
  std::map<uint32_t, ActorEpochs> foreign;
  /// Loads in the epochs that are known, by warps of the cluster, that nothing
  /// had used when they became known: their CTA may rely on them, others not.
  llvm::SmallVector<UnusedLoad, 0> unused;
  /// The same for stores, one entry for each warp.
  llvm::SmallVector<UnreleasedStores, 0> unreleased;

  using ActorEpochs::join;
  void join(const Clock &o);
  void clear() {
    ActorEpochs::clear();
    foreign.clear();
    unused.clear();
    unreleased.clear();
  }
  bool empty() const { return ActorEpochs::empty() && foreign.empty(); }
  const UnusedLoad *findUnused(uint16_t actor, uint32_t epoch,
                               uint32_t inst) const {
    for (const UnusedLoad &load : unused)
      if (load.actor == actor && load.epoch == epoch && load.inst == inst)
        return &load;
    return nullptr;
  }
  /// The entry that the store is one of.
  const UnreleasedStores *findUnreleased(uint16_t actor, uint32_t epoch) const {
    for (const UnreleasedStores &stores : unreleased)
      if (stores.actor == actor && stores.from <= epoch)
        return &stores;
    return nullptr;
  }

  /// Up to which something is known, if only of some lanes.
  uint32_t getKnownEpoch(uint16_t actor) const {
    Component c = get(actor);
    return std::max(c.full, c.part);
  }

private:
  /// The last epoch whose stores are known and released.
  uint32_t getReleasedEpoch(uint16_t actor) const;
  void joinUnreleased(const Clock &o);
  void joinUnused(const Clock &o);
  /// Knows of the load, and that it has read.
  bool hasRead(const UnusedLoad &load) const {
    return getKnownEpoch(load.actor) >= load.epoch &&
           !findUnused(load.actor, load.epoch, load.inst);
  }
};

/// What an actor may rely on: with generic accesses, with accesses through the
/// async proxy by the memory that they are to, and in tensor memory. Releases
/// and acquires carry all of it. `control` is what must have been executed
/// before, whatever it publishes: relaxed signals carry it too.
struct Knowledge {
  /// `async` is of shared memory, of all CTAs of the cluster.
  Clock generic, async, asyncGlobal, tensor, control;
  /// Generic accesses of shared memory, from fences that are restricted to it.
  Clock genericShared;
  /// Through the async proxy, of the shared memory of one CTA, by its rank: in
  /// clusters, from fences that are restricted to the CTA.
  std::map<uint32_t, Clock> asyncOf;

  /// What the end of an asynchronous operation is told to.
  std::array<Clock *, 4> getStreams() {
    return {&generic, &async, &asyncGlobal, &tensor};
  }
  /// What an access through the async proxy may rely on, in the shared memory
  /// of a CTA or in global memory. `space` holds the answer where it is made
  /// from several clocks.
  const Clock &getAsync(bool isShared, uint32_t rank, Clock &space) const;
  /// The same for a generic access.
  const Clock &getGeneric(bool isShared, Clock &space) const;
  /// Keeps what is about shared memory.
  void restrictToShared();
  /// Calls `fn` with each clock that orders accesses of shared or global
  /// memory.
  template <typename Fn>
  void forMemory(Fn &&fn) {
    for (Clock *clock : {&generic, &async, &asyncGlobal, &genericShared})
      fn(*clock);
    for (auto &[rank, clock] : asyncOf)
      fn(clock);
  }

  void join(const Knowledge &o);
  void clear() { *this = Knowledge(); }
  bool empty() const {
    return generic.empty() && async.empty() && asyncGlobal.empty() &&
           tensor.empty() && control.empty() && genericShared.empty() &&
           asyncOf.empty();
  }
};

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_CLOCKS_CLOCK_H
