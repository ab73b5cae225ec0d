//===- Clock.cpp - Vector clocks of the race detector ---------------------===//

#include "Clock.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir::attn::sim;

void ActorEpochs::setPart(unsigned actor, uint32_t epoch, uint32_t lanes) {
  for (Partial &p : partials)
    if (p.actor == actor) {
      p.part = epoch;
      p.lanes = lanes;
      return;
    }
  partials.push_back({actor, epoch, lanes});
}

void ActorEpochs::dropPart(unsigned actor) {
  llvm::erase_if(partials, [&](const Partial &p) { return p.actor == actor; });
}

void ActorEpochs::set(unsigned actor, const Component &c) {
  if (actor >= full.size())
    full.resize(actor + 1);
  full[actor] = c.full;
  if (c.part > c.full)
    setPart(actor, c.part, c.lanes);
  else
    dropPart(actor);
}

void ActorEpochs::join(const ActorEpochs &o) {
  size_t n = o.full.size();
  if (full.size() < n)
    full.resize(n);
  uint32_t *to = full.data();
  const uint32_t *from = o.full.data();
  for (size_t i = 0; i < n; ++i)
    to[i] = std::max(to[i], from[i]);
  for (const Partial &p : o.partials) {
    if (p.part <= o.fullOf(p.actor) || p.part <= fullOf(p.actor))
      continue;
    bool found = false;
    for (Partial &mine : partials) {
      if (mine.actor != p.actor)
        continue;
      found = true;
      if (mine.part <= fullOf(p.actor))
        mine = p;
      else if (mine.lanes != p.lanes)
        mine.lanes |= p.lanes;
      mine.part = std::max(mine.part, p.part);
    }
    if (!found)
      partials.push_back(p);
  }
  llvm::erase_if(partials,
                 [&](const Partial &p) { return p.part <= fullOf(p.actor); });
}

/// What one of the two knows to have read has read.
void Clock::joinUnused(const Clock &o) {
  if (unused.empty() && o.unused.empty())
    return;
  llvm::SmallVector<UnusedLoad, 8> both;
  for (const UnusedLoad &load : unused)
    if (!o.hasRead(load))
      both.push_back(load);
  for (const UnusedLoad &load : o.unused)
    if (!hasRead(load) && !findUnused(load.actor, load.epoch, load.inst))
      both.push_back(load);
  unused.assign(both.begin(), both.end());
}

uint32_t Clock::getReleasedEpoch(uint16_t actor) const {
  uint32_t epoch = getKnownEpoch(actor);
  for (const UnreleasedStores &stores : unreleased)
    if (stores.actor == actor)
      epoch = std::min(epoch, stores.from - 1);
  return epoch;
}

/// What one of the two knows to be released is.
void Clock::joinUnreleased(const Clock &o) {
  if (unreleased.empty() && o.unreleased.empty())
    return;
  llvm::SmallVector<UnreleasedStores, 8> both;
  auto add = [&](UnreleasedStores stores) {
    auto isOfActor = [&](const UnreleasedStores &other) {
      return other.actor == stores.actor;
    };
    uint32_t released = std::max(getReleasedEpoch(stores.actor),
                                 o.getReleasedEpoch(stores.actor));
    uint32_t known =
        std::max(getKnownEpoch(stores.actor), o.getKnownEpoch(stores.actor));
    if (released >= known || llvm::any_of(both, isOfActor))
      return;
    stores.from = released + 1;
    both.push_back(stores);
  };
  llvm::for_each(unreleased, add);
  llvm::for_each(o.unreleased, add);
  unreleased.assign(both.begin(), both.end());
}

void Clock::join(const Clock &o) {
  if (o.empty())
    return;
  if (cluster == ~0u)
    cluster = o.cluster;
  if (cluster == o.cluster) {
    joinUnused(o);
    joinUnreleased(o);
    ActorEpochs::join(o);
  } else {
    // Nothing but what had the scope of the GPU.
    foreign[o.cluster].join(o);
  }
  for (const auto &[id, list] : o.foreign) {
    if (id == cluster)
      ActorEpochs::join(list);
    else
      foreign[id].join(list);
  }
}

void Knowledge::join(const Knowledge &o) {
  generic.join(o.generic);
  async.join(o.async);
  asyncGlobal.join(o.asyncGlobal);
  tensor.join(o.tensor);
  control.join(o.control);
  genericShared.join(o.genericShared);
  for (const auto &[rank, clock] : o.asyncOf)
    asyncOf[rank].join(clock);
}

const Clock &Knowledge::getAsync(bool isShared, uint32_t rank,
                                 Clock &space) const {
  if (!isShared)
    return asyncGlobal;
  auto own = asyncOf.find(rank);
  if (own == asyncOf.end())
    return async;
  space = async;
  space.join(own->second);
  return space;
}

const Clock &Knowledge::getGeneric(bool isShared, Clock &space) const {
  if (!isShared || genericShared.empty())
    return generic;
  space = generic;
  space.join(genericShared);
  return space;
}

void Knowledge::restrictToShared() {
  genericShared.join(generic);
  generic.clear();
  asyncGlobal.clear();
}
