//===- RingFacts.h - What rings and wgmma need and take ---------*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_RINGFACTS_H
#define ATTN_LIB_SCHEDULE_RINGFACTS_H

#include "attn/Schedule/Schedule.h"

namespace mlir::attn {

/// True if V is transposed between its load and wgmma, whose 8-bit operands
/// have the contraction's index contiguous.
inline bool needsTransposer(const ProblemFacts &facts) {
  return facts.isNarrow() && !facts.hasTransposedValues();
}

/// Columns of a slot for rows of `dim` elements: the map's boxes, whole spans
/// of a swizzle, pad them with zeros.
int64_t getSlotColumns(const ProblemFacts &facts, int64_t dim);
/// Columns of the slots of Q and K, and of V as it is loaded.
inline int64_t getKeyColumns(const ProblemFacts &facts) {
  return getSlotColumns(facts, facts.headDim);
}
inline int64_t getValueColumns(const ProblemFacts &facts) {
  return facts.hasTransposedValues() ? facts.valueDim
                                     : getSlotColumns(facts, facts.valueDim);
}
/// The head dimension in whole steps of QK.
int64_t getKeyDepth(const ProblemFacts &facts);

/// Why the rows of K cannot be loaded in the order of quads; nothing if they
/// can.
std::optional<std::string> findNoQuads(const ProblemFacts &facts);

/// Refuses blocks of `blockN` keys that 8-bit operands cannot have, and the
/// order of quads where keys cannot be in it.
llvm::Error checkNarrow(const ProblemFacts &facts, int64_t blockN,
                        bool keyQuads);

/// The policies of the softmax that plans are made with.
ArrayRef<SoftmaxPolicy> getUsualPolicies(const ProblemFacts &facts);

/// Registers of a thread for the probabilities of a block.
int64_t getProbabilityRegisters(const ProblemFacts &facts, int64_t blockN);

/// Bytes of shared memory that `rows` rows of results take on their way.
int64_t getResultBytes(const ProblemFacts &facts, int64_t rows);

/// Sets the clocks of an SM that a block of `blockN` keys and a tile of
/// `blockM` rows take on each resource.
void setResourceClocks(PlanEstimate &estimate, const ProblemFacts &facts,
                       const TargetRow &target, double blockM, double blockN,
                       SoftmaxPolicy softmax);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_RINGFACTS_H
