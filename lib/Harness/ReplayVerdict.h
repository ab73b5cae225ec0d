//===- ReplayVerdict.h - Does the simulator see the same? -------*- C++ -*-===//

#ifndef ATTN_LIB_HARNESS_REPLAYVERDICT_H
#define ATTN_LIB_HARNESS_REPLAYVERDICT_H

#include "attn/Harness/HarnessOptions.h"
#include "attn/Harness/HarnessReport.h"

namespace mlir::attn::sim {

/// Takes what a witness says into the options. Errors: a witness of another
/// kernel, or one without an order of warps.
llvm::Error takeWitness(const LaunchRecord &record, HarnessOptions &options);

/// Holds what was found against the witness.
ReplayVerdict judgeReplay(const SyncWitness &witness, const RunReport &run);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_HARNESS_REPLAYVERDICT_H
