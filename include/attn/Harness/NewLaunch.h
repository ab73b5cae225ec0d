//===- NewLaunch.h - A draft of a launch record -----------------*- C++ -*-===//

#ifndef ATTN_HARNESS_NEWLAUNCH_H
#define ATTN_HARNESS_NEWLAUNCH_H

#include "attn/Simulator/PTX/Program.h"
#include "llvm/Support/Error.h"
#include <string>

namespace mlir::attn::sim {

/// Drafts a launch record of a kernel, for people to fill in: what the PTX says
/// as it is, guesses where it gives hints (which parameters are pointers, to
/// what), and texts that begin with "?" where it says nothing, which no reader
/// of records takes. `kernel` may be empty where the module has one. Errors: no
/// such kernel, a parameter that no record can give.
llvm::Expected<std::string> draftLaunch(const Program &program,
                                        llvm::StringRef kernel);

} // namespace mlir::attn::sim

#endif // ATTN_HARNESS_NEWLAUNCH_H
