//===- Simulator.h - Execute PTX on the CPU ---------------------*- C++ -*-===//
//
// The public interface of the PTX simulator: parse a module, put tensors into
// simulated global memory, launch a kernel, read the report.
//
//   auto program = parsePTX(text, "kernel.ptx");
//   Memory memory;
//   uint64_t q = memory.allocate(bytes, "q");
//   cantFail(memory.write(q, data));
//   LaunchConfig launch;
//   launch.kernel = "attn_fwd"; launch.grid = {4, 1, 1}; ...
//   Expected<RunReport> report = run(**program, memory, launch);
//
// Nothing here needs MLIR. docs/Simulator.md describes the execution model.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_SIMULATOR_SIMULATOR_H
#define ATTN_SIMULATOR_SIMULATOR_H

#include "attn/Simulator/Machine/GlobalMemory.h"
#include "attn/Simulator/Machine/LaunchConfig.h"
#include "attn/Simulator/Machine/ModuleVariables.h"
#include "attn/Simulator/Machine/Report.h"
#include "attn/Simulator/PTX/Program.h"
#include <memory>

namespace mlir::attn::sim {

/// Parses and decodes a PTX module. An unknown directive, instruction,
/// qualifier, operand form or unresolved call is an error that carries the
/// line and the text: the simulator never guesses.
llvm::Expected<std::unique_ptr<Program>> parsePTX(llvm::StringRef text,
                                                  llvm::StringRef name);

/// Runs one launch to its end. The error is for a launch that cannot start
/// (unknown kernel, wrong parameter size, block too large, ...), or that
/// `progress` has stopped (StoppedError); what the kernel does wrong comes back
/// as findings in the report.
llvm::Expected<RunReport> run(const Program &program, Memory &memory,
                              const LaunchConfig &config);

} // namespace mlir::attn::sim

#endif // ATTN_SIMULATOR_SIMULATOR_H
