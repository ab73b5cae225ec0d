//===- Recorded.h - launches recorded elsewhere -----------------*- C++ -*-===//
//
// Runs kernels of other compilers from a recording: a folder with kernel.ptx,
// launch.json (geometry and parameter bytes as a driver got them) and data.npz
// (operands and the expected results), as docs/RecordedLaunches.md describes.
// Kernels that run on hardware validate the simulator this way.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_HARNESS_RECORDED_H
#define ATTN_HARNESS_RECORDED_H

#include "attn/Harness/Harness.h"

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
  /// For a number whose width only the kernel states: its value.
  std::optional<int64_t> integer;
  std::optional<double> number;
};

/// A tensor of the recording.
struct RecordedTensor {
  std::string name;
  DType dtype = DType::F16;
  llvm::SmallVector<int64_t, 4> shape;
  /// Read only. Unless launch.json says so itself, q, k and v are read and the
  /// others are results.
  bool isInput = false;
  /// Read and written: a result that has contents before the launch.
  bool isUpdated = false;
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

/// Reads the text of a launch.json; `arrays` stays empty. Errors name the
/// field.
llvm::Expected<RecordedLaunch> parseRecordedLaunch(llvm::StringRef text);

/// Reads launch.json and data.npz (or a folder `data` of .npy files) of a
/// recording. Errors name the file and the field.
llvm::Expected<RecordedLaunch> readRecordedLaunch(llvm::StringRef folder);

/// Runs a recording and compares its results with the recorded ones: `o` as
/// relative error, every other result by its largest difference; one that the
/// kernel updates with the array `NAME.after`. A result without an array is
/// only returned; the kernel may leave parts of it unwritten.
llvm::Expected<HarnessReport> runRecorded(const RecordedLaunch &launch,
                                          const Program &program,
                                          const HarnessOptions &options);

} // namespace mlir::attn::sim

#endif // ATTN_HARNESS_RECORDED_H
