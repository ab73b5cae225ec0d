//===- Reductions.h - Reductions that a tester guards -----------*- C++ -*-===//
//
// A reduction changes an op, and what it must change with it, in place. A
// guarded reduction is one that is first done in a copy of the module: it takes
// place only if the copy is valid IR and still interesting. It is
// deterministic, which the pass reduction-tree relies on when it repeats what
// it has tried.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_REDUCE_REDUCTIONS_H
#define ATTN_LIB_REDUCE_REDUCTIONS_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Reducer/Tester.h"

namespace mlir::attn {

/// A change of an op; failure if there is nothing to change. It may have
/// changed something when it fails, since it runs on a copy first.
using Reduction =
    std::function<LogicalResult(Operation *op, RewriterBase &rewriter)>;

/// Does the first of the reductions after which the module of `op` is valid and
/// interesting. Failure if there is none.
LogicalResult reduceIfInteresting(Operation *op, PatternRewriter &rewriter,
                                  ArrayRef<Reduction> reductions,
                                  const Tester &tester);

/// Reductions of attn.attention.
void populateProblemReductions(RewritePatternSet &patterns,
                               const Tester &tester);
/// Reductions of the ops of the rungs below.
void populateTileReductions(RewritePatternSet &patterns, const Tester &tester);

} // namespace mlir::attn

#endif // ATTN_LIB_REDUCE_REDUCTIONS_H
