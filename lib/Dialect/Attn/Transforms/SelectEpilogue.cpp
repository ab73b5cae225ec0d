//===- SelectEpilogue.cpp - How results leave the kernel ------------------===//
//
// A result tile lies in the fragments of mma.sync: each group of four lanes
// holds 8 columns of a row, 2 in each lane; or, where it was loaded from tensor
// memory by rows, each thread has a row. Four ways lead to global memory:
//
//   direct    each lane stores its 2 columns: columns * rows / 64 stores of
//             4 or 8 bytes a lane, of which a warp fills 32-byte sectors only
//             in part (16-bit elements). A thread that has a row stores whole
//             sectors, 32 bytes at a time where the chip can
//   shuffled  lanes of a group exchange pieces until each holds 16 bytes of a
//             row, then store them: no shared memory, no barrier
//   staged    through shared memory: one barrier, then every warp writes whole
//             rows, 16 bytes a lane
//   tma       through shared memory: a barrier of each warpgroup, then one of
//             its threads starts a copy of its rows and goes on; the next tile
//             waits for the copy before it writes to the buffer
//
// `auto` takes direct where threads have rows that are whole sectors; else
// staged where a dead buffer is at hand and rows are aligned to 16 bytes, else
// shuffled where a row is a multiple of four such pieces, else direct.
//
//===----------------------------------------------------------------------===//

#include "attn/Analysis/Flow/HandleFlow.h"
#include "attn/Dialect/Attn/IR/BulkStores.h"
#include "attn/Dialect/Attn/IR/KernelAttrs.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Remarks.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNSELECTEPILOGUEPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

namespace {

/// Bytes of the widest store of a lane.
constexpr int64_t kVectorBytes = 16;
/// Bytes that global memory is written in.
constexpr int64_t kSectorBytes = 32;

/// The numbers that decide on a result.
struct ResultFacts {
  RankedTensorType tile;
  int64_t rowBytes = 0;
  /// What every row's start is a multiple of.
  int64_t alignment = 0;
  /// Of an element in memory.
  int64_t elementBits = 0;
  /// Bytes that staging takes, padding included.
  int64_t stagedBytes = 0;
  /// Bytes of the dead buffer, 0 if there is none.
  int64_t scratchBytes = 0;
  /// The kernel's warps over rows and columns.
  std::pair<int64_t, int64_t> warps;
  /// Each thread has rows of its own.
  bool hasRows = false;
  /// Groups of four lanes have rows, as far as is known.
  bool hasFragments = true;
  /// Warps along the columns have runs of them.
  bool hasColumnRuns = false;
  /// Threads have four columns that follow each other, not two.
  bool hasColumnQuads = false;
  /// The tile has columns that rows in memory have not.
  bool hasPadding = false;

  bool wideRows() const {
    return tile.getRank() == 2 && rowBytes % kVectorBytes == 0 &&
           alignment % kVectorBytes == 0;
  }
  /// Each of four lanes gets 16 bytes of every 64, in rows that are its own.
  /// With 32 bits four lanes fill a sector as they are, and exchanging runs of
  /// 256 columns takes more registers than are left.
  bool canShuffle() const {
    return hasFragments && wideRows() && !hasPadding &&
           !(hasPairs() && hasColumnQuads) &&
           rowBytes % (4 * kVectorBytes * warps.second) == 0 &&
           (warps.second == 1 || (hasColumnRuns && elementBits < 32)) &&
           tile.getShape()[0] % (16 * warps.first) == 0;
  }
  /// Bytes have two elements of the tile, so that no tile of its type has its
  /// rows.
  bool hasPairs() const { return tile.getElementTypeBitWidth() < 8; }
  /// A thread's stores fill sectors.
  bool fillsSectors() const {
    return hasRows && tile.getRank() == 2 && rowBytes % kSectorBytes == 0 &&
           alignment % kSectorBytes == 0;
  }
  /// Stores of a thread, of `bytes` each, where it has rows.
  int64_t storesOfRow(int64_t bytes) const {
    return llvm::divideCeil(rowBytes, std::min(bytes, alignment));
  }
  bool scratchFits() const { return scratchBytes >= stagedBytes; }
};

struct AttnSelectEpiloguePass
    : attn::impl::AttnSelectEpiloguePassBase<AttnSelectEpiloguePass> {
  using Base::Base;
  void runOnOperation() override;
  LogicalResult select(StoreResultOp op, EpilogueKind wanted);
  LogicalResult emitTma(StoreResultOp op, const ResultFacts &facts);
  /// Partitions that wait for their last copies already.
  DenseSet<Region *> awaited;
};

} // namespace

/// Bytes that a buffer has whatever its layout will be: those of its elements.
static int64_t leastBytes(BufferType type) {
  return ShapedType::getNumElements(type.getShape()) *
         type.getElementType().getIntOrFloatBitWidth() / 8;
}

/// The alignment in bytes that a buffer of this shape will have.
static unsigned alignmentOf(ArrayRef<int64_t> shape, int64_t elementBits) {
  if (shape.size() != 2)
    return 1;
  auto layout = SharedLayout::choose(shape[0], shape[1], elementBits);
  if (layout)
    return layout->alignment();
  llvm::consumeError(layout.takeError());
  return 1;
}

/// The layout in which a tile that is computed element by element was loaded;
/// null where that is not known yet.
static Attribute findLoadedLayout(Value tile) {
  auto type = dyn_cast<RankedTensorType>(tile.getType());
  if (type && !isAuto(type.getEncoding()))
    return type.getEncoding();
  Operation *def = tile.getDefiningOp();
  if (!def)
    return {};
  // A wait returns what is in flight in its layout.
  if (auto wait = dyn_cast<AsyncOpInterface>(def);
      wait && wait.getAwaitedGroups()) {
    Value source = def->getOperand(cast<OpResult>(tile).getResultNumber());
    auto inFlight = dyn_cast<InFlightType>(source.getType());
    return inFlight ? inFlight.getLayout() : Attribute();
  }
  // Where a tile may have nothing, one of the branches has loaded it.
  if (auto branch = dyn_cast<scf::IfOp>(def)) {
    unsigned number = cast<OpResult>(tile).getResultNumber();
    for (auto yield : {branch.thenYield(), branch.elseYield()})
      if (Attribute layout = findLoadedLayout(yield.getOperand(number)))
        return layout;
    return {};
  }
  if (auto slice = dyn_cast<SliceOp>(def))
    return findLoadedLayout(slice.getSource());
  if (auto loop = dyn_cast<scf::ForOp>(def))
    return findLoadedLayout(
        loop.getYieldedValues()[cast<OpResult>(tile).getResultNumber()]);
  if (!isElementwiseOnTiles(def))
    return {};
  for (Value operand : def->getOperands())
    if (isTile(operand.getType()))
      if (Attribute layout = findLoadedLayout(operand))
        return layout;
  return {};
}

/// True if each row is in the registers of one thread.
static bool ownsRows(Attribute layout, RankedTensorType tile) {
  auto chosen = dyn_cast_or_null<TileLayoutAttrInterface>(layout);
  if (!chosen || tile.getRank() != 2)
    return false;
  auto registers =
      chosen.toTileLayout(tile.getShape(), tile.getElementTypeBitWidth());
  if (!registers) {
    llvm::consumeError(registers.takeError());
    return false;
  }
  return registers->laneBitsAlong(1).empty() &&
         registers->warpBitsAlong(1).empty();
}

static FailureOr<ResultFacts> collectFacts(StoreResultOp op) {
  ResultFacts facts;
  auto kernel = op->getParentOfType<gpu::GPUFuncOp>();
  if (!kernel)
    return op.emitOpError("expected to stand in a gpu.func");
  auto warps = getWarpGrid(op);
  if (failed(warps))
    return failure();
  facts.warps = *warps;
  facts.tile = cast<RankedTensorType>(op.getValue().getType());
  Attribute loaded = findLoadedLayout(op.getValue());
  facts.hasRows = ownsRows(loaded, facts.tile);
  facts.hasFragments = !isa_and_nonnull<TmemRegsLayoutAttr>(loaded);
  if (auto fragments = dyn_cast_or_null<MmaLayoutAttr>(loaded)) {
    facts.hasColumnRuns = fragments.getColumnRuns();
    facts.hasColumnQuads = fragments.getColumnQuads();
  }
  GlobalType dest = op.getDest().getType();
  int64_t elementBits = dest.getElementType().getIntOrFloatBitWidth();
  facts.elementBits = elementBits;
  facts.rowBytes = dest.getColumns() * elementBits / 8;
  int64_t perElement = facts.hasPairs() ? 2 : 1;
  facts.hasPadding = facts.tile.getRank() == 2 &&
                     facts.tile.getShape()[1] > perElement * dest.getColumns();
  facts.alignment = elementBits / 8;
  if (auto view = op.getDest().getDefiningOp<GlobalViewOp>())
    if (std::optional<uint64_t> alignment = view.getAlignment())
      facts.alignment = *alignment;
  facts.stagedBytes =
      ShapedType::getNumElements(facts.tile.getShape()) * elementBits / 8;
  if (facts.tile.getRank() == 2) {
    auto layout = SharedLayout::choose(facts.tile.getShape()[0],
                                       facts.tile.getShape()[1], elementBits);
    if (layout)
      facts.stagedBytes = layout->sizeBytes();
    else
      llvm::consumeError(layout.takeError());
  }
  if (Value scratch = op.getScratch()) {
    auto type = cast<BufferType>(scratch.getType());
    facts.scratchBytes = leastBytes(type);
    // The same extents and element size get the same layout.
    if (type.getShape() == facts.tile.getShape() &&
        type.getElementType().getIntOrFloatBitWidth() == elementBits)
      facts.scratchBytes = facts.stagedBytes;
    // Narrower rows of the buffer may not be aligned enough for wider ones.
    if (alignmentOf(type.getSlotShape(),
                    type.getElementType().getIntOrFloatBitWidth()) <
        alignmentOf(facts.tile.getShape(), elementBits))
      facts.scratchBytes = 0;
  }
  return facts;
}

static EpilogueKind choose(const ResultFacts &facts) {
  if (facts.fillsSectors())
    return EpilogueKind::Direct;
  if (facts.wideRows() && !facts.hasPairs() && facts.scratchBytes > 0 &&
      facts.scratchFits())
    return EpilogueKind::Staged;
  return facts.canShuffle() ? EpilogueKind::Shuffled : EpilogueKind::Direct;
}

/// Stores `value` as the op would.
static void replaceStore(OpBuilder &builder, StoreResultOp op, Value value) {
  auto store = GlobalStoreOp::create(builder, op.getLoc(), value, op.getDest(),
                                     op.getRow());
  if (Attribute kept = op->getAttr(kKeptAttr))
    store->setAttr(kKeptAttr, kept);
}

static void emitShuffled(StoreResultOp op, const ResultFacts &facts) {
  OpBuilder builder(op);
  auto layout =
      facts.warps.second == 1
          ? MmaLayoutAttr::get(op.getContext(), {facts.warps.first, 1})
          : MmaLayoutAttr::get(op.getContext(),
                               {facts.warps.first, facts.warps.second},
                               /*copies=*/1, /*columnRuns=*/true);
  auto type =
      RankedTensorType::get(facts.tile.getShape(), facts.tile.getElementType(),
                            RunsLayoutAttr::get(op.getContext(), layout));
  Value runs =
      ConvertLayoutOp::create(builder, op.getLoc(), type, op.getValue());
  replaceStore(builder, op, runs);
}

/// The buffer that a result passes through: the dead one if it fits, else one
/// of its own.
static Value getStaging(OpBuilder &builder, StoreResultOp op,
                        const ResultFacts &facts) {
  Location loc = op.getLoc();
  auto type = BufferType::get(
      op.getContext(), facts.tile.getShape(), facts.tile.getElementType(),
      AutoLayoutAttr::get(op.getContext()), MemorySpace::Shared);
  Value buffer = op.getScratch();
  if (!buffer || !facts.scratchFits())
    buffer =
        AllocOp::create(builder, loc, type, builder.getStringAttr("staging"),
                        IntegerAttr(), StringAttr());
  else if (buffer.getType() != type)
    buffer = ReinterpretOp::create(builder, loc, type, buffer);
  return buffer;
}

static void emitStaged(StoreResultOp op, const ResultFacts &facts) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  Value buffer = getStaging(builder, op, facts);
  LocalStoreOp::create(builder, loc, op.getValue(), buffer);
  CopyOutOp::create(builder, loc, buffer, op.getDest(), op.getRow());
}

/// One thread of each warpgroup runs what `emit` makes.
static void emitElected(OpBuilder &builder, Location loc,
                        function_ref<void(ImplicitLocOpBuilder &)> emit) {
  auto elect = ElectOp::create(builder, loc, /*each_warpgroup=*/true);
  ImplicitLocOpBuilder b(loc, builder.getContext());
  b.createBlock(&elect.getBody());
  emit(b);
  YieldOp::create(b, ValueRange());
}

/// The bulk groups of a thread are those of one warpgroup's results, so that a
/// wait for all of them is one for the tile before.
LogicalResult AttnSelectEpiloguePass::emitTma(StoreResultOp op,
                                              const ResultFacts &facts) {
  auto [partitions, index] = getPartition(op);
  if (!partitions)
    return op.emitOpError("expected to stand in a partition to be stored by "
                          "TMA, got no partition");
  int64_t warpgroups = partitions.getWarps()[index] / 4;
  auto map = cast<TensorMapType>(op.getMap().getType());
  if (map.getRows() * warpgroups != facts.tile.getShape()[0]) {
    InFlightDiagnostic diag = op.emitOpError("expected a map whose boxes have ")
                              << facts.tile.getShape()[0] << " rows in "
                              << warpgroups << " warpgroups, got boxes of "
                              << map.getRows();
    diag.attachNote(partitions.getLoc()) << "the partition is here";
    return diag;
  }
  OpBuilder builder(op);
  Location loc = op.getLoc();
  Value buffer = getStaging(builder, op, facts);
  auto emitWait = [](ImplicitLocOpBuilder &b) {
    awaitBulkStores(b, b.getLoc());
  };
  emitElected(builder, loc, emitWait);
  LocalStoreOp::create(builder, loc, op.getValue(), buffer);
  emitElected(builder, loc, [&](ImplicitLocOpBuilder &b) {
    startBulkStore(b, loc, buffer, op.getMap(), op.getCoords(), warpgroups);
  });
  // Shared memory must be there until the last copy has read it.
  Region &region = partitions.getPartitions()[index];
  if (awaited.insert(&region).second) {
    builder.setInsertionPoint(region.front().getTerminator());
    emitElected(builder, loc, emitWait);
  }
  return success();
}

/// The buffer's name, or that of the ring whose slot it is.
static StringRef getBufferName(Value buffer) {
  while (Operation *def = buffer.getDefiningOp()) {
    if (auto alloc = dyn_cast<AllocOp>(def))
      return alloc.getName().value_or("");
    auto view = dyn_cast<ViewLikeOpInterface>(def);
    if (!view)
      break;
    buffer = view.getViewSource();
  }
  return "";
}

/// "128 x 64 x bf16 in 'softmax0'", the way to global memory, and the memory
/// between.
static std::string describeResult(StoreResultOp op, EpilogueKind kind,
                                  const ResultFacts &facts) {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (int64_t extent : facts.tile.getShape())
    os << extent << " x ";
  os << facts.tile.getElementType();
  auto [partitions, index] = getPartition(op);
  if (partitions)
    os << " in '" << cast<StringAttr>(partitions.getNames()[index]).getValue()
       << "'";
  os << ", " << stringifyEpilogueKind(kind) << ": "
     << (facts.hasFragments ? "" : "tensor memory -> ") << "registers";
  auto printStores = [&](int64_t bytes) {
    if (facts.hasRows)
      os << " -> " << facts.storesOfRow(bytes) << " stores of "
         << std::min(bytes, facts.alignment) << " bytes a row";
  };
  if (kind == EpilogueKind::Direct)
    printStores(kSectorBytes);
  if (kind == EpilogueKind::Shuffled)
    os << " -> exchanges -> 16 bytes a lane";
  if (kind != EpilogueKind::Staged && kind != EpilogueKind::Tma)
    return text;
  os << " -> " << facts.stagedBytes << " bytes of shared memory";
  StringRef name = op.getScratch() && facts.scratchFits()
                       ? getBufferName(op.getScratch())
                       : "";
  if (!name.empty())
    os << " in '" << name << "'";
  if (auto layout =
          SharedLayout::choose(facts.tile.getShape()[0],
                               facts.tile.getShape()[1], facts.elementBits))
    os << ", swizzle " << layout->spanBytes();
  else
    llvm::consumeError(layout.takeError());
  if (kind == EpilogueKind::Tma)
    os << " -> TMA";
  else
    printStores(kVectorBytes);
  return text;
}

/// Says what was chosen and the numbers that it was chosen by.
static void report(StoreResultOp op, EpilogueKind kind,
                   const ResultFacts &facts) {
  auto kernel = op->getParentOfType<gpu::GPUFuncOp>();
  auto message =
      remark::passed(op.getLoc(), remark::RemarkOpts::name("result")
                                      .category("attn.select-epilogue")
                                      .function(kernel.getName()));
  message << remark::add("the result is {0}", stringifyEpilogueKind(kind))
          << remark::metric("kind", stringifyEpilogueKind(kind))
          << remark::metric("row-bytes", facts.rowBytes)
          << remark::metric("row-alignment", facts.alignment)
          << remark::metric("staged-bytes", facts.stagedBytes)
          << remark::metric("scratch-bytes", facts.scratchBytes);
  if (facts.hasRows)
    message << remark::metric("direct-stores", facts.storesOfRow(kSectorBytes))
            << remark::metric("staged-stores", facts.storesOfRow(kVectorBytes));
}

LogicalResult AttnSelectEpiloguePass::select(StoreResultOp op,
                                             EpilogueKind wanted) {
  auto collected = collectFacts(op);
  if (failed(collected))
    return failure();
  const ResultFacts &facts = *collected;
  EpilogueKind kind = op.getKind();
  if (kind == EpilogueKind::Auto && facts.tile.getRank() == 2)
    kind = wanted;
  auto kernel = op->getParentOfType<gpu::GPUFuncOp>();
  if (kind == EpilogueKind::Tma && !op.getMap()) {
    kind = EpilogueKind::Auto;
    remark::missed(op.getLoc(), remark::RemarkOpts::name("tma")
                                    .category("attn.select-epilogue")
                                    .function(kernel.getName()))
        << remark::add("the result is not stored by TMA")
        << remark::reason("no tensor map ends where its rows do");
  }
  if (kind == EpilogueKind::Auto ||
      (facts.hasPairs() && kind != EpilogueKind::Direct))
    kind = choose(facts);
  if (kind == EpilogueKind::Staged && facts.tile.getRank() != 2)
    return op.emitOpError("expected a tile of rank 2 for a staged result, got ")
           << facts.tile;
  if (kind == EpilogueKind::Shuffled && !facts.canShuffle())
    return op.emitOpError(
               "expected aligned rows of whole 64 bytes, each in one "
               "warp, for a shuffled result, got rows of ")
           << facts.rowBytes << " bytes aligned to " << facts.alignment;

  report(op, kind, facts);
  if (printMap && facts.tile.getRank() == 2)
    emitRemark(kernel.getLoc(), "result " + describeResult(op, kind, facts));

  if (kind == EpilogueKind::Tma) {
    if (failed(emitTma(op, facts)))
      return failure();
    ++numTma;
  } else if (kind == EpilogueKind::Staged) {
    emitStaged(op, facts);
    ++numStaged;
  } else if (kind == EpilogueKind::Shuffled) {
    emitShuffled(op, facts);
    ++numShuffled;
  } else {
    OpBuilder builder(op);
    replaceStore(builder, op, op.getValue());
    ++numDirect;
  }
  op.erase();
  return success();
}

void AttnSelectEpiloguePass::runOnOperation() {
  std::optional<EpilogueKind> wanted = symbolizeEpilogueKind(kind);
  if (!wanted) {
    getOperation().emitError("expected the kind auto, direct, shuffled, "
                             "staged or tma, got '")
        << kind << "'";
    return signalPassFailure();
  }
  SmallVector<StoreResultOp> results;
  getOperation().walk([&](StoreResultOp op) { results.push_back(op); });
  for (StoreResultOp op : results)
    if (failed(select(op, *wanted)))
      return signalPassFailure();
}
