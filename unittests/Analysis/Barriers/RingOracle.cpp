//===- RingOracle.cpp - Small rings with several positions ----------------===//

#include "RingOracle.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <set>

using namespace mlir;
using namespace mlir::attn::oracle;
using llvm::formatv;

static constexpr unsigned kFull = 0, kEmpty = 1;
static constexpr StringRef kNames[] = {"full", "empty"};
static constexpr unsigned kMostDepth = 9, kMostPositions = 3;

static unsigned pick(std::mt19937 &rng, unsigned count) {
  return std::uniform_int_distribution<unsigned>(0, count - 1)(rng);
}

static RingOp makeOp(SmallOp::Kind kind, unsigned array, unsigned ahead) {
  RingOp op;
  op.kind = kind;
  op.array = array;
  op.slot.ahead = op.parity.ahead = op.word.ahead = ahead;
  return op;
}

/// One change; false where there is nothing to change.
static bool change(RingKernel &kernel, std::mt19937 &rng) {
  RingActor &actor = kernel.actors[pick(rng, kernel.actors.size())];
  unsigned place = pick(rng, actor.body.size());
  RingOp &op = actor.body[place];
  Position *parts[] = {&op.slot, &op.parity, &op.word};
  Position &part = *parts[pick(rng, 3)];
  switch (pick(rng, 12)) {
  case 0:
  case 1:
  case 2:
    part.ahead = pick(rng, kMostPositions);
    return true;
  case 3:
  case 4:
  case 5: {
    // One that goes along, or a little faster or slower.
    RingCursor other = actor.cursors.front();
    if (pick(rng, 3) == 0)
      other.isLapAhead ^= 1;
    if (pick(rng, 4) == 0)
      other.advance = 1 + pick(rng, kMostPositions);
    if (actor.cursors.size() == kMostPositions)
      return false;
    actor.cursors.push_back(other);
    part.cursor = actor.cursors.size() - 1;
    return true;
  }
  case 6:
    part.added = 1 + pick(rng, kernel.depth);
    return &part != &op.parity;
  case 7:
    actor.cursors.front().startsAnew = true;
    return kernel.walksTiles;
  case 8:
    actor.cursors.front().advance = 1 + pick(rng, kMostPositions);
    return true;
  case 9:
    if (actor.body.size() > 1)
      actor.body.erase(actor.body.begin() + place);
    return true;
  case 10:
    actor.cursors.front().isLapAhead ^= 1;
    return true;
  default:
    if (place + 1 == actor.body.size())
      return false;
    std::swap(actor.body[place], actor.body[place + 1]);
    return true;
  }
}

RingKernel attn::oracle::makeRing(unsigned depth, unsigned positions,
                                  unsigned trips, bool sends) {
  RingKernel kernel;
  kernel.depth = depth;
  kernel.trips = trips;
  kernel.actors.resize(2);
  RingActor &producer = kernel.actors[0], &consumer = kernel.actors[1];
  producer.cursors = {{/*isLapAhead=*/true, positions}};
  consumer.cursors = {{/*isLapAhead=*/false, positions}};
  for (unsigned ahead = 0; ahead < positions; ++ahead) {
    producer.body.push_back(makeOp(SmallOp::Wait, kEmpty, ahead));
    if (sends)
      producer.body.push_back(makeOp(SmallOp::Expect, kFull, ahead));
    producer.body.push_back(
        makeOp(sends ? SmallOp::Send : SmallOp::Store, kFull, ahead));
    if (!sends)
      producer.body.push_back(makeOp(SmallOp::Arrive, kFull, ahead));
    consumer.body.push_back(makeOp(SmallOp::Wait, kFull, ahead));
    consumer.body.push_back(makeOp(SmallOp::Load, kFull, ahead));
    consumer.body.push_back(makeOp(SmallOp::Arrive, kEmpty, ahead));
  }
  return kernel;
}

RingKernel attn::oracle::makeRingKernel(std::mt19937 &rng) {
  unsigned depth = 1 + pick(rng, kMostDepth),
           positions = 1 + pick(rng, kMostPositions), trips = 1 + pick(rng, 4);
  RingKernel kernel = makeRing(depth, positions, trips, pick(rng, 2));
  kernel.walksTiles = pick(rng, 4) != 0;
  for (unsigned left = pick(rng, 3); left != 0;)
    left -= change(kernel, rng);
  return kernel;
}

SmallKernel attn::oracle::unroll(const RingKernel &kernel, unsigned count,
                                 std::optional<std::string> &wrong) {
  unsigned depth = kernel.depth;
  unsigned tiles = kernel.walksTiles ? count : 1;
  unsigned trips = kernel.walksTiles ? kernel.trips : count;
  SmallKernel result;
  result.counts.assign(2 * depth, 1);
  for (const RingActor &actor : kernel.actors) {
    auto &ops = result.actors.emplace_back();
    std::vector<unsigned> starts, places;
    for (const RingCursor &cursor : actor.cursors)
      starts.push_back(cursor.isLapAhead ? depth : 0);
    places = starts;
    auto find = [&](Position position) {
      return places[position.cursor] + position.ahead;
    };
    auto findSlot = [&](Position position) {
      unsigned slot = find(position) % depth + position.added;
      if (slot >= depth)
        wrong = "outside of the ring";
      return slot % depth;
    };
    for (unsigned tile = 0; tile < tiles; ++tile) {
      for (auto [number, cursor] : llvm::enumerate(actor.cursors))
        if (cursor.startsAnew)
          places[number] = starts[number];
      for (unsigned trip = 0; trip < trips; ++trip) {
        for (const RingOp &op : actor.body) {
          SmallOp &small = ops.emplace_back();
          small.kind = op.kind;
          bool isAccess = op.kind == SmallOp::Load ||
                          op.kind == SmallOp::Store || op.kind == SmallOp::Send;
          if (isAccess)
            small.word = findSlot(op.word);
          if (!isAccess || op.kind == SmallOp::Send)
            small.barrier = op.array * depth + findSlot(op.slot);
          small.parity = find(op.parity) / depth & 1;
        }
        for (auto [number, cursor] : llvm::enumerate(actor.cursors))
          places[number] += cursor.advance;
      }
    }
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// A cursor one position further on, of the values that this one has.
static std::string printNext(const std::string &from, const std::string &to,
                             unsigned depth) {
  if (depth == 1)
    return formatv("{1} = arith.xori {0}, %lap : i32\n", from, to);
  return formatv("{1}a = arith.addi {0}, %c1 : i32\n"
                 "{1}b = arith.andi {1}a, %mask : i32\n"
                 "{1}c = arith.cmpi eq, {1}b, %depth : i32\n"
                 "{1}d = arith.xori {1}a, %turn : i32\n"
                 "{1} = arith.select {1}c, {1}d, {1}a : i32\n",
                 from, to);
}

/// The first one is the loop's own value.
static std::string nameCursor(unsigned cursor, unsigned ahead) {
  return ahead == 0 ? formatv("%k{0}", cursor).str()
                    : formatv("%s{0}_{1}", cursor, ahead).str();
}

static std::string printBody(const RingActor &actor, unsigned depth) {
  std::string text;
  for (auto [number, cursor] : llvm::enumerate(actor.cursors))
    for (unsigned ahead = 0; ahead < kMostPositions; ++ahead)
      text += printNext(nameCursor(number, ahead),
                        nameCursor(number, ahead + 1), depth);
  std::set<std::string> made;
  auto getSlot = [&](Position position) {
    std::string cursor = nameCursor(position.cursor, position.ahead);
    std::string slot = cursor + "i";
    if (made.insert(slot).second)
      text += formatv("{0} = arith.andi {1}, %mask : i32\n", slot, cursor);
    if (position.added == 0)
      return slot;
    std::string sum = formatv("{0}p{1}", slot, position.added);
    // A constant, a product or a sum, of which only the first two say what they
    // are multiples of.
    if (made.insert(sum).second)
      text += formatv("{0} = arith.addi {1}, %{2}{3} : i32\n", sum, slot,
                      "cps"[(position.added + position.cursor) % 3],
                      position.added);
    return sum;
  };
  auto getParity = [&](Position position) {
    std::string cursor = nameCursor(position.cursor, position.ahead);
    std::string parity = cursor + "q";
    if (made.insert(parity).second)
      text += formatv("{0} = arith.shrui {1}, %c16 : i32\n", parity, cursor);
    return parity;
  };
  std::string barriers = formatv("!attn.mbarriers<{0}>", depth);
  std::string buffer =
      formatv("!attn.buffer<{0}xi32, #attn.rows, shared>", depth);
  for (auto [place, op] : llvm::enumerate(actor.body)) {
    StringRef name = kNames[op.array];
    switch (op.kind) {
    case SmallOp::Wait: {
      std::string slot = getSlot(op.slot), parity = getParity(op.parity);
      text += formatv("attn.mbarrier.wait %{0}[{1}] parity {2} : {3}\n", name,
                      slot, parity, barriers);
      break;
    }
    case SmallOp::Arrive: {
      std::string slot = getSlot(op.slot);
      text += formatv("attn.mbarrier.arrive %{0}[{1}] : {2}\n", name, slot,
                      barriers);
      break;
    }
    case SmallOp::Expect: {
      std::string slot = getSlot(op.slot);
      text += formatv("attn.mbarrier.expect_tx %{0}[{1}] {{bytes = 4} : {2}\n",
                      name, slot, barriers);
      break;
    }
    case SmallOp::Send: {
      std::string slot = getSlot(op.slot), word = getSlot(op.word);
      text += formatv("attn.scalar_send %c0, %x[{0}] barrier %{1}[{2}] : {3} : "
                      "{4}\n",
                      word, name, slot, barriers, buffer);
      break;
    }
    case SmallOp::Load: {
      std::string word = getSlot(op.word);
      text += formatv("%v{0} = attn.scalar_load %x[{1}] : {2}\n", place, word,
                      buffer);
      break;
    }
    case SmallOp::Store: {
      std::string word = getSlot(op.word);
      text += formatv("attn.scalar_store %c0, %x[{0}] : {1}\n", word, buffer);
      break;
    }
    case SmallOp::Sync:
      llvm_unreachable("one thread of each warp does something");
    }
  }
  return text;
}

/// Loops with all cursors; `begins` are the values that they begin with.
static std::string printLoop(StringRef head, StringRef result, StringRef name,
                             ArrayRef<std::string> begins,
                             const std::string &body,
                             ArrayRef<std::string> ends) {
  std::string arguments, types, yields;
  for (auto [number, begin] : llvm::enumerate(begins)) {
    StringRef comma = number ? ", " : "";
    arguments += formatv("{0}{1}{2} = {3}", comma, name, number, begin);
    types += formatv("{0}i32", comma);
    yields += formatv("{0}{1}", comma, ends[number]);
  }
  return formatv("{0}:{1} = scf.for {2} iter_args({3}) -> ({4}) : i32 "
                 "{{\n{5}scf.yield {6} : {4}\n}\n",
                 result, begins.size(), head, arguments, types, body, yields);
}

static std::string print(const RingKernel &kernel, const RingActor &actor) {
  std::vector<std::string> starts, begins, ends, results;
  for (auto [number, cursor] : llvm::enumerate(actor.cursors)) {
    starts.push_back(cursor.isLapAhead ? "%lap" : "%c0");
    begins.push_back(cursor.startsAnew ? starts.back()
                                       : formatv("%t{0}", number).str());
    ends.push_back(nameCursor(number, cursor.advance));
    results.push_back(formatv("%e#{0}", number));
  }
  std::string body = printBody(actor, kernel.depth);
  if (!kernel.walksTiles)
    return printLoop("%i = %c0 to %n step %c1", "%e", "%k", starts, body, ends);
  std::string loop =
      printLoop("%i = %c0 to %trips step %c1", "%e", "%k", begins, body, ends);
  return "%from = gpu.block_id x\n%block = arith.index_cast %from : index to "
         "i32\n%by = gpu.grid_dim x\n%grid = arith.index_cast %by : index to "
         "i32\n" +
         printLoop("%tile = %block to %tiles step %grid", "%f", "%t", starts,
                   loop, results);
}

std::string attn::oracle::print(const RingKernel &kernel) {
  unsigned depth = kernel.depth;
  std::string text =
      formatv("gpu.module @kernels {{\ngpu.func @small({0}) kernel {1} {{\n",
              kernel.walksTiles ? "" : "%n: i32",
              kernel.walksTiles
                  ? "attributes {known_block_size = array<i32: 128, 1, 1>, "
                    "attn.launch = #attn.launch<chip = \"sm_90a\", ptx = 86, "
                    "grid = [\"2\", \"1\", \"1\"], block = [128, 1, 1], "
                    "tensors = [], args = []>}"
                  : "");
  auto constant = [&](StringRef name, int value) {
    text += formatv("%{0} = arith.constant {1} : i32\n", name, value);
  };
  for (unsigned number = 0; number <= kMostDepth; ++number)
    constant(formatv("c{0}", number).str(), number);
  text += "%one = arith.addi %c0, %c1 : i32\n";
  for (unsigned number = 1; number <= kMostDepth; ++number)
    text += formatv("%p{0} = arith.muli %one, %c{0} : i32\n"
                    "%s{0} = arith.addi %c0, %c{0} : i32\n",
                    number);
  constant("c16", 16);
  constant("mask", 65535);
  constant("lap", 65536);
  constant("depth", depth);
  constant("turn", 65536 | depth);
  constant("trips", kernel.trips);
  constant("tiles", 6);
  text += formatv("%x = attn.alloc {{name = \"x\", offset = 0} : "
                  "!attn.buffer<{0}xi32, #attn.rows, shared>\n",
                  depth);
  std::string inits;
  for (auto [number, name] : llvm::enumerate(kNames)) {
    text += formatv("%{0} = attn.mbarrier.alloc {{name = \"{0}\", offset = "
                    "{1}} : !attn.mbarriers<{2}>\n",
                    name, 64 + 128 * number, depth);
    inits +=
        formatv("attn.mbarrier.init %{0} {{count = 1} : !attn.mbarriers<{1}>\n",
                name, depth);
  }
  text += "attn.elect {\n" + inits +
          "attn.mbarrier.fence_init\n}\ngpu.barrier\nattn.warp_specialize\n";
  for (auto [number, actor] : llvm::enumerate(kernel.actors))
    text += formatv("partition \"p{0}\" warps 1 registers 24 {{\nattn.elect "
                    "{{\n{1}}\n}\n",
                    number, ::print(kernel, actor));
  text += formatv("partition \"rest\" warps {0} registers 24 {{\n}\n",
                  4 - kernel.actors.size());
  return text + "gpu.return\n}\n}\n";
}
