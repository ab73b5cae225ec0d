//===- LaunchBinding.h - a launch record meets its tensors ------*- C++ -*-===//
//
// Checks the tensors of a launch against the record and computes from both what
// the launch needs: grid, workspace sizes and parameter bytes. Two steps, since
// workspaces are allocated in between:
//
//   resolveLaunch(record, tensors)  -> grids, workspace sizes, parameter
//   layouts bindParameters(...)             -> parameter bytes and tensor maps
//   of a step
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_LAUNCH_LAUNCHBINDING_H
#define ATTN_LAUNCH_LAUNCHBINDING_H

#include "attn/Launch/LaunchRecord.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::attn {

/// A tensor that the caller passes to a launch.
struct TensorArgument {
  std::string name;
  DType dtype = DType::F16;
  /// Elements.
  llvm::SmallVector<int64_t, 4> shape;
  /// Elements, of the shape's rank. The stride of a dimension of extent 1 is
  /// free.
  llvm::SmallVector<int64_t, 4> strides;
  /// Address of the first element in global memory.
  uint64_t address = 0;
};

/// Where a kernel parameter lies in the parameter buffer, in bytes.
struct ParameterSlot {
  uint32_t offset = 0;
  uint32_t size = 0;
};

/// What follows for one step.
struct ResolvedStep {
  /// CTAs in each dimension. Zero when there is nothing to compute.
  std::array<uint32_t, 3> grid = {0, 0, 0};
  llvm::SmallVector<ParameterSlot, 16> parameters;
  uint32_t parameterBytes = 0;
  /// Values of the parameters that are expressions, zero for others.
  llvm::SmallVector<int64_t, 16> values;
};

/// What follows from a record and the shapes of its tensors.
struct ResolvedLaunch {
  std::vector<ResolvedStep> steps;
  llvm::SmallVector<uint64_t, 2> workspaceBytes;
  /// For each tensor of the record its index among the caller's tensors.
  llvm::SmallVector<unsigned, 8> tensors;
};

/// A tensor map parameter, ready to be encoded. Dimension 0 is the innermost.
struct TensorMapParameter {
  ParameterSlot slot;
  /// Where element 0 of all dimensions would be: in front of the tensor in maps
  /// of packed sequences.
  uint64_t address = 0;
  DType element = DType::F16;
  TensorMapSwizzle swizzle = TensorMapSwizzle::None;
  llvm::SmallVector<uint64_t, 5> dims;
  /// Bytes, from dimension 1 on.
  llvm::SmallVector<uint64_t, 4> strides;
  llvm::SmallVector<uint32_t, 5> box;
};

/// The parameter buffer of a launch.
struct BoundParameters {
  /// Little-endian bytes; tensor map slots hold zeros until the caller encodes
  /// `tensorMaps` into them.
  std::vector<uint8_t> bytes;
  std::vector<TensorMapParameter> tensorMaps;
};

/// Checks names, types, ranks, static shapes and strides of `tensors` against
/// the record, in any order, and evaluates grids, workspaces and expressions
/// for a device of `multiprocessors`; without their number `sms` is an error.
/// Errors name the tensor: `tensor "k": expected shape [2, 8, ?, 64], got [2,
/// 4, 300, 64]`.
llvm::Expected<ResolvedLaunch>
resolveLaunch(const LaunchRecord &record,
              llvm::ArrayRef<TensorArgument> tensors,
              std::optional<int64_t> multiprocessors = std::nullopt);

/// Fills the parameter buffer of a step. `scalars` gives the values of scalar
/// parameters by name and overrides the record's; `workspaces` gives their
/// addresses. Errors: a missing or unknown scalar, a value that its type cannot
/// hold, a tensor that a tensor map cannot describe.
llvm::Expected<BoundParameters>
bindParameters(const LaunchRecord &record, const ResolvedLaunch &resolved,
               unsigned step, llvm::ArrayRef<TensorArgument> tensors,
               const llvm::StringMap<double> &scalars,
               llvm::ArrayRef<uint64_t> workspaces);

/// Bytes from a tensor's first element to the end of its last one; 0 when it
/// has no elements. Strides must not be negative. Fails on overflow.
llvm::Expected<uint64_t> getExtentBytes(llvm::ArrayRef<int64_t> shape,
                                        llvm::ArrayRef<int64_t> strides,
                                        DType dtype);

/// Row-major strides of `shape`.
llvm::SmallVector<int64_t, 4>
getContiguousStrides(llvm::ArrayRef<int64_t> shape);

} // namespace mlir::attn

#endif // ATTN_LAUNCH_LAUNCHBINDING_H
