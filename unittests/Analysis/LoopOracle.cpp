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

/// One change; false where there is nothing to change.
static bool change(LoopKernel &kernel, std::mt19937 &rng, bool sends) {
  LoopActor &actor = kernel.actors[pick(rng, kernel.actors.size())];
  bool isAfter = pick(rng, 6) == 0;
  auto &ops = isAfter ? actor.after : actor.body;
  if (ops.empty())
    return false;
  unsigned place = pick(rng, ops.size());
  LoopOp &op = ops[place];
  switch (pick(rng, 9)) {
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

LoopKernel attn::oracle::makeLoopKernel(std::mt19937 &rng) {
  LoopKernel kernel;
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
  for (unsigned left = pick(rng, 4); left != 0;)
    left -= change(kernel, rng, sends);
  return kernel;
}

SmallKernel attn::oracle::unroll(const LoopKernel &kernel, unsigned bound) {
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
    for (int trip = 0; trip < int(bound) + actor.more; ++trip)
      for (const LoopOp &op : actor.body)
        add(op, trip % kernel.depth, trip / kernel.depth, trip % kernel.depth);
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

static std::string print(const LoopActor &actor, unsigned depth) {
  auto addAll = [&](std::string &text, ArrayRef<LoopOp> ops, StringRef prefix,
                    StringRef slot, ArrayRef<StringRef> parities,
                    StringRef words, unsigned count) {
    for (auto [place, op] : llvm::enumerate(ops)) {
      if (op.kind == SmallOp::Load)
        text += formatv("%{0}{1} = ", prefix, place);
      text += ::print(op, depth, slot, parities, words, count);
    }
  };
  std::string text =
      formatv("%trips = arith.addi %n, %more{0} : i32\n", actor.more + 3);
  text += "%e:2 = scf.for %i = %c0 to %trips step %c1 iter_args(%s = %c0, "
          "%t = %lap) -> (i32, i32) : i32 {\n"
          "%slot = arith.andi %s, %mask : i32\n"
          "%even = arith.shrui %s, %c16 : i32\n"
          "%odd = arith.shrui %t, %c16 : i32\n";
  addAll(text, actor.body, "v", "%slot", {"%even", "%odd"}, "%x", depth);
  text += printNext("s", depth) + printNext("t", depth) +
          "scf.yield %sn, %tn : i32, i32\n}\n";
  addAll(text, actor.after, "w", "%c0", {"%c0", "%c1"}, "%y", 1);
  return text;
}

std::string attn::oracle::print(const LoopKernel &kernel) {
  unsigned depth = kernel.depth;
  std::string text =
      "gpu.module @kernels {\ngpu.func @small(%n: i32) kernel {\n";
  auto constant = [&](StringRef name, int value) {
    text += formatv("%{0} = arith.constant {1} : i32\n", name, value);
  };
  constant("c0", 0);
  constant("c1", 1);
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
                    i, ::print(actor, depth));
  text += formatv("partition \"rest\" warps {0} registers 24 {{\n}\n",
                  4 - kernel.actors.size());
  return text + "gpu.return\n}\n}\n";
}
