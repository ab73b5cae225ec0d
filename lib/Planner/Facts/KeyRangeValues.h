//===- KeyRangeValues.h - What a key_range is made of -----------*- C++ -*-===//

#ifndef ATTN_LIB_PLANNER_FACTS_KEYRANGEVALUES_H
#define ATTN_LIB_PLANNER_FACTS_KEYRANGEVALUES_H

#include "mlir/IR/Region.h"

namespace mlir::attn {

/// The arguments of `key_range` of attn.attention, and what it yields.
struct KeyRangeValues {
  Value batch, firstHead, lastHead, firstQuery, lastQuery;
  Value begin, end;
  /// Null if it says nothing about keys that need no test.
  Value fullBegin, fullEnd;

  explicit KeyRangeValues(Region &region) {
    Block &block = region.front();
    Value *arguments[] = {&batch, &firstHead, &lastHead, &firstQuery,
                          &lastQuery};
    for (auto [place, value] : llvm::zip_equal(arguments, block.getArguments()))
      *place = value;
    // The last two may not be there.
    Value *results[] = {&begin, &end, &fullBegin, &fullEnd};
    for (auto [place, value] :
         llvm::zip(results, block.getTerminator()->getOperands()))
      *place = value;
  }
};

} // namespace mlir::attn

#endif // ATTN_LIB_PLANNER_FACTS_KEYRANGEVALUES_H
