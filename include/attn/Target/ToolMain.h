//===- ToolMain.h - Version and output of programs --------------*- C++ -*-===//
//
// The version that the programs and libraries report, and output that is known
// to have arrived: LLVM's streams end the process where a disk is full.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TARGET_TOOLMAIN_H
#define ATTN_TARGET_TOOLMAIN_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace mlir::attn {

/// Returns this project's version and LLVM's, such as "0.1.0 (LLVM 22.1.8)".
/// Ends with a zero byte.
llvm::StringRef getVersionText();

/// Writes a whole file, or to standard output for "-". The error is
/// `cannot write 'PATH': REASON`.
llvm::Error writeOutput(llvm::StringRef path, llvm::StringRef contents);

/// Brings out what was printed to standard output, which a program does last.
/// The error is that of writeOutput.
llvm::Error flushOutput();

} // namespace mlir::attn

#endif // ATTN_TARGET_TOOLMAIN_H
