//===- LoopFinder.cpp - Loops of a kernel, by what is in them
//--------------===//

#include "LoopFinder.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir::attn;
using llvm::StringRef;
using Flow = CodeInstruction::Flow;

//===----------------------------------------------------------------------===//
// What instructions are
//===----------------------------------------------------------------------===//

bool mlir::attn::isTensor(const CodeInstruction &inst, bool isPTX) {
  StringRef opcode = inst.opcode;
  if (!isPTX)
    return getSassPurpose(inst) == "tensor";
  return opcode.starts_with("mma.sync") ||
         opcode.starts_with("wgmma.mma_async") ||
         opcode.starts_with("tcgen05.mma");
}

bool mlir::attn::isExponential(const CodeInstruction &inst, bool isPTX) {
  return StringRef(inst.opcode).starts_with(isPTX ? "ex2" : "MUFU.EX2");
}

static std::optional<CodeWait> getWait(const CodeInstruction &inst,
                                       bool isPTX) {
  StringRef opcode = inst.opcode;
  CodeWait wait;
  if (isPTX ? opcode.starts_with("wgmma.wait_group")
            : opcode.starts_with("WARPGROUP.DEPBAR"))
    wait.work = "wgmma";
  else if (isPTX ? opcode.starts_with("cp.async.wait")
                 : opcode.starts_with("DEPBAR"))
    wait.work = "cp.async";
  else
    return std::nullopt;
  // "gsb0, 0x1" and "1"; nothing waits for all.
  StringRef number = StringRef(inst.operands).rsplit(' ').second;
  if (number.empty())
    number = inst.operands;
  if (number.getAsInteger(0, wait.pending))
    wait.pending = 0;
  return wait;
}

/// The predicate that a vote sets, of a warp or at a barrier; empty for
/// anything else.
static StringRef getVoted(const CodeInstruction &inst, bool isPTX) {
  StringRef opcode = inst.opcode, operands = inst.operands;
  if (isPTX ? opcode.starts_with("vote.sync.any") ||
                  opcode.starts_with("barrier.red.or.pred")
            : opcode.starts_with("VOTE") && opcode.ends_with(".ANY"))
    return operands.split(',').first.trim();
  // What BAR.RED leaves behind: "RZ, P0".
  if (!isPTX && opcode == "B2R.RESULT")
    return operands.rsplit(',').second.trim();
  return "";
}

//===----------------------------------------------------------------------===//
// Rare paths
//===----------------------------------------------------------------------===//

namespace {

/// Finds the branches of a listing that are taken on a vote.
class RarePaths {
public:
  RarePaths(const CodeListing &listing, const CodeFlow &flow, bool isPTX)
      : listing(listing), flow(flow), isPTX(isPTX) {}

  /// The blocks that run only after a vote.
  llvm::BitVector find() const;

private:
  /// The successor of a block that runs where a vote was true.
  std::optional<unsigned> getRareSuccessor(const CodeBlock &block) const;

  const CodeListing &listing;
  const CodeFlow &flow;
  bool isPTX;
};

} // namespace

std::optional<unsigned>
RarePaths::getRareSuccessor(const CodeBlock &block) const {
  // Predicates that hold the vote, and whether negated.
  llvm::StringMap<bool> votes;
  for (unsigned i = block.begin; i != block.end; ++i) {
    const CodeInstruction &inst = listing.instructions[i];
    if (inst.flow == Flow::Next) {
      auto [written, source] = StringRef(inst.operands).split(',');
      StringRef voted = getVoted(inst, isPTX);
      auto negated = votes.find(source.trim());
      if (!voted.empty())
        votes[voted] = false;
      else if (inst.opcode == "not.pred" && negated != votes.end())
        votes[written.trim()] = !negated->second;
      else
        votes.erase(written.trim());
      continue;
    }
    StringRef guard = inst.guard;
    bool isNegated = guard.consume_front("!");
    auto vote = votes.find(guard);
    if (inst.flow != Flow::Branch || vote == votes.end() ||
        block.successors.size() != 2)
      return std::nullopt;
    // What follows comes first.
    bool isTaken = vote->second == isNegated;
    return block.successors[isTaken ? 1 : 0];
  }
  return std::nullopt;
}

llvm::BitVector RarePaths::find() const {
  llvm::ArrayRef<CodeBlock> blocks = flow.getBlocks();
  llvm::BitVector rare(blocks.size());
  for (const CodeBlock &block : blocks) {
    std::optional<unsigned> first = getRareSuccessor(block);
    if (!first || blocks[*first].predecessors.size() != 1)
      continue;
    for (unsigned i = 0; i != blocks.size(); ++i)
      if (flow.dominates(*first, i))
        rare.set(i);
  }
  return rare;
}

//===----------------------------------------------------------------------===//
// The loop
//===----------------------------------------------------------------------===//

LoopFinder::LoopFinder(const CodeListing &listing, bool isPTX)
    : listing(listing), isPTX(isPTX), flow(listing), blocks(flow.getBlocks()),
      rare(RarePaths(listing, flow, isPTX).find()) {}

bool LoopFinder::isInnermost(const CodeLoop &loop, Counted isCounted) const {
  return countAll(loop.blocks, isCounted) != 0 &&
         llvm::none_of(flow.getLoops(), [&](const CodeLoop &inner) {
           return isInside(inner, loop) &&
                  countAll(inner.blocks, isCounted) != 0;
         });
}

const CodeLoop *LoopFinder::select(Counted isCounted) const {
  // Of loops with the same products the one that does least beside them is the
  // interior one; the others apply masks.
  const CodeLoop *hot = nullptr;
  unsigned most = 0, size = 0;
  for (const CodeLoop &loop : flow.getLoops()) {
    // What a warp computes on a vote only does not tell how usual a loop is: a
    // loop of masked blocks may leave out as much as the interior one computes.
    llvm::BitVector usual = loop.blocks;
    usual.reset(rare);
    unsigned count = countAll(usual, isCounted);
    if (count == 0 || !isInnermost(loop, isCounted))
      continue;
    unsigned instructions = 0;
    for (unsigned block : usual.set_bits())
      instructions += blocks[block].end - blocks[block].begin;
    if (count < most || (count == most && instructions >= size))
      continue;
    hot = &loop;
    most = count;
    size = instructions;
  }
  return hot;
}

void LoopFinder::add(HotLoop &result, const CodeBlock &block,
                     unsigned &sinceTensor) const {
  for (unsigned i = block.begin; i != block.end; ++i) {
    const CodeInstruction &inst = listing.instructions[i];
    ++result.instructions;
    if (!isPTX) {
      StringRef purpose = getSassPurpose(inst);
      ++result.purposes[purpose.str()];
      if (purpose == "move")
        ++result.moves[inst.getBase().str()];
    }
    if (isTensor(inst, isPTX)) {
      ++result.tensor;
      sinceTensor = 0;
    }
    if (isExponential(inst, isPTX)) {
      ++result.exponentials;
      ++sinceTensor;
    }
    if (std::optional<CodeWait> wait = getWait(inst, isPTX)) {
      wait->exponentials = sinceTensor;
      result.waits.push_back(*wait);
    }
  }
}

HotLoop LoopFinder::measure(const CodeLoop &hot) const {
  HotLoop result;
  result.begin = listing.instructions[blocks[hot.header].begin].place;
  result.end = listing.instructions[blocks[hot.latch].end - 1].place;
  llvm::BitVector waiting(blocks.size());
  for (const CodeLoop &inner : flow.getLoops())
    if (isInside(inner, hot))
      waiting |= inner.blocks;
  unsigned sinceTensor = 0;
  // LLVM begins loops in their middle: what is above the header runs last.
  llvm::SmallVector<unsigned> order(hot.blocks.set_bits());
  std::rotate(order.begin(), llvm::lower_bound(order, hot.header), order.end());
  for (unsigned block : order) {
    // ptxas moves code out of a loop's way.
    bool isApart = !isPTX && hot.header <= hot.latch &&
                   (block < hot.header || block > hot.latch);
    if (rare.test(block))
      (isApart ? result.rareOutside : result.rareInside) +=
          blocks[block].end - blocks[block].begin;
    else if (!isApart && !waiting.test(block))
      add(result, blocks[block], sinceTensor);
  }
  return result;
}

llvm::BitVector LoopFinder::reach(const llvm::BitVector &from,
                                  const llvm::BitVector &within,
                                  std::optional<unsigned> header,
                                  bool forwards) const {
  llvm::BitVector reached = from;
  llvm::SmallVector<unsigned> worklist(from.set_bits());
  while (!worklist.empty()) {
    const CodeBlock &block = blocks[worklist.pop_back_val()];
    for (unsigned next : forwards ? block.successors : block.predecessors) {
      if (reached.test(next) || !within.test(next) || next == header)
        continue;
      reached.set(next);
      worklist.push_back(next);
    }
  }
  return reached;
}

HotLoop LoopFinder::measureBehind(const CodeLoop &hot,
                                  Counted isCounted) const {
  const CodeLoop *around = nullptr;
  for (const CodeLoop &loop : flow.getLoops())
    if (isInside(hot, loop) && (!around || isInside(loop, *around)))
      around = &loop;
  llvm::BitVector within(blocks.size(), /*t=*/true);
  std::optional<unsigned> header;
  if (around) {
    within = around->blocks;
    header = around->header;
  }
  llvm::BitVector beside = hot.blocks;
  for (const CodeLoop &loop : flow.getLoops())
    if (within.test(loop.header) && loop.header != header &&
        countAll(loop.blocks, isCounted) != 0)
      beside |= loop.blocks;
  llvm::BitVector behind = reach(hot.blocks, within, header, /*forwards=*/true);
  behind.reset(reach(beside, within, header, /*forwards=*/false));
  HotLoop result;
  unsigned sinceTensor = 0;
  for (unsigned block : behind.set_bits()) {
    if (rare.test(block))
      continue;
    if (result.instructions == 0)
      result.begin = listing.instructions[blocks[block].begin].place;
    result.end = listing.instructions[blocks[block].end - 1].place;
    add(result, blocks[block], sinceTensor);
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Loops over blocks of keys
//===----------------------------------------------------------------------===//

/// Returns true for a wait for an mbarrier.
static bool isBarrierWait(const CodeInstruction &inst, bool) {
  return inst.getBase() == "SYNCS" &&
         StringRef(inst.opcode).contains("TRYWAIT");
}

/// Returns true for an instruction that computes or moves data, which no loop
/// has that only waits.
static bool isWork(const CodeInstruction &inst, bool) {
  StringRef purpose = getSassPurpose(inst);
  return purpose != "control" && purpose != "sync" && purpose != "move" &&
         purpose != "uniform" && purpose != "integer" && purpose != "constant";
}

bool LoopFinder::isSpin(const CodeLoop &loop) const {
  return countAll(loop.blocks, isBarrierWait) != 0 &&
         countAll(loop.blocks, isWork) == 0;
}

unsigned LoopFinder::getDepth(const CodeLoop &loop) const {
  return llvm::count_if(flow.getLoops(), [&](const CodeLoop &outer) {
    return isInside(loop, outer);
  });
}

bool LoopFinder::runsForBlocks(const CodeLoop &loop, unsigned depth) const {
  if (rare.test(loop.header) || isSpin(loop))
    return false;
  bool hasProducts =
      isInnermost(loop, isTensor) || isInnermost(loop, isExponential);
  if (getDepth(loop) >= depth)
    return hasProducts || countAll(loop.blocks, isBarrierWait) != 0;
  // A loop of tiles has the blocks' loop inside of it.
  return hasProducts && llvm::none_of(flow.getLoops(), [&](const CodeLoop &in) {
           return isInside(in, loop) && !isSpin(in);
         });
}

BlockLoop LoopFinder::measureBlockLoop(const CodeLoop &loop) const {
  BlockLoop result;
  result.begin = listing.instructions[blocks[loop.header].begin].place;
  result.end = listing.instructions[blocks[loop.latch].end - 1].place;
  for (unsigned block : loop.blocks.set_bits()) {
    if (rare.test(block))
      continue;
    for (unsigned i = blocks[block].begin; i != blocks[block].end; ++i) {
      const CodeInstruction &inst = listing.instructions[i];
      ++result.instructions;
      result.tensor += isTensor(inst, isPTX);
      result.exponentials += isExponential(inst, isPTX);
      result.spillStores += inst.getBase() == "STL";
      result.spillLoads += inst.getBase() == "LDL";
    }
  }
  return result;
}

std::vector<BlockLoop> LoopFinder::findBlockLoops() const {
  const CodeLoop *softmax = select(isExponential);
  if (!softmax)
    softmax = select(isTensor);
  if (!softmax)
    return {};
  unsigned depth = getDepth(*softmax);
  llvm::SmallVector<const CodeLoop *> found;
  for (const CodeLoop &loop : flow.getLoops())
    if (runsForBlocks(loop, depth))
      found.push_back(&loop);
  std::vector<BlockLoop> result;
  for (const CodeLoop *loop : found)
    if (llvm::none_of(found, [&](const CodeLoop *outer) {
          return isInside(*loop, *outer);
        }))
      result.push_back(measureBlockLoop(*loop));
  llvm::sort(result, [](const BlockLoop &a, const BlockLoop &b) {
    return a.begin < b.begin;
  });
  return result;
}
