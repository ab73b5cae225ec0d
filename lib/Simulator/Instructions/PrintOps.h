//===- PrintOps.h - Calls of the driver's functions -------------*- C++ -*-===//

#ifndef ATTN_LIB_SIMULATOR_INSTRUCTIONS_PRINTOPS_H
#define ATTN_LIB_SIMULATOR_INSTRUCTIONS_PRINTOPS_H

#include "../PTX/ProgramImpl.h"

namespace mlir::attn::sim {

struct Exec;

/// The functions of the driver that PTX may call, though no module defines
/// them.
inline constexpr llvm::StringLiteral kPrintFunction = "vprintf";
inline constexpr llvm::StringLiteral kAssertFunction = "__assertfail";

/// Prints for each lane. In local memory lie the address of the format (imm),
/// that of its arguments (imm2), and what becomes the number of arguments
/// (flags).
void execPrint(Exec &x, const Inst &I);

/// Ends the launch. In local memory lie the addresses of the message and of the
/// file's name (halves of imm), the line, and the address of the function's
/// name (halves of imm2).
void execAssert(Exec &x, const Inst &I);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_INSTRUCTIONS_PRINTOPS_H
