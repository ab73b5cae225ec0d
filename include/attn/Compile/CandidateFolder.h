//===- CandidateFolder.h - Kernels to choose from by timing -----*- C++ -*-===//
//
// The cost model knows which plans are promising, only a GPU knows which one is
// fastest. The kernels of the most promising plans are written to a folder that
// `python -m attn.autotune` times, where neither the compiler nor a toolkit is
// needed. docs/Autotuning.md describes the folder.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_COMPILE_CANDIDATEFOLDER_H
#define ATTN_COMPILE_CANDIDATEFOLDER_H

#include "attn/Compile/Compiler.h"
#include "attn/Support/Progress.h"

namespace mlir::attn {

/// Compiles the only attention of `module`, which is not changed, by the
/// `count` plans that are expected to be fastest, by the best one of each
/// schedule, and by the one that attn-plan takes, and writes PTX, launch
/// records, bundles and index.json to `folder`. Bundles have a cubin where
/// ptxas is found, and else the PTX. `options.last` and `options.dumpDir` do
/// not count. `progress` hears of every kernel; where it stops the work, the
/// folder has no index.json. On failure diagnostics were emitted.
LogicalResult writeCandidates(ModuleOp module, const CompileOptions &options,
                              unsigned count, StringRef folder,
                              TimingScope &timing,
                              ProgressFn progress = nullptr);

/// What mlir::attn::listParameters says in a context of its own, with the
/// dialects that compile() knows.
llvm::Expected<std::string> listParameters(llvm::StringRef schedule);

} // namespace mlir::attn

#endif // ATTN_COMPILE_CANDIDATEFOLDER_H
