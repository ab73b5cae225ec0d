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
  switch (pick(rng, kernel.walksTiles && !isAfter ? 11 : 9)) {
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

SmallKernel attn::oracle::unroll(const LoopKernel &kernel,
                                 ArrayRef<unsigned> bounds) {
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
    for (unsigned bound : bounds) {
      int trips = int(bound) + actor.more;
      for (int trip = 0; trip < trips; ++trip, ++place)
        for (const LoopOp &op : actor.body)
          if (isExecuted(op.when, trip, trips))
            add(op, place % kernel.depth, place / kernel.depth,
                place % kernel.depth);
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

/// A comparison that says in which trips an op is executed, the first ones by
/// the distance to the end, as kernels have it that walk keys backwards.
static StringRef printWhen(When when) {
  switch (when) {
  case When::Always:
    return "";
  case When::First:
    return "eq, %key, %top";
  case When::NotFirst:
    return "ne, %key, %top";
  case When::Last:
    return "eq, %i, %last";
  case When::NotLast:
    return "ne, %i, %last";
  case When::Third:
    return "sge, %i, %c2";
  case When::Eighth:
    return "sge, %i, %c7";
  }
  llvm_unreachable("unknown trips");
}

static std::string print(const LoopActor &actor, unsigned depth,
                         bool walksTiles) {
  auto addAll = [&](std::string &text, ArrayRef<LoopOp> ops, StringRef prefix,
                    StringRef slot, ArrayRef<StringRef> parities,
                    StringRef words, unsigned count) {
    for (auto [place, op] : llvm::enumerate(ops)) {
      StringRef when = printWhen(op.when);
      if (!when.empty())
        text += formatv("%if{0} = arith.cmpi {1} : i32\nscf.if %if{0} {{\n",
                        place, when);
      if (op.kind == SmallOp::Load)
        text += formatv("%{0}{1} = ", prefix, place);
      text += ::print(op, depth, slot, parities, words, count);
      if (!when.empty())
        text += "}\n";
    }
  };
  std::string text;
  if (walksTiles)
    text = "%from = gpu.block_id x\n%block = arith.index_cast %from : index to "
           "i32\n"
           "%by = gpu.grid_dim x\n%grid = arith.index_cast %by : index to i32\n"
           "%f:2 = scf.for %tile = %block to %tiles step %grid iter_args(%b = "
           "%c0, %o = %lap) -> (i32, i32) : i32 {\n"
           "%at = llvm.getelementptr %n[%tile] : (!llvm.ptr<1>, i32) -> "
           "!llvm.ptr<1>, i32\n"
           "%word = llvm.load %at : !llvm.ptr<1> -> i32\n"
           "%bound = arith.maxsi %word, %c0 : i32\n";
  text += formatv("%trips = arith.addi {0}, %more{1} : i32\n",
                  walksTiles ? "%bound" : "%n", actor.more + 3);
  if (walksTiles)
    text += "%last = arith.subi %trips, %c1 : i32\n"
            "%top = arith.muli %last, %c64 : i32\n";
  text += formatv("%e:2 = scf.for %i = %c0 to %trips step %c1 iter_args(%s = "
                  "{0}, %t = {1}) -> (i32, i32) : i32 {{\n",
                  walksTiles ? "%b" : "%c0", walksTiles ? "%o" : "%lap");
  if (walksTiles)
    text += "%left = arith.subi %last, %i : i32\n"
            "%key = arith.muli %left, %c64 : i32\n";
  text += "%slot = arith.andi %s, %mask : i32\n"
          "%even = arith.shrui %s, %c16 : i32\n"
          "%odd = arith.shrui %t, %c16 : i32\n";
  addAll(text, actor.body, "v", "%slot", {"%even", "%odd"}, "%x", depth);
  text += printNext("s", depth) + printNext("t", depth) +
          "scf.yield %sn, %tn : i32, i32\n}\n";
  if (walksTiles)
    text += "scf.yield %e#0, %e#1 : i32, i32\n}\n";
  addAll(text, actor.after, "w", "%c0", {"%c0", "%c1"}, "%y", 1);
  return text;
}

std::string attn::oracle::print(const LoopKernel &kernel) {
  unsigned depth = kernel.depth;
  std::string text =
      formatv("gpu.module @kernels {{\ngpu.func @small(%n: {0}) kernel {{\n",
              kernel.walksTiles ? "!llvm.ptr<1>, %tiles: i32" : "i32");
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
