//===- Commands.h - Programs as functions -----------------------*- C++ -*-===//

#ifndef ATTN_TOOLS_TOOL_COMMANDS_H
#define ATTN_TOOLS_TOOL_COMMANDS_H

namespace mlir::attn {

/// Runs attn-compile and returns its exit status. May end the process, as after
/// --help.
int runAttnCompile(int argc, char **argv);

/// Runs attn-sim and returns its exit status. May end the process.
int runAttnSim(int argc, char **argv);

} // namespace mlir::attn

#endif // ATTN_TOOLS_TOOL_COMMANDS_H
