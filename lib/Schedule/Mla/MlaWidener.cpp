//===- MlaWidener.cpp - The warpgroup that widens keys of mla -------------===//

#include "../Tma/Widening.h"
#include "MlaEmitter.h"

using namespace mlir;
using namespace mlir::attn;

Value MlaEmitter::allocSlots(StringRef name, ArrayRef<int64_t> shape, Type type,
                             int64_t partColumns) {
  if (!facts.hasNarrowKeys() || shape[2] <= partColumns ||
      shape[2] % partColumns != 0)
    return alloc(name, bufferType(shape, type));
  // Spans of columns follow each other.
  Value slots = alloc(name, bufferType({shape[0] * (shape[2] / partColumns),
                                        shape[1], partColumns},
                                       type));
  return ReinterpretOp::create(b, bufferType(shape, type), slots);
}

SmallVector<Value> MlaEmitter::emitParts(Value slot) {
  auto view = slot.getDefiningOp<SlotOp>();
  auto slots = view.getSource().getDefiningOp<ReinterpretOp>();
  if (!slots)
    return {slot};
  auto type = cast<BufferType>(slots.getSource().getType());
  int64_t count =
      cast<BufferType>(slot.getType()).getShape()[1] / type.getSlotShape()[1];
  Value first =
      b.createOrFold<arith::MulIOp>(view.getIndex(), context.i32(count));
  SmallVector<Value> parts;
  for (int64_t i = 0; i < count; ++i)
    parts.push_back(SlotOp::create(
        b, bufferType(type.getSlotShape(), type.getElementType()),
        slots.getSource(), b.createOrFold<arith::AddIOp>(first, context.i32(i)),
        /*distance=*/IntegerAttr()));
  return parts;
}

Value MlaEmitter::emitConvertedQueries(const Slice &slice) {
  Value slot = emitQueries(slice);
  if (facts.elementType == getOperandType())
    return slot;
  for (Value part : emitParts(slot))
    emitConverted(part);
  return ReinterpretOp::create(
      b, bufferType(slice.queries.slotType.getShape(), getOperandType()), slot);
}

void MlaEmitter::emitWidening(const Slice &slice, Value &source, Value &dest) {
  auto [narrow, filled] = acquire(slice.raw, source, kLatentWidener);
  SmallVector<Value> parts = emitParts(narrow), wideParts;
  Value free, ahead = loadNarrowRows(b, parts.front());
  for (auto [i, part] : llvm::enumerate(parts)) {
    Value tile = emitWidened(b, ahead, getOperandType());
    // What is in registers need not wait.
    if (!free) {
      Value wide;
      std::tie(wide, free) = acquire(slice.ring, dest, kLatentWidener);
      wideParts = emitParts(wide);
    }
    // In front of the stores, behind which no load moves.
    if (hasSimpleLoads() && i + 1 < parts.size())
      ahead = loadNarrowRows(b, parts[i + 1]);
    LocalStoreOp::create(b, tile, wideParts[i]);
    if (!hasSimpleLoads() && i + 1 < parts.size())
      ahead = loadNarrowRows(b, parts[i + 1]);
  }
  // One fence for both: it takes longer than the slot waits.
  release(slice.raw, filled, kLatentWidener);
  release(slice.ring, free, kLatentWidener);
  source = advance(source, slice.raw);
  dest = advance(dest, slice.ring);
}

SmallVector<Value> MlaEmitter::emitWidenerTile(ValueRange cursors) {
  Value trips = b.createOrFold<arith::SubIOp>(bounds.end, bounds.begin);
  auto loop =
      scf::ForOp::create(b, context.i32(0), trips, context.i32(1), cursors);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> next(loop.getRegionIterArgs());
  for (unsigned i : order)
    emitWidening(slices[i], next[2 * i], next[2 * i + 1]);
  scf::YieldOp::create(b, next);
  return SmallVector<Value>(loop.getResults());
}

LogicalResult MlaEmitter::emitWidenerRole() {
  TileLoopOp loop = emitTileLoop(
      [&]() -> SmallVector<Value> {
        SmallVector<Value> cursors;
        for (const Slice &slice : slices)
          cursors.append({start(slice.raw.channel, kLatentWidener),
                          start(slice.ring.channel, kLatentWidener)});
        return cursors;
      },
      [&](ValueRange cursors) -> FailureOr<SmallVector<Value>> {
        return emitWidenerTile(cursors);
      });
  return success(static_cast<bool>(loop));
}
