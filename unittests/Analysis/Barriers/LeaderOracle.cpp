//===- LeaderOracle.cpp - Pairs of CTAs in every order --------------------===//

#include "LeaderOracle.h"
#include "OracleSearch.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::attn::oracle;

namespace {

/// Accesses by their number.
constexpr size_t kMostAccesses = 64;
using Accesses = std::bitset<kMostAccesses>;

using PairBarrier = CountingBarrier<kMostAccesses>;

/// A signal that is on its way to a barrier.
struct Flying {
  /// Its number among all signals.
  unsigned event;
  unsigned cta, barrier;
  int arrivals, bytes;
  Accesses carried;
  /// Commits of a thread come to a CTA in their order.
  std::optional<unsigned> thread;
};

struct PairState {
  std::vector<unsigned> places;
  /// Accesses that each thread may rely on, and those that its products do.
  std::vector<Accesses> knows, products;
  std::vector<PairBarrier> barriers;
  Accesses done;
  std::vector<Flying> flying;

  std::string getText() const {
    StateText text;
    for (auto [place, known, started] : llvm::zip(places, knows, products)) {
      text.add(place);
      text.add(known);
      text.add(started);
    }
    for (const PairBarrier &barrier : barriers)
      barrier.addTo(text);
    text.add(done);
    for (const Flying &each : flying)
      text.add(each.event);
    return text.take();
  }
};

class PairExplorer : public OracleSearch<PairState> {
public:
  explicit PairExplorer(const PairKernel &kernel) : kernel(kernel) {}
  bool run();

private:
  struct PairAccess {
    unsigned cta, slot;
    bool isWrite;
  };

  unsigned getCTA(unsigned thread) const {
    return thread / kernel.warps.size();
  }
  const std::vector<PairOp> &getOps(unsigned thread) const {
    return kernel.warps[thread % kernel.warps.size()];
  }
  /// Returns what tells signals and waits apart.
  static unsigned getEvent(unsigned thread, unsigned place, unsigned cta) {
    return (64 * thread + place) * (kPairCTAs + 1) + cta;
  }
  /// The CTAs in which an op has its effect.
  SmallVector<unsigned, 2> getTargets(const PairOp &op, unsigned cta) const {
    if (op.target == PairTarget::Both)
      return {0, 1};
    return {op.target == PairTarget::Leader ? 0 : cta};
  }
  PairBarrier &getBarrier(PairState &state, unsigned cta, unsigned barrier) {
    return state.barriers[cta * kernel.counts.size() + barrier];
  }

  unsigned touch(PairState &state, unsigned event, PairAccess access,
                 const Accesses &known);
  void signal(PairState &state, const Flying &sent);
  void signalAll(PairState state, unsigned thread, const PairOp &op);
  bool move(const PairState &state, unsigned thread);
  void start(PairState &state, unsigned thread, const PairOp &op);
  bool land(const PairState &state);

  const PairKernel &kernel;
  /// All accesses, and their numbers by events.
  std::vector<PairAccess> accesses;
  std::map<unsigned, unsigned> numbers;
};

} // namespace

/// An access has to come after all that touch the same slot, but for two reads.
/// Returns its number.
unsigned PairExplorer::touch(PairState &state, unsigned event,
                             PairAccess access, const Accesses &known) {
  auto [number, isNew] = numbers.try_emplace(event, accesses.size());
  if (isNew)
    accesses.push_back(access);
  for (auto [other, earlier] : llvm::enumerate(accesses))
    if (state.done.test(other) && !known.test(other) &&
        earlier.cta == access.cta && earlier.slot == access.slot &&
        (earlier.isWrite || access.isWrite))
      fail("race with access " + llvm::Twine(other));
  state.done.set(number->second);
  return number->second;
}

void PairExplorer::signal(PairState &state, const Flying &sent) {
  PairBarrier &barrier = getBarrier(state, sent.cta, sent.barrier);
  fixPhase(sent.event, barrier.phase);
  barrier.gathering |= sent.carried;
  if (const char *fault = barrier.signal(sent.arrivals, sent.bytes,
                                         kernel.counts[sent.barrier]))
    fail(fault);
}

/// Signals of the thread itself come to the CTAs in any order. What a thread
/// announces for all CTAs the leader's alone announces.
void PairExplorer::signalAll(PairState state, unsigned thread,
                             const PairOp &op) {
  bool isExpect = op.kind == PairOp::Expect;
  unsigned cta = getCTA(thread), place = state.places[thread]++;
  SmallVector<unsigned, 2> targets = getTargets(op, cta);
  if (isExpect && op.target == PairTarget::Leader && cta != 0)
    targets.clear();
  auto signalOne = [&](PairState &at, unsigned target) {
    signal(at, {getEvent(thread, place, target), target, op.barrier, 1,
                isExpect ? op.bytes : 0, at.knows[thread], std::nullopt});
  };
  for (unsigned order = 0; order < targets.size(); ++order) {
    PairState next = state;
    for (unsigned i = 0; i < targets.size(); ++i)
      signalOne(next, targets[(i + order) % targets.size()]);
    add(std::move(next));
  }
  if (targets.empty())
    add(std::move(state));
}

/// Starts what is asynchronous.
void PairExplorer::start(PairState &state, unsigned thread, const PairOp &op) {
  unsigned cta = getCTA(thread), place = state.places[thread]++;
  Accesses &known = state.knows[thread];
  switch (op.kind) {
  case PairOp::Copy: {
    unsigned event = getEvent(thread, place, 0);
    Accesses carried;
    carried.set(touch(state, event, {cta, op.slot, /*isWrite=*/true}, known));
    state.flying.push_back({event, getTargets(op, cta).front(), op.barrier, 0,
                            -kSlotBytes, carried, std::nullopt});
    break;
  }
  case PairOp::Send:
    for (unsigned target : getTargets(op, cta)) {
      unsigned event = getEvent(thread, place, target);
      Accesses carried;
      carried.set(
          touch(state, event, {target, op.slot, /*isWrite=*/true}, known));
      state.flying.push_back(
          {event, target, op.barrier, 0, -kWordBytes, carried, std::nullopt});
    }
    break;
  case PairOp::Product: {
    Accesses &started = state.products[thread];
    started |= known;
    Accesses made;
    for (unsigned target = 0; target < kPairCTAs; ++target)
      made.set(touch(state, getEvent(thread, place, target),
                     {target, op.slot, /*isWrite=*/false}, started));
    started |= made;
    break;
  }
  case PairOp::Commit:
    for (unsigned target : getTargets(op, cta))
      state.flying.push_back({getEvent(thread, place, target), target,
                              op.barrier, 1, 0, state.products[thread],
                              thread});
    break;
  default:
    llvm_unreachable("these are not asynchronous");
  }
}

/// True if the thread can go on.
bool PairExplorer::move(const PairState &before, unsigned thread) {
  unsigned place = before.places[thread], cta = getCTA(thread);
  if (place == getOps(thread).size())
    return false;
  const PairOp &op = getOps(thread)[place];
  PairState state = before;
  if (op.isOfLeader && cta != 0) {
    ++state.places[thread];
    add(std::move(state));
    return true;
  }
  switch (op.kind) {
  case PairOp::Wait: {
    PairBarrier &barrier = getBarrier(state, cta, op.barrier);
    if (unsigned(barrier.phase & 1) == op.parity)
      return false;
    fixPhase(getEvent(thread, place, kPairCTAs), barrier.phase);
    state.knows[thread] |= barrier.published;
    ++state.places[thread];
    break;
  }
  case PairOp::Arrive:
  case PairOp::Expect:
    signalAll(std::move(state), thread, op);
    return true;
  case PairOp::Read: {
    Accesses &known = state.knows[thread];
    known.set(touch(state, getEvent(thread, place, 0),
                    {cta, op.slot, /*isWrite=*/false}, known));
    ++state.places[thread];
    break;
  }
  default:
    start(state, thread, op);
  }
  add(std::move(state));
  return true;
}

/// Lets each signal that is on its way come next.
bool PairExplorer::land(const PairState &state) {
  for (unsigned i = 0; i < state.flying.size(); ++i) {
    const Flying &sent = state.flying[i];
    bool isBehind = llvm::any_of(
        ArrayRef(state.flying).take_front(i), [&](const Flying &earlier) {
          return sent.thread && earlier.thread == sent.thread &&
                 earlier.cta == sent.cta;
        });
    if (isBehind)
      continue;
    PairState next = state;
    next.flying.erase(next.flying.begin() + i);
    signal(next, sent);
    add(std::move(next));
  }
  return !state.flying.empty();
}

/// False if there are too many states.
bool PairExplorer::run() {
  unsigned threads = kPairCTAs * kernel.warps.size();
  PairState begin;
  begin.places.resize(threads);
  begin.knows.resize(threads);
  begin.products.resize(threads);
  for (unsigned cta = 0; cta < kPairCTAs; ++cta)
    for (unsigned count : kernel.counts)
      begin.barriers.push_back({0, int(count), 0, {}, {}});
  add(std::move(begin));
  return OracleSearch::run([&](const PairState &state) {
    bool moves = false, isDone = true;
    for (unsigned thread = 0; thread < threads; ++thread) {
      isDone &= state.places[thread] == getOps(thread).size();
      moves |= move(state, thread);
    }
    if (isDone && !state.flying.empty())
      fail("exit while a signal is on its way");
    if (!land(state) && !moves && !isDone)
      fail("nobody can go on");
  });
}

bool attn::oracle::explore(const PairKernel &kernel,
                           std::optional<std::string> &wrong) {
  PairExplorer explorer(kernel);
  bool isWhole = explorer.run();
  wrong = explorer.wrong;
  return isWhole;
}
