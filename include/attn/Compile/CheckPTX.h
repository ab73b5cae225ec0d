//===- CheckPTX.h - Is the PTX what was proved? -----------------*- C++ -*-===//
//
// attn-check-barriers proves a kernel at the barrier rung. One run of its PTX
// on the simulator shows that each thread does there what the proof has it do
// (docs/BarrierCheck.md, "Down to PTX").
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_COMPILE_CHECKPTX_H
#define ATTN_COMPILE_CHECKPTX_H

#include "attn/Harness/HarnessOptions.h"
#include "attn/Launch/LaunchRecord.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FileUtilities.h"
#include <memory>
#include <string>

namespace mlir::attn {

/// Where a compilation writes what it proves, and the comparison with it.
class PTXCheck {
public:
  /// Takes the file that the user wants to keep; a temporary one without.
  static llvm::Expected<PTXCheck> create(llvm::StringRef path);

  /// For CompileOptions::skeleton.
  const std::string &getPath() const { return path; }

  /// Runs the PTX and compares; what is said of a kernel that does what is
  /// proved. `options` has inputs, sizes and a seed. Errors: a launch of
  /// several kernels, a thread that does something else, with both lines, a
  /// run with findings, and one that takes more than `seconds`, by an estimate
  /// before it starts.
  llvm::Expected<std::string> run(const std::string &ptx,
                                  const LaunchRecord &launch,
                                  sim::HarnessOptions options,
                                  double seconds) const;

private:
  std::string path;
  std::unique_ptr<llvm::FileRemover> remover;
};

} // namespace mlir::attn

#endif // ATTN_COMPILE_CHECKPTX_H
