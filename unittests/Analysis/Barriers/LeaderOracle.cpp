//===- LeaderOracle.cpp - Pairs of CTAs in every order --------------------===//

#include "LeaderOracle.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <bitset>
#include <map>
#include <unordered_set>

using namespace mlir;
using namespace mlir::attn::oracle;
using llvm::formatv;

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// Bytes of a slot in a CTA: those of a copy, and of a word.
static constexpr int kSlotBytes = 4096, kWordBytes = 4;

static unsigned pick(std::mt19937 &rng, unsigned count) {
  return std::uniform_int_distribution<unsigned>(0, count - 1)(rng);
}

static PairOp makeWait(unsigned barrier, unsigned phase) {
  PairOp op;
  op.barrier = barrier;
  op.parity = phase & 1;
  return op;
}

static PairOp makeOp(PairOp::Kind kind, unsigned barrier, PairTarget target,
                     unsigned slot = 0) {
  PairOp op;
  op.kind = kind;
  op.barrier = barrier;
  op.target = target;
  op.slot = slot;
  return op;
}

static PairOp makeExpect(unsigned barrier, PairTarget target, int bytes) {
  PairOp op = makeOp(PairOp::Expect, barrier, target);
  op.bytes = bytes;
  return op;
}

static void makeOfLeader(std::vector<PairOp> &ops) {
  for (PairOp &op : ops)
    op.isOfLeader = true;
}

/// Both CTAs copy their part of a slot, the leader multiplies, and its commits
/// hand slots back and results on, which both CTAs hand back.
static PairKernel makeProducts(std::mt19937 &rng) {
  unsigned depth = 1 + pick(rng, 2), trips = 1 + pick(rng, 3);
  bool hasResults = pick(rng, 2);
  unsigned results = 2 * depth, handedBack = results + 1;
  PairKernel kernel;
  // Full ones, then empty ones, then those of the results.
  kernel.counts.assign(2 * depth, 1);
  kernel.warps.resize(hasResults ? 3 : 2);
  if (hasResults)
    kernel.counts.insert(kernel.counts.end(), {1, kPairCTAs});
  auto &copies = kernel.warps[0], &products = kernel.warps[1];
  for (unsigned trip = 0; trip < trips; ++trip) {
    unsigned slot = trip % depth, lap = trip / depth;
    copies.push_back(makeWait(depth + slot, lap + 1));
    copies.push_back(
        makeExpect(slot, PairTarget::Leader, kPairCTAs * kSlotBytes));
    copies.push_back(makeOp(PairOp::Copy, slot, PairTarget::Leader, slot));
    if (hasResults)
      products.push_back(makeWait(handedBack, trip + 1));
    products.push_back(makeWait(slot, lap));
    products.push_back(makeOp(PairOp::Product, 0, PairTarget::Both, slot));
    products.push_back(makeOp(PairOp::Commit, depth + slot, PairTarget::Both));
    if (!hasResults)
      continue;
    products.push_back(makeOp(PairOp::Commit, results, PairTarget::Both));
    kernel.warps[2].push_back(makeWait(results, trip));
    kernel.warps[2].push_back(
        makeOp(PairOp::Arrive, handedBack, PairTarget::Leader));
  }
  // A CTA leaves behind the last commits that come to it.
  for (unsigned slot = 0; slot < std::min(depth, trips); ++slot)
    copies.push_back(
        makeWait(depth + slot, (trips - 1 - slot) / depth));
  makeOfLeader(products);
  return kernel;
}

/// The leader sends words to both CTAs, whose warps read them and hand them
/// back to it.
static PairKernel makeSends(std::mt19937 &rng) {
  unsigned depth = 1 + pick(rng, 2), trips = 1 + pick(rng, 3),
           readers = 1 + pick(rng, 2);
  PairKernel kernel;
  kernel.sends = true;
  kernel.warps.resize(1 + readers);
  kernel.counts.assign(depth, 1);
  kernel.counts.insert(kernel.counts.end(), depth, readers * kPairCTAs);
  auto &dealer = kernel.warps[0];
  for (unsigned trip = 0; trip < trips; ++trip) {
    unsigned slot = trip % depth, lap = trip / depth;
    dealer.push_back(makeWait(depth + slot, lap + 1));
    dealer.push_back(makeExpect(slot, PairTarget::Both, kWordBytes));
    dealer.push_back(makeOp(PairOp::Send, slot, PairTarget::Both, slot));
    for (unsigned reader = 1; reader <= readers; ++reader) {
      auto &ops = kernel.warps[reader];
      ops.push_back(makeWait(slot, lap));
      ops.push_back(makeOp(PairOp::Read, 0, PairTarget::Own, slot));
      ops.push_back(
          makeOp(PairOp::Arrive, depth + slot, PairTarget::Leader));
    }
  }
  makeOfLeader(dealer);
  return kernel;
}

/// Lets an op have its effect in other CTAs; false where there are none.
static bool changeTarget(PairOp &op, std::mt19937 &rng) {
  PairTarget targets[] = {PairTarget::Own, PairTarget::Leader,
                          PairTarget::Both};
  switch (op.kind) {
  case PairOp::Arrive:
  case PairOp::Expect:
    op.target = targets[pick(rng, 3)];
    return true;
  case PairOp::Copy:
    op.target = targets[pick(rng, 2)];
    return true;
  case PairOp::Commit:
  case PairOp::Send:
    op.target = pick(rng, 2) ? PairTarget::Both : PairTarget::Own;
    return true;
  case PairOp::Wait:
  case PairOp::Read:
    op.isOfLeader ^= 1;
    return true;
  case PairOp::Product:
    return false;
  }
  llvm_unreachable("all kinds handled");
}

/// One change; false where there is nothing to change.
static bool change(PairKernel &kernel, std::mt19937 &rng) {
  auto &ops = kernel.warps[pick(rng, kernel.warps.size())];
  if (ops.empty())
    return false;
  unsigned place = pick(rng, ops.size()), barriers = kernel.counts.size();
  PairOp &op = ops[place];
  switch (pick(rng, 9)) {
  case 0:
    ops.erase(ops.begin() + place);
    return true;
  case 1:
    ops.insert(ops.begin() + place, PairOp(op));
    return true;
  case 2:
    if (place + 1 == ops.size())
      return false;
    std::swap(ops[place], ops[place + 1]);
    return true;
  case 3:
    if (op.kind != PairOp::Wait)
      return false;
    op.parity ^= 1;
    return true;
  case 4:
    op.barrier = pick(rng, barriers);
    return true;
  case 5: {
    unsigned &count = kernel.counts[pick(rng, barriers)];
    count = count == 1 || pick(rng, 2) ? count + 1 : count - 1;
    return true;
  }
  case 6:
    if (op.kind != PairOp::Expect)
      return false;
    op.bytes = pick(rng, 2) ? op.bytes / 2 : op.bytes * 2;
    return true;
  default:
    return changeTarget(op, rng);
  }
}

PairKernel attn::oracle::makePairKernel(std::mt19937 &rng) {
  PairKernel kernel = pick(rng, 3) ? makeProducts(rng) : makeSends(rng);
  for (unsigned left = pick(rng, 3); left != 0;)
    left -= change(kernel, rng);
  return kernel;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static constexpr StringRef kMap = "!attn.tensor_map<32x64xf16, swizzle = 128>";
static constexpr StringRef kPart =
    "!attn.buffer<32x64xf16, #attn.swizzled<span = 128>, shared>";
static constexpr StringRef kRows =
    "!attn.buffer<128x64xf16, #attn.swizzled<span = 128>, shared>";
static constexpr StringRef kTransposed =
    "!attn.buffer<64x32xf16, #attn.transposed<#attn.swizzled<span = 128>>, "
    "shared>";
static constexpr StringRef kSum =
    "!attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>";
static constexpr StringRef kWords = "!attn.buffer<2xi32, #attn.rows, shared>";
static constexpr unsigned kMostSlots = 2;

/// Attributes by which an op has its effect in those CTAs.
static std::string printTarget(PairTarget target, StringRef others) {
  std::string where = target == PairTarget::Leader ? "leader"
                      : target == PairTarget::Both ? "ctas = 2"
                                                   : "";
  if (where.empty() && others.empty())
    return "";
  StringRef comma = where.empty() || others.empty() ? "" : ", ";
  return formatv(" {{{0}{1}{2}}", where, comma, others);
}

static std::string print(const PairOp &op, unsigned place) {
  std::string at = formatv("%b{0}[%c0]", op.barrier);
  auto where = [&](StringRef others = "") {
    return printTarget(op.target, others);
  };
  switch (op.kind) {
  case PairOp::Wait:
    return formatv("attn.mbarrier.wait {0} parity %c{1} : !attn.mbarriers<1>",
                   at, op.parity);
  case PairOp::Arrive:
    return formatv("attn.mbarrier.arrive {0}{1} : !attn.mbarriers<1>", at,
                   where());
  case PairOp::Expect:
    return formatv("attn.mbarrier.expect_tx {0}{1} : !attn.mbarriers<1>", at,
                   where(formatv("bytes = {0}", op.bytes).str()));
  case PairOp::Copy:
    return formatv("attn.tma.load %map[%c0, %c0], %x{0} barrier {1} : "
                   "!attn.mbarriers<1>{2} : {3}, {4}",
                   op.slot, at, where(), kMap, kPart);
  case PairOp::Send:
    return formatv("attn.scalar_send %c0, %w[%c{0}] barrier {1} : "
                   "!attn.mbarriers<1>{2} : {3}",
                   op.slot, at, where(), kWords);
  case PairOp::Read:
    return formatv("%v{0} = attn.scalar_load %w[%c{1}] : {2}", place, op.slot,
                   kWords);
  case PairOp::Product:
    return formatv("attn.tcgen05.mma %a, %t{0}, %d accumulate %no {{pair} : "
                   "{1}, {2}, {3}",
                   op.slot, kRows, kTransposed, kSum);
  case PairOp::Commit:
    return formatv("attn.tcgen05.commit {0}{1} : !attn.mbarriers<1>", at,
                   where("pair"));
  }
  llvm_unreachable("all kinds handled");
}

/// The slots, and what is multiplied by them.
static std::string printMemory(const PairKernel &kernel) {
  if (kernel.sends)
    return formatv("%w = attn.alloc {{name = \"w\", offset = 0} : {0}\n",
                   kWords);
  std::string text =
      formatv("%a = attn.alloc {{name = \"a\", offset = 16384} : {0}\n"
              "%d = attn.tmem_alloc {{column = 0 : i64, name = \"d\"} : {1}\n"
              "%address = attn.alloc {{name = \"address\", offset = 32896} : "
              "!attn.buffer<1xi32, #attn.rows, shared>\n",
              kRows, kSum);
  for (unsigned slot = 0; slot < kMostSlots; ++slot)
    text += formatv("%x{0} = attn.alloc {{name = \"x{0}\", offset = {1}} : "
                    "{2}\n%t{0} = attn.transpose %x{0} : {2} -> {3}\n",
                    slot, kSlotBytes * slot, kPart, kTransposed);
  return text;
}

std::string attn::oracle::print(const PairKernel &kernel) {
  std::string text = formatv(
      "gpu.module @kernels {{\ngpu.func @pair({0}) kernel attributes "
      "{{known_block_size = array<i32: 128, 1, 1>, known_cluster_size = "
      "array<i32: 2, 1, 1>} {{\n%c0 = arith.constant 0 : i32\n"
      "%c1 = arith.constant 1 : i32\n%no = arith.constant false\n{1}",
      kernel.sends ? "" : formatv("%map: {0}", kMap).str(),
      printMemory(kernel));
  std::string inits;
  for (auto [number, count] : llvm::enumerate(kernel.counts)) {
    text += formatv("%b{0} = attn.mbarrier.alloc {{name = \"b{0}\", offset = "
                    "{1}} : !attn.mbarriers<1>\n",
                    number, 32768 + 8 * number);
    inits += formatv("attn.mbarrier.init %b{0} {{count = {1}} : "
                     "!attn.mbarriers<1>\n",
                     number, count);
  }
  text += "attn.elect {\n" + inits +
          "attn.mbarrier.fence_init\n}\nattn.cluster_barrier\n";
  if (!kernel.sends)
    text += "%base = attn.tmem.reserve %address {columns = 64, pair} : "
            "!attn.buffer<1xi32, #attn.rows, shared>\n";
  text += "attn.warp_specialize\n";
  for (auto [number, ops] : llvm::enumerate(kernel.warps)) {
    text += formatv("partition \"p{0}\" warps 1 registers 24 {{\nattn.elect "
                    "{{\n",
                    number);
    for (auto [place, op] : llvm::enumerate(ops)) {
      std::string line = ::print(op, place);
      text += op.isOfLeader ? "attn.cluster_leader {\n" + line + "\n}\n"
                            : line + "\n";
    }
    text += "}\n}\n";
  }
  text += formatv("partition \"rest\" warps {0} registers 24 {{\n}\n"
                  "attn.cluster_barrier\n",
                  4 - kernel.warps.size());
  if (!kernel.sends)
    text += "attn.tmem.dealloc %base {columns = 64, pair}\n";
  return text + "gpu.return\n}\n}\n";
}

//===----------------------------------------------------------------------===//
// All orders
//===----------------------------------------------------------------------===//

namespace {

/// More states than this are too many.
constexpr size_t kMostPairStates = 60000;

/// Accesses by their number.
constexpr size_t kMostAccesses = 64;
using Accesses = std::bitset<kMostAccesses>;

struct PairBarrier {
  int phase = 0, pending = 0, bytes = 0;
  /// Accesses that signals of this phase carry, and those of the phases before.
  Accesses gathering, published;
};

/// A signal that is on its way to a barrier.
struct Flying {
  /// What tells it apart from all others.
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
    std::string text;
    auto add = [&](auto value) {
      text.append(reinterpret_cast<const char *>(&value), sizeof(value));
    };
    for (auto [place, known, started] : llvm::zip(places, knows, products)) {
      add(place);
      add(known);
      add(started);
    }
    for (const PairBarrier &barrier : barriers) {
      add(barrier.phase);
      add(barrier.pending);
      add(barrier.bytes);
      add(barrier.gathering);
      add(barrier.published);
    }
    add(done);
    for (const Flying &each : flying)
      add(each.event);
    return text;
  }
};

class PairExplorer {
public:
  explicit PairExplorer(const PairKernel &kernel) : kernel(kernel) {}
  bool run();
  std::optional<std::string> wrong;

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
  /// What signals and waits are told apart by.
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
  void fail(const llvm::Twine &text) {
    if (!wrong)
      wrong = text.str();
  }
  void fixPhase(unsigned event, int phase) {
    auto [known, isNew] = phases.try_emplace(event, phase);
    if (known->second != phase)
      fail("event " + llvm::Twine(event) + " belongs to phase " +
           llvm::Twine(known->second) + " or " + llvm::Twine(phase));
  }
  void add(PairState state) {
    if (seen.insert(state.getText()).second)
      worklist.push_back(std::move(state));
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
  std::map<unsigned, int> phases;
  std::unordered_set<std::string> seen;
  std::vector<PairState> worklist;
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
  barrier.bytes += sent.bytes;
  barrier.pending -= sent.arrivals;
  if (barrier.pending < 0)
    return fail("too many arrivals");
  if (barrier.pending == 0 && barrier.bytes < 0)
    return fail("too many bytes");
  if (barrier.pending != 0 || barrier.bytes != 0)
    return;
  ++barrier.phase;
  barrier.pending = kernel.counts[sent.barrier];
  barrier.published |= barrier.gathering;
  barrier.gathering.reset();
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
      state.flying.push_back({event, target, op.barrier, 0, -kWordBytes,
                              carried, std::nullopt});
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
  while (!worklist.empty() && !wrong) {
    if (seen.size() > kMostPairStates)
      return false;
    PairState state = std::move(worklist.back());
    worklist.pop_back();
    bool moves = false, isDone = true;
    for (unsigned thread = 0; thread < threads; ++thread) {
      isDone &= state.places[thread] == getOps(thread).size();
      moves |= move(state, thread);
    }
    if (isDone && !state.flying.empty())
      fail("exit while a signal is on its way");
    if (!land(state) && !moves && !isDone)
      fail("nobody can go on");
  }
  return true;
}

bool attn::oracle::explore(const PairKernel &kernel,
                           std::optional<std::string> &wrong) {
  PairExplorer explorer(kernel);
  bool isWhole = explorer.run();
  wrong = explorer.wrong;
  return isWhole;
}
