//===- KernelFrame.h - A kernel and what its parameters are -----*- C++ -*-===//
//
// The frame of a kernel while it is emitted: the builder, and what the kernel's
// parameters stand for. Whoever emits asks for extents and strides here and
// gets constants where they are static.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_CORE_KERNELFRAME_H
#define ATTN_SCHEDULE_CORE_KERNELFRAME_H

#include "attn/Launch/LaunchRecord.h"
#include "attn/Launch/SizeExpr.h"
#include "attn/Planner/Facts/TensorFacts.h"
#include "attn/Target/TargetTable.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::attn {

/// How `attn.plan_pieces` cuts the keys of all sequences into equal runs; none
/// where `runs` is 0. In blocks of `block` keys, what the begin of a sequence
/// counts as, and the fewest of a piece that is not a whole sequence.
struct EqualRuns {
  int64_t runs = 0, block = 0, start = 0, fewest = 0;

  explicit operator bool() const { return runs != 0; }
};

/// How `attn.plan_tiles` lists the tiles of packed documents; none where
/// `capacity` is 0. Tiles of `blockM` queries with blocks of `blockN` keys,
/// which begin at multiples of `align` keys, at most `most` in all tiles.
struct CutTiles {
  int64_t capacity = 0, blockM = 0, blockN = 0, align = 1, most = 0;

  explicit operator bool() const { return capacity != 0; }
};

/// The shape of a launch.
struct KernelShape {
  /// CTAs in x, y and z, from the extents of the launch's tensors. Those along
  /// y and z may be more than a launch takes: the frame folds the grid then.
  std::array<SizeExpr, 3> grid;
  /// Threads of a CTA.
  int64_t threads = 0;
  /// The grid of warps over (rows, columns), where partitions have none of
  /// their own.
  std::optional<std::array<int64_t, 2>> warps;
  /// Teams that the warps of the CTA are; with more than one, each is a warp.
  int64_t teams = 1;
  /// CTAs of a cluster, along x.
  int64_t cluster = 1;
  /// Tiles that the CTAs deal among themselves; none where each CTA has its
  /// own.
  std::optional<SizeExpr> tiles;
  /// CTAs that an SM is to hold at once, which bounds their registers.
  int64_t ctasPerSM = 1;
  /// All CTAs have to be on the device at once.
  bool cooperative = false;
  /// The kernel awaits the one in front of it by itself, and may start before
  /// that has ended.
  bool programmatic = false;
  /// The schedule says by itself, where its kernel has a next step, when CTAs
  /// of that may start.
  bool releasesNext = false;
  /// Its CTAs leave no room on their SMs to those of the next step.
  bool fillsSMs = false;
  /// The kernel merges the partial results of its runs of keys, in place of the
  /// attn.combine behind the problem.
  bool mergesRuns = false;
  /// It deals runs of keys to sequences by their lengths.
  bool dealsRuns = false;
  /// A kernel in front does that, and writes this many records of work.
  int64_t plannedRuns = 0;
  /// A kernel in front cuts the keys of all sequences into runs.
  EqualRuns equalRuns;
  /// A kernel in front lists the tiles of documents.
  CutTiles cutTiles;

  /// True if a kernel in front writes records for this one.
  bool isPlanned() const { return plannedRuns || equalRuns || cutTiles; }
};

/// A scalar parameter of the kernel that comes from a tensor's descriptor.
struct DescriptorArg {
  /// Index into KernelFrame::tensors.
  unsigned tensor;
  unsigned dim;
  bool isStride;
};

/// Global memory beside the tensors, a parameter of the kernel.
struct WorkspaceArg {
  SizeExpr bytes;
  /// It holds zeros when the kernel starts, and when it ends.
  bool zeroed, restored;
};

/// A tensor map parameter of the kernel, behind all others.
struct TensorMapArg {
  /// Index into KernelFrame::tensors.
  unsigned tensor;
  TensorMapType type;
  TensorMapView view;
};

/// Returns an error if the CTAs of a grid are known to be more than a launch
/// takes; `tensors` are those that its extents name.
llvm::Error checkGrid(const std::array<SizeExpr, 3> &grid,
                      ArrayRef<TensorFacts> tensors);

/// Returns an error if the tiles that CTAs deal among themselves are known to
/// be more than they can number.
llvm::Error checkTiles(const SizeExpr &tiles, ArrayRef<TensorFacts> tensors);

/// A kernel that is being emitted.
class KernelFrame {
public:
  /// A kernel at `loc` whose launch has these tensors, in parameter order, and
  /// passes these values of the host.
  KernelFrame(const TargetRow &target, Location loc,
              ArrayRef<TensorFacts> tensors, ValueRange scalars);

  /// The chip that the kernel is for.
  const TargetRow &target;
  /// Inserts into the kernel's body, at the location of the problem.
  ImplicitLocOpBuilder b;

  // The arguments of the launch, of which its record and the host's call are
  // made. What the launch alone decides is added before bindParameters; sizes,
  // workspaces and tensor maps that a body asks for are added as it does.

  /// All tensors of the launch, in parameter order.
  SmallVector<TensorFacts> tensors;
  /// Scalars of the host that are parameters, behind sizes and strides.
  SmallVector<Value> hostScalars;
  /// The number of the first one among the scalars of all kernels of a launch.
  int64_t firstScalar = 0;
  /// Sizes (i32) and strides (i64) that are parameters, behind the pointers.
  SmallVector<DescriptorArg> descriptorArgs;
  /// Workspaces that the schedule asked for, in parameter order: behind the
  /// scalars.
  SmallVector<WorkspaceArg> workspaceArgs;
  /// Tensor maps that the schedule asked for, in parameter order.
  SmallVector<TensorMapArg> tensorMapArgs;

  /// Makes the extent of a dimension a parameter if only the launch decides it.
  void addSize(StringRef name, unsigned dim, int64_t extent);
  /// Makes the stride of a dimension of tensors[tensor] a parameter.
  void addStride(unsigned tensor, unsigned dim);

  /// Returns the types of the kernel's parameters: pointers, descriptor values,
  /// captured scalars. Workspaces and tensor maps join them as the schedule
  /// asks for them.
  SmallVector<Type> getParameterTypes();
  /// Says whose arguments the parameters are and what the grid is, before
  /// anything is emitted.
  void bindParameters(gpu::GPUFuncOp kernel,
                      const std::array<SizeExpr, 3> &grid);
  /// Returns the kernel, from bindParameters on.
  gpu::GPUFuncOp getKernel() const { return kernel; }
  /// Returns the parameters that stand for hostScalars, from bindParameters on.
  ArrayRef<Value> getScalars() const { return scalars; }

  // Constants.

  Value i32(int64_t value);
  Value i64(int64_t value);
  Value f32(double value);

  // Parameters. `name` is the tensor's name in the launch record.

  bool has(StringRef name) const { return findTensor(name) != nullptr; }
  /// A tensor that the launch has.
  const TensorFacts &getTensor(StringRef name) const {
    return *findTensor(name);
  }
  /// Address of the first element, !llvm.ptr<1>.
  Value getPointer(StringRef name);
  /// Stride of a dimension in elements, i64.
  Value getStride(StringRef name, unsigned dim);
  /// Rows of a rank-4 tensor, i32: with packed sequences those of all of them,
  /// a parameter on first use where the launch decides.
  Value getRows(StringRef name) { return getSize(name, 2); }
  /// The extent of a dimension, i32: a parameter on first use where the launch
  /// decides.
  Value getSize(StringRef name, unsigned dim);

  // The grid. A launch takes fewer CTAs along y and z than along x: a grid that
  // is known to have more there is folded, all of its CTAs lie along x.

  /// Returns the grid that is launched.
  std::array<SizeExpr, 3> getLaunchedGrid() const;
  /// Emits the CTA's number along a dimension of the schedule's grid, i32.
  Value getBlockId(gpu::Dimension dim);
  /// Emits the CTAs along a dimension of the schedule's grid, i32.
  Value getGridDim(gpu::Dimension dim);
  /// `extent`, i32: a constant, or the parameter that has it, the extent of one
  /// of these dimensions.
  Value getExtent(std::initializer_list<std::pair<StringRef, unsigned>> dims,
                  int64_t extent);

  /// A tensor map of a tensor of the launch: one of TMA's instructions copies
  /// `box` elements, given in the order of dimensions that the tensor has in
  /// `view`, and permutes chunks in spans of `swizzle` bytes (0, 32, 64, 128).
  /// Becomes a parameter of the kernel on first use.
  Value getTensorMap(StringRef name, ArrayRef<int64_t> box, int64_t swizzle,
                     TensorMapView view = TensorMapView::Whole);

  /// The address of memory that the launch provides, !llvm.ptr<1>: a new
  /// parameter of the kernel.
  Value addWorkspace(WorkspaceArg workspace);

  // Emission.

  /// `value` (i32, not negative) as i64.
  Value widen(Value value);
  /// Loads element `index` (i64) of a rank-1 tensor.
  Value loadElement(StringRef name, Value index);

  /// Emits attn.find_key of a region; null after a diagnostic.
  using FindKeyInliner = llvm::function_ref<Value(
      ImplicitLocOpBuilder &lb, FindKeyOp find, const IRMapping &mapping)>;
  /// Clones the operations of a problem's region for the given arguments and
  /// returns what it yields. Reads of memrefs, which are among the tensors,
  /// become loads of global memory. Empty after a diagnostic.
  SmallVector<Value> cloneRegion(OpBuilder &builder, Region &region,
                                 ValueRange arguments,
                                 FindKeyInliner findKey = {});

protected:
  /// Returns a captured memref; null after a diagnostic at `user`.
  const TensorFacts *findCapture(Operation *user, Value memref);
  /// Returns the address of an element, or of a row without the last index.
  Value getElementAddress(ImplicitLocOpBuilder &lb, const TensorFacts &tensor,
                          ValueRange indices, Type type);

private:
  Value loadMemRef(ImplicitLocOpBuilder &lb, const TensorFacts &tensor,
                   ValueRange indices, Type type);
  const TensorFacts *findTensor(StringRef name) const;

  gpu::GPUFuncOp kernel;
  /// The schedule's grid, and whether a launch takes it with all of its CTAs
  /// along x.
  std::array<SizeExpr, 3> grid;
  bool foldsGrid = false;
  /// The kernel's parameters: those of tensors, descriptorArgs, hostScalars and
  /// tensorMapArgs, each in the order of its list.
  SmallVector<Value> pointers, descriptors, scalars, tensorMaps;
};

} // namespace mlir::attn

#endif // ATTN_SCHEDULE_CORE_KERNELFRAME_H
