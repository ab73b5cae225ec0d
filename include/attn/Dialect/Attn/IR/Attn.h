//===- Attn.h - The attn dialect --------------------------------*- C++ -*-===//
//
// Everything that code which builds or reads attn IR needs: the dialect, its
// types, attributes, ops and traits.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_IR_ATTN_H
#define ATTN_DIALECT_ATTN_IR_ATTN_H

#include "attn/Dialect/Attn/IR/AsyncEngine.h"
#include "attn/Dialect/Attn/IR/ChannelUse.h"
#include "attn/Dialect/Attn/IR/LayoutLinks.h"
#include "attn/Dialect/Attn/IR/PlanParameters.h"
#include "attn/Dialect/Attn/IR/ProductCompletion.h"
#include "attn/Dialect/Attn/IR/SignalMask.h"
#include "attn/Layout/SharedLayout.h"
#include "attn/Layout/TensorMemoryLayout.h"
#include "attn/Layout/TileLayout.h"
#include "attn/Problem/Mask.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace mlir::attn {
struct LaunchRecord;
struct WarpGrid;
} // namespace mlir::attn

#include "attn/Dialect/Attn/IR/AttnEnums.h.inc"

#include "attn/Dialect/Attn/IR/AttnAttrInterfaces.h.inc"

#include "attn/Dialect/Attn/IR/AttnDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "attn/Dialect/Attn/IR/AttnAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "attn/Dialect/Attn/IR/AttnTypes.h.inc"

#include "attn/Dialect/Attn/IR/AttnOpInterfaces.h.inc"

namespace mlir::attn {

/// Bytes of a buffer and of the offsets in shared memory: far above any chip's,
/// so that sums of a few do not wrap.
constexpr int64_t kMostSharedBytes = int64_t(1) << 24;

/// Resource of a thread's asynchronous copy groups.
struct AsyncGroups : public SideEffects::Resource::Base<AsyncGroups> {
  StringRef getName() final { return "attn.async_groups"; }
};

/// Resource of the mbarriers, named barriers and fences of a CTA.
struct BarrierState : public SideEffects::Resource::Base<BarrierState> {
  StringRef getName() final { return "attn.barrier_state"; }
};

/// Resource of a warpgroup's asynchronous matrix instructions.
struct WgmmaGroups : public SideEffects::Resource::Base<WgmmaGroups> {
  StringRef getName() final { return "attn.wgmma_groups"; }
};

/// Resource of the loads and stores of tensor memory that a thread has started.
struct TensorAccesses : public SideEffects::Resource::Base<TensorAccesses> {
  StringRef getName() final { return "attn.tensor_accesses"; }
};

/// 32-bit registers of an SM, and so of a CTA.
inline constexpr int64_t kRegisterFile = 65536;

/// Warps of the largest CTA, on all chips.
inline constexpr int64_t kMaxWarps = 32;

/// Warps of a warpgroup (PTX ISA, setmaxnreg).
inline constexpr int64_t kWarpgroupWarps = 4;

/// Trait of ops that need at least compute capability `SM` (80 for sm_80):
/// implements ArchOpInterface.
template <int SM>
class AttnRequiresSM {
public:
  template <typename ConcreteOp>
  class Impl : public OpTrait::TraitBase<ConcreteOp, Impl> {
  public:
    /// The least compute capability on which the op exists.
    int getMinimumSM() { return SM; }
  };
};

/// Trait of ops that all threads of a warp come to together.
template <typename ConcreteOp>
class TakesWholeWarps : public OpTrait::TraitBase<ConcreteOp, TakesWholeWarps> {
};

/// Trait of ops whose accesses `Engine` carries out: implements getAsyncEngine
/// of AsyncOpInterface.
template <const AsyncEngine *Engine>
class AttnAsyncBy {
public:
  template <typename ConcreteOp>
  class Impl : public OpTrait::TraitBase<ConcreteOp, Impl> {
  public:
    const AsyncEngine &getAsyncEngine() { return *Engine; }
  };
};

/// The layout of a register tile's type. An error if its encoding is none, auto
/// or does not fit the shape.
llvm::Expected<TileLayout> getTileLayout(RankedTensorType type);

/// The layout of one slot of a buffer. An error if it is auto or does not fit.
llvm::Expected<SharedLayout> getSharedLayout(BufferType type);

/// The layout of one slot of a buffer in tensor memory. An error if its layout
/// is of shared memory, auto, or does not fit.
llvm::Expected<TensorMemoryLayout> getTensorMemoryLayout(BufferType type);

/// Reads a shape of #attn.tmem_regs: shape_32x32b.
FailureOr<TmemShape> parseTmemShape(AsmParser &parser);

/// True if the type is a register tile: a static tensor with an attn layout.
bool isTile(Type type);

/// True for what a thread holds in registers: tiles, and accumulators in
/// flight.
bool isRegisters(Type type);

/// True if attn-infer-layouts has yet to choose a layout: for #attn.auto, and
/// for partial row sums of such tiles.
bool isAuto(Attribute layout);

/// Lanes of a warp that share a row of an accumulator (PTX ISA, matrix
/// fragments of mma.m16n8k16 and of wgmma).
inline constexpr int64_t kRowOwners = 4;

/// The type of partial sums (f32) of `rows` rows, one for each lane that shares
/// a row of an accumulator, in a layout that attn-infer-layouts has yet to
/// choose.
RankedTensorType getPartialSumsType(MLIRContext *context, int64_t rows);

/// True for a grid of warps over (rows, columns) that tiles can have: two
/// powers of two, or any number of rows and one column.
bool isWarpGrid(ArrayRef<int64_t> warps);

/// The threads of a block, or the CTAs of a cluster, with these extents as a
/// kernel states them; INT64_MAX where the product does not fit.
int64_t countLaunched(ArrayRef<int32_t> extents);

/// The (rows, columns) grid of warps that hold the register tiles where `op`
/// stands: that of its partition, outside of partitions the kernel's
/// `attn.warps`. An error at the partition or the kernel that states none.
FailureOr<std::pair<int64_t, int64_t>> getWarpGrid(Operation *op);

/// The teams that the warps of a kernel are, each of one warp; 1 where the
/// CTA's warps work together.
int64_t getTeams(gpu::GPUFuncOp kernel);

/// True for a kernel whose program is that of a CTA's warps: it states
/// `attn.warps`, or has partitions.
bool isTileKernel(gpu::GPUFuncOp kernel);

/// Checks that the chips in the targets of `module` have all ops in it that
/// state what they need (ArchOpInterface). Errors at each op that is missing,
/// with a note at the module; success without an #attn.target.
LogicalResult verifyArch(gpu::GPUModuleOp module);

/// Registers the dialect and what its ops and types need.
void registerAttnDialect(DialectRegistry &registry);

} // namespace mlir::attn

#define GET_OP_CLASSES
#include "attn/Dialect/Attn/IR/AttnOps.h.inc"

namespace mlir::attn {

/// The partition of an attn.warp_specialize that holds `op`: the op and the
/// region's index, or null.
std::pair<WarpSpecializeOp, unsigned> getPartition(Operation *op);

/// True for ops that all threads of a warp execute together: those with the
/// trait, upstream's barriers, what holds a part of a tile in each thread or
/// moves one, and groups of accesses of all threads (PTX ISA, `.aligned`).
bool takesWholeWarps(Operation *op);

/// The allocation of tensor memory behind a buffer, through views; null if
/// there is none.
TmemAllocOp findTmemAlloc(Value buffer);

} // namespace mlir::attn

#endif // ATTN_DIALECT_ATTN_IR_ATTN_H
