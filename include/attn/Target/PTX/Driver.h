//===- Driver.h - From a gpu.module to PTX ----------------------*- C++ -*-===//
//
// What stands between the NVVM dialect and PTX text. The stock serialization
// (gpu-module-to-binary with #nvvm.target) duplicates inline assembly, computes
// alignments without the target's data layout and ends the process on what it
// cannot select; docs/Rationale/Driver.md has the list and what is done here
// about each entry.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TARGET_PTX_DRIVER_H
#define ATTN_TARGET_PTX_DRIVER_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include <string>

namespace mlir::attn {

/// The LLVM passes that run before instruction selection unless told
/// otherwise, in the textual form of LLVM's pass builder. Nothing in it
/// unrolls, vectorizes or moves code out of loops.
llvm::StringRef getDefaultLLVMPipeline();

/// How a gpu.module becomes PTX.
struct PTXOptions {
  /// A chip of the target table, such as "sm_90a".
  std::string chip;
  /// PTX ISA version times ten; 0 takes the chip's default.
  unsigned ptx = 0;
  /// LLVM passes before instruction selection, in LLVM's textual form.
  std::string pipeline = getDefaultLLVMPipeline().str();
  /// Optimization level of instruction selection and what follows it, 0 to 3.
  unsigned codegenLevel = 1;
  /// Print `.loc` lines that map PTX to the locations of the operations.
  /// `.target` never says `debug`: ptxas would compile without optimization.
  bool debugLines = false;
  /// Refuse what the chip or the PTX version cannot do (checkForms) and what
  /// LLVM is known to translate wrongly (checkPitfalls). Only tests of the
  /// last line of defence switch it off.
  bool check = true;
  /// Gets the text of the LLVM IR after its passes, unless null.
  std::string *llvmText = nullptr;
};

/// Translates `module`, which holds only the llvm and nvvm dialects, to PTX
/// text. The module is not changed. On failure a diagnostic was emitted; LLVM's
/// fatal errors become diagnostics too. May run on several threads at once.
/// The context's registry must hold what registerPTXTranslations adds.
FailureOr<std::string> translateToPTX(gpu::GPUModuleOp module,
                                      const PTXOptions &options);

/// Adds to `registry` the dialects and translation interfaces that
/// translateToPTX uses.
void registerPTXTranslations(DialectRegistry &registry);

} // namespace mlir::attn

#endif // ATTN_TARGET_PTX_DRIVER_H
