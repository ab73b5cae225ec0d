//===- LoopFinder.h - Loops of a kernel, by what is in them -----*- C++ -*-===//

#ifndef ATTN_LIB_LINT_LOOPFINDER_H
#define ATTN_LIB_LINT_LOOPFINDER_H

#include "attn/Lint/SassLint.h"
#include "attn/Target/CodeFlow.h"

namespace mlir::attn {

/// Returns true for an instruction that multiplies tiles.
bool isTensor(const CodeInstruction &inst, bool isPTX);

/// Returns true for an exponential.
bool isExponential(const CodeInstruction &inst, bool isPTX);

using Counted = llvm::function_ref<bool(const CodeInstruction &, bool)>;

/// Finds loops of a listing by the instructions in them.
class LoopFinder {
public:
  LoopFinder(const CodeListing &listing, bool isPTX);

  /// Returns the innermost loop with the most instructions of which `isCounted`
  /// holds; null if none has one.
  const CodeLoop *select(Counted isCounted) const;
  /// Counts what is in a loop.
  HotLoop measure(const CodeLoop &hot) const;
  /// Counts what runs after a loop, and after the other loops with instructions
  /// of which `isCounted` holds, before the loop around them begins again.
  HotLoop measureBehind(const CodeLoop &hot, Counted isCounted) const;
  /// Lists the loops that run once for each block of keys; see findBlockLoops.
  std::vector<BlockLoop> findBlockLoops() const;

private:
  static bool isInside(const CodeLoop &inner, const CodeLoop &outer) {
    return inner.header != outer.header && outer.blocks.test(inner.header);
  }
  unsigned countAll(const llvm::BitVector &which, Counted isCounted) const {
    unsigned count = 0;
    for (unsigned block : which.set_bits())
      for (unsigned i = blocks[block].begin; i != blocks[block].end; ++i)
        count += isCounted(listing.instructions[i], isPTX);
    return count;
  }
  /// Returns true if a loop has instructions of which `isCounted` holds, and no
  /// loop inside of it has.
  bool isInnermost(const CodeLoop &loop, Counted isCounted) const;
  /// Returns true for a loop that only waits for an mbarrier.
  bool isSpin(const CodeLoop &loop) const;
  /// Counts the loops around a loop.
  unsigned getDepth(const CodeLoop &loop) const;
  /// Returns true for a loop that findBlockLoops lists, unless it is inside of
  /// another one. `depth` is that of the softmax's loop.
  bool runsForBlocks(const CodeLoop &loop, unsigned depth) const;
  BlockLoop measureBlockLoop(const CodeLoop &loop) const;
  /// Adds the instructions of a block.
  void add(HotLoop &result, const CodeBlock &block,
           unsigned &sinceTensor) const;
  /// Returns the blocks of `within` that are reached from `from`, forwards or
  /// backwards, without passing `header`.
  llvm::BitVector reach(const llvm::BitVector &from,
                        const llvm::BitVector &within,
                        std::optional<unsigned> header, bool forwards) const;

  const CodeListing &listing;
  bool isPTX;
  CodeFlow flow;
  llvm::ArrayRef<CodeBlock> blocks;
  llvm::BitVector rare;
};

} // namespace mlir::attn

#endif // ATTN_LIB_LINT_LOOPFINDER_H
