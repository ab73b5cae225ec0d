//===- KernelRunner.h - Kernels from the barrier rung, executed -*- C++ -*-===//

#ifndef ATTN_UNITTESTS_DIALECT_ATTN_TRANSFORMS_KERNELRUNNER_H
#define ATTN_UNITTESTS_DIALECT_ATTN_TRANSFORMS_KERNELRUNNER_H

#include "attn/Launch/DType.h"
#include "attn/Simulator/Simulator.h"
#include "gtest/gtest.h"

namespace mlir::attn::testing {

/// The product C (kM x kN) = A B that tests of partitions compute, over blocks
/// of kBlock of the contraction.
constexpr int64_t kM = 128, kN = 64, kBlock = 64;

/// A row-major tensor in global memory.
struct HostTensor {
  DType dtype;
  llvm::SmallVector<int64_t, 5> shape;
  std::vector<uint8_t> bytes;

  /// Elements drawn from a normal distribution and rounded to the type.
  static HostTensor random(DType dtype, llvm::ArrayRef<int64_t> shape);
  /// Elements that the kernel has to write.
  static HostTensor output(DType dtype, llvm::ArrayRef<int64_t> shape);
  int64_t size() const { return bytes.size() / getByteWidth(dtype); }
  double at(int64_t index) const {
    return decodeElement(dtype, bytes.data() + index * getByteWidth(dtype));
  }
  bool isOutput = false;
};

/// Compiles one kernel, for sm_90a unless its module names a target, and runs
/// it on the simulator.
class KernelRunner {
public:
  /// `text` holds a gpu.module with a kernel that has what
  /// attn-select-epilogue leaves, or anything up to the barrier rung. Failures
  /// are reported as test failures, here and below, and make the runner false.
  /// With `isaOnly` the kernel is to be right by the PTX manual alone.
  explicit KernelRunner(const std::string &text, bool isaOnly = false);
  explicit operator bool() const { return program != nullptr; }

  /// Forgets the parameters.
  void clear() { parameters.clear(); }
  /// Parameters in order: a pointer, a number, a tensor map whose box has the
  /// tensor's order of dimensions.
  void pass(HostTensor &tensor);
  void pass(int32_t value);
  void passMap(HostTensor &tensor, llvm::ArrayRef<int64_t> box,
               unsigned swizzle);
  /// Runs the kernel in several schedules and timings of asynchronous
  /// operations, expects no finding and the same outputs each time, and leaves
  /// those in the tensors. Elements that were not written fail unless
  /// `partial`.
  void run(unsigned threads, unsigned sharedBytes = 0, bool partial = false);

  std::string ptx;
  /// What is assumed beside the PTX manual with `isaOnly` (LaunchConfig).
  uint16_t assumptions = 0;
  /// CTAs of the grid and of a cluster, along x.
  unsigned grid = 1;
  unsigned cluster = 1;
  /// Bytes of shared memory that attn-allocate-shared found necessary; `run`
  /// takes at least these.
  unsigned neededBytes = 0;

private:
  struct Parameter {
    HostTensor *tensor = nullptr;
    int32_t value = 0;
    llvm::SmallVector<int64_t, 5> box;
    unsigned swizzle = 0;
  };
  bool runOnce(sim::LaunchConfig config, bool partial, bool first);

  bool isaOnly;
  std::string chip = "sm_90a";
  std::unique_ptr<sim::Program> program;
  std::vector<Parameter> parameters;
};

} // namespace mlir::attn::testing

#endif // ATTN_UNITTESTS_DIALECT_ATTN_TRANSFORMS_KERNELRUNNER_H
