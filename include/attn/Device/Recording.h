//===- Recording.h - Launches that can be repeated --------------*- C++ -*-===//

#ifndef ATTN_DEVICE_RECORDING_H
#define ATTN_DEVICE_RECORDING_H

#include "attn/Simulator/Simulator.h"

namespace mlir::attn::device {

/// Keeps what a launch changes, to write down with what memory it began.
class LaunchRecorder {
public:
  LaunchRecorder(sim::Memory &memory, llvm::StringRef chip)
      : memory(memory), undo(memory), chip(chip) {}

  /// Writes a folder that `attn-sim --recorded` runs
  /// (docs/RecordedLaunches.md): the PTX, the launch, and the memory that it
  /// has touched or has addresses of, as it was before. What the launch has
  /// left stays as it is.
  llvm::Error write(llvm::StringRef folder, llvm::StringRef ptx,
                    const sim::KernelInfo &kernel,
                    const sim::LaunchConfig &config,
                    const sim::RunReport &report);

private:
  sim::Memory &memory;
  sim::MemoryUndo undo;
  llvm::StringRef chip;
};

} // namespace mlir::attn::device

#endif // ATTN_DEVICE_RECORDING_H
