//===- BlockLists.h - lists of blocks of keys -------------------*- C++ -*-===//

#ifndef ATTN_LIB_HARNESS_BLOCKLISTS_H
#define ATTN_LIB_HARNESS_BLOCKLISTS_H

#include "attn/Launch/LaunchRecord.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <vector>

namespace mlir::attn::sim {

/// Kinds of a block of keys of a list. In partial ones the mask is asked.
enum class BlockKind { Hidden, Partial, Full };

/// The shapes of a problem's operands and of its lists; no lists are empty.
struct BlockListShapes {
  llvm::ArrayRef<int64_t> q, k, counts, indices;
};

/// Checks that a problem has lists of blocks of the shapes that it needs, or
/// none.
llvm::Error checkBlockLists(const AttentionProblem &problem,
                            const BlockListShapes &shapes);

/// Returns what a list says of each of `blocks` blocks of keys. `counts` are
/// the blocks that it has of `indices`, and those of them that are full.
std::vector<BlockKind> readBlockList(int64_t blocks,
                                     llvm::ArrayRef<int64_t> counts,
                                     llvm::ArrayRef<int64_t> indices);

/// Returns the keys [begin, end) that the mask leaves to a query.
std::pair<int64_t, int64_t> getKeyRange(const AttentionProblem &problem,
                                        int64_t queries, int64_t keys,
                                        int64_t query);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_HARNESS_BLOCKLISTS_H
