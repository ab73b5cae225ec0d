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

/// Returns true if lse has two numbers of each row, its maximum and its sum.
bool hasStatesOfRows(const LaunchRecord &record);

/// Returns of scales in tiles which row of o, among those of a head, each
/// element belongs to, and -1 for padding; nothing of other tensors.
std::vector<int64_t> findTiledRows(const LaunchRecord &record,
                                   llvm::ArrayRef<HarnessTensor> tensors,
                                   const HarnessTensor &tensor);

/// Notes in `rows` which rows of the results an output has an element of, the
/// element of lse being a row, or with `areStates` two of them.
void noteWrittenRows(const HarnessTensor &tensor, const Allocation &allocation,
                     bool areStates, std::vector<uint8_t> &rows);

/// Says what is wrong about the bytes of an output: elements without a value,
/// values in rows that nobody owns, or between the elements. Rows that are not
/// in `sampled`, if it is not empty, are not looked at. `tiled` is what
/// findTiledRows gives.
void checkWrites(const HarnessTensor &tensor, const Allocation &allocation,
                 const std::optional<OwnedRows> &rows, bool areStates,
                 llvm::ArrayRef<uint8_t> sampled, llvm::ArrayRef<int64_t> tiled,
                 std::vector<std::string> &problems);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_HARNESS_WRITTENELEMENTS_H
