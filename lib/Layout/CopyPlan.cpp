//===- CopyPlan.cpp - cp.async of a tile by many threads ------------------===//
//
// Rows of 2^n chunks, or of an odd multiple of it, are covered by 2^n threads
// side by side (at most 128 bytes: one global cache line and one wavefront of
// shared memory): row and chunk are then bits of the thread number. Rows of an
// odd number of chunks are covered whole, with the row found by a division;
// such buffers have no swizzle, so that their addresses are sums.
//
//===----------------------------------------------------------------------===//

#include "attn/Layout/CopyPlan.h"
#include "AddressAlgebra.h"
#include "Errors.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir::attn;
using llvm::ArrayRef;
using llvm::Expected;
using llvm::SmallVector;

int64_t CopyPlan::sharedOffset(unsigned thread, const CopyStep &step) const {
  if (divided)
    return threadRow(thread) * rowBytes + int64_t(thread % width) * chunkBytes +
           step.addConst;
  int64_t xorPart = step.xorConst, addPart = step.addConst;
  for (unsigned bit = 0; bit < threadXor.size(); ++bit)
    if ((thread >> bit) & 1) {
      xorPart ^= threadXor[bit];
      addPart += threadAdd[bit];
    }
  return xorPart + addPart;
}

SmallVector<int64_t> CopyPlan::xorConstants() const {
  return distinctConstants(steps,
                           [](const CopyStep &step) { return step.xorConst; });
}

/// True when offsets along each dimension are sums: coordinate * stride.
static bool isStrided(const SharedLayout &buffer) {
  for (auto [dim, axis] : llvm::enumerate(buffer.unit().axes())) {
    ArrayRef<uint64_t> bases = buffer.unit().flatBases(axis.name);
    for (unsigned bit = 0; bit + 1 < bases.size(); ++bit)
      if (bases[bit + 1] != 2 * bases[bit])
        return false;
    const SharedRepetition &rep = buffer.repetitions()[dim];
    if (!bases.empty() && rep.count > 1 &&
        rep.stride != int64_t(bases.front()) * axis.size())
      return false;
    for (uint64_t basis : bases)
      if (!llvm::isPowerOf2_64(basis))
        return false;
  }
  return true;
}

Expected<CopyPlan> mlir::attn::planCopy(const SharedLayout &buffer,
                                        unsigned threads, unsigned chunkBytes) {
  if (chunkBytes != 4 && chunkBytes != 8 && chunkBytes != 16)
    return makeError("expected chunks of 4, 8 or 16 bytes, got {0}",
                     chunkBytes);
  if (threads == 0 || threads > 1024)
    return makeError("expected 1 to 1024 threads, got {0}", threads);
  unsigned elementBytes = buffer.elementBytes();
  int64_t chunkElements = chunkBytes / elementBytes;
  // A chunk of one element has no neighbour.
  if (buffer.rank() != 2 ||
      (chunkElements != 1 && buffer.contiguousDim() != 1u))
    return makeError("expected a buffer of two dimensions, contiguous along "
                     "dim1");
  int64_t rows = buffer.shape()[0], cols = buffer.shape()[1];
  if (chunkElements < 1 || buffer.contiguousElements() < chunkElements ||
      cols % chunkElements || buffer.viewOffsets()[1] % chunkElements)
    return makeError("expected rows of whole chunks of {0} bytes, got {1} "
                     "elements in runs of {2}",
                     chunkBytes, cols, buffer.contiguousElements());
  CopyPlan plan;
  plan.chunkBytes = chunkBytes;
  plan.chunkElements = chunkElements;
  int64_t chunks = cols / chunkElements;
  int64_t power = chunks & -chunks;
  plan.divided =
      power == 1 && chunks > 1 && chunks <= threads && isStrided(buffer);
  if (plan.divided) {
    plan.width = chunks;
    plan.rowStep = threads / chunks;
    plan.rowBytes = buffer.offset({rows > 1, 0}) - buffer.offset({0, 0});
  } else {
    int64_t usable = llvm::bit_floor(threads);
    plan.width = std::min<int64_t>({power, 128 / chunkBytes, usable});
    plan.rowStep = usable / plan.width;
  }
  plan.activeThreads = plan.rowStep * plan.width;

  SmallVector<Coords> constants;
  for (int64_t row = 0; row < rows; row += plan.rowStep)
    for (int64_t col = 0; col < cols; col += plan.width * chunkElements) {
      CopyStep step;
      step.row = row;
      step.col = col;
      if (row + plan.rowStep > rows)
        step.rowLimit = rows - row;
      constants.push_back({row, col});
      plan.steps.push_back(step);
    }
  if (plan.divided) {
    for (CopyStep &step : plan.steps)
      step.addConst = buffer.offset({step.row, step.col});
    return plan;
  }
  ThreadBases thread;
  for (int64_t bit = 1; bit < plan.activeThreads; bit *= 2)
    thread.lanes.push_back(bit < plan.width ? Coords{0, bit * chunkElements}
                                            : Coords{bit / plan.width, 0});
  Expected<ElementAddresses> addresses =
      computeAddresses(thread, constants, buffer, buffer.viewOffsets());
  if (!addresses)
    return addresses.takeError();
  plan.threadXor.assign(addresses->form.laneXor.begin(),
                        addresses->form.laneXor.end());
  plan.threadAdd.assign(addresses->form.laneAdd.begin(),
                        addresses->form.laneAdd.end());
  for (auto [step, address] :
       llvm::zip_equal(plan.steps, addresses->registers)) {
    step.xorConst = address.xorConst;
    step.addConst = address.addConst;
  }
  return plan;
}
