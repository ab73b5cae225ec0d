//===- RingFacts.cpp - What rings that TMA fills need and take ------------===//

#include "RingFacts.h"
#include "../Copied/GridTiles.h"
#include "../Core/CommonChecks.h"
#include "attn/Layout/SharedLayout.h"
#include "attn/Planner/Facts/Factor.h"
#include "attn/Planner/Facts/RowPitch.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace mlir::attn;

/// The smallest page that TMA copies.
static constexpr int64_t kLeastPage = 16;

int64_t attn::getSlotColumns(const ProblemFacts &facts, int64_t dim) {
  // Short rows are best in boxes of 32 bytes, shorter ones where rows start in
  // the middle of a sector of memory. Beyond that fewer and wider boxes are,
  // until their padding takes the shared memory that blocks need.
  static constexpr Factor kBoxBytes{"rings.box_bytes"},
      kSplitBoxBytes{"rings.split_box_bytes"},
      kPaddedBytes{"rings.padded_bytes"};
  int64_t elementBytes = facts.elementType.getIntOrFloatBitWidth() / 8;
  int64_t bytes = dim * elementBytes;
  double most = bytes % 32 == 0 ? kBoxBytes : kSplitBoxBytes;
  int64_t span = 64;
  if (double(bytes) <= most)
    span = 32;
  else if (bytes % 64 != 0 && double(bytes) <= kPaddedBytes)
    span = 128;
  int64_t columns = llvm::alignTo(bytes, span) / elementBytes;
  // A slot of 8 bits has as many.
  return facts.hasNarrowKeys() ? llvm::alignTo(columns, 32) : columns;
}

int64_t attn::countQueryRows(const ProblemFacts &facts, bool packHeads) {
  return packHeads ? llvm::PowerOf2Ceil(facts.getGroup()) : 1;
}

int64_t attn::getBoxRows(const ProblemFacts &facts, int64_t rows) {
  return facts.isPaged() ? std::gcd(rows, facts.pageSize) : rows;
}

int64_t attn::getResultBytes(const ProblemFacts &facts, int64_t rows,
                             int64_t columns) {
  unsigned bits = facts.outType.getIntOrFloatBitWidth();
  // Rows that no span holds whole are padded, and buffers begin with a chunk.
  constexpr int64_t kChunkBytes = 16;
  llvm::Expected<SharedLayout> layout =
      SharedLayout::choose(rows, columns, bits);
  if (layout)
    return llvm::alignTo(layout->sizeBytes(), kChunkBytes);
  llvm::consumeError(layout.takeError());
  return rows * columns * bits / 8;
}

bool attn::fitQuerySlot(const ProblemFacts &facts, int64_t rows) {
  unsigned bits = facts.elementType.getIntOrFloatBitWidth(),
           outBits = facts.outType.getIntOrFloatBitWidth();
  return getResultBytes(facts, rows, facts.valueDim) <=
             rows * getKeyColumns(facts) * bits / 8 &&
         SharedLayout::chooseSpan(facts.valueDim, outBits) <=
             SharedLayout::chooseSpan(getKeyColumns(facts), bits);
}

std::optional<std::string> attn::findUnmappable(const TensorFacts &tensor) {
  int64_t bytes = tensor.elementType.getIntOrFloatBitWidth() / 8;
  for (auto [dim, stride] : llvm::enumerate(tensor.strides))
    if (dim != tensor.getContiguousDim() && !ShapedType::isDynamic(stride) &&
        stride * bytes % 16 != 0)
      return llvm::formatv(
          "a stride of {0} bytes in '{1}', expected a multiple of 16",
          stride * bytes, tensor.name);
  if (tensor.getRowAlignment() < 16)
    return llvm::formatv(
        "rows of '{0}' that start at multiples of {1} bytes, expected 16",
        tensor.name, tensor.getRowAlignment());
  return std::nullopt;
}

bool attn::canStoreByTma(const ProblemFacts &facts) {
  // Tiles of results are of whole bytes, and rows begin at multiples of 16,
  // whatever strides the launch has.
  int64_t bits = facts.outType.getIntOrFloatBitWidth();
  // Results with scales leave the registers that their scales are made from.
  return bits >= 8 && facts.valueDim * bits % 128 == 0 && !facts.varlen &&
         !areResultsPartial(facts) && !facts.hasResultScales() &&
         !findUnmappable(facts.o);
}

bool attn::hasFullBlocks(const ProblemFacts &facts, int64_t blockN) {
  return facts.mask.getKind() == MaskKind::None && !facts.varlen &&
         !facts.isServed() && !facts.hasKeyRange() && !facts.hasBlockLists() &&
         !ShapedType::isDynamic(facts.keys) && facts.keys % blockN == 0;
}

bool attn::gathersKeys(const ProblemFacts &facts) {
  return facts.hasAddedKeys() ||
         (facts.isPaged() && facts.pageSize % kLeastPage != 0);
}

/// Why rows of keys cannot be copied one by one; nothing if they can.
static std::optional<std::string> findUngatherable(const ProblemFacts &facts) {
  for (const TensorFacts *pool :
       {&facts.k, &facts.v, &facts.kRope, &facts.addedK, &facts.addedV}) {
    if (!*pool)
      continue;
    bool isAdded = pool == &facts.addedK || pool == &facts.addedV;
    const TensorFacts &keys = isAdded ? facts.addedK : facts.k;
    int64_t pageSize = pool->shape[2];
    int64_t pitch = getRowPitch(*pool), columns = pool->shape.back();
    if (pitch == 0)
      return llvm::formatv("pages of {0} keys of '{1}' at strides that the "
                           "launch decides",
                           pageSize, pool->name);
    if (pitch < columns)
      return llvm::formatv("pages of {0} keys of '{1}' whose strides are "
                           "multiples of {2} elements, expected one of at "
                           "least {3}",
                           pageSize, pool->name, pitch, columns);
    // Numbers of rows are of 32 bits.
    int64_t pages = pool->shape[0];
    if (!ShapedType::isDynamic(pages) &&
        pages >= kLengthLimit / getRowSteps(*pool).page)
      return llvm::formatv("pages of {0} keys of '{1}' with {2} rows or more",
                           pageSize, pool->name, kLengthLimit);
    if (getRowSteps(*pool) == getRowSteps(keys))
      continue;
    return llvm::formatv("pages of {0} keys of '{1}' in another order than "
                         "those of '{2}'",
                         pageSize, pool->name, keys.name);
  }
  return std::nullopt;
}

std::optional<std::string> attn::findUnmappable(const ProblemFacts &facts,
                                                bool gathers) {
  if (facts.hasAddedKeys() && !gathers)
    return "keys of two pools ('added')";
  // A swizzle starts anew every 8 rows, and copies of few rows take longer to
  // start than to arrive.
  if (gathersKeys(facts) && !gathers)
    return llvm::formatv("pages of {0} keys, expected a multiple of {1}; "
                         "others are copied by cp.async, as 'split_q' does",
                         facts.pageSize, kLeastPage);
  if (gathersKeys(facts))
    if (std::optional<std::string> reason = findUngatherable(facts))
      return reason;
  // A tensor map has no extent of 0.
  for (auto [name, length] :
       {std::pair("queries", facts.queries), std::pair("keys", facts.keys)})
    if (length == 0)
      return llvm::formatv("0 {0}", name);
  for (const TensorFacts *tensor : {&facts.q, &facts.k, &facts.v, &facts.kRope,
                                    &facts.addedK, &facts.addedV})
    if (*tensor)
      if (std::optional<std::string> reason = findUnmappable(*tensor))
        return reason;
  return std::nullopt;
}

llvm::Error attn::checkMappable(llvm::StringRef schedule,
                                const ProblemFacts &facts, bool gathers) {
  if (std::optional<std::string> reason = findUnmappable(facts, gathers))
    return makeUnsupported(schedule, *reason);
  return llvm::Error::success();
}
