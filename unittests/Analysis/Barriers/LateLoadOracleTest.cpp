//===- LateLoadOracleTest.cpp - Late loads against all interleavings ------===//
//
// Two CTAs that run the same program send each other a tile and hand the slot
// back. Each kernel is executed in every order, in which a load reads the slot
// at any time between its own place and the first use of its registers, or the
// end: no signal waits for it (A4 of docs/Simulator.md). A use may take some
// elements and leave others out, which nobody asks for if nothing else takes
// them. It is right if nobody gets stuck, each signal and each wait is of the
// same phase in all orders, and each load reads the same tile. The check has to
// prove those and no others.
//
// ATTN_ORACLE_KERNELS and ATTN_ORACLE_SEED say how many kernels, and which.
//
//===----------------------------------------------------------------------===//

#include "OracleNumbers.h"
#include "attn/Analysis/Barriers/BarrierCheck.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"
#include <map>
#include <random>
#include <set>

using namespace mlir;
using namespace mlir::attn;
using mlir::attn::oracle::getNumber;

namespace {

enum class Kind {
  WaitFull,
  WaitEmpty,
  WaitMid,
  Expect,
  Send,
  Load,
  Use,
  Choose,
  ArriveMid,
  ArriveEmpty,
  Meet
};

/// An op of a warp; a wait has the parity in `number`.
struct WarpOp {
  Kind kind;
  unsigned number = 0;
};

constexpr unsigned kWarps = 2, kCtas = 2, kThreads = kWarps * kCtas;
enum { Full, Empty, Mid, kBarriers };
constexpr StringRef kNames[] = {"full", "empty", "mid"};

/// What the warps of each CTA do.
using Kernel = std::array<std::vector<WarpOp>, kWarps>;

} // namespace

static unsigned pick(std::mt19937 &rng, unsigned count) {
  return std::uniform_int_distribution<unsigned>(0, count - 1)(rng);
}

/// Where the ops stand that use the tile which the load at `load` reads, up to
/// the next load.
static std::vector<unsigned> findUses(const std::vector<WarpOp> &ops,
                                      unsigned load) {
  std::vector<unsigned> uses;
  for (unsigned place = load + 1;
       place < ops.size() && ops[place].kind != Kind::Load; ++place)
    if (ops[place].kind == Kind::Use || ops[place].kind == Kind::Choose)
      uses.push_back(place);
  return uses;
}

/// True if some tile is chosen from twice: the check does not ask whether what
/// the first choice leaves out is what the second one does.
static bool choosesTwice(const Kernel &kernel) {
  return llvm::any_of(kernel, [](const std::vector<WarpOp> &ops) {
    for (unsigned load = 0; load < ops.size(); ++load) {
      auto isChoice = [&](unsigned use) {
        return ops[use].kind == Kind::Choose;
      };
      if (ops[load].kind == Kind::Load &&
          llvm::count_if(findUses(ops, load), isChoice) > 1)
        return true;
    }
    return false;
  });
}

/// The first warp sends, loads and uses; it or the second one, behind a signal
/// or a barrier, hands the slot back.
static Kernel makeKernel(std::mt19937 &rng) {
  Kernel kernel;
  unsigned trips = 1 + pick(rng, 2), way = pick(rng, 3);
  auto &[first, second] = kernel;
  for (unsigned trip = 0; trip < trips; ++trip) {
    unsigned odd = trip % 2;
    first.insert(first.end(), {{Kind::WaitEmpty, 1 - odd},
                               {Kind::Expect},
                               {Kind::Send},
                               {Kind::WaitFull, odd},
                               {Kind::Load},
                               {pick(rng, 3) ? Kind::Use : Kind::Choose}});
    if (way == 0) {
      first.push_back({Kind::ArriveEmpty});
      continue;
    }
    first.push_back({way == 1 ? Kind::ArriveMid : Kind::Meet});
    second.push_back(way == 1 ? WarpOp{Kind::WaitMid, odd}
                              : WarpOp{Kind::Meet});
    second.push_back({Kind::ArriveEmpty});
  }
  for (unsigned left = pick(rng, 3); left != 0; --left) {
    auto &ops = kernel[pick(rng, kWarps)];
    if (ops.empty())
      continue;
    unsigned place = pick(rng, ops.size());
    switch (pick(rng, 6)) {
    case 0:
      ops.erase(ops.begin() + place);
      break;
    case 1:
      ops.insert(ops.begin() + place, WarpOp(ops[place]));
      break;
    case 2:
      ops[place].number ^= 1;
      break;
    case 3:
      ops.insert(ops.begin() + place,
                 WarpOp{std::array{Kind::Load, Kind::Use,
                                   Kind::Choose}[pick(rng, 3)]});
      break;
    default:
      if (place + 1 < ops.size())
        std::swap(ops[place], ops[place + 1]);
    }
  }
  return kernel;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static constexpr StringRef kTile =
    "tensor<16x16xf32, #attn.mma<warps = [1, 1]>>";
static constexpr StringRef kBuffer =
    "!attn.buffer<16x16xf32, #attn.swizzled<span = 32>, shared>";

/// `loaded` is the value of the last load.
static std::string print(WarpOp op, unsigned place, std::string &loaded) {
  auto wait = [&](StringRef name) {
    return llvm::formatv("attn.mbarrier.wait %{0}[%c0] parity %c{1} : "
                         "!attn.mbarriers<1>\n",
                         name, op.number)
        .str();
  };
  switch (op.kind) {
  case Kind::WaitFull:
    return wait("full");
  case Kind::WaitEmpty:
    return wait("empty");
  case Kind::WaitMid:
    return wait("mid");
  case Kind::Expect:
    return "nvvm.bar.warp.sync %lanes : i32\nattn.elect {\n"
           "attn.mbarrier.expect_tx %full[%c0] {bytes = 1024} : "
           "!attn.mbarriers<1>\n}\nnvvm.bar.warp.sync %lanes : i32\n";
  case Kind::Send:
    return llvm::formatv("attn.local_send %t, %x barrier %full[%c0] : "
                         "!attn.mbarriers<1> : {0}, {1}\n",
                         kTile, kBuffer);
  case Kind::Load:
    loaded = llvm::formatv("%v{0}", place);
    return llvm::formatv("{0} = attn.local_load %x : {1} -> {2}\n", loaded,
                         kBuffer, kTile);
  case Kind::Use:
    return llvm::formatv(
        "%u{0} = attn.reduce max {1} : {2} -> tensor<16xf32, "
        "#attn.slice<dim = 1, parent = #attn.mma<warps = [1, 1]>>>\n",
        place, loaded, kTile);
  case Kind::Choose:
    return llvm::formatv(
        "%c_{0} = arith.select %some, {1}, %t : tensor<16x16xi1, "
        "#attn.mma<warps = [1, 1]>>, {2}\n"
        "%u{0} = attn.reduce max %c_{0} : {2} -> tensor<16xf32, "
        "#attn.slice<dim = 1, parent = #attn.mma<warps = [1, 1]>>>\n",
        place, loaded, kTile);
  case Kind::ArriveMid:
    return "attn.mbarrier.arrive %mid[%c0] : !attn.mbarriers<1>\n";
  case Kind::ArriveEmpty:
    return "attn.mbarrier.arrive %empty[%c0] {ctas = 2} : "
           "!attn.mbarriers<1>\n";
  case Kind::Meet:
    return "attn.named_barrier %c1 {threads = 64}\n";
  }
  llvm_unreachable("all kinds handled");
}

static std::string print(const Kernel &kernel) {
  std::string text =
      "gpu.module @kernels {\ngpu.func @late() kernel attributes "
      "{known_block_size = array<i32: 128, 1, 1>, known_cluster_size = "
      "array<i32: 2, 1, 1>} {\n"
      "%c0 = arith.constant 0 : i32\n%c1 = arith.constant 1 : i32\n"
      "%lanes = arith.constant -1 : i32\n";
  text += llvm::formatv("%x = attn.alloc {{name = \"x\", offset = 0} : {0}\n",
                        kBuffer);
  std::string inits;
  for (auto [i, name] : llvm::enumerate(kNames)) {
    text += llvm::formatv("%{0} = attn.mbarrier.alloc {{name = \"{0}\", offset "
                          "= {1}} : !attn.mbarriers<1>\n",
                          name, 1024 + 8 * i);
    inits += llvm::formatv("attn.mbarrier.init %{0} {{count = {1}} : "
                           "!attn.mbarriers<1>\n",
                           name, i == Empty ? 2 : 1);
  }
  text += "attn.elect {\n" + inits +
          "attn.mbarrier.fence_init\n}\nattn.cluster_barrier\n"
          "attn.warp_specialize\n";
  for (auto [warp, ops] : llvm::enumerate(kernel)) {
    text += llvm::formatv("partition \"w{0}\" warps 1 tiles [1, 1] registers "
                          "24 {{\n%t = arith.constant dense<1.0> : {1}\n"
                          "%some = arith.constant dense<true> : "
                          "tensor<16x16xi1, #attn.mma<warps = [1, 1]>>\n",
                          warp, kTile);
    std::string loaded = "%t";
    for (auto [place, op] : llvm::enumerate(ops))
      text += print(op, place, loaded);
    text += "}\n";
  }
  return text + "partition \"rest\" warps 2 registers 24 {\n}\n"
                "attn.cluster_barrier\ngpu.return\n}\n}\n";
}

//===----------------------------------------------------------------------===//
// All orders
//===----------------------------------------------------------------------===//

namespace {

struct Counter {
  int phase = 0, pending = 0, bytes = 0;
  bool operator<(const Counter &other) const {
    return std::tie(phase, pending, bytes) <
           std::tie(other.phase, other.pending, other.bytes);
  }
};

/// Numbers of events are 32 times the thread's and the place.
struct State {
  std::array<unsigned, kThreads> places = {};
  std::array<std::array<Counter, kBarriers>, kCtas> barriers;
  /// Warps that have come to the barrier of warps.
  std::array<std::array<bool, kWarps>, kCtas> met = {};
  /// The send that each slot holds, and sends and loads that may still happen.
  std::array<int, kCtas> slots = {-1, -1};
  std::set<int> flying, open;
  /// Bits of the CTAs in which the arrival that a thread is at has come.
  std::array<unsigned, kThreads> arrived = {};
  auto key() const {
    return std::make_tuple(places, barriers, met, slots, flying, open, arrived);
  }
  bool operator<(const State &other) const { return key() < other.key(); }
};

class Explorer {
public:
  explicit Explorer(const Kernel &kernel) : kernel(kernel) {}
  /// What goes wrong in some order; empty if nothing does.
  std::string run();

private:
  static int eventOf(unsigned thread, unsigned place) {
    return 32 * thread + place;
  }
  const std::vector<WarpOp> &opsOf(unsigned thread) const {
    return kernel[thread % kWarps];
  }
  void fix(int event, int value, const char *what) {
    auto [known, isNew] = fixed.try_emplace(event, value);
    if (!isNew && known->second != value)
      wrong = what;
  }
  void signal(Counter &counter, int event, int count, int arrivals, int bytes);
  bool move(const State &state, unsigned thread);
  void meet(State state, unsigned thread);
  void arriveInAll(const State &state, unsigned thread, int event);
  bool happen(const State &state);
  void add(State state) {
    if (seen.insert(state).second)
      worklist.push_back(std::move(state));
  }

  const Kernel &kernel;
  /// Phases of signals and waits, and what loads have read.
  std::map<int, int> fixed;
  std::set<State> seen;
  std::vector<State> worklist;
  std::string wrong;
};

} // namespace

void Explorer::signal(Counter &counter, int event, int count, int arrivals,
                      int bytes) {
  fix(event, counter.phase, "phase of a signal");
  counter.pending -= arrivals;
  counter.bytes += bytes;
  if (counter.pending < 0 || (counter.pending == 0 && counter.bytes < 0))
    wrong = "count";
  if (counter.pending == 0 && counter.bytes == 0) {
    ++counter.phase;
    counter.pending = count;
  }
}

void Explorer::meet(State state, unsigned thread) {
  auto &met = state.met[thread / kWarps];
  met[thread % kWarps] = true;
  if (llvm::all_of(met, [](bool has) { return has; })) {
    met.fill(false);
    for (unsigned warp = 0; warp < kWarps; ++warp)
      ++state.places[thread / kWarps * kWarps + warp];
  }
  add(std::move(state));
}

/// An arrival in all CTAs comes in one after the other, in any order.
void Explorer::arriveInAll(const State &before, unsigned thread, int event) {
  for (unsigned cta = 0; cta < kCtas; ++cta) {
    if (before.arrived[thread] & (1u << cta))
      continue;
    State state = before;
    unsigned &arrived = state.arrived[thread];
    arrived |= 1u << cta;
    if (arrived == (1u << kCtas) - 1) {
      arrived = 0;
      ++state.places[thread];
    }
    signal(state.barriers[cta][Empty], event + 1000 * (cta + 1), 2, 1, 0);
    add(std::move(state));
  }
}

/// True if the thread can go on.
bool Explorer::move(const State &before, unsigned thread) {
  unsigned cta = thread / kWarps, place = before.places[thread];
  if (place == opsOf(thread).size())
    return false;
  WarpOp op = opsOf(thread)[place];
  int event = eventOf(thread, place);
  State state = before;
  ++state.places[thread];
  auto &own = state.barriers[cta];
  switch (op.kind) {
  case Kind::WaitFull:
  case Kind::WaitEmpty:
  case Kind::WaitMid: {
    Counter &counter = own[op.kind == Kind::WaitFull    ? Full
                           : op.kind == Kind::WaitEmpty ? Empty
                                                        : Mid];
    if (unsigned(counter.phase & 1) == op.number)
      return false;
    fix(event, counter.phase, "phase of a wait");
    break;
  }
  case Kind::Expect:
    signal(own[Full], event, 1, 1, 1);
    break;
  case Kind::Send:
    state.flying.insert(event);
    break;
  case Kind::Load:
    state.open.insert(event);
    break;
  case Kind::Use:
  case Kind::Choose:
    // The last load in front of it.
    for (unsigned last = place; last-- > 0;) {
      if (opsOf(thread)[last].kind != Kind::Load)
        continue;
      // What a choice leaves out may come when another op uses it.
      bool needsAll =
          op.kind == Kind::Use || findUses(opsOf(thread), last).size() == 1;
      if (needsAll && state.open.count(eventOf(thread, last)))
        return false;
      break;
    }
    break;
  case Kind::ArriveMid:
    signal(own[Mid], event, 1, 1, 0);
    break;
  case Kind::ArriveEmpty:
    arriveInAll(before, thread, event);
    return true;
  case Kind::Meet:
    if (before.met[cta][thread % kWarps])
      return false;
    meet(before, thread);
    return true;
  }
  add(std::move(state));
  return true;
}

/// What is on its way comes there; false if nothing is.
bool Explorer::happen(const State &state) {
  for (int event : state.flying) {
    unsigned cta = 1 - event / 32 / kWarps;
    State next = state;
    next.flying.erase(event);
    fix(event + 4000, next.slots[cta], "order of sends");
    next.slots[cta] = event;
    signal(next.barriers[cta][Full], event, 1, 0, -1);
    add(std::move(next));
  }
  for (int event : state.open) {
    State next = state;
    next.open.erase(event);
    fix(event, next.slots[event / 32 / kWarps], "what a load reads");
    add(std::move(next));
  }
  return !state.flying.empty() || !state.open.empty();
}

std::string Explorer::run() {
  State start;
  for (auto &barriers : start.barriers)
    for (unsigned i = 0; i < kBarriers; ++i)
      barriers[i].pending = i == Empty ? 2 : 1;
  add(start);
  while (!worklist.empty() && wrong.empty()) {
    State state = std::move(worklist.back());
    worklist.pop_back();
    bool moves = false, isDone = true;
    for (unsigned thread = 0; thread < kThreads; ++thread) {
      isDone &= state.places[thread] == opsOf(thread).size();
      moves |= move(state, thread);
    }
    if (isDone && !state.flying.empty())
      wrong = "exit while a send is on its way";
    if (!happen(state) && !moves && !isDone)
      wrong = "nobody can go on";
  }
  return wrong;
}

//===----------------------------------------------------------------------===//
// Both
//===----------------------------------------------------------------------===//

TEST(LateLoadOracle, AgreesWithAllInterleavings) {
  DialectRegistry registry;
  registerAttnDialect(registry);
  registry.insert<gpu::GPUDialect, arith::ArithDialect, NVVM::NVVMDialect>();
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  unsigned count = getNumber("ATTN_ORACLE_KERNELS", 300);
  std::mt19937 rng(getNumber("ATTN_ORACLE_SEED", 1));
  unsigned proved = 0, late = 0;
  for (unsigned i = 0; i < count; ++i) {
    Kernel kernel = makeKernel(rng);
    while (choosesTwice(kernel))
      kernel = makeKernel(rng);
    std::string text = print(kernel);
    std::string wrong = Explorer(kernel).run();
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module) << text;
    auto kernels = *module->getOps<gpu::GPUModuleOp>().begin();
    BarrierReport report =
        checkBarriers(*kernels.getOps<gpu::GPUFuncOp>().begin(), {});
    bool isProved = report.verdict == BarrierVerdict::Proved;
    ASSERT_TRUE(isProved || report.verdict == BarrierVerdict::Witness) << text;
    proved += isProved;
    late += wrong == "what a load reads";
    EXPECT_EQ(isProved, wrong.empty())
        << "kernel " << i
        << ": check: " << (isProved ? "proved" : report.witness->text)
        << "; all interleavings: " << wrong << "\n"
        << text;
    if (HasFailure())
      return;
  }
  EXPECT_GT(proved, count / 10);
  EXPECT_GT(late, count / 20);
  llvm::outs() << proved << " proved, " << count - proved << " refused, "
               << late << " where loads read unlike tiles\n";
}
