//===- SampledRun.h - A few CTAs of a launch --------------------*- C++ -*-===//
//
// A large launch is judged by CTAs that are drawn at random: what they write is
// compared, and nothing is said of the others.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_LIB_HARNESS_SAMPLEDRUN_H
#define ATTN_LIB_HARNESS_SAMPLEDRUN_H

#include "attn/Harness/HarnessTensor.h"
#include "attn/Launch/LaunchBinding.h"
#include "attn/Simulator/Simulator.h"

namespace mlir::attn::sim {

/// Returns why all of a launch has to run: its CTAs need each other, or what
/// they write does not say which rows they have done. Nothing otherwise.
std::optional<std::string> findReasonToRunAll(const LaunchRecord &record,
                                              const Program &program);

/// Gives a launch whose CTAs deal the tiles among them, as many as the chip has
/// multiprocessors, at least one for each tile.
void spreadTiles(const LaunchRecord &record,
                 llvm::ArrayRef<HarnessTensor> tensors,
                 ResolvedLaunch &resolved);

/// Runs clusters that `config.seed` draws, until those that have stored
/// something hold `ctas` CTAs, or all have run.
llvm::Expected<RunReport> runSample(const Program &program, Memory &memory,
                                    LaunchConfig config, unsigned ctas);

/// Adds what another run has done to `sum`.
void addRun(RunReport &sum, const RunReport &run);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_HARNESS_SAMPLEDRUN_H
