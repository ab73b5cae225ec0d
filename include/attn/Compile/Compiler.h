//===- Compiler.h - From a problem to any rung ------------------*- C++ -*-===//
//
// Runs the passes from an attention problem down to the rung that the caller
// asks for, and hands out that rung's text, the PTX and the launch record.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_COMPILE_COMPILER_H
#define ATTN_COMPILE_COMPILER_H

#include "attn/Dialect/Attn/IR/Rung.h"
#include "attn/Launch/LaunchRecord.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Support/Timing.h"
#include <optional>
#include <string>
#include <vector>

namespace mlir::attn {

/// What to compile for, and how far.
struct CompileOptions {
  /// A name from the target table; empty: that of the kernels in the input, and
  /// sm_80 for a problem.
  std::string chip;
  /// A name from the table of boards, or native; empty: the chip's default one.
  std::string board;
  /// Empty: attn-plan chooses.
  std::string schedule;
  /// Parameters of the plan, each as name=value.
  std::vector<std::string> set;
  /// A file of measured plans (docs/Autotuning.md); empty for none.
  std::string planTable;
  /// Whether the compiler's own measured plans are taken.
  bool shippedPlans = true;
  /// Finds masks and block bounds in mask_mod.
  bool readMasks = true;
  /// Whether keys are cut into runs where it pays.
  bool splitKeys = true;
  /// Asks ptxas about the plan that is chosen, and takes another one where its
  /// kernel spills in a loop over blocks of keys.
  bool assembleCheck = false;
  /// Element type of the results of runs that the launch merges: f32, f16,
  /// bf16, or auto.
  std::string partials = "auto";
  /// How results leave the kernel: the plan's parameter, and where the results
  /// of tile IR say auto.
  std::string epilogue = "auto";
  Rung last = Rung::PTX;
  /// Prints the ten best candidates of attn-plan with their estimates, or all
  /// of them.
  bool printPlan = false, printAllPlans = false;
  /// Whether kernels at the barrier rung are checked (docs/BarrierCheck.md),
  /// and whether anything but a proof is an error.
  bool checkBarriers = true, requireProof = false;
  /// A file to write what is wrong there to; empty for none.
  std::string witness;
  /// A file for what each warp of a proved kernel does; empty for none.
  std::string skeleton;
  /// Options of attn-instrument (docs/Instrument.md); without, a kernel has no
  /// checks inside.
  std::optional<std::string> instrument;
  /// Seconds that each candidate's PTX may take to be held against what is
  /// proved; without it is not. compile() itself does not run kernels.
  std::optional<double> checkPTX;
  /// Print `.loc` lines into the PTX.
  bool debugLines = false;
  /// A folder that gets one numbered file for each rung; empty for none.
  std::string dumpDir;
  /// Verifies the IR after each pass, not only in front of the first one and
  /// behind the last one.
  bool verifyEach = false;

  /// The chip to plan for.
  std::string getChip() const { return chip.empty() ? "sm_80" : chip; }
};

/// Milliseconds that one stage took.
struct StageTime {
  std::string name;
  double milliseconds = 0;
};

/// What a compilation gave.
struct CompileResult {
  /// The text of the last rung; bytes of a cubin.
  std::string output;
  /// The PTX, when the last rung is PTX or below.
  std::string ptx;
  /// The plan of each problem, as it prints.
  std::vector<std::string> plans;
  /// The launch record of each gpu.module whose kernels have some, from the
  /// NVVM rung on.
  std::vector<LaunchRecord> launches;
  std::vector<StageTime> times;
};

/// Registers the dialects that compile() works with, and no others.
void registerCompileDialects(DialectRegistry &registry);

/// Compiles the attentions or kernels in `module`, which is changed, from the
/// rung on that they are at. Stages are timed under `timing`. On failure
/// diagnostics were emitted; options that come too late for the rung are
/// errors.
LogicalResult compile(ModuleOp module, const CompileOptions &options,
                      TimingScope &timing, CompileResult &result);

/// The launch that a kernel carries in `attn.launch`, as a record of one step.
/// An error for a kernel without, and what its record's reader refuses.
llvm::Expected<LaunchRecord> readLaunchRecord(Operation *kernel);

/// The launch record whose steps are the kernels of a gpu.module with
/// `attn.launch`, in their order. The errors are those of readLaunchRecord and
/// joinLaunches.
llvm::Expected<LaunchRecord> readLaunchSequence(Operation *module);

} // namespace mlir::attn

#endif // ATTN_COMPILE_COMPILER_H
