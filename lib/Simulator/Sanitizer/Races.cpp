//===- Races.cpp - Accesses that nothing orders ---------------------------===//

#include "Races.h"
#include "../Machine/DroppedLoads.h"
#include "../Machine/TraceRecorder.h"
#include "OpenAccesses.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir::attn::sim;
using llvm::StringRef;

void mlir::attn::sim::track(Exec &x, const MemRef &ref, uint64_t bytes,
                            bool write, uint16_t flags, int lane,
                            ShadowDecision *last) {
  if (!x.sanitizing() ||
      (ref.space != Space::Shared && ref.space != Space::Global))
    return;
  if (ref.space == Space::Shared && ref.cta != x.cta)
    ref.cta->remoteTouches[x.warp->index] = {x.warp->order.epoch, x.pc};
  if (ref.space == Space::Shared && ref.cta == x.cta && x.cluster.recorder)
    x.cluster.recorder->noteAccess(x, ref.offset, bytes, write, lane);
  if (write && !(flags & Stamp::Strong))
    noteStore(x);
  Stamp stamp = x.stampHere(lane);
  stamp.flags = flags;
  Clock space;
  trackAs(x, stamp,
          x.warp->order.know.getGeneric(ref.space == Space::Shared, space), ref,
          bytes, write, last);
}

void mlir::attn::sim::trackAll(Exec &x, llvm::ArrayRef<MemRef> refs,
                               uint64_t bytes, bool write) {
  if (!x.sanitizing())
    return;
  Clock space;
  Tracker tracker(x, x.stampHere(-1),
                  x.warp->order.know.getGeneric(/*isShared=*/true, space),
                  write);
  for (const MemRef &ref : refs) {
    assert(ref.space == Space::Shared && "rows of matrices lie there");
    if (ref.cta != x.cta)
      ref.cta->remoteTouches[x.warp->index] = {x.warp->order.epoch, x.pc};
    else if (x.cluster.recorder)
      x.cluster.recorder->noteAccess(x, ref.offset, bytes, write, /*lane=*/-1);
    tracker.touch(ref, bytes);
  }
}

void mlir::attn::sim::trackAs(Exec &x, const Stamp &stamp, const Clock &clock,
                              const MemRef &ref, uint64_t bytes, bool write,
                              ShadowDecision *last) {
  if (x.sanitizing())
    Tracker(x, stamp, clock, write, last).touch(ref, bytes);
}

void Tracker::touch(const MemRef &ref, uint64_t bytes) {
  if (!x.sanitizing())
    return;
  auto conflict = [&](const Stamp &earlier, bool wasWrite, uint64_t at) {
    reportRace(x, earlier, wasWrite, access.stamp, access.write, clock, ref, at,
               bytes);
  };
  if (ref.space == Space::Shared)
    ref.cta->shadow.access(ref.offset, bytes, access, conflict);
  else if (ref.space == Space::Global)
    x.machine.globalShadow.access(ref.address, bytes, access, conflict);
}

void AsyncTracker::touchShared(uint64_t offset, uint64_t bytes) {
  if (offset + bytes > cta->shared.size())
    return;
  MemRef ref;
  ref.space = Space::Shared;
  ref.cta = cta;
  ref.offset = offset;
  ref.address = offset + SharedBase;
  tracker.touch(ref, bytes);
}

/// Without assumption A1 the order of tcgen05 operations of one thread holds
/// between products of one accumulator, shape and kind, from a copy or a shift
/// to a later product, from a product to a later shift, and from a shift to a
/// copy of four lanes.
static bool pipelined(const Exec &x, const Stamp &earlier, const Stamp &stamp) {
  constexpr uint8_t both = Stamp::Async | Stamp::Tensor;
  if (earlier.actor != stamp.actor || earlier.cluster != stamp.cluster ||
      (earlier.flags & stamp.flags & both) != both)
    return false;
  const std::vector<uint64_t> &p = x.warp->tcgen05.pipelines;
  if (earlier.epoch >= p.size() || stamp.epoch >= p.size())
    return false;
  uint64_t from = p[earlier.epoch], to = p[stamp.epoch];
  switch (to) {
  case Tcgen05State::CopyPipeline:
    return false;
  case Tcgen05State::RefreshPipeline:
    return from == Tcgen05State::ShiftPipeline;
  case Tcgen05State::ShiftPipeline:
    return from > Tcgen05State::ShiftPipeline;
  default:
    return from == to || from <= Tcgen05State::ShiftPipeline;
  }
}

namespace {

/// Two accesses that nothing orders.
struct Race {
  Exec &x;
  const Stamp &earlier;
  bool wasWrite;
  const Stamp &stamp;
  bool write;
  const Clock &clock;
  const MemRef &ref;
  /// How bad it is; nothing where it does not count.
  std::optional<Severity> judge() const;
  /// Adds to the message whose access it is, and how to order them.
  void describe(Finding &f, uint64_t at) const;

private:
  bool assumes(Assumption a) const { return x.machine.config.assumes(a); }
  /// Whether generic accesses of the warp come after the earlier one.
  bool isKnownToWarp() const {
    Observer observer(x.warp->order.know.generic, stamp);
    return wasWrite ? observer.knowsWrite(earlier)
                    : observer.knowsRead(earlier);
  }
  /// Whether a signal has overtaken the earlier access, and which, + 1.
  std::optional<uint32_t> findOvertaking() const;
  bool isOfWarp() const {
    return earlier.sameCta(stamp) && earlier.warp == stamp.warp;
  }
  /// Whether one of the two is a load of what nothing may write.
  bool isOfReadOnly() const {
    return (earlier.flags | stamp.flags) & Stamp::ReadOnly;
  }
  void describeEarlierLaunch(Finding &f) const;
  void describeReadOnly(Finding &f) const;
  void describeTensor(Finding &f, uint64_t at) const;
  void describeAsync(Finding &f) const;
  void describeOvertaken(Finding &f, uint32_t signal) const;
};

} // namespace

std::optional<Severity> Race::judge() const {
  if (isOfReadOnly() && !earlier.isOfEarlierLaunch())
    return Severity::Error;
  // Warps that write the same value: no outcome depends on the order.
  bool sameValue = wasWrite && write && (stamp.flags & Stamp::SameValue) &&
                   !(earlier.flags & Stamp::Async);
  if (sameValue && assumes(Assumption::SameValue))
    return std::nullopt;
  // A generic access before an asynchronous overwrite: the signal that frees
  // the buffer orders them on hardware, though the manual asks for a proxy
  // fence.
  bool warThroughProxy = (stamp.flags & Stamp::AsyncProxy) && write &&
                         !(earlier.flags & Stamp::AsyncProxy) &&
                         isKnownToWarp();
  if (warThroughProxy && assumes(Assumption::NoProxyFenceWar))
    return std::nullopt;
  // What cp.async has written, waited for and handed over, but without a proxy
  // fence. Nothing but cp.async is asynchronous in the generic proxy.
  bool copied = wasWrite && (stamp.flags & Stamp::AsyncProxy) && !write &&
                (earlier.flags & ~Stamp::Sent) == Stamp::Async &&
                isKnownToWarp();
  if (copied && assumes(Assumption::CopyProxy))
    return std::nullopt;
  // An invalidation against a signal of another CTA that has been counted.
  if (assumes(Assumption::LateSignal) && !earlier.sameCta(stamp) &&
      earlier.flags & Stamp::Strong &&
      x.machine.program.code[stamp.inst].text.starts_with("mbarrier.inval"))
    return Severity::Note;
  return warThroughProxy || sameValue || copied ? Severity::HwOnly
                                                : Severity::Error;
}

void Race::describeTensor(Finding &f, uint64_t at) const {
  f.message +=
      llvm::formatv(" of tensor memory lane {0} column {1}", at / 512, at % 512)
          .str();
  f.hint = earlier.flags & Stamp::Async
               ? "tcgen05.commit after the earlier operation and a wait on "
                 "its mbarrier would order them"
           : wasWrite ? "tcgen05.wait::st before the signal, and a wait for "
                        "the signal, would order them"
                      : "tcgen05.wait::ld before the signal, and a wait for "
                        "the signal, would order them";
}

void Race::describeAsync(Finding &f) const {
  if (isOfWarp() && earlier.epoch <= clock.get(earlier.actor).part) {
    f.message += " of an asynchronous copy by another lane of the warp";
    f.severity =
        assumes(Assumption::WarpLockstep) ? Severity::HwOnly : Severity::Error;
    f.hint = "bar.warp.sync after the wait would order them";
    return;
  }
  f.message += " of an asynchronous operation that may still run";
  f.hint = "the issuing thread has to wait for it (cp.async.wait_group, or "
           "the mbarrier that it signals); other threads then need a "
           "barrier after that wait";
}

std::optional<uint32_t> Race::findOvertaking() const {
  bool isLocal = earlier.sameCta(stamp) && !(stamp.flags & Stamp::Sent);
  if (isLocal || earlier.cluster != stamp.cluster)
    return std::nullopt;
  const Clock &known = x.warp->order.know.generic;
  if (wasWrite) {
    if (const auto *open = known.findUnreleased(earlier.actor, earlier.epoch))
      return open->signal;
  } else if (const auto *open =
                 known.findUnused(earlier.actor, earlier.epoch, earlier.inst)) {
    return open->signal;
  }
  return std::nullopt;
}

void Race::describeOvertaken(Finding &f, uint32_t signal) const {
  std::string before = "before it signalled";
  if (signal)
    before = llvm::formatv("before the signal of line {0}",
                           x.machine.program.code[signal - 1].line)
                 .str();
  if (wasWrite) {
    f.message += " of another CTA by a store that nothing released to the "
                 "cluster " +
                 before;
    f.hint = "a signal with .release.cluster, or a fence with that scope in "
             "front of it, would order them";
    return;
  }
  if (!earlier.sameCta(stamp))
    f.message += " of another CTA";
  f.message +=
      " by a load of which no instruction had used a register " + before;
  f.hint = "an instruction that uses a register of the load before the "
           "signal, or a signal with .release.cluster, would order them";
}

void Race::describeReadOnly(Finding &f) const {
  f.message = write ? "writes memory that a non-coherent load has read"
                    : "a non-coherent load reads memory that the kernel has "
                      "written";
  f.hint = "'.nc' is for memory that nothing writes while the kernel runs: "
           "ld.global without it reads what was written";
}

void Race::describeEarlierLaunch(Finding &f) const {
  const EarlierLaunch &last = *x.machine.config.earlier;
  bool isOlder = earlier.epoch > EarlierLaunch::LastEpoch;
  f.message += " of " + (isOlder ? *last.before : last).what +
               ", which the programmatic launch may overlap";
  f.hint = isOlder ? "griddepcontrol.wait in " + last.what +
                         ", which may end before what it has not waited for, "
                         "would order them"
                   : "griddepcontrol.wait before it would order them";
}

void Race::describe(Finding &f, uint64_t at) const {
  if (earlier.isOfEarlierLaunch())
    return describeEarlierLaunch(f);
  if (isOfReadOnly())
    return describeReadOnly(f);
  if (ref.space == Space::Tensor)
    return describeTensor(f, at);
  if (earlier.flags & Stamp::Async)
    return describeAsync(f);
  if (std::optional<uint32_t> signal = findOvertaking())
    return describeOvertaken(f, *signal);
  if (isOfWarp() && !(stamp.flags & Stamp::AsyncProxy)) {
    f.message += " of another lane of the same warp";
    f.severity =
        assumes(Assumption::WarpLockstep) ? Severity::HwOnly : Severity::Error;
    f.hint = "bar.warp.sync between them would order them";
  } else if (ref.space == Space::Global && !earlier.sameCta(stamp)) {
    f.message += " of another CTA";
    f.hint = write && wasWrite
                 ? "two CTAs write one element: one of them writes past its "
                   "part, or a release (fence and atomic) after the first and "
                   "an acquire before the second would order them"
                 : "a release (fence and atomic) after the first and an "
                   "acquire before the second would order them";
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
}

void mlir::attn::sim::reportRace(Exec &x, const Stamp &earlier, bool wasWrite,
                                 const Stamp &stamp, bool write,
                                 const Clock &clock, const MemRef &ref,
                                 uint64_t at, uint64_t bytes) {
  // Lanes that write the same place in one instruction: one of them wins.
  if (earlier.inst == stamp.inst && earlier.actor == stamp.actor &&
      earlier.epoch == stamp.epoch && earlier.cluster == stamp.cluster &&
      wasWrite && write)
    return;
  if (pipelined(x, earlier, stamp))
    return;
  // One lane has signalled an mbarrier behind it, which the other has waited
  // for.
  if (ref.space == Space::Shared && earlier.actor == x.warp->order.actor &&
      earlier.sameCta(stamp) &&
      !((earlier.flags | stamp.flags) & Stamp::Async) &&
      x.warp->order.exchanged.covers(earlier.epoch, earlier.lane, stamp.lane))
    return;
  // Even if it is harmless: whether it is depends on what was stored first.
  if (x.machine.parallel && earlier.cluster != stamp.cluster) {
    x.machine.repeat = x.machine.stop = true;
    return;
  }
  Race race{x, earlier, wasWrite, stamp, write, clock, ref};
  std::optional<Severity> severity = race.judge();
  if (!severity)
    return;
  Finding f;
  f.kind = FindingKind::Race;
  f.severity = *severity;
  if (!earlier.isOfEarlierLaunch())
    f.first = x.siteOf(earlier);
  f.second = x.siteOf(stamp);
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
  f.message = (now + " is not ordered after an earlier " + then).str();
  race.describe(f, at);
  if (x.cluster.droppedLoads && ref.space == Space::Global &&
      !(write && wasWrite) &&
      x.cluster.droppedLoads->hold(write ? earlier : stamp, f))
    return;
  x.report(std::move(f));
}
