//===- TensorAllocOps.cpp - Allocation of tensor memory -------------------===//
//
// A CTA allocates for itself, or the two CTAs of a pair do together: each asks
// for its part and waits until the other has, and both get the same columns. A
// dealloc of a pair frees the columns of the CTA that executes it, and ends the
// use of those of the other CTA, which still has to free its own.
//
//===----------------------------------------------------------------------===//

#include "../Instructions/MemoryTraffic.h"
#include "../Instructions/WarpSync.h"
#include "../PTX/Decoder.h"
#include "../Sanitizer/PhaseChecks.h"
#include "../Sanitizer/Races.h"
#include "TensorOperations.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir::attn::sim;
using llvm::Error;
using llvm::StringRef;
using llvm::Twine;

static Site siteOf(const Exec &x, const WarpEvent &event) {
  const Warp &warp = *x.cluster.warps[event.warp];
  return x.siteOf(event.inst, warp.cta, warp.id, -1);
}

std::string mlir::attn::sim::nameOf(const Cta &cta) {
  return llvm::formatv("CTA ({0},{1},{2})", cta.id[0], cta.id[1], cta.id[2]);
}

/// Describes a wrong use of tensor memory by the executing warp, with an
/// earlier place.
static Finding describeMisuse(const Exec &x, const Twine &message, Site first,
                              const char *hint = "", int lane = -1) {
  Finding f;
  f.kind = FindingKind::TensorMemoryMisuse;
  f.message = message.str();
  f.first = std::move(first);
  f.second = x.here(lane);
  f.hint = hint;
  return f;
}

static WarpEvent eventHere(const Exec &x) {
  return {x.warp->index, x.warp->order.epoch, x.pc};
}

bool mlir::attn::sim::checkTensorGroup(Exec &x, TensorGroup group) {
  TensorPair &pair = x.cluster.pairOf(*x.cta);
  if (group == TensorGroup::Pair && !x.cluster.peerOf(*x.cta)) {
    x.fault(FindingKind::InvalidOperation,
            "expected a pair of CTAs in the cluster");
    return false;
  }
  if (!pair.first)
    pair.first = {group, eventHere(x)};
  if (pair.first->group == group)
    return true;
  x.fault(describeMisuse(
      x,
      "expected the same '.cta_group' in all tcgen05 instructions of a pair of "
      "CTAs, got '.cta_group::" +
          Twine(unsigned(group)) +
          "' after '.cta_group::" + Twine(unsigned(pair.first->group)) + "'",
      siteOf(x, pair.first->event)));
  return false;
}

bool mlir::attn::sim::checkAllocated(Exec &x, Cta &cta, uint32_t column,
                                     uint32_t count, const Twine &what,
                                     int lane) {
  const TensorColumns *columns = tensorMemoryOf(cta).find(column, count);
  if (columns && !columns->freed)
    return true;
  if (columns)
    x.fault(describeMisuse(x,
                           what + " that the other CTA of the pair has freed",
                           siteOf(x, columns->freed->event),
                           "both CTAs have to be done with the columns before "
                           "one of them frees them, as behind a cluster "
                           "barrier",
                           lane));
  else
    x.fault(FindingKind::TensorMemoryMisuse,
            what + " that the CTA has not allocated", lane);
  return false;
}

void mlir::attn::sim::reportLoneRequests(Cluster &cluster, const Cta &missing,
                                         StringRef why) {
  const Cta *asking = cluster.peerOf(missing);
  if (!asking)
    return;
  const auto &request = cluster.pairOf(missing).requests[asking->rank % 2];
  if (!request || request->granted)
    return;
  Exec x(*cluster.machine, cluster);
  Finding f;
  f.kind = FindingKind::TensorMemoryMisuse;
  f.message = "allocates tensor memory for a pair alone: " + nameOf(missing) +
              (" " + why + " without asking for its part").str();
  f.second = siteOf(x, request->event);
  f.hint = "one warp of each CTA has to execute tcgen05.alloc.cta_group::2";
  cluster.machine->report(std::move(f));
}

namespace {

/// Lets warps that wait for columns, or for the other CTA, look again.
void wakeAllocations(Cluster &cluster, const Cta &cta) {
  for (Warp *warp : cluster.warps)
    if (warp->cta->rank / 2 == cta.rank / 2)
      for (Split &s : warp->splits)
        if (s.block == BlockKind::TensorAlloc)
          s.block = BlockKind::None;
  cluster.advance();
}

/// Returns the first column from which on `count` are free in all of these
/// memories.
std::optional<uint32_t> findColumns(llvm::ArrayRef<TensorMemory *> memories,
                                    uint32_t count) {
  // Sizes are powers of two, and none increases.
  for (uint32_t at = 0; at + count <= TensorMemory::Columns;) {
    uint32_t next = at;
    for (const TensorMemory *memory : memories)
      for (const auto &[first, columns] : memory->allocations)
        if (first < at + count && at < first + columns.count)
          next = std::max(next, first + columns.count);
    if (next == at)
      return at;
    at = next;
  }
  return std::nullopt;
}

/// Gives a CTA columns, whose values are undefined.
void take(Exec &x, TensorMemory &t, uint32_t at, uint32_t count) {
  t.allocations[at] = {count, nullptr};
  for (unsigned lane = 0; lane < TensorMemory::Lanes; ++lane) {
    unsigned base = lane * TensorMemory::Columns + at;
    std::fill_n(t.cells.begin() + base, count, 0x7FCBCBCBu);
    std::fill_n(t.valid.begin() + base, count, 0);
  }
  if (x.sanitizing())
    t.shadow.reset(at, count);
}

std::optional<uint32_t> allocate(Exec &x, uint32_t count) {
  TensorMemory &t = tensorMemoryOf(*x.cta);
  std::optional<uint32_t> at = findColumns({&t}, count);
  if (at)
    take(x, t, *at, count);
  return at;
}

/// Asks for this CTA's part of an allocation of the pair. False after a fault.
bool requestPart(Exec &x, Cta &peer, std::optional<PairRequest> &own,
                 uint32_t count) {
  own = PairRequest{eventHere(x), count, std::nullopt};
  if (x.sanitizing() && !hasSeenStart(x, peer))
    x.report(FindingKind::TensorMemoryMisuse, Severity::Error,
             "allocates tensor memory for a pair of which " + nameOf(peer) +
                 " may not have started",
             -1, "a cluster barrier has to come before the allocation");
  if (peer.exited) {
    reportLoneRequests(x.cluster, peer, "exits");
    x.machine.stop = true;
    x.action = Action::Fault;
    return false;
  }
  const auto &other = x.cluster.pairOf(*x.cta).requests[peer.rank % 2];
  if (!other || other->granted || other->columns == count)
    return true;
  x.fault(describeMisuse(x,
                         "expected both CTAs of a pair to allocate the same "
                         "number of columns, got " +
                             Twine(other->columns) + " and " + Twine(count),
                         siteOf(x, other->event)));
  return false;
}

/// Returns the first column of an allocation of both CTAs, once there is one.
std::optional<uint32_t> allocateInPair(Exec &x, uint32_t count) {
  Cta &peer = *x.cluster.peerOf(*x.cta);
  TensorPair &pair = x.cluster.pairOf(*x.cta);
  auto &own = pair.requests[x.cta->rank % 2];
  auto &other = pair.requests[peer.rank % 2];
  // Another warp of this CTA may be waiting.
  if (own && own->event.warp != x.warp->index)
    return std::nullopt;
  if (!own && !requestPart(x, peer, own, count))
    return std::nullopt;
  if (!own->granted && other && !other->granted) {
    TensorMemory &mine = tensorMemoryOf(*x.cta);
    TensorMemory &theirs = tensorMemoryOf(peer);
    if (std::optional<uint32_t> at = findColumns({&mine, &theirs}, count)) {
      own->granted = other->granted = at;
      take(x, mine, *at, count);
      take(x, theirs, *at, count);
      wakeAllocations(x.cluster, *x.cta);
    }
  }
  std::optional<uint32_t> at = own->granted;
  if (at) {
    own.reset();
    wakeAllocations(x.cluster, *x.cta);
  }
  return at;
}

/// ops: where the address goes, number of columns. flags 1: of a pair.
void execTmemAlloc(Exec &x, const Inst &I) {
  if (!gatherWarp(x))
    return;
  uint64_t columns = x.uniform(I.ops[1], "a number of columns");
  if (x.action == Action::Fault)
    return;
  if (columns < 32 || columns > 512 || !llvm::isPowerOf2_64(columns))
    return x.fault(FindingKind::TensorMemoryMisuse,
                   "expected a power of two of columns between 32 and 512, "
                   "got " +
                       Twine(columns));
  if (!checkTensorGroup(x, I.flags ? TensorGroup::Pair : TensorGroup::Cta))
    return;
  if (tensorMemoryOf(*x.cta).relinquished)
    return x.fault(FindingKind::TensorMemoryMisuse,
                   "allocates after the CTA has given up the permit");
  std::optional<uint32_t> at =
      I.flags ? allocateInPair(x, columns) : allocate(x, columns);
  if (x.action == Action::Fault)
    return;
  if (!x.resumed)
    x.countWait("tensor memory", !at);
  if (!at)
    return x.block(BlockKind::TensorAlloc);
  uint64_t address = x.read(I.ops[0], llvm::countr_zero(x.active)) + I.imm;
  if (address >= SharedWindow)
    address -= SharedWindow;
  MemRef ref;
  if (!x.resolve(Space::Shared, uint32_t(address), 4, 4, true, 0, ref))
    return;
  track(x, ref, 4, true, 0, -1);
  checkMbarrierOverlap(x, ref, 4, -1);
  std::memcpy(ref.data, &*at, 4);
  std::memset(ref.valid, 1, 4);
  x.cluster.advance();
}

/// Checks that all uses of the columns of the CTA are ordered before the
/// executing warp frees them, but for the dealloc of the other CTA of its pair,
/// `freed`: for that one stands what was used before it.
void trackFree(Exec &x, Cta &cta, uint32_t first, uint32_t columns,
               PairFree *freed) {
  Warp &w = *x.warp;
  Stamp stamp = x.stampHere(-1);
  stamp.flags = Stamp::Tensor;
  stamp.actor = w.tcgen05.stores.actor;
  stamp.epoch = w.tcgen05.stores.epoch;
  // It is no asynchronous operation: a wait needs no fence to order it.
  Clock clock = w.order.know.tensor;
  clock.join(w.tcgen05.acquired);
  if (freed) {
    checkTensorUses(x, cta, freed->uses[cta.rank % 2], stamp, clock, first,
                    columns);
    if (&cta != x.cta)
      return;
    const Stream &stores = x.cluster.warps[freed->event.warp]->tcgen05.stores;
    clock.raise(stores.actor, stores.epoch);
  }
  trackTensor(x, cta, stamp, clock, RowShadow::range(0, TensorMemory::Lanes),
              first, columns, true);
}

/// ops: address, number of columns. flags 1: of a pair.
void execTmemDealloc(Exec &x, const Inst &I) {
  if (!gatherWarp(x))
    return;
  uint64_t address = x.uniform(I.ops[0], "a tensor-memory address");
  if (x.action == Action::Fault)
    return;
  uint64_t columns = x.uniform(I.ops[1], "a number of columns");
  if (x.action == Action::Fault)
    return;
  if (!checkTensorGroup(x, I.flags ? TensorGroup::Pair : TensorGroup::Cta))
    return;
  TensorMemory &t = tensorMemoryOf(*x.cta);
  auto it = t.allocations.find(address & 0xffff);
  if (it == t.allocations.end() || it->second.count != columns)
    return x.fault(FindingKind::TensorMemoryMisuse,
                   "expected the base and size of an allocation, got column " +
                       Twine(address & 0xffff) + " and " + Twine(columns) +
                       " columns");
  std::shared_ptr<PairFree> freed = it->second.freed;
  Cta *peer = I.flags ? x.cluster.peerOf(*x.cta) : nullptr;
  if (peer && !freed)
    if (auto theirs = tensorMemoryOf(*peer).allocations.find(it->first);
        theirs != tensorMemoryOf(*peer).allocations.end()) {
      theirs->second.freed = std::make_shared<PairFree>();
      theirs->second.freed->event = eventHere(x);
      if (x.sanitizing())
        for (Cta *cta : {x.cta, peer})
          theirs->second.freed->uses[cta->rank % 2] =
              tensorMemoryOf(*cta).shadow.clone();
    }
  if (x.sanitizing()) {
    ++x.warp->tcgen05.stores.epoch;
    trackFree(x, *x.cta, it->first, columns, freed.get());
    if (peer)
      trackFree(x, *peer, it->first, columns, freed.get());
  }
  t.allocations.erase(it);
  wakeAllocations(x.cluster, *x.cta);
}

/// flags 1: of a pair.
void execRelinquish(Exec &x, const Inst &I) {
  if (gatherWarp(x) &&
      checkTensorGroup(x, I.flags ? TensorGroup::Pair : TensorGroup::Cta))
    tensorMemoryOf(*x.cta).relinquished = true;
}

} // namespace

Error mlir::attn::sim::decodeTensorAllocation(Decoding &c) {
  const auto &ops = c.ast.ops;
  StringRef what = c.takeAny({"alloc", "dealloc", "relinquish_alloc_permit"});
  if (what.empty())
    return c.error("unknown tcgen05 operation");
  c.inst.flags = c.take("cta_group::2");
  if (!c.inst.flags && !c.take("cta_group::1"))
    return c.error("expected '.cta_group'");
  if (!c.take("sync") || !c.take("aligned"))
    return c.error("expected '.sync.aligned'");
  if (what == "relinquish_alloc_permit")
    return c.set(execRelinquish, InstClass::Tcgen05);
  c.takeAny({"shared", "shared::cta"});
  c.take("b32");
  ATTN_SIM_TRY(c.expectOps(2, 2));
  ATTN_SIM_TRY(c.address(ops[0], c.inst.imm));
  ATTN_SIM_TRY(c.src(ops[1], Type::U32));
  c.program().sharedGranule = std::min(c.program().sharedGranule, 4u);
  return c.set(what == "alloc" ? execTmemAlloc : execTmemDealloc,
               InstClass::Tcgen05);
}
