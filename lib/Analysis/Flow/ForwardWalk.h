//===- ForwardWalk.h - A forward data flow over a kernel --------*- C++ -*-===//
//
// What analyses of fences share: a state that joins where paths meet, carried
// over the ops of a kernel in order, through branches and around loops until it
// does not change any more.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_ANALYSIS_FLOW_FORWARDWALK_H
#define ATTN_LIB_ANALYSIS_FLOW_FORWARDWALK_H

#include "attn/Analysis/Flow/RegionPaths.h"

namespace mlir::attn {

/// True for ops that let another thread go on.
bool isRelease(Operation &op);

/// True if the one thread of an elect lets others go on. What the other lanes
/// did has to be fenced before it then.
bool releasesInside(ElectOp elect);

/// A data flow. `State` has join and !=; `Derived` has visitOp, which calls
/// visitNested for what it has nothing to say about.
template <typename Derived, typename State>
class ForwardWalk {
public:
  /// The state behind a block.
  State visit(Block &block, State state) {
    for (Operation &op : block)
      state = static_cast<Derived *>(this)->visitOp(op, state);
    return state;
  }

protected:
  /// The state behind an op with regions.
  State visitNested(Operation &op, State state) {
    if (isBranch(&op) && !runsInSomeThreads(&op))
      return visitBranch(op, state);
    return visitRegions(op, state);
  }

private:
  State visitBranch(Operation &op, State state) {
    State result;
    if (maySkipRegions(&op))
      result = state;
    for (Region &region : op.getRegions())
      if (!region.empty())
        result.join(visit(region.front(), state));
    return result;
  }

  /// Each region runs any number of times, or, if it is of no loop, once or not
  /// at all.
  State visitRegions(Operation &op, State state) {
    State result = state;
    while (true) {
      State before = result;
      for (Region &region : op.getRegions())
        for (Block &block : region)
          result.join(
              visit(block, isa<LoopLikeOpInterface>(op) ? before : state));
      if (!(result != before) || !isa<LoopLikeOpInterface>(op))
        return result;
    }
  }
};

} // namespace mlir::attn

#endif // ATTN_LIB_ANALYSIS_FLOW_FORWARDWALK_H
