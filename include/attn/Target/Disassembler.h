//===- Disassembler.h - Runs nvdisasm ---------------------------*- C++ -*-===//

#ifndef ATTN_TARGET_DISASSEMBLER_H
#define ATTN_TARGET_DISASSEMBLER_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace mlir::attn {

/// nvdisasm in $CUDA_HOME/bin, in /usr/local/cuda/bin or on the PATH, in this
/// order, or an error that names these places.
llvm::Expected<std::string> findNvdisasm();

/// The names of the kernels in a cubin; functions that kernels call are none.
/// Needs no nvdisasm. Errors: no ELF file for CUDA, or a damaged one.
llvm::Expected<std::vector<std::string>> getCubinKernels(llvm::StringRef cubin);

/// The listing that `nvdisasm -c -g -hex` prints for a cubin; `-g` adds a
/// comment for each source line of a cubin that was assembled with `-lineinfo`,
/// `-hex` the words of the instructions.
/// `nvdisasm` is searched when empty. Errors: it is missing, or refuses.
llvm::Expected<std::string> disassemble(llvm::StringRef cubin,
                                        llvm::StringRef nvdisasm = "");

} // namespace mlir::attn

#endif // ATTN_TARGET_DISASSEMBLER_H
