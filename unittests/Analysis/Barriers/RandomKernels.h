//===- RandomKernels.h - Random programs on shared memory -------*- C++ -*-===//
//
// Kernels for property tests: stores, loads and asynchronous copies on plain
// buffers and slots of rings, in nested loops and branches.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_UNITTESTS_ANALYSIS_BARRIERS_RANDOMKERNELS_H
#define ATTN_UNITTESTS_ANALYSIS_BARRIERS_RANDOMKERNELS_H

#include <random>
#include <string>

namespace mlir::attn {

/// What a random kernel may hold.
struct KernelOptions {
  /// Offsets on the allocs, so that buffers may overlap.
  bool offsets = true;
  bool copies = true;
  /// Slots about whose index nothing is known.
  bool unknownSlots = true;
  unsigned statements = 7;
  unsigned depth = 2;
};

/// Text of a module with one gpu.func @kernel(%t, %g, %x: i32, then one i32 for
/// each loop (its trip count) and one i1 for each branch).
std::string makeRandomKernel(std::mt19937 &random,
                             const KernelOptions &options);

} // namespace mlir::attn

#endif // ATTN_UNITTESTS_ANALYSIS_BARRIERS_RANDOMKERNELS_H
