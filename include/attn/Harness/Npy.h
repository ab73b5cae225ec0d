//===- Npy.h - numpy array files --------------------------------*- C++ -*-===//
//
// Reads and writes numpy's .npy files (format versions 1 to 3) and reads .npz
// archives, which are zip files of them. numpy has no bf16 and no fp8; such
// arrays travel as raw bits of the same width (V2, u2 or i2; V1 or u1).
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_HARNESS_NPY_H
#define ATTN_HARNESS_NPY_H

#include "attn/Launch/DType.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace mlir::attn::sim {

/// An array in row-major order, little-endian.
struct NpyArray {
  /// numpy's kind of element: 'f', 'i', 'u', 'b' or 'V' (raw).
  char kind = 'f';
  /// Bytes of one element.
  unsigned width = 4;
  llvm::SmallVector<int64_t, 4> shape;
  std::vector<uint8_t> data;

  /// True when the elements are `dtype` or raw bits of its width.
  bool holds(DType dtype) const;
  /// numpy's name of the element type, such as `f2` or `V2`.
  std::string getTypeName() const;
  int64_t getNumElements() const;
};

/// Parses the bytes of a .npy file; `name` begins every error. Errors: foreign
/// or truncated bytes, big-endian, Fortran-ordered, structured or unknown
/// element types.
llvm::Expected<NpyArray> parseNpy(llvm::ArrayRef<uint8_t> bytes,
                                  llvm::StringRef name);
/// The most bytes of a file with arrays that is read: a quarter of the
/// machine's memory, since an array is kept several times.
uint64_t getMaxArrayBytes();

/// Reads a .npy file.
llvm::Expected<NpyArray> readNpy(llvm::StringRef path);

/// Writes a .npy file of row-major elements. bf16 becomes V2, fp8 u1.
llvm::Error writeNpy(llvm::StringRef path, DType dtype,
                     llvm::ArrayRef<int64_t> shape,
                     llvm::ArrayRef<uint8_t> data);

/// Reads every array of a .npz archive, by name without `.npy`. Entries may be
/// stored or deflated; the archive's CRC-32 is checked.
llvm::Expected<llvm::StringMap<NpyArray>> readNpz(llvm::StringRef path);

} // namespace mlir::attn::sim

#endif // ATTN_HARNESS_NPY_H
