//===- CodeFlow.h - Basic blocks and loops of a listing ---------*- C++ -*-===//

#ifndef ATTN_TARGET_CODEFLOW_H
#define ATTN_TARGET_CODEFLOW_H

#include "attn/Target/CodeListing.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SmallVector.h"

namespace mlir::attn {

/// Instructions [begin, end) of a listing that run one after the other.
struct CodeBlock {
  unsigned begin = 0;
  unsigned end = 0;
  llvm::SmallVector<unsigned, 2> successors;
  llvm::SmallVector<unsigned, 2> predecessors;
};

/// A natural loop: all blocks from which a branch back to the header can be
/// reached without passing the header (Aho et al., Compilers, 9.6.6).
struct CodeLoop {
  unsigned header = 0;
  /// The last block, in the listing's order, that branches to the header.
  unsigned latch = 0;
  llvm::BitVector blocks;
};

/// Blocks in the order of the listing, who dominates whom, and loops.
class CodeFlow {
public:
  explicit CodeFlow(const CodeListing &listing);

  llvm::ArrayRef<CodeBlock> getBlocks() const { return blocks; }
  /// Each header once. Code that the entry does not reach has no loops.
  llvm::ArrayRef<CodeLoop> getLoops() const { return loops; }
  /// True if every path from the entry to block `b` goes through block `a`.
  bool dominates(unsigned a, unsigned b) const;

private:
  void findBlocks(const CodeListing &listing);
  void findDominators();
  void findLoops();

  std::vector<CodeBlock> blocks;
  /// The blocks that dominate each block; empty if it is not reached.
  std::vector<llvm::BitVector> dominators;
  std::vector<CodeLoop> loops;
};

} // namespace mlir::attn

#endif // ATTN_TARGET_CODEFLOW_H
