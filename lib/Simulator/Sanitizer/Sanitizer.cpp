//===- Sanitizer.cpp - Checks on memory accesses --------------------------===//

#include "../Machine/Machine.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir::attn::sim;
using llvm::StringRef;
using llvm::Twine;

bool Exec::sanitizing() const { return machine.config.sanitize; }

//===----------------------------------------------------------------------===//
// Sites and findings
//===----------------------------------------------------------------------===//

Site Exec::siteOf(uint32_t inst, const Cta *c, int warpId, int lane) const {
  Site s;
  const ProgramImpl &p = machine.program;
  if (inst < p.code.size()) {
    const Inst &I = p.code[inst];
    s.ptxLine = I.line;
    s.text = I.text.str();
    const AstLoc &loc = p.ast.locs[I.loc];
    if (loc.line) {
      auto it = p.ast.files.find(loc.file);
      if (it != p.ast.files.end()) {
        s.file = it->second;
        s.line = loc.line;
      }
    }
  }
  if (c)
    s.cta = c->id;
  s.warp = warpId;
  s.lane = lane;
  return s;
}

Site Exec::siteOf(const Stamp &stamp) const {
  Site s = siteOf(stamp.inst, nullptr,
                  stamp.warp == Stamp::NoWarp ? -1 : int(stamp.warp),
                  stamp.lane < 32 ? int(stamp.lane) : -1);
  const auto &n = machine.clusters;
  const auto &size = machine.config.cluster;
  uint32_t c = stamp.cluster, rank = stamp.rank;
  s.cta = {c % n[0] * size[0] + rank % size[0],
           c / n[0] % n[1] * size[1] + rank / size[0] % size[1],
           c / n[0] / n[1] * size[2] + rank / size[0] / size[1]};
  return s;
}

void Exec::report(Finding finding) { machine.report(std::move(finding)); }

void Exec::report(FindingKind kind, Severity severity, const Twine &message,
                  int lane, StringRef hint) {
  Finding f;
  f.kind = kind;
  f.severity = severity;
  f.message = message.str();
  f.hint = hint.str();
  f.second = here(lane);
  report(std::move(f));
}

void Exec::fault(Finding finding) {
  report(std::move(finding));
  action = Action::Fault;
  machine.stop = true;
}

void Exec::fault(FindingKind kind, const Twine &message, int lane) {
  Finding f;
  f.kind = kind;
  f.message = message.str();
  f.second = here(lane);
  fault(std::move(f));
}

void Exec::propagateOrigin(const Inst &I, unsigned n) {
  for (unsigned i = 1; i <= n; ++i)
    if (poison[I.ops[i].meta] & active) {
      origin[I.ops[0].meta] = origin[I.ops[i].meta];
      return;
    }
}

void Exec::checkPoison(const Operand &o, StringRef what) {
  uint32_t lanes = poison[o.meta] & active;
  if (!lanes || !sanitizing())
    return;
  Finding f;
  f.kind = FindingKind::UninitialisedRead;
  uint32_t from = origin[o.meta];
  int lane = llvm::countr_zero(lanes);
  f.second = here(lane);
  if (from & InFlightOrigin) {
    f.kind = FindingKind::InvalidOperation;
    f.message =
        (what + " depends on an accumulator that is still in flight").str();
    f.first = siteOf((from & ~InFlightOrigin) - 1, cta, warp->id, -1);
    f.hint = "wgmma.wait_group has to come before the accumulator is read";
  } else if (from) {
    f.message = (what + " depends on memory that was never written").str();
    f.first = siteOf(from - 1, cta, warp->id, lane);
    f.hint = "initialise the memory that the earlier instruction reads, or "
             "mask its value before use";
  } else {
    // Compilers use undefined registers where the value cannot matter.
    f.severity = Severity::Note;
    f.message = (what + " depends on a register that was never written").str();
  }
  // One report for each value.
  poison[o.meta] &= ~active;
  report(std::move(f));
}

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

bool Exec::resolve(Space space, uint64_t address, uint64_t bytes,
                   unsigned align, bool write, int lane, MemRef &ref) {
  ref.address = address;
  StringRef verb = write ? "writes" : "reads";
  if (space == Space::Generic) {
    if (address >= SharedWindow && address < SharedWindow + WindowSize) {
      space = Space::Shared;
      address -= SharedWindow;
    } else if (address >= LocalWindow && address < LocalWindow + WindowSize) {
      space = Space::Local;
      address -= LocalWindow;
    } else if (address >= ParamWindow && address < ParamWindow + WindowSize) {
      space = Space::Param;
      address -= ParamWindow;
    } else {
      space = Space::Global;
    }
  }
  ref.space = space;
  auto fail = [&](FindingKind kind, const Twine &message, StringRef where,
                  uint64_t offset, StringRef buffer = "") {
    Finding f;
    f.kind = kind;
    f.message = message.str();
    f.second = here(lane);
    f.space = where.str();
    f.buffer = buffer.str();
    f.offset = offset;
    f.address = ref.address;
    f.bytes = bytes;
    fault(std::move(f));
    return false;
  };
  if (address & (align - 1))
    return fail(FindingKind::Misaligned,
                verb + " " + Twine(bytes) +
                    " bytes at an address that is not a "
                    "multiple of " +
                    Twine(align),
                "address", address);
  switch (space) {
  case Space::Shared: {
    uint32_t rank = address >> 24;
    int64_t offset = int64_t(address & 0xffffff) - SharedBase;
    if (address >> 32 || rank >= cluster.ctas.size())
      return fail(FindingKind::OutOfBounds,
                  verb + " shared memory of a CTA that the cluster does not "
                         "have",
                  "shared", address);
    Cta *owner = cluster.ctas[rank].get();
    if (offset < 0 || offset + bytes > owner->shared.size())
      return fail(FindingKind::OutOfBounds,
                  verb + " " + Twine(bytes) + " bytes outside of the CTA's " +
                      Twine(owner->shared.size()) + " bytes of shared memory",
                  "shared", offset);
    if (owner->exited && owner != cta)
      return fail(FindingKind::ExitInFlight,
                  verb + " shared memory of a CTA that has exited", "shared",
                  offset);
    ref.cta = owner;
    ref.offset = offset;
    ref.data = owner->shared.data() + offset;
    ref.valid = owner->sharedValid.data() + offset;
    return true;
  }
  case Space::Local: {
    uint64_t size = machine.program.localBytes;
    if (address > size || bytes > size - address)
      return fail(FindingKind::OutOfBounds,
                  verb + " " + Twine(bytes) +
                      " bytes outside of the thread's " + Twine(size) +
                      " bytes of local memory",
                  "local", address);
    ref.offset = address;
    ref.data = warp->local.data() + lane * size + address;
    ref.valid = warp->localValid.data() + lane * size + address;
    return true;
  }
  case Space::Param:
    if (write)
      return fail(FindingKind::ReadOnlyWrite, "writes a kernel parameter",
                  "param", address);
    if (address > machine.params.size() ||
        bytes > machine.params.size() - address)
      return fail(FindingKind::OutOfBounds,
                  "reads outside of the kernel's parameters", "param", address);
    ref.offset = address;
    ref.data = machine.params.data() + address;
    ref.valid = nullptr;
    return true;
  default:
    break;
  }
  Allocation *a = lastAllocation;
  if (!a || address < a->address || address - a->address > a->bytes.size() ||
      bytes > a->bytes.size() - (address - a->address)) {
    a = machine.memory.find(address, bytes);
    if (!a) {
      const Allocation *near = machine.memory.findNear(address);
      if (!near)
        return fail(FindingKind::OutOfBounds,
                    verb + " " + Twine(bytes) +
                        " bytes at an address outside of every allocation",
                    "global", address);
      return fail(FindingKind::OutOfBounds,
                  verb + " " + Twine(bytes) +
                      " bytes outside of every "
                      "allocation; the nearest below has " +
                      Twine(near->bytes.size()) + " bytes",
                  "global", address - near->address, near->name);
    }
    lastAllocation = a;
  }
  ref.allocation = a;
  ref.offset = address - a->address;
  if (write && a->access == Access::Read)
    return fail(FindingKind::ReadOnlyWrite,
                "writes an allocation that is read-only", "global", ref.offset,
                a->name);
  ref.data = a->bytes.data() + ref.offset;
  ref.valid = a->valid.data() + ref.offset;
  return true;
}

//===----------------------------------------------------------------------===//
// Races
//===----------------------------------------------------------------------===//

Stamp Exec::stampHere(int lane) const {
  Stamp stamp;
  stamp.epoch = warp->epoch;
  stamp.inst = pc;
  stamp.cluster = cluster.linear;
  stamp.rank = cta->rank;
  stamp.actor = warp->actor;
  stamp.warp = warp->id;
  stamp.lane = lane < 0 ? Stamp::AllLanes : lane;
  return stamp;
}

void Exec::track(const MemRef &ref, uint64_t bytes, bool write, uint8_t flags,
                 int lane) {
  if (!sanitizing() ||
      (ref.space != Space::Shared && ref.space != Space::Global))
    return;
  if (ref.space == Space::Shared && ref.cta != cta)
    ref.cta->remoteTouches[warp->index] = {warp->epoch, pc};
  Stamp stamp = stampHere(lane);
  stamp.flags = flags;
  Clock space;
  trackAs(stamp, warp->know.getGeneric(ref.space == Space::Shared, space), ref,
          bytes, write);
}

void Exec::trackAsync(const Stamp &stamp, const MemRef &ref, uint64_t bytes,
                      bool write) {
  if (!sanitizing())
    return;
  bool isShared = ref.space == Space::Shared;
  Clock space;
  trackAs(stamp,
          warp->know.getAsync(isShared, isShared ? ref.cta->rank : 0, space),
          ref, bytes, write);
}

void Exec::trackAs(const Stamp &stamp, const Clock &clock, const MemRef &ref,
                   uint64_t bytes, bool write) {
  if (!sanitizing())
    return;
  Observer observer(clock, cluster.linear, stamp.lane);
  auto conflict = [&](const Stamp &earlier, bool wasWrite, uint64_t at) {
    reportRace(earlier, wasWrite, stamp, write, clock, ref, at, bytes);
  };
  if (ref.space == Space::Shared)
    ref.cta->shadow.access(ref.offset, bytes, write, stamp, observer, ~0u,
                           conflict);
  else if (ref.space == Space::Global)
    machine.globalShadow.access(ref.address, bytes, write, stamp, observer,
                                conflict);
}

void Exec::reportRace(const Stamp &earlier, bool wasWrite, const Stamp &stamp,
                      bool write, const Clock &clock, const MemRef &ref,
                      uint64_t at, uint64_t bytes) {
  // Lanes that write the same place in one instruction: one of them wins.
  if (earlier.inst == stamp.inst && earlier.actor == stamp.actor &&
      earlier.epoch == stamp.epoch && earlier.cluster == stamp.cluster &&
      wasWrite && write)
    return;
  if (pipelined(earlier, stamp))
    return;
  // Even if it is harmless: whether it is depends on what was stored first.
  if (machine.parallel && earlier.cluster != stamp.cluster) {
    machine.repeat = machine.stop = true;
    return;
  }
  // Warps that write the same value: no outcome depends on the order.
  bool sameValue = wasWrite && write && (stamp.flags & Stamp::SameValue) &&
                   !(earlier.flags & Stamp::Async);
  if (sameValue && machine.config.assumes(Assumption::SameValue))
    return;
  // A generic access before an asynchronous overwrite: the signal that frees
  // the buffer orders them on hardware, though the manual asks for a proxy
  // fence.
  bool warThroughProxy = (stamp.flags & Stamp::AsyncProxy) && write &&
                         !(earlier.flags & Stamp::AsyncProxy);
  if (warThroughProxy) {
    Observer observer(warp->know.generic, cluster.linear, stamp.lane);
    warThroughProxy = observer.knows(earlier);
    if (warThroughProxy && machine.config.assumes(Assumption::NoProxyFenceWar))
      return;
  }
  // What cp.async has written, waited for and handed over, but without a proxy
  // fence. Nothing but cp.async is asynchronous in the generic proxy.
  bool copied = wasWrite && (stamp.flags & Stamp::AsyncProxy) && !write &&
                earlier.flags == Stamp::Async;
  if (copied) {
    Observer observer(warp->know.generic, cluster.linear, stamp.lane);
    copied = observer.knows(earlier);
    if (copied && machine.config.assumes(Assumption::CopyProxy))
      return;
  }
  Finding f;
  f.kind = FindingKind::Race;
  if (warThroughProxy || sameValue || copied)
    f.severity = Severity::HwOnly;
  // An invalidation against a signal of another CTA that has been counted.
  if (machine.config.assumes(Assumption::LateSignal) &&
      !earlier.sameCta(stamp) && earlier.flags & Stamp::Strong &&
      machine.program.code[stamp.inst].text.starts_with("mbarrier.inval"))
    f.severity = Severity::Note;
  f.first = siteOf(earlier);
  f.second = siteOf(stamp);
  f.space = ref.space == Space::Shared   ? "shared"
            : ref.space == Space::Tensor ? "tmem"
                                         : "global";
  f.offset = at;
  f.bytes = bytes;
  f.address = ref.address;
  if (ref.allocation) {
    f.buffer = ref.allocation->name;
    f.offset = at - ref.allocation->address;
  }
  StringRef now = write ? "write" : "read";
  StringRef then = wasWrite ? "write" : "read";
  bool sameWarp = earlier.sameCta(stamp) && earlier.warp == stamp.warp;
  f.message = (now + " is not ordered after an earlier " + then).str();
  if (ref.space == Space::Tensor) {
    f.message += llvm::formatv(" of tensor memory lane {0} column {1}",
                               at / 512, at % 512)
                     .str();
    f.hint = earlier.flags & Stamp::Async
                 ? "tcgen05.commit after the earlier operation and a wait on "
                   "its mbarrier would order them"
             : wasWrite ? "tcgen05.wait::st before the signal, and a wait for "
                          "the signal, would order them"
                        : "tcgen05.wait::ld before the signal, and a wait for "
                          "the signal, would order them";
  } else if (earlier.flags & Stamp::Async) {
    Component c = clock.get(earlier.actor);
    if (sameWarp && earlier.epoch <= c.part) {
      f.message += " of an asynchronous copy by another lane of the warp";
      f.severity = Severity::HwOnly;
      f.hint = "bar.warp.sync after the wait would order them";
    } else {
      f.message += " of an asynchronous operation that may still run";
      f.hint = "the issuing thread has to wait for it (cp.async.wait_group, or "
               "the mbarrier that it signals); other threads then need a "
               "barrier after that wait";
    }
  } else if (sameWarp && !(stamp.flags & Stamp::AsyncProxy)) {
    f.message += " of another lane of the same warp";
    f.severity = machine.config.assumes(Assumption::WarpLockstep)
                     ? Severity::HwOnly
                     : Severity::Error;
    f.hint = "bar.warp.sync between them would order them";
  } else if (ref.space == Space::Global && !earlier.sameCta(stamp)) {
    f.message += " of another CTA";
    f.hint = "a release (fence and atomic) after the first and an acquire "
             "before the second would order them";
  } else if (stamp.flags & Stamp::AsyncProxy) {
    f.message += " of a generic access";
    f.hint = "the thread that made the earlier access has to execute "
             "fence.proxy.async after it and before the release that leads to "
             "the asynchronous operation";
  } else {
    f.message += " of another warp";
    f.hint = "a barrier (bar.sync, or an mbarrier arrive and wait) between "
             "them would order them";
  }
  report(std::move(f));
}

/// Without assumption A1 the order of tcgen05 operations of one thread holds
/// between products of one accumulator, shape and kind, from a copy or a shift
/// to a later product, from a product to a later shift, and from a shift to a
/// copy of four lanes.
bool Exec::pipelined(const Stamp &earlier, const Stamp &stamp) const {
  constexpr uint8_t both = Stamp::Async | Stamp::Tensor;
  if (earlier.actor != stamp.actor || earlier.cluster != stamp.cluster ||
      (earlier.flags & stamp.flags & both) != both)
    return false;
  const std::vector<uint64_t> &p = warp->pipelines;
  if (earlier.epoch >= p.size() || stamp.epoch >= p.size())
    return false;
  uint64_t from = p[earlier.epoch], to = p[stamp.epoch];
  switch (to) {
  case Warp::CopyPipeline:
    return false;
  case Warp::RefreshPipeline:
    return from == Warp::ShiftPipeline;
  case Warp::ShiftPipeline:
    return from > Warp::ShiftPipeline;
  default:
    return from == to || from <= Warp::ShiftPipeline;
  }
}

//===----------------------------------------------------------------------===//
// Clocks
//===----------------------------------------------------------------------===//

bool Exec::converge(uint32_t need) {
  need &= warp->live;
  if ((need & ~splitMask) == 0)
    return true;
  block(BlockKind::Converge);
  return false;
}

/// What `lanes` publish of one of the warp's own streams.
static void publishOwn(Clock &clock, uint16_t actor, bool all, uint32_t lanes,
                       uint32_t upTo) {
  if (all) {
    clock.raise(actor, upTo);
    clock.dropPart(actor);
  } else {
    clock.setPart(actor, std::max(clock.fullOf(actor), upTo), lanes);
  }
}

Knowledge Exec::release() {
  Knowledge k;
  if (!sanitizing())
    return k;
  retireUsedLoads(*this);
  k = warp->know;
  // Others learn of tensor operations what has been waited for.
  for (uint16_t actor : {warp->mmaActor, warp->tmemLdActor, warp->tmemStActor})
    k.tensor.dropPart(actor);
  if (!machine.config.assumes(Assumption::NoTensorFence)) {
    k.tensor.join(warp->tensorAcquired);
    k.tensor.limit(warp->tmemLdActor, warp->fencedLoads);
    k.tensor.limit(warp->tmemStActor, warp->fencedStores);
  }
  bool all = (active & warp->live) == warp->live;
  for (Clock *clock : k.getStreams()) {
    if (clock->ActorEpochs::empty())
      continue;
    for (uint16_t actor : {warp->cpActor, warp->bulkActor}) {
      Component c = clock->get(actor);
      if (c.lanes == 0 && c.part > c.full)
        publishOwn(*clock, actor, all, active, c.part);
    }
  }
  publishOwn(k.generic, warp->actor, all, active, warp->epoch);
  k.control.raise(warp->index, warp->epoch);
  ++warp->epoch;
  return k;
}

Knowledge Exec::releaseControl() {
  Knowledge k;
  if (!sanitizing())
    return k;
  k.control = warp->know.control;
  k.control.raise(warp->index, warp->epoch);
  ++warp->epoch;
  return k;
}

void mlir::attn::sim::acquireInto(Warp &warp, const Knowledge &from) {
  // What comes back about this warp's own accesses adds nothing but `full`.
  Clock &generic = warp.know.generic;
  Component own = generic.get(warp.actor);
  generic.join(from.generic);
  own.full = std::max(own.full, from.generic.fullOf(warp.actor));
  generic.set(warp.actor, own);
  warp.know.async.join(from.async);
  warp.know.asyncGlobal.join(from.asyncGlobal);
  warp.know.genericShared.join(from.genericShared);
  for (const auto &[rank, clock] : from.asyncOf)
    warp.know.asyncOf[rank].join(clock);
  warp.know.control.join(from.control);
  if (warp.cta->cluster->machine->config.assumes(Assumption::NoTensorFence))
    warp.know.tensor.join(from.tensor);
  else
    warp.tensorAcquired.join(from.tensor);
}

void mlir::attn::sim::synchroniseLanes(Warp &warp) {
  warp.know.generic.raise(warp.actor, warp.epoch);
  ++warp.epoch;
  for (Clock *clock : warp.know.getStreams())
    for (uint16_t actor : {warp.cpActor, warp.bulkActor}) {
      Component c = clock->get(actor);
      if (c.lanes == 0 && c.part > c.full)
        clock->raise(actor, c.part);
    }
}

void Exec::acquire(const Knowledge &from) {
  if (sanitizing())
    acquireInto(*warp, from);
}

void Exec::warpSynchronised() {
  if (sanitizing())
    synchroniseLanes(*warp);
}

uint64_t Exec::uniform(const Operand &o, StringRef what) {
  checkPoison(o, what);
  unsigned first = llvm::countr_zero(active);
  uint64_t value = read(o, first);
  forLanes(active, [&](unsigned lane) {
    if (action != Action::Fault && read(o, lane) != value)
      fault(FindingKind::InvalidOperation,
            what + " differs between the lanes of a warp", lane);
  });
  return value;
}
