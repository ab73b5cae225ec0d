//===- LeaderKernels.cpp - Random kernels of pairs of CTAs ----------------===//

#include "LeaderOracle.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::attn::oracle;
using llvm::formatv;

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

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
    copies.push_back(makeWait(depth + slot, (trips - 1 - slot) / depth));
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
      ops.push_back(makeOp(PairOp::Arrive, depth + slot, PairTarget::Leader));
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
  switch (pick(rng, 10)) {
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
  case 7:
    // Bytes of another slot than the barrier's.
    op.slot ^= 1;
    return op.kind == PairOp::Copy || op.kind == PairOp::Send ||
           op.kind == PairOp::Read || op.kind == PairOp::Product;
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
