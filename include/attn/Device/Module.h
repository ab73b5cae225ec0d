//===- Module.h - Loaded modules and their functions ------------*- C++ -*-===//

#ifndef ATTN_DEVICE_MODULE_H
#define ATTN_DEVICE_MODULE_H

#include "attn/Device/Status.h"
#include "attn/Simulator/Simulator.h"
#include <utility>

namespace mlir::attn {
struct TargetRow;
}

namespace mlir::attn::device {

/// Takes the PTX out of what a program loads: the text itself, or a fatbin that
/// holds PTX, compressed or not. Machine code without PTX is an error that says
/// how to get PTX. `size` is what can be read of it; without one the text ends
/// with a zero, and a fatbin says how long it is.
llvm::Expected<std::string> extractPTX(const void *image,
                                       std::optional<uint64_t> size = {});

/// Returns true if a program loads a fatbin, not a text.
bool isFatbin(const void *image);

/// Finds the PTX of a fatbin that holds machine code alone among what its
/// compiler has kept in a folder: the newest file there that ends in .ptx and
/// has all of the fatbin's kernels.
llvm::Expected<std::string> findKeptPTX(const void *fatbin,
                                        llvm::StringRef folder);

/// The newest version of PTX whose instructions are known. Modules of later
/// ones load as far as they have no others.
inline constexpr std::pair<unsigned, unsigned> kNewestPTX = {9, 4};

/// Returns the failure of a module whose text gave `error` when it was read: of
/// PTX that is newer than `kNewestPTX` that is not the text's fault.
llvm::Error explainUnread(llvm::StringRef ptx, llvm::Error error);

/// Checks that code for `ptxTarget`, such as "sm_90a", runs on the chip.
llvm::Error checkTarget(llvm::StringRef ptxTarget, const TargetRow &chip);

/// A module and its variables, which live as long as it does.
struct Module {
  std::string ptx;
  std::unique_ptr<sim::Program> program;
  sim::ModuleVariables variables;
};

/// A kernel of a loaded module, with what a program has set of it.
struct Function {
  Module *module = nullptr;
  const sim::KernelInfo *kernel = nullptr;
  /// Most dynamic shared memory of a launch, in bytes.
  uint32_t maxDynamicShared = 0;
  /// Clusters above the portable size are allowed.
  bool allowsLargeClusters = false;
};

} // namespace mlir::attn::device

#endif // ATTN_DEVICE_MODULE_H
