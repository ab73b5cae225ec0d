//===- Reduce.h - Shrinking attn IR that shows a bug ------------*- C++ -*-===//
//
// Reductions for the pass reduction-tree of mlir-reduce and attn-reduce.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_REDUCE_REDUCE_H
#define ATTN_REDUCE_REDUCE_H

#include "mlir/IR/DialectRegistry.h"

namespace mlir::attn {

/// Gives the attn dialect its reductions. Each one is tried on a copy of the
/// module and kept only if the tester still finds the copy interesting, so that
/// one reduction that loses the bug does not take the others with it:
///
/// - `attn.attention`: without score_mod, mask_mod, mask, sinks, lse, plan,
///   the factors of Options.def, out_scale, variable lengths, pages, splits;
///   shorter sequences, fewer batches and heads, smaller head dims (on memrefs
///   that are arguments); function arguments that nothing uses any more are
///   removed;
/// - `attn.kv_loop`: without masked phases, with one stage;
/// - any op whose results nothing uses: removed;
/// - any op whose results have the types of operands: the operands instead.
void registerReductions(DialectRegistry &registry);

} // namespace mlir::attn

#endif // ATTN_REDUCE_REDUCE_H
