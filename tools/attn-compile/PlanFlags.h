//===- PlanFlags.h - Flags of the choice of plans ---------------*- C++ -*-===//

#ifndef ATTN_TOOLS_ATTN_COMPILE_PLANFLAGS_H
#define ATTN_TOOLS_ATTN_COMPILE_PLANFLAGS_H

#include "attn/Compile/Compiler.h"
#include "llvm/Support/CommandLine.h"

namespace mlir::attn {

/// Returns the category of the flags that say what to compile.
llvm::cl::OptionCategory &getCompileCategory();

/// Reads --assemble-check, and lets factors have the values of the file of
/// --calibration, which is for scripts/fit-calibration.py, and hidden.
llvm::Error readPlanFlags(CompileOptions &options);

} // namespace mlir::attn

#endif // ATTN_TOOLS_ATTN_COMPILE_PLANFLAGS_H
