//===- PrintOps.h - Calls of vprintf ----------------------------*- C++ -*-===//

#ifndef ATTN_LIB_SIMULATOR_INSTRUCTIONS_PRINTOPS_H
#define ATTN_LIB_SIMULATOR_INSTRUCTIONS_PRINTOPS_H

#include "../PTX/ProgramImpl.h"

namespace mlir::attn::sim {

struct Exec;

/// The function of the driver that PTX may call, though no module defines it.
inline constexpr llvm::StringLiteral kPrintFunction = "vprintf";

/// Prints for each lane. In local memory lie the address of the format (imm),
/// that of its arguments (imm2), and what becomes the number of arguments
/// (flags).
void execPrint(Exec &x, const Inst &I);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_INSTRUCTIONS_PRINTOPS_H
