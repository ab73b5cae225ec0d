//===- PartitionLowering.h - A kernel's tiles become scalars ----*- C++ -*-===//
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
// A kernel has one lowering for what its warps share, and one for each
// partition of them, which holds the tiles of that partition in its own grid of
// warps.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_ATTN_TRANSFORMS_LOWERTILES_PARTITIONLOWERING_H
#define ATTN_LIB_DIALECT_ATTN_TRANSFORMS_LOWERTILES_PARTITIONLOWERING_H

#include "ClusterRanks.h"
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
  /// In tensor memory the i32 address of lane 0 of its first column.
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
  /// Groups of rows, at a distance of `members` (i64 elements) in them; 1 where
  /// rows are at equal distances. The first `present` rows of a group exist.
  int64_t group = 1, present = 1;
  Value members;
  /// Rows are elements of a matrix in tiles, of which this is the first one,
  /// i64, and `offset` its column; null where they are not.
  Value tiledRow;
  /// Ops name rows below `rows` only.
  bool inBounds = false;
  /// Rows are in pages: rows of a page, the pool's pages (i32), elements from
  /// one to the next (i64), and the address of the sequence's first entry of
  /// the table. 0 where they are not.
  int64_t page = 0;
  Value pages, distance, table;
  /// Rows are those of `front`, and behind them those of `back` from `skip`
  /// (i32) on, views in pages; null where they are not. Then only `rows`,
  /// `alignment`, `type` and `anchor` of the others count.
  Value front, back, skip;

  /// True if the address of a row is no sum of terms of its parts.
  bool isScattered() const {
    return group != 1 || page != 0 || tiledRow || front;
  }
};

/// Number of elements of a type that are kept in one value.
unsigned packingOf(Type elementType);

/// The type of one element in a value: 8-bit floats, which LLVM does not have,
/// are kept as i8.
Type storageOf(Type elementType);

/// Packed 8-bit elements of f32 (or narrower) scalars. Values out of range
/// become the largest finite one, as PTX has no other conversion.
/// `byIntegers` is for chips that have no conversion.
SmallVector<Value> truncateTo8(ImplicitLocOpBuilder &b, ArrayRef<Value> scalars,
                               Type elementType, bool byIntegers = false);

/// The instructions of an approximate function (exp2, log2, tanh, ...) of an
/// f32 scalar, or null if `op` is none: upstream's lowerings of these ops call
/// a library or cannot be selected.
Value lowerApproximate(ImplicitLocOpBuilder &b, Operation *op, Value operand);

/// Returns what a conversion of a scalar to or from f8E4M3FN becomes, which is
/// an i8; null if `op` is none. `operand` is what it gets.
Value convertByte(ImplicitLocOpBuilder &b, Operation &op, Value operand,
                  bool byIntegers);

/// A vector of two f32, which one instruction may compute with (f32x2), and its
/// elements.
Value joinPair(ImplicitLocOpBuilder &b, Value first, Value second);
std::pair<Value, Value> splitPair(ImplicitLocOpBuilder &b, Value pair);

/// A vector of the registers of one access to memory: whole packed values where
/// they match. `scalars` are the tile's elements.
Value gather(ImplicitLocOpBuilder &b, const TileValue &tile,
             ArrayRef<Value> scalars, ArrayRef<unsigned> registers);

/// An address in shared memory, i32.
Value addressOf(ImplicitLocOpBuilder &b, Value pointer);

/// An instruction of PTX with a result, if `result` is not null. LLVM takes
/// what signals at an mbarrier to touch that mbarrier only, and would move
/// plain loads and stores across it.
Value emitOrdered(ImplicitLocOpBuilder &b, Type result, StringRef text,
                  StringRef constraints, ValueRange operands);

/// Stores an f32, or a vector of 2 or 4, in lines that L2 gives up last.
void storeKept(ImplicitLocOpBuilder &b, Value value, Value pointer);

/// `count` words of `type` of a tile that another CTA has sent, which a wait
/// for their bytes orders.
SmallVector<Value> loadSent(ImplicitLocOpBuilder &b, Value pointer,
                            unsigned count, Type type);

/// Returns, for each register of a layout with an even column, in order, that
/// one and the register with the next column of its row; none where threads
/// have no such pairs.
SmallVector<std::pair<unsigned, unsigned>> findPairs(const TileLayout &layout);

/// Bytes of a word, an i32.
constexpr unsigned kWordBytes = 4;

/// Returns the bytes of a word, i8, the lowest first.
SmallVector<Value> splitWord(ImplicitLocOpBuilder &b, Value word);

/// Returns the word of kWordBytes bytes: that from which splitWord made them,
/// if they are one's.
Value joinBytes(ImplicitLocOpBuilder &b, ArrayRef<Value> bytes);

class PartitionLowering;

/// How the ops of a kernel are lowered. Each file of this folder adds its own
/// ops; an op that is not in the table stays as it is, unless it has tiles.
class LoweringTable {
public:
  struct Entry {
    LogicalResult (*lower)(PartitionLowering &partition, Operation *op);
    /// Whether what the op was replaced by makes it dead.
    bool isReplaced;
    /// Whether the op stays where it has no tiles.
    bool onTilesOnly;
  };

  /// Ops that are erased at the end, since others take their place.
  template <typename... Ops>
  void addReplaced() {
    (add<Ops>(/*isReplaced=*/true, /*onTilesOnly=*/false), ...);
  }
  /// The same for upstream's ops, which stay where they have no tiles.
  template <typename... Ops>
  void addReplacedOnTiles() {
    (add<Ops>(/*isReplaced=*/true, /*onTilesOnly=*/true), ...);
  }
  /// Ops that stay with their operands or regions changed, or that their
  /// lowering gives to the kernel's dead ones.
  template <typename... Ops>
  void addKept() {
    (add<Ops>(/*isReplaced=*/false, /*onTilesOnly=*/false), ...);
  }
  /// The entry of an op, or null.
  const Entry *find(Operation *op) const {
    auto it = entries.find(op->getName().getTypeID());
    return it == entries.end() ? nullptr : &it->second;
  }

private:
  template <typename Op>
  void add(bool isReplaced, bool onTilesOnly);
  DenseMap<TypeID, Entry> entries;
};

/// Returns the largest part of a column that a thread adds to that of its
/// register.
int64_t getLastThreadColumn(const TileLayout &layout);

void addBarrierLowerings(LoweringTable &table);
void addControlFlowLowerings(LoweringTable &table);
void addCopyLowerings(LoweringTable &table);
void addElementwiseLowerings(LoweringTable &table);
void addMemoryLowerings(LoweringTable &table);
void addMmaLowerings(LoweringTable &table);
void addNarrowOperandLowerings(LoweringTable &table);
void addPartitionLowerings(LoweringTable &table);
void addPowerLowerings(LoweringTable &table);
void addRowLowerings(LoweringTable &table);
void addTeamLowerings(LoweringTable &table);
void addTcgen05Lowerings(LoweringTable &table);
void addTmaLowerings(LoweringTable &table);
void addTmemLowerings(LoweringTable &table);
void addViewLowerings(LoweringTable &table);
void addWgmmaLowerings(LoweringTable &table);
void addWordLowerings(LoweringTable &table);
void addWorkLowerings(LoweringTable &table);

/// Registers that one instruction may read or write: 128, as many as the ISA
/// allows. ptxas 13.0 wants up to 26 more of those that threads start with,
/// whatever a partition has asked for, so that kernels of 512 threads get half.
int64_t getMostInstructionRegisters(gpu::GPUFuncOp kernel);

/// What the partitions of a kernel share: its memory, and what is computed once
/// at its entry.
class KernelLowering {
public:
  /// With `clusterScope` signals between CTAs of a cluster say so.
  KernelLowering(gpu::GPUFuncOp func, bool clusterScope);

  /// Lowers the whole kernel.
  LogicalResult run();

  /// True if all targets of the kernel have a capability.
  bool targetsHave(Capability capability);
  /// True if some target of the kernel is known to have it not.
  bool someTargetLacks(Capability capability);

  /// A builder at the entry, at the kernel's own location or at `loc`.
  ImplicitLocOpBuilder entryBuilder() { return entryBuilder(func.getLoc()); }
  ImplicitLocOpBuilder entryBuilder(Location loc);
  /// Runs `lower` with what depends on the thread computed in front of `entry`
  /// instead of at the kernel's.
  LogicalResult withEntry(Operation *entry,
                          function_ref<LogicalResult()> lower);
  /// Runs `lower`, which lowers a partition at `b`, with an entry of its own:
  /// what several partitions need of the thread is computed in each. In front
  /// of them it would take registers of those that have more behind it.
  LogicalResult withPartitionEntry(ImplicitLocOpBuilder &b,
                                   function_ref<LogicalResult()> lower);
  /// Computes what depends on the thread anew for all that follows `op`, the
  /// last loop of the kernel or, `inLoops`, of a tile. What only the results
  /// need would else take registers in the loops, whatever it costs to compute
  /// again.
  void renewEntry(Operation *op, bool inLoops);
  /// Gives all buffers and barriers addresses that follow from one that is
  /// taken at `b`, of a partition, which else would follow from one at the
  /// entry that all partitions hold in a register.
  void renewAddresses(ImplicitLocOpBuilder &b);
  /// Lowers the body of a loop or a branch; what is computed anew in it is not
  /// known behind it.
  LogicalResult inBody(function_ref<LogicalResult()> lower);

  /// The thread and the warp in the CTA, and the lane, at the entry.
  Value threadId();
  Value warp();
  Value lane();
  /// The warp, in a form in which ptxas sees that it is the same in all lanes.
  Value uniformWarp();
  /// Bytes of shared memory from a team's buffers to the next one's.
  /// The first byte of shared memory of an allocation, in the thread's own
  /// team, at the entry.
  Value sharedPointer(Location loc, int64_t offset);

  gpu::GPUFuncOp func;
  /// True where signals between CTAs of a cluster say so, and where the CTAs
  /// are a pair that multiplies together.
  const struct {
    bool clusterScope, isOfPair;
  } signals;
  /// Teams that the CTA's warps are, each with tiles and buffers of its own.
  const int64_t teams;
  LoweringTable table;
  DenseMap<Value, BufferValue> buffers;
  /// The allocations that the other CTA of the cluster sends tiles to.
  DenseSet<Operation *> exchanged;
  DenseMap<Value, ViewValue> views;
  /// !llvm.ptr<3> to the first of an array of mbarriers.
  DenseMap<Value, Value> barriers;
  /// i32, the kernel's first column of tensor memory.
  Value tmemBase;
  DenseMap<std::pair<Value, uint32_t>, Value> descriptorWords;
  /// What the entry computes, by what it depends on.
  llvm::StringMap<Value> entryCache;
  DenseMap<std::tuple<Operation *, Value, Value>, Value> threadBases;
  DenseMap<std::pair<Operation *, int64_t>, Value> rowDistances;
  /// Ops that others have replaced, users before definitions.
  SmallVector<Operation *> dead;

private:
  /// Makes pointers of the kernel's tensor maps, when no typed use is left.
  void lowerTensorMaps();

  /// What stands at the entry, from where on an entry was renewed.
  struct Entry {
    Value sharedBase, threadId, lane, warp, uniformWarp;
    llvm::StringMap<Value> cache;
    Operation *end;
  };
  Entry getEntry() const;
  void setEntry(Entry entry);
  /// The entry in front of the body that is lowered, while that has another.
  std::optional<Entry> ownEntry;

  Value sharedBase;
  Value threadIdValue, laneValue, warpValue, uniformWarpValue;
  Operation *entryEnd = nullptr;
};

/// The lowering of what one group of warps runs: a partition, or the code
/// outside of partitions, which all warps run.
class PartitionLowering {
public:
  /// The warps of the CTA from `firstWarp` on, with the (rows, columns) grid in
  /// which they hold register tiles, if they do. `isPartition` tells a
  /// partition from what all warps run.
  PartitionLowering(KernelLowering &kernel, int64_t firstWarp, int64_t warps,
                    bool isPartition,
                    std::optional<std::pair<int64_t, int64_t>> grid)
      : kernel(kernel), firstWarp(firstWarp), warps(warps),
        isPartition(isPartition), grid(grid) {}

  /// Lowers an op as the table says.
  LogicalResult lowerOp(Operation *op);
  /// Lowers all ops of a block, in order.
  LogicalResult lowerBlock(Block &block);
  /// Moves the ops of a region to the insertion point and lowers them.
  LogicalResult lowerRegion(Region &region, ImplicitLocOpBuilder &b);

  /// The lowering of one kind of op, in the file that adds it to the table.
  template <typename OpT>
  LogicalResult lower(OpT op);

  LogicalResult lowerElementwise(Operation *op);
  /// The f16 of both halves of a word of four packed 8-bit elements, lower ones
  /// first, as vectors of two; f16 holds them exactly.
  std::pair<Value, Value> widenFrom8(ImplicitLocOpBuilder &b, Value word,
                                     Type elementType);
  /// Exponentials of halves, two in an instruction.
  /// True if arithmetic on a tile's neighbouring f32 elements is done in pairs:
  /// where a thread has a row's neighbours in registers beside each other, as
  /// loads from tensor memory leave them, so that pairs cost no moves.
  bool computesInPairs(Type tile);
  /// Whether the warp, or its warpgroup, takes a rare path.
  FailureOr<Value> lowerVote(RareOp op);
  LogicalResult lowerView(Operation *op, Value source, BufferType type);
  /// A view of tensor memory that starts `columns` columns of 32 bits, a
  /// constant or an i32, behind its source.
  LogicalResult lowerTmemView(Operation *op, Value source, BufferType type,
                              OpFoldResult columns);
  /// The address of the lanes that a warp reaches, in the column where a buffer
  /// in tensor memory starts, i32.
  Value warpLanes(ImplicitLocOpBuilder &b, const BufferValue &buffer);
  LogicalResult lowerTurn(Operation *op, int64_t id);
  /// The same as lower(ElectOp) for a body that waits and loads, in a partition
  /// that has tiles: all lanes of the warp run it, and one of them starts the
  /// loads.
  LogicalResult lowerElectedLoads(ElectOp op, ImplicitLocOpBuilder &b);
  /// Moves elements of words of four between threads, so that columns keep
  /// their order.
  void gatherQuads(ImplicitLocOpBuilder &b, SmallVectorImpl<Value> &words);
  LogicalResult checkTensorMap(Operation *op, Value map);
  LogicalResult forEachBox(ImplicitLocOpBuilder &b, Operation *op, Value map,
                           ValueRange coords, Value memory, Value base,
                           function_ref<void(Value, ValueRange)> visit);

  //===--------------------------------------------------------------------===//
  // Values
  //===--------------------------------------------------------------------===//

  /// The registers of a tile value. An error at the defining op if there are
  /// none, which is a bug in the order of passes.
  FailureOr<TileValue> tile(Operation *user, Value value);
  FailureOr<TileLayout> layoutOf(Operation *op, Type type);
  /// The grid of warps for register tiles; an error at `op` without one.
  FailureOr<std::pair<int64_t, int64_t>> getGrid(Operation *op);
  FailureOr<SharedLayout> layoutOf(Operation *op, BufferType type);
  /// One scalar for each register, packed ones taken apart.
  SmallVector<Value> unpack(ImplicitLocOpBuilder &b, const TileValue &tile);
  /// The reverse: registers in the form that the type asks for.
  SmallVector<Value> pack(ImplicitLocOpBuilder &b, ArrayRef<Value> scalars,
                          Type elementType);
  void setTile(Value value, TileLayout layout, SmallVector<Value> values);
  /// The types that a value is replaced by: itself unless it is registers.
  FailureOr<SmallVector<Type>> expandedTypes(Operation *op, Type type);

  //===--------------------------------------------------------------------===//
  // What depends on the thread
  //===--------------------------------------------------------------------===//

  /// True if no loop on tiles follows, and what follows in the loop's block is
  /// all that the kernel still does, or a partition for one of its tiles.
  bool isLastLoop(scf::ForOp op) const;
  /// The thread's number among those of the partition, at the entry.
  Value threadId();
  Value lane() { return kernel.lane(); }
  /// The warp's number in the partition; bits above those that number the
  /// partition's warps may be set.
  Value warp();
  /// Prefixes of keys of the entry's cache, for what depends on threadId() and
  /// on warp().
  std::string threadKey() const;
  std::string warpKey() const;
  /// The warpgroup of the partition, at the entry, the same in all lanes.
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
  /// of `ctas` CTAs, whose ranks differ in `bits`, with what makes them that
  /// one's.
  void forEachCTA(ImplicitLocOpBuilder &b, std::optional<int64_t> ctas,
                  RankBits bits,
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

  /// `start` moved on by `row` rows of a view, i32.
  Value startOf(ImplicitLocOpBuilder &b, Value start, const ViewValue &view,
                Value row);
  /// Where a row of a scattered view begins, !llvm.ptr<1>, from `column` on,
  /// and whether it exists; null if it always does. `position` is i32 and not
  /// negative. With `inBounds` the row is below the view's.
  struct RowPlace {
    Value exists, address;
  };
  RowPlace placeRow(ImplicitLocOpBuilder &b, const ViewValue &view,
                    Value position, Value column, bool inBounds);

  /// The page that row `position` of a paged view lies in: whether the pool has
  /// it, and `start`, an address in row 0 of page 0, moved to that row.
  RowPlace placePage(ImplicitLocOpBuilder &b, const ViewValue &view,
                     Value position, Value start);

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

  KernelLowering &kernel;
  const int64_t firstWarp, warps;
  const bool isPartition;
  const std::optional<std::pair<int64_t, int64_t>> grid;

private:
  /// In the region of an attn.elect.
  bool inElect = false;
  /// The number of attn.rare around.
  unsigned rareDepth = 0;
  /// True in the lane that starts loads, where all lanes of a warp come to
  /// them.
  Value elected;
  DenseMap<Value, TileValue> tiles;
};

template <typename Op>
void LoweringTable::add(bool isReplaced, bool onTilesOnly) {
  auto lower = [](PartitionLowering &partition, Operation *op) {
    return partition.lower(cast<Op>(op));
  };
  entries[TypeID::get<Op>()] = {lower, isReplaced, onTilesOnly};
}

/// For each register of a slice from `column` on, the tile's register with that
/// element; none if another thread has it.
std::optional<SmallVector<unsigned>>
matchSlice(const TileLayout &slice, const TileLayout &tile, int64_t column);

} // namespace mlir::attn::lowering

#endif // ATTN_LIB_DIALECT_ATTN_TRANSFORMS_LOWERTILES_PARTITIONLOWERING_H
