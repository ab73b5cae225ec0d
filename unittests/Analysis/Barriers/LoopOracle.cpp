//===- LoopOracle.cpp - Small kernels with an unknown bound ---------------===//

#include "LoopOracle.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::attn::oracle;
using llvm::formatv;

/// Mbarriers of the slots, and one for what comes behind the loops.
static constexpr unsigned kFull = 0, kEmpty = 1, kDone = 2;
static constexpr StringRef kNames[] = {"full", "empty", "done"};

static unsigned pick(std::mt19937 &rng, unsigned count) {
  return std::uniform_int_distribution<unsigned>(0, count - 1)(rng);
}

static LoopOp makeOp(SmallOp::Kind kind, unsigned array = 0,
                     unsigned parity = 0) {
  LoopOp op;
  op.kind = kind;
  op.array = array;
  op.parity = parity;
  return op;
}

static When pickWhen(std::mt19937 &rng) {
  return When(pick(rng, unsigned(When::Eighth) + 1));
}

/// One change; false where there is nothing to change.
static bool change(LoopKernel &kernel, std::mt19937 &rng, bool sends) {
  LoopActor &actor = kernel.actors[pick(rng, kernel.actors.size())];
  bool isAfter = pick(rng, 6) == 0;
  auto &ops = isAfter ? actor.after : actor.body;
  if (ops.empty())
    return false;
  unsigned place = pick(rng, ops.size());
  LoopOp &op = ops[place];
  switch (pick(rng, kernel.walksTiles && !isAfter ? 15 : 9)) {
  case 0:
    ops.erase(ops.begin() + place);
    return true;
  case 1:
    ops.insert(ops.begin() + place, LoopOp(op));
    return true;
  case 2:
  case 3:
    if (place + 1 == ops.size())
      return false;
    std::swap(ops[place], ops[place + 1]);
    return true;
  case 4:
    op.parity ^= 1;
    return op.kind == SmallOp::Wait;
  case 5:
    if (!isAfter)
      op.array = pick(rng, 2);
    return !isAfter;
  case 6: {
    unsigned &count = kernel.counts[pick(rng, kernel.counts.size())];
    count = count == 1 || pick(rng, 2) ? count + 1 : count - 1;
    return true;
  }
  case 7:
    actor.more += pick(rng, 2) ? 1 : -1;
    return true;
  case 9:
  case 10:
    op.when = pickWhen(rng);
    return true;
  case 13:
  case 14:
    op.isAtFirst = true;
    return true;
  case 11:
  case 12:
    actor.parts[pick(rng, actor.parts.size())] = Part(pick(rng, 3));
    return true;
  default:
    if (op.kind == SmallOp::Expect)
      op.bytes = 8;
    else
      ops.insert(ops.begin() + place, makeOp(pick(rng, 2) ? SmallOp::Load
                                             : sends      ? SmallOp::Arrive
                                                          : SmallOp::Store,
                                             isAfter ? kDone : pick(rng, 2)));
    return true;
  }
}

LoopKernel attn::oracle::makeLoopKernel(std::mt19937 &rng, bool walksTiles) {
  LoopKernel kernel;
  kernel.walksTiles = walksTiles;
  kernel.depth = 1 + pick(rng, 3);
  unsigned consumers = 1 + pick(rng, 2);
  kernel.counts = {1, consumers, consumers};
  kernel.actors.resize(1 + consumers);
  bool sends = pick(rng, 2), goesOn = pick(rng, 2);
  LoopActor &producer = kernel.actors.front();
  producer.body = {makeOp(SmallOp::Wait, kEmpty, 1)};
  if (sends)
    llvm::append_range(producer.body, ArrayRef{makeOp(SmallOp::Expect, kFull),
                                               makeOp(SmallOp::Send, kFull)});
  else
    llvm::append_range(producer.body, ArrayRef{makeOp(SmallOp::Store),
                                               makeOp(SmallOp::Arrive, kFull)});
  if (goesOn)
    producer.after = {makeOp(SmallOp::Wait, kDone), makeOp(SmallOp::Store)};
  for (LoopActor &consumer : MutableArrayRef(kernel.actors).drop_front()) {
    consumer.body = {makeOp(SmallOp::Wait, kFull), makeOp(SmallOp::Load),
                     makeOp(SmallOp::Arrive, kEmpty)};
    if (goesOn)
      consumer.after = {makeOp(SmallOp::Load), makeOp(SmallOp::Arrive, kDone)};
  }
  // All trips in two loops.
  if (walksTiles && pick(rng, 2))
    for (LoopActor &actor : kernel.actors)
      if (pick(rng, 2))
        actor.parts = pick(rng, 2)
                          ? std::vector<Part>{Part::First, Part::Second}
                          : std::vector<Part>{Part::Second, Part::First};
  // Accesses in some trips, where they are right.
  if (walksTiles)
    for (LoopActor &actor : kernel.actors)
      if (pick(rng, 2)) {
        auto access = makeOp(pick(rng, 2) ? SmallOp::Load : SmallOp::Store);
        if (&actor != &producer || sends)
          access.kind = SmallOp::Load;
        access.when = pickWhen(rng);
        actor.body.insert(actor.body.begin() + 1, access);
      }
  for (unsigned left = pick(rng, 4); left != 0;)
    left -= change(kernel, rng, sends);
  return kernel;
}

/// Whether an op is executed in a trip of so many.
static bool isExecuted(When when, int trip, int trips) {
  switch (when) {
  case When::Always:
    return true;
  case When::First:
    return trip == 0;
  case When::NotFirst:
    return trip != 0;
  case When::Last:
    return trip == trips - 1;
  case When::NotLast:
    return trip != trips - 1;
  case When::Third:
    return trip >= 2;
  case When::Eighth:
    return trip >= 7;
  }
  llvm_unreachable("unknown trips");
}

static int countTrips(Part part, TileTrips tile) {
  switch (part) {
  case Part::All:
    return tile.all;
  case Part::First:
    return tile.first;
  case Part::Second:
    return tile.all - tile.first;
  }
  llvm_unreachable("unknown part");
}

SmallKernel attn::oracle::unroll(const LoopKernel &kernel,
                                 ArrayRef<TileTrips> tiles) {
  SmallKernel result;
  for (unsigned array : {kFull, kEmpty})
    result.counts.insert(result.counts.end(), kernel.depth,
                         kernel.counts[array]);
  result.counts.push_back(kernel.counts[kDone]);
  for (const LoopActor &actor : kernel.actors) {
    auto &ops = result.actors.emplace_back();
    auto add = [&](const LoopOp &op, unsigned slot, unsigned lap,
                   unsigned word) {
      SmallOp &small = ops.emplace_back();
      small.kind = op.kind;
      small.barrier = op.array * kernel.depth + slot;
      small.parity = (lap + op.parity) & 1;
      small.bytes = op.bytes;
      small.word = word;
    };
    unsigned place = 0;
    for (TileTrips tile : tiles)
      for (auto [index, part] : llvm::enumerate(actor.parts)) {
        bool isLast = index + 1 == actor.parts.size();
        int trips = countTrips(part, tile) + (isLast ? actor.more : 0);
        for (int trip = 0; trip < trips; ++trip, ++place)
          for (const LoopOp &op : actor.body)
            if (isExecuted(op.when, trip, trips)) {
              unsigned slot = op.isAtFirst ? 0 : place % kernel.depth;
              add(op, slot, place / kernel.depth, slot);
            }
      }
    for (const LoopOp &op : actor.after)
      add(op, 0, 0, kernel.depth);
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// An op at a slot; `words` says of which buffer of how many words.
static std::string print(const LoopOp &op, unsigned depth, StringRef slot,
                         ArrayRef<StringRef> parities, StringRef words,
                         unsigned count) {
  std::string barrier = formatv("%{0}[{1}]", kNames[op.array], slot).str();
  std::string type =
      formatv("!attn.mbarriers<{0}>", op.array == kDone ? 1 : depth).str();
  std::string word = formatv("{0}[{1}]", words, slot).str();
  std::string buffer =
      formatv("!attn.buffer<{0}xi32, #attn.rows, shared>", count).str();
  switch (op.kind) {
  case SmallOp::Wait:
    return formatv("attn.mbarrier.wait {0} parity {1} : {2}\n", barrier,
                   parities[op.parity], type);
  case SmallOp::Arrive:
    return formatv("attn.mbarrier.arrive {0} : {1}\n", barrier, type);
  case SmallOp::Expect:
    return formatv("attn.mbarrier.expect_tx {0} {{bytes = {1}} : {2}\n",
                   barrier, op.bytes, type);
  case SmallOp::Send:
    return formatv("attn.scalar_send %c0, {0} barrier {1} : {2} : {3}\n", word,
                   barrier, type, buffer);
  case SmallOp::Load:
    return formatv("attn.scalar_load {0} : {1}\n", word, buffer);
  case SmallOp::Store:
    return formatv("attn.scalar_store %c0, {0} : {1}\n", word, buffer);
  case SmallOp::Sync:
    break;
  }
  llvm_unreachable("one thread of each warp does something");
}

/// A cursor one position further on.
static std::string printNext(StringRef cursor, unsigned depth) {
  if (depth == 1)
    return formatv("%{0}n = arith.xori %{0}, %lap : i32\n", cursor);
  return formatv("%{0}a = arith.addi %{0}, %c1 : i32\n"
                 "%{0}b = arith.andi %{0}a, %mask : i32\n"
                 "%{0}c = arith.cmpi eq, %{0}b, %depth : i32\n"
                 "%{0}d = arith.xori %{0}a, %turn : i32\n"
                 "%{0}n = arith.select %{0}c, %{0}d, %{0}a : i32\n",
                 cursor);
}

/// A comparison that says in which trips of a loop an op is executed, the first
/// ones by the distance to the end, as kernels have it that walk keys
/// backwards.
static std::string printWhen(When when, size_t loop) {
  switch (when) {
  case When::Always:
    return "";
  case When::First:
    return formatv("eq, %key, %top{0}", loop);
  case When::NotFirst:
    return formatv("ne, %key, %top{0}", loop);
  case When::Last:
    return formatv("eq, %i, %last{0}", loop);
  case When::NotLast:
    return formatv("ne, %i, %last{0}", loop);
  case When::Third:
    return "sge, %i, %c2";
  case When::Eighth:
    return "sge, %i, %c7";
  }
  llvm_unreachable("unknown trips");
}

/// The name of a number of trips.
static StringRef nameTrips(Part part) {
  switch (part) {
  case Part::All:
    return "%bound";
  case Part::First:
    return "%first";
  case Part::Second:
    return "%second";
  }
  llvm_unreachable("unknown part");
}

static std::string print(ArrayRef<LoopOp> ops, unsigned depth, StringRef prefix,
                         StringRef slot, ArrayRef<StringRef> parities,
                         StringRef words, unsigned count, size_t loop = 0) {
  std::string text;
  for (auto [place, op] : llvm::enumerate(ops)) {
    std::string when = printWhen(op.when, loop);
    if (!when.empty())
      text += formatv("%if{0} = arith.cmpi {1} : i32\nscf.if %if{0} {{\n",
                      place, when);
    if (op.kind == SmallOp::Load)
      text += formatv("%{0}{1} = ", prefix, place);
    StringRef at = slot;
    if (op.isAtFirst)
      at = "%c0";
    else if (op.kind == SmallOp::Wait && op.parity && slot == "%slot")
      at = "%other";
    text += ::print(op, depth, at, parities, words, count);
    if (!when.empty())
      text += "}\n";
  }
  return text;
}

/// The loop with this number, which begins with these cursors.
static std::string printLoop(const LoopActor &actor, unsigned depth,
                             size_t loop, bool walksTiles, StringRef bound,
                             StringRef cursor, StringRef other) {
  int more = loop + 1 == actor.parts.size() ? actor.more : 0;
  std::string text = formatv("%trips{0} = arith.addi {1}, %more{2} : i32\n",
                             loop, bound, more + 3);
  if (walksTiles)
    text += formatv("%last{0} = arith.subi %trips{0}, %c1 : i32\n"
                    "%top{0} = arith.muli %last{0}, %c64 : i32\n",
                    loop);
  text += formatv("%e{0}:2 = scf.for %i = %c0 to %trips{0} step %c1 "
                  "iter_args(%s = {1}, %t = {2}) -> (i32, i32) : i32 {{\n",
                  loop, cursor, other);
  if (walksTiles)
    text += formatv("%left = arith.subi %last{0}, %i : i32\n"
                    "%key = arith.muli %left, %c64 : i32\n",
                    loop);
  text += "%slot = arith.andi %s, %mask : i32\n"
          "%even = arith.shrui %s, %c16 : i32\n"
          "%other = arith.andi %t, %mask : i32\n"
          "%odd = arith.shrui %t, %c16 : i32\n";
  text += print(actor.body, depth, "v", "%slot", {"%even", "%odd"}, "%x", depth,
                loop);
  return text + printNext("s", depth) + printNext("t", depth) +
         "scf.yield %sn, %tn : i32, i32\n}\n";
}

static std::string printTiles(const LoopActor &actor, unsigned depth) {
  std::string text =
      "%from = gpu.block_id x\n%block = arith.index_cast %from : index to i32\n"
      "%by = gpu.grid_dim x\n%grid = arith.index_cast %by : index to i32\n"
      "%f:2 = scf.for %tile = %block to %tiles step %grid iter_args(%b = %c0, "
      "%o = %lap) -> (i32, i32) : i32 {\n";
  // All trips are one word, the first part is no more than another one.
  auto addCount = [&](StringRef name, StringRef words) {
    text += formatv("%{0}at = llvm.getelementptr {1}[%tile] : (!llvm.ptr<1>, "
                    "i32) -> !llvm.ptr<1>, i32\n"
                    "%{0}word = llvm.load %{0}at : !llvm.ptr<1> -> i32\n"
                    "%{0} = arith.maxsi %{0}word, %c0 : i32\n",
                    name, words);
  };
  addCount("bound", "%n");
  if (actor.parts != std::vector<Part>{Part::All}) {
    addCount("most", "%m");
    text += "%first = arith.minsi %bound, %most : i32\n"
            "%second = arith.subi %bound, %first : i32\n";
  }
  std::string cursor = "%b", other = "%o";
  for (auto [loop, part] : llvm::enumerate(actor.parts)) {
    text += printLoop(actor, depth, loop, /*walksTiles=*/true, nameTrips(part),
                      cursor, other);
    cursor = formatv("%e{0}#0", loop);
    other = formatv("%e{0}#1", loop);
  }
  return text +
         formatv("scf.yield {0}, {1} : i32, i32\n}\n", cursor, other).str();
}

static std::string print(const LoopActor &actor, unsigned depth,
                         bool walksTiles) {
  return (walksTiles ? printTiles(actor, depth)
                     : printLoop(actor, depth, 0, /*walksTiles=*/false, "%n",
                                 "%c0", "%lap")) +
         print(actor.after, depth, "w", "%c0", {"%c0", "%c1"}, "%y", 1);
}

std::string attn::oracle::print(const LoopKernel &kernel) {
  unsigned depth = kernel.depth;
  std::string text =
      formatv("gpu.module @kernels {{\ngpu.func @small(%n: {0}) kernel {{\n",
              kernel.walksTiles ? "!llvm.ptr<1>, %m: !llvm.ptr<1>, %tiles: i32"
                                : "i32");
  auto constant = [&](StringRef name, int value) {
    text += formatv("%{0} = arith.constant {1} : i32\n", name, value);
  };
  constant("c0", 0);
  constant("c1", 1);
  constant("c2", 2);
  constant("c7", 7);
  constant("c64", 64);
  constant("c16", 16);
  constant("mask", 65535);
  constant("lap", 65536);
  constant("depth", depth);
  constant("turn", 65536 | depth);
  for (int more = -3; more <= 3; ++more)
    constant(formatv("more{0}", more + 3).str(), more);
  text += formatv("%x = attn.alloc {{name = \"x\", offset = 0} : "
                  "!attn.buffer<{0}xi32, #attn.rows, shared>\n"
                  "%y = attn.alloc {{name = \"y\", offset = 16} : "
                  "!attn.buffer<1xi32, #attn.rows, shared>\n",
                  depth);
  std::string inits;
  for (auto [i, name] : llvm::enumerate(kNames)) {
    unsigned count = i == kDone ? 1 : depth;
    text += formatv("%{0} = attn.mbarrier.alloc {{name = \"{0}\", offset = "
                    "{1}} : !attn.mbarriers<{2}>\n",
                    name, 32 + 32 * i, count);
    inits += formatv("attn.mbarrier.init %{0} {{count = {1}} : "
                     "!attn.mbarriers<{2}>\n",
                     name, kernel.counts[i], count);
  }
  text += "attn.elect {\n" + inits +
          "attn.mbarrier.fence_init\n}\ngpu.barrier\nattn.warp_specialize\n";
  for (auto [i, actor] : llvm::enumerate(kernel.actors))
    text += formatv("partition \"p{0}\" warps 1 registers 24 {{\nattn.elect "
                    "{{\n{1}}\n}\n",
                    i, ::print(actor, depth, kernel.walksTiles));
  text += formatv("partition \"rest\" warps {0} registers 24 {{\n}\n",
                  4 - kernel.actors.size());
  return text + "gpu.return\n}\n}\n";
}
