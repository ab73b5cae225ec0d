//===- TileLowering.h - State of the lowering of tiles ----------*- C++ -*-===//
//
// One kernel on its way from tiles to the scalars of one thread. A tile becomes
// as many values as a thread holds registers of it; elements of 16 bits (8
// bits) are kept in vectors of two (four), which is what matrix instructions,
// conversions and memory take. A buffer becomes the shared-memory pointer of
// its first byte, a view of global memory the pieces of its address.
//
// What depends on the thread only (its lane, its warp, and the address forms of
// docs/Layouts.md) is computed once at the kernel's entry.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_ATTN_TRANSFORMS_LOWERTILES_TILELOWERING_H
#define ATTN_LIB_DIALECT_ATTN_TRANSFORMS_LOWERTILES_TILELOWERING_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Layout/Access.h"
#include "attn/Layout/CopyPlan.h"
#include "attn/Layout/MatrixAccess.h"
#include "attn/Target/TargetTable.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::attn::lowering {

/// A tile in one thread: its layout and its registers.
struct TileValue {
  TileLayout layout;
  Type elementType;
  /// Elements in one entry of `values`: 1, or the width of a packed vector.
  unsigned packing = 1;
  SmallVector<Value> values;
};

/// A buffer in one thread.
struct BufferValue {
  /// !llvm.ptr<3> to the buffer's first byte: that of slot 0, or of one slot.
  Value base;
  BufferType type;
  /// The allocation that it is part of, at the entry.
  Value allocation;
  /// i32 slot of the allocation, each of `slotBytes`; null for the first.
  Value slot;
  int64_t slotBytes = 0;
};

/// A view of global memory in one thread.
struct ViewValue {
  /// !llvm.ptr<1>, i64 elements, i32 rows, i64 elements.
  Value base, offset, rows, stride;
  int64_t alignment = 1;
  GlobalType type;
  /// Where the view was made: loop-invariant parts of addresses go here.
  Operation *anchor = nullptr;
};

/// Number of elements of a type that are kept in one value.
unsigned packingOf(Type elementType);

/// The type of one element in a value: 8-bit floats, which LLVM does not have,
/// are kept as i8.
Type storageOf(Type elementType);

/// Packed 8-bit elements of f32 (or narrower) scalars. Values out of range
/// become the largest finite one, as PTX has no other conversion.
SmallVector<Value> truncateTo8(ImplicitLocOpBuilder &b, ArrayRef<Value> scalars,
                               Type elementType);

/// The instructions of an approximate function (exp2, log2, tanh, ...) of an
/// f32 scalar, or null if `op` is none: upstream's lowerings of these ops call
/// a library or cannot be selected.
Value lowerApproximate(ImplicitLocOpBuilder &b, Operation *op, Value operand);

class TileLowering {
public:
  /// With `clusterScope` signals between CTAs of a cluster say so.
  TileLowering(gpu::GPUFuncOp kernel, bool clusterScope)
      : kernel(kernel), clusterScope(clusterScope) {}

  /// Lowers the whole kernel.
  LogicalResult run();

private:
  // The driver (LowerTiles.cpp).
  LogicalResult lowerBlock(Block &block);
  LogicalResult lowerOp(Operation *op);
  LogicalResult lowerFor(scf::ForOp op);
  LogicalResult lowerWhile(scf::WhileOp op);
  LogicalResult lowerIf(scf::IfOp op);
  /// Whether the warp, or its warpgroup, takes a rare path.
  FailureOr<Value> lowerVote(RareOp op);
  LogicalResult lowerRare(RareOp op);
  LogicalResult lowerYield(scf::YieldOp op);
  LogicalResult lowerElementwise(Operation *op);
  LogicalResult lowerConstant(arith::ConstantOp op);
  LogicalResult lowerSplat(tensor::SplatOp op);
  LogicalResult lowerTrunc(arith::TruncFOp op);
  LogicalResult lowerExt(arith::ExtFOp op);

  // Row operations and masks (Rows.cpp).
  LogicalResult lowerReduce(ReduceOp op);
  LogicalResult lowerBroadcast(BroadcastOp op);
  LogicalResult lowerConvert(ConvertLayoutOp op);
  LogicalResult lowerMask(ApplyMaskOp op);
  LogicalResult lowerMap(MapElementsOp op);

  // Memory (Memory.cpp, Copies.cpp).
  LogicalResult lowerAlloc(AllocOp op);
  LogicalResult lowerSlot(SlotOp op);
  LogicalResult lowerView(Operation *op, Value source, BufferType type);
  LogicalResult lowerLocalLoad(LocalLoadOp op);
  LogicalResult lowerLocalStore(LocalStoreOp op);
  LogicalResult lowerScalarLoad(ScalarLoadOp op);
  LogicalResult lowerScalarStore(ScalarStoreOp op);
  LogicalResult lowerScalarSend(ScalarSendOp op);
  LogicalResult lowerGlobalView(GlobalViewOp op);
  LogicalResult lowerGlobalLoad(GlobalLoadOp op);
  LogicalResult lowerGlobalStore(GlobalStoreOp op);
  LogicalResult lowerCpAsync(CpAsyncOp op);
  LogicalResult lowerCopyOut(CopyOutOp op);

  // Matrix instructions (Mma.cpp, Wgmma.cpp).
  LogicalResult lowerMma(MmaOp op);
  LogicalResult lowerWgmma(WgmmaOp op);
  LogicalResult lowerWgmmaWait(WgmmaWaitOp op);
  LogicalResult lowerWgmmaResume(WgmmaResumeOp op);
  LogicalResult lowerExtendColumns(ExtendColumnsOp op);

  // 8-bit operands (NarrowOperands.cpp).
  LogicalResult lowerNarrowOperand(NarrowOperandOp op);
  /// Moves elements of words of four between threads, so that columns keep
  /// their order.
  void gatherQuads(ImplicitLocOpBuilder &b, SmallVectorImpl<Value> &words);
  LogicalResult lowerLocalTranspose(LocalTransposeOp op);

  // Tensor copies (Tma.cpp).
  /// Makes pointers of the kernel's tensor maps, when no typed use is left.
  void lowerTensorMaps();
  LogicalResult checkTensorMap(Operation *op, Value map);
  LogicalResult forEachBox(
      Operation *op, Value map, ValueRange coords, Value memory, Value base,
      function_ref<void(ImplicitLocOpBuilder &, Value, ValueRange)> visit);
  LogicalResult lowerTmaPrefetch(TmaPrefetchOp op);
  LogicalResult lowerTmaLoad(TmaLoadOp op);
  LogicalResult lowerTmaStore(TmaStoreOp op);
  LogicalResult lowerTmaCommit(TmaCommitOp op);
  LogicalResult lowerTmaWait(TmaWaitOp op);

  // mbarriers, named barriers and fences (Barriers.cpp).
  LogicalResult lowerBarriersAlloc(MBarrierAllocOp op);
  LogicalResult lowerBarriersInit(MBarrierInitOp op);
  LogicalResult lowerFenceInit(MBarrierFenceInitOp op);
  LogicalResult lowerExpectTx(MBarrierExpectTxOp op);
  LogicalResult lowerArrive(MBarrierArriveOp op);
  LogicalResult lowerWait(MBarrierWaitOp op);
  LogicalResult lowerFenceProxy(FenceProxyOp op);
  LogicalResult lowerNamedBarrier(NamedBarrierOp op);
  LogicalResult lowerTurn(Operation *op, int64_t id);
  LogicalResult lowerClusterBarrier(ClusterBarrierOp op);

  // Partitions of the CTA (WarpSpecialize.cpp).
  LogicalResult lowerWarpSpecialize(WarpSpecializeOp op);
  LogicalResult lowerElect(ElectOp op);
  LogicalResult lowerClusterLeader(ClusterLeaderOp op);
  /// The same for a body that waits and loads, in the partition that has tiles:
  /// all lanes of the warp run it, and one of them starts the loads.
  LogicalResult lowerElectedLoads(ElectOp op, ImplicitLocOpBuilder &b);
  /// Moves the ops of a region to the insertion point and lowers them.
  LogicalResult lowerRegion(Region &region, ImplicitLocOpBuilder &b);

  //===--------------------------------------------------------------------===//
  // Values
  //===--------------------------------------------------------------------===//

  /// The registers of a tile value. An error at the defining op if there are
  /// none, which is a bug in the order of passes.
  FailureOr<TileValue> tile(Operation *user, Value value);
  FailureOr<TileLayout> layoutOf(Operation *op, Type type);
  FailureOr<SharedLayout> layoutOf(Operation *op, BufferType type);
  /// One scalar for each register, packed ones taken apart.
  SmallVector<Value> unpack(ImplicitLocOpBuilder &b, const TileValue &tile);
  /// The reverse: registers in the form that the type asks for.
  SmallVector<Value> pack(ImplicitLocOpBuilder &b, ArrayRef<Value> scalars,
                          Type elementType);
  void setTile(Value value, TileLayout layout, SmallVector<Value> values);
  /// True if all targets of the kernel have a capability.
  bool targetsHave(Capability capability);
  /// True for values that become registers: tiles and accumulators in flight.
  static bool isRegisters(Type type) {
    return isTile(type) || isa<InFlightType>(type);
  }
  /// The types that a value is replaced by: itself unless it is registers.
  FailureOr<SmallVector<Type>> expandedTypes(Operation *op, Type type);

  //===--------------------------------------------------------------------===//
  // What depends on the thread
  //===--------------------------------------------------------------------===//

  ImplicitLocOpBuilder entryBuilder(Location loc);
  /// Runs `lower` with what depends on the thread computed in front of `entry`
  /// instead of at the kernel's.
  LogicalResult withEntry(Operation *entry,
                          function_ref<LogicalResult()> lower);
  /// True if no loop on tiles follows, and what follows in the loop's block is
  /// all that the kernel still does.
  static bool isLastLoop(scf::ForOp op);
  /// Computes what depends on the thread anew for all that follows `op`, the
  /// kernel's last loop. What only the results need would else take registers
  /// in the loops, whatever it costs to compute again.
  void renewEntry(Operation *op);
  Value threadId();
  Value lane();
  Value warp();
  /// The warp, in a form in which ptxas sees that it is the same in all lanes.
  Value uniformWarp();
  /// The warpgroup of the partition that is being lowered, at the entry, the
  /// same in all lanes.
  Value warpgroup();
  /// Sum (or XOR) over the set bits of `index` of the constants.
  Value linearForm(ImplicitLocOpBuilder &b, Value index,
                   ArrayRef<int64_t> constants, bool forXor);
  /// The thread's coordinate along a dimension of a layout times `step`, i32,
  /// at the entry.
  Value threadCoordinate(const TileLayout &layout, unsigned dim,
                         int64_t step = 1);
  /// (xor ^ xorConst) + add of a form, i32 bytes, at the entry.
  Value formOffset(const AddressForm &form, int64_t xorConst);
  /// Pointer for an access: base + form part + addConst.
  Value address(ImplicitLocOpBuilder &b, Value base,
                ArrayRef<AddressForm> forms, const AccessAddress &access);
  /// True in the thread that stands for its copies; null if there are none.
  Value copyPredicate(ImplicitLocOpBuilder &b, unsigned laneMask,
                      unsigned warpMask);

  /// The first byte of shared memory of an allocation, at the entry.
  Value sharedPointer(Location loc, int64_t offset);
  /// The low word of the matrix descriptor of a buffer, i32.
  Value descriptorWord(ImplicitLocOpBuilder &b, const BufferValue &buffer,
                       uint32_t fields);
  /// An instruction of PTX, `text` without a predicate, in the lane `elected`.
  /// Operand i is $i, counted from 1: an i32, a pointer to shared memory or a
  /// tensor map.
  void emitElected(ImplicitLocOpBuilder &b, StringRef text,
                   ValueRange operands);
  /// The pointer to one mbarrier of an array.
  Value barrierPointer(ImplicitLocOpBuilder &b, Value barriers, Value index);

  /// Where the CTA of a rank in the cluster has what is at `pointer` here.
  Value remotePointer(ImplicitLocOpBuilder &b, Value pointer, Value rank);
  /// Calls `emit` once with what leaves pointers as they are, or once for each
  /// of `ctas` CTAs with what makes them that one's.
  void forEachCTA(ImplicitLocOpBuilder &b, std::optional<int64_t> ctas,
                  function_ref<void(function_ref<Value(Value)>)> emit);

  /// ldmatrix of one access; returns its 32-bit words.
  SmallVector<Value> loadMatrices(ImplicitLocOpBuilder &b, Value base,
                                  const MatrixPlan &plan,
                                  const MatrixAccess &access);
  /// stmatrix of a whole tile, if its fragments are matrices of the buffer.
  bool storeMatrices(ImplicitLocOpBuilder &b, const TileValue &source,
                     Value base, const SharedLayout &memory);
  /// The byte address of row 0 and the thread's row and column, where `row` and
  /// `column` are the thread's coordinates; loop-invariant, placed at the view.
  Value threadBase(const ViewValue &view, Value row, Value column);
  /// Bytes from a row to the one `rowCount` further, i64, placed at the view.
  Value rowBytes(const ViewValue &view, int64_t rowCount);

  /// A chunk that one thread copies.
  struct Chunk {
    unsigned bytes = 16;
    Value shared, global;
    /// i1: the chunk exists in global memory; null if it always does.
    Value exists;
  };
  /// Visits the chunks of a copy between rows `row` onwards of a view and a
  /// buffer, with the builder where the chunk's instructions go.
  LogicalResult
  forEachChunk(Operation *op, const ViewValue &view, const BufferValue &buffer,
               Value row, bool inBounds,
               function_ref<void(ImplicitLocOpBuilder &, const Chunk &)> visit);

  gpu::GPUFuncOp kernel;
  bool clusterScope;
  /// Threads that hold tiles: those of the first partition, or all.
  int64_t threads = 0;
  /// The partition that is being lowered, and its first warp.
  unsigned partition = 0;
  bool inPartitions = false;
  int64_t firstWarp = 0;
  /// Its warps; all of the kernel's outside of partitions.
  int64_t partitionWarps = 0;
  /// In the region of an attn.elect.
  bool inElect = false;
  /// The number of attn.rare around.
  unsigned rareDepth = 0;
  /// True in the lane that starts loads, where all lanes of a warp come to
  /// them.
  Value elected;
  Value sharedBase;
  Value threadIdValue, laneValue, warpValue, uniformWarpValue;
  Operation *entryEnd = nullptr;
  DenseMap<Value, TileValue> tiles;
  DenseMap<Value, BufferValue> buffers;
  DenseMap<Value, ViewValue> views;
  /// !llvm.ptr<3> to the first of an array of mbarriers.
  DenseMap<Value, Value> barriers;
  DenseMap<std::pair<Value, uint32_t>, Value> descriptorWords;
  llvm::StringMap<Value> entryCache;
  DenseMap<std::tuple<Operation *, Value, Value>, Value> threadBases;
  DenseMap<std::pair<Operation *, int64_t>, Value> rowDistances;
  SmallVector<Operation *> dead;
};

} // namespace mlir::attn::lowering

#endif // ATTN_LIB_DIALECT_ATTN_TRANSFORMS_LOWERTILES_TILELOWERING_H
