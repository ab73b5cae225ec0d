//===- WrittenElements.h - Which bytes a launch has written -----*- C++ -*-===//

#ifndef ATTN_LIB_HARNESS_WRITTENELEMENTS_H
#define ATTN_LIB_HARNESS_WRITTENELEMENTS_H

#include "attn/Harness/HarnessTensor.h"
#include "attn/Simulator/Machine/GlobalMemory.h"

namespace mlir::attn::sim {

/// Rows of packed sequences, from the first one's to the last one's end.
using OwnedRows = std::pair<int64_t, int64_t>;

/// The rows that some sequence owns; nothing if the problem has no packed ones.
std::optional<OwnedRows> findOwnedRows(const LaunchRecord &record,
                                       llvm::ArrayRef<HarnessTensor> tensors);

/// Says what is wrong about the bytes of an output: elements without a value,
/// values in rows that nobody owns, or between the elements.
void checkWrites(const HarnessTensor &tensor, const Allocation &allocation,
                 const std::optional<OwnedRows> &rows,
                 std::vector<std::string> &problems);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_HARNESS_WRITTENELEMENTS_H
