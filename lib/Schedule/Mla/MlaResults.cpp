//===- MlaResults.cpp - The warpgroups of the results of mla --------------===//

#include "MlaEmitter.h"

using namespace mlir;
using namespace mlir::attn;

Value MlaEmitter::awaitHalf(Value cursor, StringRef part) {
  auto slot = ChannelAcquireOp::create(b, pChannel, cursor, kLatentResults);
  slot.setPart(part);
  return slot.getToken();
}

Value MlaEmitter::emitValueProduct(Value slot, Value result, Value cursor,
                                   Value &back) {
  auto type = InFlightType::get(
      b.getContext(), cast<RankedTensorType>(result.getType()).getShape(),
      b.getF32Type(),
      MmaLayoutAttr::get(b.getContext(), {plan.getWarpsM(), plan.getWarpsN()},
                         /*copies=*/1, /*column_runs=*/true));
  if (!handsOnHalves())
    return WgmmaOp::create(b, type, probabilities, slot, result,
                           /*columns=*/IntegerAttr(), /*depth=*/IntegerAttr(),
                           /*first=*/IntegerAttr());
  int64_t keys = plan.getBlockN() / 2;
  auto multiply = [&](int64_t half, Value sum) -> Value {
    return WgmmaOp::create(b, type, emitHalf(half), slot, sum,
                           /*columns=*/IntegerAttr(), b.getI64IntegerAttr(keys),
                           half == 0 ? IntegerAttr()
                                     : b.getI64IntegerAttr(half * keys));
  };
  Value product = multiply(0, result);
  if (!back)
    back = awaitHalf(cursor, kBack);
  return multiply(1, product);
}

SmallVector<Value> MlaEmitter::emitResultBlock(ValueRange carried,
                                               StoreFn store) {
  ArrayRef<Slice> values = ArrayRef(slices).take_front(valueSlices);
  Value back, handed = handsOnHalves()
                           ? awaitHalf(carried[0], kFront)
                           : await(pChannel, carried[0], kLatentResults);
  Value factor = LocalLoadOp::create(b, f32Tile({blockM}), factors);
  SmallVector<Value> results =
      emitRareRescale(b, factor, carried.drop_front(1 + valueSlices));
  SmallVector<Value> products(valueSlices),
      next = {this->next(carried[0], pChannel)};
  llvm::append_range(next, carried.slice(1, valueSlices));
  // What has the fewest slots is free first.
  bool isReversed = values.front().isHeld;
  int64_t last = 0;
  Value before, token;
  for (int64_t step = 0; step < valueSlices; ++step) {
    int64_t i = isReversed ? valueSlices - 1 - step : step;
    const Slice &slice = values[i];
    Value slot;
    std::tie(slot, token) = acquire(slice.ring, carried[1 + i], kLatentResults);
    products[i] = emitValueProduct(slot, results[i], carried[0], back);
    // What the product before has read is free while this one runs.
    if (before) {
      SmallVector<Value> done;
      if (store)
        done.push_back(std::exchange(products[last], Value()));
      auto wait = WgmmaWaitOp::create(
          b, ValueRange(results).slice(last, done.size()).getTypes(), done,
          /*pending=*/handsOnHalves() ? 2 : 1);
      release(values[last].ring, before, kLatentResults);
      if (store)
        store(values[last], wait.getResult(0));
    }
    before = token;
    last = i;
    next[1 + i] = advance(carried[1 + i], slice.ring);
  }
  SmallVector<Type> types;
  for (auto [product, result] : llvm::zip(products, results))
    if (product)
      types.push_back(result.getType());
  llvm::erase(products, Value());
  auto wait = WgmmaWaitOp::create(b, types, products, /*pending=*/0);
  if (back)
    handed = ChannelJoinOp::create(b, pChannel, {handed, back}, kLatentResults);
  ChannelReleaseOp::create(b, pChannel, handed, kLatentResults);
  release(values[last].ring, token, kLatentResults);
  if (store)
    store(values[last], wait.getResult(0));
  else
    llvm::append_range(next, wait.getResults());
  return next;
}

SmallVector<Value> MlaEmitter::emitResultTile(ValueRange cursors) {
  ArrayRef<Slice> values = ArrayRef(slices).take_front(valueSlices);
  SmallVector<Value> inits = {cursors[0]};
  llvm::append_range(inits, cursors.drop_front(2));
  // Queries on their way to the scores' registers.
  forHeldQueries(MutableArrayRef(inits).drop_front(1), [&](const Slice &slice,
                                                           Value cursor) {
    auto [slot, token] = acquire(slice.ring, cursor, kLatentResults);
    release(slice.ring, token, kLatentResults);
  });
  for (const Slice &slice : values)
    inits.push_back(splat(f32Tile({blockM, slice.columns}), 0));
  Value trips = b.createOrFold<arith::SubIOp>(bounds.end, bounds.begin);
  Value one = context.i32(1);
  Value rest = arith::MaxSIOp::create(b, arith::SubIOp::create(b, trips, one),
                                      context.i32(0));
  auto loop = scf::ForOp::create(
      b, context.i32(0), rest, one, inits,
      [&](OpBuilder &builder, Location, Value, ValueRange carried) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToStart(builder.getInsertionBlock());
        scf::YieldOp::create(b, emitResultBlock(carried));
      });
  SmallVector<Value> next = emitLastBlock(trips, loop.getResults(), cursors[1]);
  next.insert(next.begin() + 1, this->next(cursors[1], scaleChannel));
  return next;
}

SmallVector<Value> MlaEmitter::emitLastBlock(Value trips, ValueRange carried,
                                             Value cursor) {
  // Both branches hand the channel of the factors back, behind other products.
  Value factor;
  auto store = [&](const Slice &slice, Value result) {
    if (!factor) {
      Value handed = await(scaleChannel, cursor, kLatentResults);
      factor = LocalLoadOp::create(b, f32Tile({blockM}), scales);
      ChannelReleaseOp::create(b, scaleChannel, handed, kLatentResults);
    }
    StoreResultOp::create(b, emitQuotient(result, factor),
                          emitResultView("o", slice.first, slice.columns), row,
                          /*scratch=*/Value(), /*map=*/Value(),
                          /*coordinates=*/ValueRange(), plan.getEpilogue());
  };
  ValueRange next = carried.take_front(1 + valueSlices);
  Value isThere = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, trips,
                                        context.i32(0));
  auto branch = scf::IfOp::create(b, next.getTypes(), isThere,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, emitResultBlock(carried, store));
  b.setInsertionPointToStart(branch.elseBlock());
  factor = Value();
  for (auto [slice, result] :
       llvm::zip(slices, carried.drop_front(1 + valueSlices)))
    store(slice, result);
  scf::YieldOp::create(b, next);
  return SmallVector<Value>(branch.getResults());
}

LogicalResult MlaEmitter::emitResultRole() {
  TileLoopOp loop = emitTileLoop(
      [&]() -> SmallVector<Value> {
        SmallVector<Value> cursors = {start(pChannel, kLatentResults),
                                      start(scaleChannel, kLatentResults)};
        for (const Slice &slice : ArrayRef(slices).take_front(valueSlices))
          cursors.push_back(start(slice.ring.channel, kLatentResults));
        return cursors;
      },
      [&](ValueRange cursors) -> FailureOr<SmallVector<Value>> {
        return emitResultTile(cursors);
      });
  return success(static_cast<bool>(loop));
}
