//===- SlicedRings.h - Rings whose slots are slices of rows -----*- C++ -*-===//
//
// Rows of Q, K and V that come in slices of their columns, a slot each:
// products go through the slots, and hand one back when the product behind it
// has started and its own is complete.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_WGMMA_SLICEDRINGS_H
#define ATTN_LIB_SCHEDULE_WGMMA_SLICEDRINGS_H

#include "../Tma/RingEmitter.h"

namespace mlir::attn {

/// Columns of results, as slices.
struct SliceRange {
  int64_t first, count;
};

/// A slice that a product reads: its slot is handed back when that is complete.
struct HeldSlot {
  const Ring *ring = nullptr;
  Value token;
};

/// A ring of which a role skips blocks of `slices` slots.
struct SkippedRing {
  const Ring &ring;
  int64_t slices;
  Value &cursor;
};

class SlicedRings : protected RingEmitter {
protected:
  /// For slots of `slice` columns.
  SlicedRings(KernelContext &context, const TilePlan &tilePlan, int64_t slice)
      : RingEmitter(context, tilePlan), slice(slice) {}

  InFlightType inFlight(RankedTensorType type) {
    return InFlightType::get(b.getContext(), type.getShape(),
                             type.getElementType());
  }
  Value start(Value channel, StringRef role) {
    return CursorStartOp::create(b, channel, role);
  }
  Value advanceOn(Value cursor, Value channel) {
    return CursorAdvanceOp::create(b, cursor, channel);
  }
  /// Waits until all products but the last one are complete, and hands back
  /// what the one before it read.
  void releaseLast(HeldSlot &held, HeldSlot next, StringRef role);
  /// Starts the product of slice `index` of the queries and the next slot, of
  /// which `depth` columns are multiplied in all, and adds `product` if it is
  /// not null. Moves the cursor behind the slot, which `held` has then.
  Value startScoreSlice(const Ring &ring, StringRef role, Value query,
                        int64_t index, RankedTensorType type, int64_t depth,
                        Value product, HeldSlot &held, Value &cursor);
  /// The same of probabilities and a slot of values, whose first `columns`
  /// columns are added to `result`.
  Value startValueSlice(const Ring &ring, StringRef role, Value p, Value result,
                        int64_t columns, HeldSlot &held, Value &cursor);
  /// The scores of a tile of `type` of the queries' slices and as many slots,
  /// of which `depth` columns are multiplied; moves the cursor behind them.
  Value emitScoreProduct(const Ring &ring, StringRef role,
                         ArrayRef<Value> queries, RankedTensorType type,
                         int64_t depth, Value &cursor);
  /// Starts to add probabilities times slots to `results`, one slot for each;
  /// the products, and the slot that the last one reads. Moves the cursor.
  std::pair<SmallVector<Value>, HeldSlot>
  startValueProducts(const Ring &ring, StringRef role, Value p,
                     ValueRange results, Value &cursor);
  /// Waits for them, and hands back the last slot.
  SmallVector<Value> awaitProducts(ValueRange products, HeldSlot held,
                                   StringRef role);
  /// Hands the slices of `count` blocks back unread, in the order in which they
  /// are loaded; moves the cursors.
  void emitSkip(Value count, StringRef role, ArrayRef<SkippedRing> rings);

  const int64_t slice;
};

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_WGMMA_SLICEDRINGS_H
