//===- IssueLoopExpander.h - attn.issue_loop as loops -----------*- C++ -*-===//
//
// Private to the pass that expands loops.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_ATTN_TRANSFORMS_PIPELINE_ISSUELOOPEXPANDER_H
#define ATTN_LIB_DIALECT_ATTN_TRANSFORMS_PIPELINE_ISSUELOOPEXPANDER_H

#include "attn/Dialect/Attn/IR/Attn.h"

namespace mlir::attn {

/// What became of a loop: how many loops, and how often statements stand in
/// them.
struct IssueLoopSummary {
  int64_t statements = 0, loops = 0, copies = 0;
};

/// Replaces `loop` by one loop for each set of statements that can run in one
/// step, in the order in which steps run them.
IssueLoopSummary expandIssueLoop(IssueLoopOp loop);

} // namespace mlir::attn

#endif // ATTN_LIB_DIALECT_ATTN_TRANSFORMS_PIPELINE_ISSUELOOPEXPANDER_H
