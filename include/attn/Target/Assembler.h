//===- Assembler.h - Runs ptxas and reads what it says ----------*- C++ -*-===//
//
// ptxas reports what ruins a kernel (serialised wgmma, ignored setmaxnreg,
// spills) in its log and exits with 0. So the log is always read.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TARGET_ASSEMBLER_H
#define ATTN_TARGET_ASSEMBLER_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace mlir::attn {

/// How ptxas is called.
struct AssemblerOptions {
  /// What `-arch` gets, for example "sm_90a". May be newer than the PTX's
  /// target where that is no a- or f-target.
  std::string chip;
  /// Path of ptxas; searched when empty.
  std::string ptxas;
  /// Further arguments.
  std::vector<std::string> arguments;
};

/// Resources of one kernel or function, from `ptxas -v`.
struct FunctionResources {
  std::string name;
  unsigned registers = 0;
  unsigned barriers = 0;
  unsigned stackBytes = 0;
  unsigned spillStoreBytes = 0;
  unsigned spillLoadBytes = 0;
  /// Static shared memory.
  unsigned sharedBytes = 0;
};

/// One message of ptxas.
struct AssemblerMessage {
  enum class Severity {
    /// Of interest, costs nothing.
    Info,
    /// The kernel is right and slower than it was written to be: spills, or one
    /// of ptxas's C75xx messages.
    Performance,
    Warning,
    Error
  };
  Severity severity = Severity::Info;
  /// ptxas's number of the message, such as "C7510"; empty without one.
  std::string code;
  std::string text;
  /// Function that was being compiled; empty outside of functions.
  std::string function;
  /// Line of the PTX text, 0 without one.
  unsigned line = 0;
};

/// What ptxas said.
struct AssemblerLog {
  std::vector<FunctionResources> functions;
  std::vector<AssemblerMessage> messages;

  bool hasErrors() const;
};

/// A cubin and what ptxas said. The cubin is empty if it reported an error.
struct AssemblerResult {
  std::string cubin;
  AssemblerLog log;
};

/// Reads the output of `ptxas -v --warn-on-spills`.
AssemblerLog parseAssemblerLog(llvm::StringRef text);

/// ptxas in $CUDA_HOME/bin, in /usr/local/cuda/bin, on the PATH or in what
/// addCudaProgramFolder() was given, in this order, or an error that names
/// these places.
llvm::Expected<std::string> findPtxas();

/// The build of that ptxas, as it states it itself. Errors: there is none, it
/// cannot be run, or it states nothing.
llvm::Expected<std::string> getPtxasVersion();

/// Assembles PTX text. Errors that ptxas reports about the text are in the log;
/// an error value means that ptxas could not be run.
llvm::Expected<AssemblerResult> assemblePTX(llvm::StringRef ptx,
                                            const AssemblerOptions &options);

} // namespace mlir::attn

#endif // ATTN_TARGET_ASSEMBLER_H
