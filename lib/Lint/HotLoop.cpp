//===- HotLoop.cpp - The loop of a kernel that does the work --------------===//

#include "attn/Lint/SassLint.h"
#include "attn/Target/CodeFlow.h"

using namespace mlir::attn;
using llvm::StringRef;
using Flow = CodeInstruction::Flow;

//===----------------------------------------------------------------------===//
// What instructions are
//===----------------------------------------------------------------------===//

static bool isTensor(const CodeInstruction &inst, bool isPTX) {
  StringRef opcode = inst.opcode;
  if (!isPTX)
    return getSassPurpose(inst) == "tensor";
  return opcode.starts_with("mma.sync") ||
         opcode.starts_with("wgmma.mma_async") ||
         opcode.starts_with("tcgen05.mma");
}

static bool isExponential(const CodeInstruction &inst, bool isPTX) {
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

/// The innermost loop with the most instructions of which `isCounted` holds.
static std::optional<HotLoop>
findLoop(const CodeListing &listing, bool isPTX,
         llvm::function_ref<bool(const CodeInstruction &, bool)> isCounted) {
  CodeFlow flow(listing);
  llvm::ArrayRef<CodeBlock> blocks = flow.getBlocks();
  llvm::BitVector rare = RarePaths(listing, flow, isPTX).find();
  auto countAll = [&](const llvm::BitVector &which) {
    unsigned count = 0;
    for (unsigned block : which.set_bits())
      for (unsigned i = blocks[block].begin; i != blocks[block].end; ++i)
        count += isCounted(listing.instructions[i], isPTX);
    return count;
  };
  auto isInside = [](const CodeLoop &inner, const CodeLoop &outer) {
    return inner.header != outer.header && outer.blocks.test(inner.header);
  };
  // Of loops with the same products the one that does least beside them is the
  // interior one; the others apply masks.
  const CodeLoop *hot = nullptr;
  unsigned most = 0, size = 0;
  for (const CodeLoop &loop : flow.getLoops()) {
    unsigned count = countAll(loop.blocks);
    bool isInnermost =
        llvm::none_of(flow.getLoops(), [&](const CodeLoop &inner) {
          return isInside(inner, loop) && countAll(inner.blocks) != 0;
        });
    if (!isInnermost || count == 0)
      continue;
    unsigned instructions = 0;
    for (unsigned block : loop.blocks.set_bits())
      if (!rare.test(block))
        instructions += blocks[block].end - blocks[block].begin;
    if (count < most || (count == most && instructions >= size))
      continue;
    hot = &loop;
    most = count;
    size = instructions;
  }
  if (!hot)
    return std::nullopt;

  HotLoop result;
  result.begin = listing.instructions[blocks[hot->header].begin].place;
  result.end = listing.instructions[blocks[hot->latch].end - 1].place;
  llvm::BitVector waiting(blocks.size());
  for (const CodeLoop &inner : flow.getLoops())
    if (isInside(inner, *hot))
      waiting |= inner.blocks;
  unsigned sinceTensor = 0;
  // LLVM begins loops in their middle: what is above the header runs last.
  llvm::SmallVector<unsigned> order(hot->blocks.set_bits());
  std::rotate(order.begin(), llvm::lower_bound(order, hot->header),
              order.end());
  for (unsigned block : order) {
    // ptxas moves code out of a loop's way.
    bool isApart = !isPTX && hot->header <= hot->latch &&
                   (block < hot->header || block > hot->latch);
    if (rare.test(block)) {
      (isApart ? result.rareOutside : result.rareInside) +=
          blocks[block].end - blocks[block].begin;
      continue;
    }
    if (isApart || waiting.test(block))
      continue;
    for (unsigned i = blocks[block].begin; i != blocks[block].end; ++i) {
      const CodeInstruction &inst = listing.instructions[i];
      ++result.instructions;
      if (!isPTX)
        ++result.purposes[getSassPurpose(inst).str()];
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
  return result;
}

std::optional<HotLoop> mlir::attn::findHotLoop(const CodeListing &listing,
                                               bool isPTX) {
  return findLoop(listing, isPTX, isTensor);
}

std::optional<HotLoop> mlir::attn::findSoftmaxLoop(const CodeListing &listing,
                                                   bool isPTX) {
  std::optional<HotLoop> hot = findHotLoop(listing, isPTX);
  if (!hot || hot->exponentials != 0)
    return std::nullopt;
  return findLoop(listing, isPTX, isExponential);
}
