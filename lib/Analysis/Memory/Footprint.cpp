//===- Footprint.cpp - The bytes of one warp's part -----------------------===//

#include "attn/Analysis/Memory/Footprint.h"

using namespace mlir;
using namespace mlir::attn;

/// Sorts ranges and joins those that meet.
static void join(SmallVector<ByteRange, 1> &ranges) {
  llvm::sort(ranges,
             [](ByteRange a, ByteRange b) { return a.begin < b.begin; });
  size_t last = 0;
  for (size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].begin <= ranges[last].end)
      ranges[last].end = std::max(ranges[last].end, ranges[i].end);
    else
      ranges[++last] = ranges[i];
  ranges.truncate(std::min(last + 1, ranges.size()));
}

/// Rows of a swizzled buffer lie `span` bytes apart, and the swizzle stays
/// within eight of them.
static constexpr int64_t kAtomRows = 8;

llvm::Expected<SmallVector<ByteRange, 1>>
attn::getRowBytes(BufferType type, int64_t first, int64_t count) {
  ArrayRef<int64_t> shape = type.getSlotShape();
  int64_t bits = type.getElementType().getIntOrFloatBitWidth();
  SmallVector<ByteRange, 1> ranges;
  auto swizzled = dyn_cast<SwizzledLayoutAttr>(type.getLayout());
  if (swizzled && swizzled.getSpan() != 0 && shape.size() == 2 &&
      first % kAtomRows == 0 && count % kAtomRows == 0 &&
      shape[0] % kAtomRows == 0) {
    int64_t span = swizzled.getSpan();
    int64_t spans = llvm::divideCeil(shape[1] * bits / 8, span);
    for (int64_t column = 0; column < spans; ++column) {
      int64_t begin = (column * shape[0] + first) * span;
      ranges.push_back({begin, begin + count * span});
    }
    join(ranges);
    return ranges;
  }
  auto layout = dyn_cast<BufferLayoutAttrInterface>(type.getLayout());
  if (!layout)
    return llvm::createStringError("its layout is not chosen");
  auto shared = layout.toSharedLayout(shape, bits);
  if (!shared)
    return shared.takeError();
  for (int64_t row = first; row < first + count; ++row) {
    int64_t columns = shape.size() == 2 ? shape[1] : 1;
    for (int64_t column = 0; column < columns; ++column) {
      int64_t begin = shape.size() == 2 ? shared->offset({row, column})
                                        : shared->offset({row});
      ranges.push_back({begin, begin + bits / 8});
    }
  }
  join(ranges);
  return ranges;
}

int64_t attn::getTeamBytes(gpu::GPUFuncOp kernel) {
  auto bytes =
      kernel->getAttrOfType<IntegerAttr>(AttnDialect::kSharedBytesAttr);
  return bytes ? bytes.getInt() / getTeams(kernel) : 0;
}

/// The slot that an access goes through, and where its alloc's bytes begin for
/// it: a constant index is a slot like any other.
static llvm::Error findSlot(Footprint &footprint) {
  SharedAccess &access = footprint.access;
  if (!access.slot)
    return llvm::Error::success();
  for (Value buffer = access.slot.getSource();
       Operation *def = buffer.getDefiningOp();) {
    if (isa<SlotOp>(def))
      return llvm::createStringError("it goes through a slot of a slot");
    if (!isBufferView(def))
      break;
    buffer = cast<ViewLikeOpInterface>(def).getViewSource();
  }
  auto ring = access.slot.getSource().getType();
  auto bytes = ring.getSlotBytes();
  if (!bytes)
    return bytes.takeError();
  footprint.slotIndex = access.slot.getIndex();
  footprint.slotBytes = *bytes;
  footprint.numSlots = ring.getNumSlots();
  return llvm::Error::success();
}

/// Rows of an accumulator that a warp holds.
static constexpr int64_t kWarpRows = 16;

/// The tile that an op writes to a whole buffer or reads from one; null for
/// others.
static Value getMovedTile(Operation *op) {
  if (auto store = dyn_cast<LocalStoreOp>(op))
    return store.getValue();
  if (auto send = dyn_cast<LocalSendOp>(op))
    return send.getValue();
  if (auto load = dyn_cast<LocalLoadOp>(op))
    return load.getResult();
  return {};
}

/// The accumulator that a layout is of, or of whose rows, or that the rows of a
/// left operand are added to; null for others.
static MmaLayoutAttr getAccumulator(Attribute layout) {
  if (auto operand = dyn_cast_or_null<OperandLayoutAttr>(layout);
      operand && operand.getIndex() == 0)
    layout = operand.getParent();
  if (auto slice = dyn_cast_or_null<SliceLayoutAttr>(layout))
    layout = slice.getDim() == 1 ? slice.getParent() : Attribute();
  else if (auto partial = dyn_cast_or_null<PartialLayoutAttr>(layout))
    layout = partial.getParent();
  return dyn_cast_or_null<MmaLayoutAttr>(layout);
}

/// True for an accumulator, a left operand, or values of their rows, of which
/// each warp holds one run of rows.
static bool movesOwnRows(const SharedAccess &access, int64_t warps) {
  Value moved = getMovedTile(access.op);
  if (!moved)
    return false;
  auto tile = cast<RankedTensorType>(moved.getType());
  MmaLayoutAttr mma = getAccumulator(tile.getEncoding());
  return mma && mma.getWarps()[0] == warps && mma.getWarps()[1] == 1 &&
         mma.getCopies() == 1 && tile.getShape()[0] == kWarpRows * warps;
}

/// How many parts the rows have, and whose they are.
static int64_t countParts(const SharedAccess &access, int64_t warps,
                          RowParts &by) {
  int64_t warpgroups = std::max<int64_t>(1, warps / 4);
  auto copy = dyn_cast<BulkCopyOpInterface>(access.op);
  if (copy && copy.isBulkLoad())
    if (std::optional<int64_t> ctas = copy.getMulticastCTAs()) {
      by = RowParts::CTAs;
      return *ctas;
    }
  if (movesOwnRows(access, warps)) {
    by = RowParts::Warps;
    return warps;
  }
  if (access.ownRows != 0 && warpgroups > 1 &&
      access.ownRows % (warpgroups * kAtomRows) == 0) {
    by = RowParts::Warpgroups;
    return warpgroups;
  }
  return 1;
}

static llvm::Expected<Footprint> makeFootprint(const SharedAccess &access,
                                               int64_t warps) {
  Footprint footprint;
  footprint.access = access;
  if (llvm::Error error = findSlot(footprint))
    return std::move(error);
  auto type = cast<BufferType>(access.op->getOperand(access.operand).getType());
  int64_t parts = countParts(access, warps, footprint.by);
  if (footprint.by == RowParts::CTAs)
    footprint.rankBits =
        cast<BulkCopyOpInterface>(access.op).getMulticastBits();
  int64_t slots = type.getNumSlots();
  // Where the view itself is a ring, all of it is touched.
  if (slots != 1) {
    auto bytes = type.getSlotBytes();
    if (!bytes)
      return bytes.takeError();
    footprint.parts.push_back({{0, *bytes * slots}});
    footprint.by = RowParts::Whole;
    return footprint;
  }
  // A transposed view has the bytes of what it is a view of.
  if (auto transposed = dyn_cast<TransposedLayoutAttr>(type.getLayout())) {
    auto bytes = type.getSlotBytes();
    if (!bytes)
      return bytes.takeError();
    footprint.parts.push_back({{0, *bytes}});
    footprint.by = RowParts::Whole;
    return footprint;
  }
  int64_t rows = type.getSlotShape()[0];
  if (rows % parts != 0) {
    parts = 1;
    footprint.by = RowParts::Whole;
  }
  for (int64_t part = 0; part < parts; ++part) {
    auto bytes = getRowBytes(type, part * (rows / parts), rows / parts);
    if (!bytes)
      return bytes.takeError();
    footprint.parts.push_back(std::move(*bytes));
  }
  return footprint;
}

FailureOr<SmallVector<Footprint, 2>> attn::getFootprints(Operation *op,
                                                         int64_t warps) {
  auto accesses = getSharedAccesses(op);
  if (failed(accesses))
    return failure();
  SmallVector<Footprint, 2> footprints;
  for (const SharedAccess &access : *accesses) {
    auto footprint = makeFootprint(access, warps);
    if (!footprint)
      return op->emitOpError("cannot tell which bytes it touches: ")
             << llvm::toString(footprint.takeError());
    footprints.push_back(std::move(*footprint));
  }
  return footprints;
}
