//===- RunOptions.h - The flags that run a kernel ---------------*- C++ -*-===//

#ifndef ATTN_TOOLS_ATTN_COMPILE_RUNOPTIONS_H
#define ATTN_TOOLS_ATTN_COMPILE_RUNOPTIONS_H

#include "Tool/VerifyFlag.h"
#include "llvm/Support/CommandLine.h"

namespace mlir::attn {

/// Whether and how the kernel runs on the simulator.
class RunOptions {
public:
  explicit RunOptions(llvm::cl::OptionCategory &category);

  /// An error where a flag lacks the one that it belongs to, or is for a run of
  /// one kernel and there are many.
  llvm::Error check(bool isOfMany) const;
  /// What was given. Errors: a file that cannot be read, a size that is none.
  llvm::Expected<sim::HarnessOptions> get() const;

  VerifyFlag verify;
  /// Seconds that the comparison with the proof may take; none without.
  std::optional<double> getCheckPTX() const;

private:
  llvm::cl::opt<double> checkPTX;
  llvm::cl::opt<uint64_t> seed;
  llvm::cl::opt<bool> corners;
  llvm::cl::opt<llvm::cl::boolOrDefault> loseBets;
  llvm::cl::list<std::string> inputs, sizes;
};

} // namespace mlir::attn

#endif // ATTN_TOOLS_ATTN_COMPILE_RUNOPTIONS_H
