//===- SlicedRings.cpp - Rings whose slots are slices of rows -------------===//

#include "SlicedRings.h"

using namespace mlir;
using namespace mlir::attn;

void SlicedRings::releaseLast(HeldSlot &held, HeldSlot next, StringRef role) {
  if (held.ring) {
    WgmmaWaitOp::create(b, TypeRange(), ValueRange(),
                        /*pending=*/next.ring ? 1 : 0);
    release(*held.ring, held.token, role);
  }
  held = next;
}

Value SlicedRings::startScoreSlice(const Ring &ring, StringRef role,
                                   Value query, int64_t index,
                                   RankedTensorType type, int64_t depth,
                                   Value product, HeldSlot &held,
                                   Value &cursor) {
  auto [slot, token] = acquire(ring, cursor, role);
  Value transposed = TransposeOp::create(
      b, bufferType({slice, ring.slotType.getShape()[0]}), slot);
  // Behind the last column there are zeros, which need no products.
  int64_t columns = std::min<int64_t>(slice, depth - index * slice);
  product = WgmmaOp::create(b, inFlight(type), query, transposed, product,
                            /*columns=*/IntegerAttr(),
                            columns == slice ? IntegerAttr()
                                             : b.getI64IntegerAttr(columns),
                            /*first=*/IntegerAttr());
  releaseLast(held, {&ring, token}, role);
  cursor = advance(cursor, ring);
  return product;
}

Value SlicedRings::startValueSlice(const Ring &ring, StringRef role, Value p,
                                   Value result, int64_t columns,
                                   HeldSlot &held, Value &cursor) {
  auto [slot, token] = acquire(ring, cursor, role);
  int64_t rows = cast<ShapedType>(p.getType()).getShape()[0];
  Value product = WgmmaOp::create(
      b, inFlight(f32Tile({rows, columns})), p, slot, result,
      columns == slice ? IntegerAttr() : b.getI64IntegerAttr(columns),
      /*depth=*/IntegerAttr(), /*first=*/IntegerAttr());
  releaseLast(held, {&ring, token}, role);
  cursor = advance(cursor, ring);
  return product;
}

Value SlicedRings::emitScoreProduct(const Ring &ring, StringRef role,
                                    ArrayRef<Value> queries,
                                    RankedTensorType type, int64_t depth,
                                    Value &cursor) {
  Value product;
  HeldSlot held;
  for (auto [i, query] : llvm::enumerate(queries))
    product = startScoreSlice(ring, role, query, i, type, depth, product, held,
                              cursor);
  Value scores =
      WgmmaWaitOp::create(b, type, product, /*pending=*/0).getResult(0);
  release(ring, held.token, role);
  return scores;
}

std::pair<SmallVector<Value>, HeldSlot>
SlicedRings::startValueProducts(const Ring &ring, StringRef role, Value p,
                                ValueRange results, Value &cursor) {
  SmallVector<Value> products;
  HeldSlot held;
  for (Value result : results)
    products.push_back(startValueSlice(
        ring, role, p, result,
        cast<RankedTensorType>(result.getType()).getShape()[1], held, cursor));
  return {products, held};
}

SmallVector<Value> SlicedRings::awaitProducts(ValueRange products,
                                              HeldSlot held, StringRef role) {
  SmallVector<Type> types;
  for (Value product : products) {
    auto type = cast<InFlightType>(product.getType());
    types.push_back(tileType(type.getShape(), type.getElementType()));
  }
  auto wait = WgmmaWaitOp::create(b, types, products, /*pending=*/0);
  release(*held.ring, held.token, role);
  return llvm::to_vector(ValueRange(wait.getResults()));
}

void SlicedRings::emitSkip(Value count, StringRef role,
                           ArrayRef<SkippedRing> rings) {
  if (!count)
    return;
  auto makeLoop = [&](Value trips, ValueRange inits,
                      function_ref<SmallVector<Value>(ValueRange)> emit) {
    return scf::ForOp::create(
        b, context.i32(0), trips, context.i32(1), inits,
        [&](OpBuilder &builder, Location, Value, ValueRange carried) {
          OpBuilder::InsertionGuard guard(b);
          b.setInsertionPointToStart(builder.getInsertionBlock());
          scf::YieldOp::create(b, emit(carried));
        });
  };
  auto skipBlock = [&](ValueRange cursors) {
    SmallVector<Value> next;
    for (auto [skipped, cursor] : llvm::zip(rings, cursors)) {
      const Ring &ring = skipped.ring;
      auto slices = makeLoop(context.i32(skipped.slices), cursor,
                             [&](ValueRange carried) -> SmallVector<Value> {
                               auto [slot, token] =
                                   acquire(ring, carried[0], role);
                               release(ring, token, role);
                               return {advance(carried[0], ring)};
                             });
      next.push_back(slices.getResult(0));
    }
    return next;
  };
  SmallVector<Value> inits;
  for (const SkippedRing &skipped : rings)
    inits.push_back(skipped.cursor);
  scf::ForOp blocks = makeLoop(count, inits, skipBlock);
  for (auto [skipped, cursor] : llvm::zip(rings, blocks.getResults()))
    skipped.cursor = cursor;
}
