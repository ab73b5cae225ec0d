//===- BarrierOracle.cpp - Small kernels in every order -------------------===//

#include "BarrierOracle.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>
#include <unordered_set>

using namespace mlir;
using namespace mlir::attn::oracle;

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

static unsigned pick(std::mt19937 &rng, unsigned count) {
  return std::uniform_int_distribution<unsigned>(0, count - 1)(rng);
}

static SmallOp makeOp(SmallOp::Kind kind, unsigned barrier,
                      unsigned other = 0) {
  SmallOp op;
  op.kind = kind;
  op.barrier = barrier;
  if (kind == SmallOp::Wait)
    op.parity = other & 1;
  else
    op.word = other;
  return op;
}

/// A producer that fills slots, by copies or by stores, and one or two
/// consumers that read them and give them back.
static SmallKernel makeRing(std::mt19937 &rng) {
  unsigned depth = 1 + pick(rng, 3), consumers = 1 + pick(rng, 2),
           trips = 1 + pick(rng, consumers == 1 ? 2 * depth + 2 : depth + 2);
  bool sends = pick(rng, 2);
  SmallKernel kernel;
  kernel.actors.resize(1 + consumers);
  // Full ones, then empty ones.
  kernel.counts.assign(depth, 1);
  kernel.counts.insert(kernel.counts.end(), depth, consumers);
  for (unsigned trip = 0; trip < trips; ++trip) {
    unsigned slot = trip % depth, lap = trip / depth;
    auto &producer = kernel.actors[0];
    producer.push_back(makeOp(SmallOp::Wait, depth + slot, lap + 1));
    if (sends) {
      producer.push_back(makeOp(SmallOp::Expect, slot));
      producer.push_back(makeOp(SmallOp::Send, slot, slot));
    } else {
      producer.push_back(makeOp(SmallOp::Store, 0, slot));
      producer.push_back(makeOp(SmallOp::Arrive, slot));
    }
    for (unsigned i = 1; i <= consumers; ++i) {
      auto &consumer = kernel.actors[i];
      consumer.push_back(makeOp(SmallOp::Wait, slot, lap));
      consumer.push_back(makeOp(SmallOp::Load, 0, slot));
      consumer.push_back(makeOp(SmallOp::Arrive, depth + slot));
    }
  }
  return kernel;
}

/// A word that is handed around among all warps.
static SmallKernel makeChain(std::mt19937 &rng) {
  unsigned actors = 2 + pick(rng, 2), trips = 1 + pick(rng, 4);
  SmallKernel kernel;
  kernel.actors.resize(actors);
  kernel.counts.assign(actors, 1);
  for (unsigned trip = 0; trip < trips; ++trip)
    for (unsigned i = 0; i < actors; ++i) {
      auto &actor = kernel.actors[i];
      actor.push_back(makeOp(SmallOp::Wait, i, i == 0 ? trip + 1 : trip));
      actor.push_back(makeOp(pick(rng, 2) ? SmallOp::Store : SmallOp::Load, 0));
      actor.push_back(makeOp(SmallOp::Arrive, (i + 1) % actors));
    }
  return kernel;
}

static SmallOp makeAny(std::mt19937 &rng, unsigned barriers, bool sends) {
  SmallOp::Kind kinds[] = {SmallOp::Wait, SmallOp::Arrive, SmallOp::Load,
                           sends ? SmallOp::Expect : SmallOp::Store,
                           sends ? SmallOp::Send : SmallOp::Arrive};
  SmallOp::Kind kind = kinds[pick(rng, std::size(kinds))];
  return makeOp(kind, pick(rng, barriers), pick(rng, 2));
}

/// One change; false where there is nothing to change.
static bool change(SmallKernel &kernel, std::mt19937 &rng, bool sends) {
  auto &ops = kernel.actors[pick(rng, kernel.actors.size())];
  if (ops.empty())
    return false;
  unsigned place = pick(rng, ops.size()), barriers = kernel.counts.size();
  SmallOp &op = ops[place];
  switch (pick(rng, 9)) {
  case 0:
    ops.erase(ops.begin() + place);
    return true;
  case 1:
    ops.insert(ops.begin() + place, SmallOp(op));
    return true;
  case 2:
  case 3:
    if (place + 1 == ops.size())
      return false;
    std::swap(ops[place], ops[place + 1]);
    return true;
  case 4:
    if (op.kind != SmallOp::Wait)
      return false;
    op.parity ^= 1;
    return true;
  case 5:
    op.barrier = pick(rng, barriers);
    return true;
  case 6: {
    unsigned &count = kernel.counts[pick(rng, barriers)];
    count = count == 1 || pick(rng, 2) ? count + 1 : count - 1;
    return true;
  }
  case 7:
    if (op.kind != SmallOp::Expect)
      return false;
    op.bytes = 8;
    return true;
  default:
    ops.insert(ops.begin() + place, makeAny(rng, barriers, sends));
    return true;
  }
}

SmallKernel attn::oracle::makeKernel(std::mt19937 &rng) {
  SmallKernel kernel = pick(rng, 3) ? makeRing(rng) : makeChain(rng);
  bool sends = llvm::any_of(kernel.actors[0], [](const SmallOp &op) {
    return op.kind == SmallOp::Send;
  });
  for (unsigned left = pick(rng, 4); left != 0;)
    left -= change(kernel, rng, sends);
  return kernel;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// Words in front of the mbarriers.
static constexpr unsigned kWords = 4;

static std::string print(const SmallOp &op) {
  constexpr StringRef buffer = "!attn.buffer<4xi32, #attn.rows, shared>";
  switch (op.kind) {
  case SmallOp::Wait:
    return llvm::formatv("attn.mbarrier.wait %b{0}[%c0] parity %c{1} : "
                         "!attn.mbarriers<1>",
                         op.barrier, op.parity);
  case SmallOp::Arrive:
    return llvm::formatv("attn.mbarrier.arrive %b{0}[%c0] : !attn.mbarriers<1>",
                         op.barrier);
  case SmallOp::Expect:
    return llvm::formatv("attn.mbarrier.expect_tx %b{0}[%c0] {{bytes = {1}} : "
                         "!attn.mbarriers<1>",
                         op.barrier, op.bytes);
  case SmallOp::Send:
    return llvm::formatv("attn.scalar_send %c0, %x[%c{0}] barrier %b{1}[%c0] : "
                         "!attn.mbarriers<1> : {2}",
                         op.word, op.barrier, buffer);
  case SmallOp::Load:
    return llvm::formatv("attn.scalar_load %x[%c{0}] : {1}", op.word, buffer);
  case SmallOp::Store:
    return llvm::formatv("attn.scalar_store %c0, %x[%c{0}] : {1}", op.word,
                         buffer);
  }
  llvm_unreachable("all kinds handled");
}

std::string attn::oracle::print(const SmallKernel &kernel) {
  std::string text =
      "gpu.module @kernels {\n  gpu.func @small() kernel {\n"
      "    %c0 = arith.constant 0 : i32\n    %c1 = arith.constant 1 : i32\n"
      "    %c2 = arith.constant 2 : i32\n    %c3 = arith.constant 3 : i32\n"
      "    %x = attn.alloc {name = \"x\", offset = 0} : "
      "!attn.buffer<4xi32, #attn.rows, shared>\n";
  for (unsigned i = 0; i < kernel.counts.size(); ++i)
    text += llvm::formatv("    %b{0} = attn.mbarrier.alloc {{name = \"b{0}\", "
                          "offset = {1}} : !attn.mbarriers<1>\n",
                          i, 4 * kWords + 8 * i);
  text += "    attn.elect {\n";
  for (auto [i, count] : llvm::enumerate(kernel.counts))
    text += llvm::formatv("      attn.mbarrier.init %b{0} {{count = {1}} : "
                          "!attn.mbarriers<1>\n",
                          i, count);
  text += "      attn.mbarrier.fence_init\n    }\n    gpu.barrier\n"
          "    attn.warp_specialize\n";
  for (auto [i, ops] : llvm::enumerate(kernel.actors)) {
    text += llvm::formatv("    partition \"p{0}\" warps 4 registers 24 {{\n"
                          "      attn.elect {{\n",
                          i);
    for (auto [place, op] : llvm::enumerate(ops))
      text += llvm::formatv("        {0}{1}\n",
                            op.kind == SmallOp::Load
                                ? llvm::formatv("%v{0} = ", place).str()
                                : "",
                            ::print(op));
    text += "      }\n    }\n";
  }
  return text + "    gpu.return\n  }\n}\n";
}

//===----------------------------------------------------------------------===//
// All orders
//===----------------------------------------------------------------------===//

namespace {

/// More states than this are too many.
constexpr size_t kMostStates = 60000;

struct SmallBarrier {
  int phase = 0, pending = 0, bytes = 0;
  /// Accesses that signals of this phase carry, and those of the phases before.
  uint64_t gathering = 0, published = 0;
};

struct SmallState {
  std::vector<unsigned> places;
  /// Accesses that each warp may rely on, and all that have happened.
  std::vector<uint64_t> knows;
  std::vector<SmallBarrier> barriers;
  uint64_t done = 0;
  /// Copies that are on their way.
  uint64_t flying = 0;

  std::string getText() const {
    std::string text;
    auto add = [&](uint64_t value) {
      text.append(reinterpret_cast<const char *>(&value), sizeof(value));
    };
    for (unsigned place : places)
      add(place);
    for (uint64_t known : knows)
      add(known);
    for (const SmallBarrier &barrier : barriers) {
      add(barrier.phase);
      add(barrier.pending);
      add(barrier.bytes);
      add(barrier.gathering);
      add(barrier.published);
    }
    add(flying);
    return text;
  }
};

class Explorer {
public:
  explicit Explorer(const SmallKernel &kernel) : kernel(kernel) {}
  bool run();
  std::optional<std::string> wrong;

private:
  void step(SmallState state, unsigned actor);
  void land(SmallState state, unsigned event);
  void signal(SmallState &state, unsigned barrier, unsigned event, int arrivals,
              int bytes);
  void touch(SmallState &state, unsigned actor, const SmallOp &op);
  void fixPhase(unsigned event, int phase);
  void fail(const llvm::Twine &text) {
    if (!wrong)
      wrong = text.str();
  }
  void add(SmallState state) {
    if (seen.insert(state.getText()).second)
      worklist.push_back(std::move(state));
  }

  const SmallKernel &kernel;
  /// Each op is an event, numbered through all warps.
  std::vector<unsigned> firstEvents;
  std::vector<const SmallOp *> events;
  /// In which phase an op was seen to signal, or which one ended its wait.
  std::map<unsigned, int> phases;
  std::unordered_set<std::string> seen;
  std::vector<SmallState> worklist;
};

} // namespace

void Explorer::fixPhase(unsigned event, int phase) {
  auto [known, isNew] = phases.try_emplace(event, phase);
  if (known->second != phase)
    fail("op " + llvm::Twine(event) + " belongs to phase " +
         llvm::Twine(known->second) + " or " + llvm::Twine(phase));
}

void Explorer::signal(SmallState &state, unsigned number, unsigned event,
                      int arrivals, int bytes) {
  SmallBarrier &barrier = state.barriers[number];
  fixPhase(event, barrier.phase);
  barrier.bytes += bytes;
  barrier.pending -= arrivals;
  if (barrier.pending < 0)
    return fail("too many arrivals");
  if (barrier.pending == 0 && barrier.bytes < 0)
    return fail("too many bytes");
  if (barrier.pending != 0 || barrier.bytes != 0)
    return;
  ++barrier.phase;
  barrier.pending = kernel.counts[number];
  barrier.published |= barrier.gathering;
  barrier.gathering = 0;
}

/// An access has to come after all that touch the same word, but for two reads.
void Explorer::touch(SmallState &state, unsigned actor, const SmallOp &op) {
  for (unsigned event = 0; event < events.size(); ++event) {
    const SmallOp &other = *events[event];
    bool isAccess = other.kind == SmallOp::Load ||
                    other.kind == SmallOp::Store || other.kind == SmallOp::Send;
    bool areReads = op.kind == SmallOp::Load && other.kind == SmallOp::Load;
    if (isAccess && !areReads && other.word == op.word &&
        (state.done >> event & 1) && !(state.knows[actor] >> event & 1))
      return fail("race with op " + llvm::Twine(event));
  }
}

/// A copy ends: it carries its own bytes, and nothing else that its warp did.
void Explorer::land(SmallState state, unsigned event) {
  const SmallOp &op = *events[event];
  state.flying &= ~(uint64_t(1) << event);
  state.barriers[op.barrier].gathering |= uint64_t(1) << event;
  signal(state, op.barrier, event, 0, -4);
  add(std::move(state));
}

void Explorer::step(SmallState state, unsigned actor) {
  unsigned event = firstEvents[actor] + state.places[actor]++;
  const SmallOp &op = *events[event];
  uint64_t bit = uint64_t(1) << event;
  SmallBarrier &barrier = state.barriers[op.barrier];
  switch (op.kind) {
  case SmallOp::Wait:
    fixPhase(event, barrier.phase);
    state.knows[actor] |= barrier.published;
    break;
  case SmallOp::Arrive:
  case SmallOp::Expect:
    barrier.gathering |= state.knows[actor];
    signal(state, op.barrier, event, 1,
           op.kind == SmallOp::Expect ? int(op.bytes) : 0);
    break;
  case SmallOp::Send:
    touch(state, actor, op);
    state.done |= bit;
    state.flying |= bit;
    break;
  case SmallOp::Load:
  case SmallOp::Store:
    touch(state, actor, op);
    state.done |= bit;
    state.knows[actor] |= bit;
    break;
  }
  add(std::move(state));
}

/// False if there are too many states.
bool Explorer::run() {
  SmallState start;
  for (const auto &ops : kernel.actors) {
    firstEvents.push_back(events.size());
    for (const SmallOp &op : ops)
      events.push_back(&op);
  }
  if (events.size() > 64)
    return false;
  start.places.resize(kernel.actors.size());
  start.knows.resize(kernel.actors.size());
  for (unsigned count : kernel.counts)
    start.barriers.push_back({0, int(count), 0, 0, 0});
  add(std::move(start));
  while (!worklist.empty() && !wrong) {
    if (seen.size() > kMostStates)
      return false;
    SmallState state = std::move(worklist.back());
    worklist.pop_back();
    bool moves = state.flying != 0, isDone = true;
    for (unsigned actor = 0; actor < kernel.actors.size(); ++actor) {
      unsigned place = state.places[actor];
      if (place == kernel.actors[actor].size())
        continue;
      isDone = false;
      const SmallOp &op = kernel.actors[actor][place];
      if (op.kind == SmallOp::Wait &&
          unsigned(state.barriers[op.barrier].phase & 1) == op.parity)
        continue;
      moves = true;
      step(state, actor);
    }
    if (isDone && state.flying != 0)
      fail("exit while a copy is on its way");
    if (!isDone && !moves)
      fail("nobody can go on");
    for (unsigned event = 0; event < events.size(); ++event)
      if (state.flying >> event & 1)
        land(state, event);
  }
  return true;
}

bool attn::oracle::explore(const SmallKernel &kernel,
                           std::optional<std::string> &wrong) {
  Explorer explorer(kernel);
  bool isWhole = explorer.run();
  wrong = explorer.wrong;
  return isWhole;
}
