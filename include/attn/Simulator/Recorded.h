//===- Recorded.h - launches recorded elsewhere -----------------*- C++ -*-===//
//
// Runs kernels of other compilers from a recording: a folder with kernel.ptx,
// launch.json (geometry and parameter bytes as a driver got them) and data.npz
// (operands and the expected results), as docs/RecordedLaunches.md describes.
// Kernels that run on hardware validate the simulator this way.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_SIMULATOR_RECORDED_H
#define ATTN_SIMULATOR_RECORDED_H

#include "attn/Simulator/Harness.h"

namespace mlir::attn::sim {

/// The address of a tensor inside a parameter.
struct RecordedPointer {
  uint32_t at = 0;
  unsigned tensor = 0;
  /// Bytes behind the tensor's first element.
  uint64_t offset = 0;
};

/// One kernel parameter.
struct RecordedParameter {
  std::vector<uint8_t> bytes;
  std::vector<RecordedPointer> pointers;
  /// For a tensor map: its fields. `slot` and `address` are filled in when the
  /// launch runs.
  std::optional<TensorMapParameter> tensorMap;
  RecordedPointer tensorMapBase;
};

/// A tensor of the recording.
struct RecordedTensor {
  std::string name;
  DType dtype = DType::F16;
  llvm::SmallVector<int64_t, 4> shape;
  /// q, k and v are read; the others are results.
  bool isInput = false;
};

/// A whole recording.
struct RecordedLaunch {
  std::string kernel, chip;
  std::array<uint32_t, 3> grid = {1, 1, 1}, block = {1, 1, 1},
                          cluster = {1, 1, 1};
  uint32_t dynamicShared = 0;
  std::vector<RecordedParameter> parameters;
  std::vector<RecordedTensor> tensors;
  /// From data.npz: inputs by name, and expected results as f32.
  llvm::StringMap<NpyArray> arrays;
};

/// Reads launch.json and data.npz (or a folder `data` of .npy files) of a
/// recording. Errors name the file and the field.
llvm::Expected<RecordedLaunch> readRecordedLaunch(llvm::StringRef folder);

/// Runs a recording and compares its results with the recorded ones: `o` as
/// relative error, every other result by its largest difference.
llvm::Expected<HarnessReport> runRecorded(const RecordedLaunch &launch,
                                          const Program &program,
                                          const HarnessOptions &options);

} // namespace mlir::attn::sim

#endif // ATTN_SIMULATOR_RECORDED_H
