//===- BarrierOracle.cpp - Small kernels in every order -------------------===//

#include "BarrierOracle.h"
#include "OracleSearch.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

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

/// Lets all threads of warps do some of the ops, mostly so that it is right.
static void spread(SmallKernel &kernel, std::mt19937 &rng) {
  for (auto &ops : kernel.actors) {
    std::vector<SmallOp> spread;
    for (SmallOp op : ops) {
      bool canBeOfAll = op.kind == SmallOp::Wait || op.kind == SmallOp::Load ||
                        op.kind == SmallOp::Arrive;
      op.isOfAll = canBeOfAll && pick(rng, 3) != 0;
      bool changes = !spread.empty() && spread.back().isOfAll != op.isOfAll;
      if (changes && pick(rng, 8) != 0) {
        spread.emplace_back();
        spread.back().kind = SmallOp::Sync;
        spread.back().isOfAll = true;
      }
      spread.push_back(op);
    }
    ops = std::move(spread);
  }
}

SmallKernel attn::oracle::makeKernel(std::mt19937 &rng, bool lanes) {
  SmallKernel kernel = pick(rng, 3) ? makeRing(rng) : makeChain(rng);
  bool sends = llvm::any_of(kernel.actors[0], [](const SmallOp &op) {
    return op.kind == SmallOp::Send;
  });
  for (unsigned left = pick(rng, 4); left != 0;)
    left -= change(kernel, rng, sends);
  if (lanes)
    spread(kernel, rng);
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
  case SmallOp::Sync:
    return "nvvm.bar.warp.sync %lanes : i32";
  }
  llvm_unreachable("all kinds handled");
}

std::string attn::oracle::print(const SmallKernel &kernel) {
  std::string text =
      "gpu.module @kernels {\n  gpu.func @small() kernel {\n"
      "    %c0 = arith.constant 0 : i32\n    %c1 = arith.constant 1 : i32\n"
      "    %c2 = arith.constant 2 : i32\n    %c3 = arith.constant 3 : i32\n"
      "    %lanes = arith.constant -1 : i32\n"
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
    text +=
        llvm::formatv("    partition \"p{0}\" warps 1 registers 24 {{\n", i);
    bool isElected = false;
    for (auto [place, op] : llvm::enumerate(ops)) {
      if (isElected == op.isOfAll)
        text += isElected ? "      }\n" : "      attn.elect {\n";
      isElected = !op.isOfAll;
      text += llvm::formatv("        {0}{1}\n",
                            op.kind == SmallOp::Load
                                ? llvm::formatv("%v{0} = ", place).str()
                                : "",
                            ::print(op));
    }
    text += isElected ? "      }\n    }\n" : "    }\n";
  }
  text += llvm::formatv("    partition \"rest\" warps {0} registers 24 {{\n    "
                        "}\n",
                        4 - kernel.actors.size());
  return text + "    gpu.return\n  }\n}\n";
}

//===----------------------------------------------------------------------===//
// All orders
//===----------------------------------------------------------------------===//

namespace {

/// Accesses by their number.
constexpr size_t kMostAccesses = 192;
using Accesses = std::bitset<kMostAccesses>;

using SmallBarrier = CountingBarrier<kMostAccesses>;

/// Of a warp: the elected one, which runs everything, and one that stands for
/// all others.
constexpr unsigned kThreads = 2;

/// Where in its warp's program a thread is, and what comes there.
struct SmallStep {
  /// Null where all threads come before some ops of the elected one.
  const SmallOp *op = nullptr;
  /// The number of the first thread's access, if it is one.
  unsigned access = 0;
  bool isMeeting() const { return !op || op->kind == SmallOp::Sync; }
  /// Of the thread that all others of its warp have come to, one that need not
  /// be the elected one: these may go on before it arrives.
  bool isArrivalForAll() const {
    return op && op->kind == SmallOp::Arrive && op->isOfAll;
  }
};

struct SmallState {
  /// Of the threads of the first warp, then of the next one.
  std::vector<unsigned> places;
  /// Accesses that each thread may rely on, and all that have happened.
  std::vector<Accesses> knows;
  std::vector<SmallBarrier> barriers;
  Accesses done;
  /// Copies that are on their way.
  Accesses flying;

  std::string getText() const {
    StateText text;
    for (unsigned place : places)
      text.add(place);
    for (const Accesses &known : knows)
      text.add(known);
    for (const SmallBarrier &barrier : barriers)
      barrier.addTo(text);
    text.add(flying);
    text.add(done);
    return text.take();
  }
};

class Explorer : public OracleSearch<SmallState> {
public:
  explicit Explorer(const SmallKernel &kernel) : kernel(kernel) {}
  bool run();

private:
  bool number();
  bool moveAll(const SmallState &state);
  bool canMove(const SmallState &state, unsigned thread) const;
  void step(SmallState state, unsigned thread);
  void meet(SmallState &state, unsigned warp, const SmallStep &step);
  void skip(SmallState &state, unsigned thread) const;
  void land(SmallState state, unsigned access);
  void signal(SmallState &state, unsigned barrier, unsigned event, int arrivals,
              int bytes);
  void touch(SmallState &state, unsigned thread, const SmallOp &op);
  const SmallStep &at(const SmallState &state, unsigned thread) const {
    return programs[thread / kThreads][state.places[thread]];
  }
  bool hasEnded(const SmallState &state, unsigned thread) const {
    return state.places[thread] == programs[thread / kThreads].size();
  }

  const SmallKernel &kernel;
  std::vector<std::vector<SmallStep>> programs;
  /// The ops of all accesses.
  std::vector<const SmallOp *> accesses;
};

} // namespace

void Explorer::signal(SmallState &state, unsigned number, unsigned event,
                      int arrivals, int bytes) {
  SmallBarrier &barrier = state.barriers[number];
  fixPhase(event, barrier.phase);
  if (const char *fault =
          barrier.signal(arrivals, bytes, kernel.counts[number]))
    fail(fault);
}

/// An access has to come after all that touch the same word, but for two reads.
void Explorer::touch(SmallState &state, unsigned thread, const SmallOp &op) {
  for (auto [access, other] : llvm::enumerate(accesses)) {
    bool areReads = op.kind == SmallOp::Load && other->kind == SmallOp::Load;
    if (!areReads && other->word == op.word && state.done.test(access) &&
        !state.knows[thread].test(access))
      return fail("race with access " + llvm::Twine(access));
  }
}

/// What signals and waits are told apart by.
static unsigned eventOf(unsigned thread, unsigned place) {
  return 10000 * thread + place;
}

/// A copy ends: it carries its own bytes, and nothing else that its warp did.
void Explorer::land(SmallState state, unsigned access) {
  const SmallOp &op = *accesses[access];
  state.flying.reset(access);
  state.barriers[op.barrier].gathering.set(access);
  signal(state, op.barrier, eventOf(kThreads * kernel.actors.size(), access), 0,
         -4);
  add(std::move(state));
}

/// Goes past what another thread of the warp does.
void Explorer::skip(SmallState &state, unsigned thread) const {
  auto isOthers = [&](const SmallStep &step) {
    if (thread % kThreads == 0)
      return step.isArrivalForAll();
    return step.op && !step.op->isOfAll;
  };
  while (!hasEnded(state, thread) && isOthers(at(state, thread)))
    ++state.places[thread];
}

/// All threads of a warp have come to a place.
void Explorer::meet(SmallState &state, unsigned warp, const SmallStep &step) {
  unsigned first = warp * kThreads, last = first + 1;
  if (step.op) {
    Accesses all = state.knows[first] | state.knows[last];
    state.knows[first] = state.knows[last] = all;
  }
  ++state.places[last];
  skip(state, first);
  skip(state, last);
}

void Explorer::step(SmallState state, unsigned thread) {
  const SmallStep &now = at(state, thread);
  unsigned place = state.places[thread]++;
  unsigned event = eventOf(thread, place);
  if (now.isMeeting()) {
    meet(state, thread / kThreads, now);
    return add(std::move(state));
  }
  const SmallOp &op = *now.op;
  size_t bit = now.access + thread % kThreads;
  SmallBarrier &barrier = state.barriers[op.barrier];
  switch (op.kind) {
  case SmallOp::Wait:
    fixPhase(event, barrier.phase);
    state.knows[thread] |= barrier.published;
    break;
  case SmallOp::Arrive:
  case SmallOp::Expect:
    barrier.gathering |= state.knows[thread];
    signal(state, op.barrier, event, 1,
           op.kind == SmallOp::Expect ? int(op.bytes) : 0);
    break;
  case SmallOp::Send:
    touch(state, thread, op);
    state.done.set(bit);
    state.flying.set(bit);
    break;
  case SmallOp::Load:
  case SmallOp::Store:
    touch(state, thread, op);
    state.done.set(bit);
    state.knows[thread].set(bit);
    break;
  case SmallOp::Sync:
    llvm_unreachable("threads meet there");
  }
  skip(state, thread);
  add(std::move(state));
}

/// Makes the programs; false if there are too many accesses.
bool Explorer::number() {
  static const SmallOp meeting = [] {
    SmallOp op;
    op.kind = SmallOp::Sync;
    op.isOfAll = true;
    return op;
  }();
  for (const auto &ops : kernel.actors) {
    std::vector<SmallStep> &program = programs.emplace_back();
    bool wasOfAll = true;
    for (const SmallOp &op : ops) {
      if (wasOfAll && !op.isOfAll)
        program.push_back({});
      wasOfAll = op.isOfAll;
      if (op.kind == SmallOp::Arrive && op.isOfAll)
        program.push_back({&meeting});
      program.push_back({&op, unsigned(accesses.size())});
      if (op.kind == SmallOp::Load || op.kind == SmallOp::Store ||
          op.kind == SmallOp::Send)
        accesses.insert(accesses.end(), op.isOfAll ? kThreads : 1, &op);
    }
  }
  return accesses.size() <= kMostAccesses;
}

bool Explorer::canMove(const SmallState &state, unsigned thread) const {
  if (hasEnded(state, thread))
    return false;
  const SmallStep &next = at(state, thread);
  // The first thread takes the step for both.
  if (next.isMeeting())
    return thread % kThreads == 0 &&
           state.places[thread] == state.places[thread + 1];
  return next.op->kind != SmallOp::Wait ||
         unsigned(state.barriers[next.op->barrier].phase & 1) !=
             next.op->parity;
}

/// Takes every step that is possible; false if there is none but to end.
bool Explorer::moveAll(const SmallState &state) {
  bool moves = state.flying.any(), isDone = true;
  for (unsigned thread = 0; thread < state.places.size(); ++thread) {
    isDone &= hasEnded(state, thread);
    if (!canMove(state, thread))
      continue;
    moves = true;
    step(state, thread);
  }
  if (isDone && state.flying.any())
    fail("exit while a copy is on its way");
  for (unsigned access = 0; access < accesses.size(); ++access)
    if (state.flying.test(access))
      land(state, access);
  return moves || isDone;
}

/// False if there are too many states.
bool Explorer::run() {
  if (!number())
    return false;
  SmallState start;
  start.places.resize(kThreads * kernel.actors.size());
  start.knows.resize(start.places.size());
  for (unsigned count : kernel.counts)
    start.barriers.push_back({0, int(count), 0, {}, {}});
  for (unsigned thread = 0; thread < start.places.size(); ++thread)
    skip(start, thread);
  add(std::move(start));
  return OracleSearch::run([&](const SmallState &state) {
    if (!moveAll(state))
      fail("nobody can go on");
  });
}

bool attn::oracle::explore(const SmallKernel &kernel,
                           std::optional<std::string> &wrong) {
  Explorer explorer(kernel);
  bool isWhole = explorer.run();
  wrong = explorer.wrong;
  return isWhole;
}
