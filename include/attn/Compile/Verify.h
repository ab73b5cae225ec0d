//===- Verify.h - Run a compiled kernel against the reference ---*- C++ -*-===//
//
// Executes the PTX of an attention on the simulator and compares its results
// with the float64 reference.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_COMPILE_VERIFY_H
#define ATTN_COMPILE_VERIFY_H

#include "attn/Compile/Compiler.h"
#include "attn/Compile/Problem.h"
#include "attn/Harness/Harness.h"
#include "mlir/IR/BuiltinOps.h"
#include <memory>

namespace mlir::attn {

/// score_mod and mask_mod of an attention as a function on float64. The regions
/// are copied, so that it outlives the op that compile() consumes.
class Modifications {
public:
  /// Takes the regions of the only attention in `module`, which may have none.
  /// Errors: several attentions, an operation that RegionEvaluator does not
  /// know, a captured value that is neither a scalar nor a memref of static
  /// shape.
  static llvm::Expected<Modifications> get(ModuleOp module);
  Modifications(Modifications &&);
  ~Modifications();

  /// Makes the harness compute with these modifications, and gives what they
  /// read random values, the same for kernel and reference, unless `options`
  /// has some. The i-th captured memref (score_mod, mask_mod, out_mod, in order
  /// of first use) is the record's tensor `captureI`, the i-th captured scalar
  /// its `scalarI`. This object has to outlive the run.
  void apply(sim::HarnessOptions &options);

private:
  struct Regions;
  explicit Modifications(std::unique_ptr<Regions> regions);
  std::unique_ptr<Regions> regions;
};

/// Gives the harness the sizes, strides and lengths that a problem from flags
/// has and its record leaves open, unless `options` has some: other numbers of
/// batches, queries or keys there count for all tensors that have them.
void applyProblem(const Problem &problem, sim::HarnessOptions &options);

/// Parses the PTX and runs `launch` on it. The error is for a launch that
/// cannot start; what the kernel does wrong is in the report.
llvm::Expected<sim::HarnessReport>
verifyKernel(const std::string &ptx, const LaunchRecord &launch,
             const sim::HarnessOptions &options);

} // namespace mlir::attn

#endif // ATTN_COMPILE_VERIFY_H
