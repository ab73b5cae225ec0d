//===- WrittenElements.cpp - Which bytes a launch has written -------------===//

#include "WrittenElements.h"
#include "attn/Problem/ScaleTiles.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir::attn;
using namespace mlir::attn::sim;
using llvm::ArrayRef;

std::optional<OwnedRows> sim::findOwnedRows(const LaunchRecord &record,
                                            ArrayRef<HarnessTensor> tensors) {
  std::optional<unsigned> index = record.findTensor("cu_seqlens_q");
  if (!record.problem || !record.problem->varlen || !index ||
      !isRead(tensors[*index].access) ||
      tensors[*index].argument.shape.size() != 1)
    return std::nullopt;
  TensorView lengths = tensors[*index].getView();
  int64_t count = lengths.shape.front();
  if (count == 0)
    return std::nullopt;
  return OwnedRows{int64_t(lengths.get({0})),
                   int64_t(lengths.get({count - 1}))};
}

bool sim::hasStatesOfRows(const LaunchRecord &record) {
  std::optional<unsigned> o = record.findTensor("o"),
                          lse = record.findTensor("lse");
  return o && lse &&
         record.tensors[*o].shape.size() == record.tensors[*lse].shape.size();
}

/// True if the rows of an output are its dimension before the last: of o, of
/// its scales, and of an lse that is maxima and sums.
static bool hasColumns(const TensorArgument &argument, bool areStates) {
  return argument.name == "o" || argument.name == "o_scales" ||
         (areStates && argument.name == "lse");
}

/// True when the kernel has to write this element: all but rows that no packed
/// sequence owns.
static bool isOwned(const TensorArgument &argument, int64_t element,
                    const std::optional<OwnedRows> &rows, bool hasColumns) {
  size_t rank = argument.shape.size(), least = hasColumns ? 2 : 1;
  if (!rows || rank < least || (!hasColumns && argument.name != "lse"))
    return true;
  int64_t columns = hasColumns ? argument.shape[rank - 1] : 1;
  int64_t row = element / columns % argument.shape[rank - least];
  return row >= rows->first && row < rows->second;
}

/// Elements of a row of the results.
static int64_t getColumns(const TensorArgument &argument, bool areStates) {
  return hasColumns(argument, areStates) && !argument.shape.empty()
             ? argument.shape.back()
             : 1;
}

std::vector<int64_t> sim::findTiledRows(const LaunchRecord &record,
                                        ArrayRef<HarnessTensor> tensors,
                                        const HarnessTensor &tensor) {
  std::vector<int64_t> rows;
  ArrayRef<int64_t> shape = tensor.argument.shape;
  std::optional<unsigned> o = record.findTensor("o");
  if (tensor.argument.name != "o_scales" || !isInScaleTiles(shape) || !o ||
      !record.problem || record.problem->outGroup == 0)
    return rows;
  ArrayRef<int64_t> result = tensors[*o].argument.shape;
  int64_t queries = result[2], tokens = result[0] * queries;
  int64_t columns = result[1] * (record.problem->dv / record.problem->outGroup);
  rows.assign(shape[0] * shape[1], -1);
  for (int64_t token = 0; token < tokens; ++token)
    for (int64_t column = 0; column < columns; ++column) {
      int64_t element = getScaleTileOffset(token, column, shape[1]);
      if (element < int64_t(rows.size()))
        rows[element] = token % queries;
    }
  return rows;
}

void sim::noteWrittenRows(const HarnessTensor &tensor,
                          const Allocation &allocation, bool areStates,
                          std::vector<uint8_t> &rows) {
  const TensorArgument &argument = tensor.argument;
  int64_t columns = getColumns(argument, areStates), element = 0;
  forEachElement(argument, [&](int64_t offset) {
    size_t row = element++ / columns;
    if (row >= rows.size())
      rows.resize(row + 1);
    rows[row] |= allocation.ownValid[offset];
  });
}

void sim::checkWrites(const HarnessTensor &tensor, const Allocation &allocation,
                      const std::optional<OwnedRows> &rows, bool areStates,
                      ArrayRef<uint8_t> sampled, ArrayRef<int64_t> tiled,
                      std::vector<std::string> &problems) {
  const TensorArgument &argument = tensor.argument;
  unsigned width = getByteWidth(argument.dtype);
  ArrayRef<uint8_t> valid(allocation.ownValid);
  std::vector<bool> isElement(valid.size(), false);
  int64_t element = 0, missing = 0, foreign = 0, gaps = 0;
  std::optional<int64_t> firstMissing, firstForeign;
  int64_t columns = getColumns(argument, areStates);
  bool isByRow = hasColumns(argument, areStates);
  forEachElement(argument, [&](int64_t offset) {
    bool isWritten = true;
    for (unsigned i = 0; i < width; ++i) {
      isElement[offset + i] = true;
      isWritten &= valid[offset + i] != 0;
    }
    bool isOwn = isOwned(argument, element, rows, isByRow);
    if (!tiled.empty()) {
      int64_t row = tiled[element];
      isElement[offset] = row >= 0;
      isOwn = !rows || (row >= rows->first && row < rows->second);
    }
    if (!isElement[offset]) {
      // Padding, which counts as what is between elements.
    } else if (!sampled.empty() &&
               (!tiled.empty() || !sampled[element / columns])) {
      // Another CTA's, or one of those of a tile.
    } else if (isOwn) {
      missing += !isWritten;
      if (!isWritten && !firstMissing)
        firstMissing = element;
    } else {
      foreign += isWritten;
      if (isWritten && !firstForeign)
        firstForeign = element;
    }
    ++element;
  });
  for (size_t i = 0; i < valid.size(); ++i)
    gaps += valid[i] && !isElement[i];
  // An updated tensor has lost what it had.
  bool isUpdated = tensor.access == TensorAccess::Update;
  if (missing)
    problems.push_back(llvm::formatv(
        "output \"{0}\": {1} of {2} elements {3}, the first is element {4}",
        argument.name, missing, element,
        isUpdated ? "hold an undefined value" : "were not written",
        *firstMissing));
  if (foreign)
    problems.push_back(
        llvm::formatv("output \"{0}\": {1} elements of rows that no sequence "
                      "owns were written, the first is element {2}",
                      argument.name, foreign, *firstForeign));
  if (gaps)
    problems.push_back(
        llvm::formatv("output \"{0}\": {1} bytes between its elements were "
                      "written",
                      argument.name, gaps));
}
