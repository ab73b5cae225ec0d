//===- MlaResults.cpp - The warpgroups of the results of mla --------------===//

#include "MlaEmitter.h"
#include "attn/Dialect/Attn/IR/KernelAttrs.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

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
      b.getF32Type(), getResultLayout());
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

int64_t MlaEmitter::getValueSlice(int64_t step) const {
  // What has the fewest slots is free first.
  bool isFirstLast = slices.front().isHeld || facts.hasNarrowKeys();
  return isFirstLast ? valueSlices - 1 - step : step;
}

SmallVector<Value> MlaEmitter::emitResultBlock(Value isLast,
                                               ValueRange carried) {
  ArrayRef<Slice> values = ArrayRef(slices).take_front(valueSlices);
  Value back, handed = handsOnHalves()
                           ? awaitHalf(carried[0], kFront)
                           : await(pChannel, carried[0], kLatentResults);
  Value factor = LocalLoadOp::create(b, f32Tile({blockM}), factors);
  SmallVector<Value> results =
      emitRareRescale(b, factor, carried.slice(1 + valueSlices, valueSlices));
  SmallVector<Value> products(valueSlices),
      next = {this->next(carried[0], pChannel)};
  llvm::append_range(next, carried.slice(1, valueSlices));
  int64_t last = 0;
  Value before, token;
  SmallVector<Value> scale(carried.take_back(2));
  for (int64_t step = 0; step < valueSlices; ++step) {
    int64_t i = getValueSlice(step);
    const Slice &slice = values[i];
    Value slot;
    std::tie(slot, token) = acquire(slice.ring, carried[1 + i], kLatentResults);
    products[i] = emitValueProduct(slot, results[i], carried[0], back);
    // What the product before has read is free while this one runs.
    if (before) {
      results[last] = WgmmaWaitOp::create(b, results[last].getType(),
                                          std::exchange(products[last], {}),
                                          /*pending=*/handsOnHalves() ? 2 : 1)
                          .getResult(0);
      release(values[last].ring, before, kLatentResults);
      if (storesEarly())
        scale = emitIf(isLast, scale, [&]() {
          SmallVector<Value> handed = emitScale(scale.back());
          storeSlice(values[last],
                     emitScaledSlice(last, results[last], handed.front()));
          return handed;
        });
    }
    before = token;
    last = i;
    next[1 + i] = advance(carried[1 + i], slice.ring);
  }
  results[last] = WgmmaWaitOp::create(b, results[last].getType(),
                                      products[last], /*pending=*/0)
                      .getResult(0);
  if (back)
    handed = ChannelJoinOp::create(b, pChannel, {handed, back}, kLatentResults);
  ChannelReleaseOp::create(b, pChannel, handed, kLatentResults);
  release(values[last].ring, token, kLatentResults);
  llvm::append_range(next, results);
  next.append(scale);
  return next;
}

SmallVector<Value> MlaEmitter::emitIf(Value condition, ValueRange otherwise,
                                      function_ref<SmallVector<Value>()> emit) {
  auto branch = scf::IfOp::create(b, otherwise.getTypes(), condition,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, otherwise);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, emit());
  return SmallVector<Value>(branch.getResults());
}

SmallVector<Value> MlaEmitter::emitScale(Value cursor) {
  Value handed = await(scaleChannel, cursor, kLatentResults);
  Value scale = LocalLoadOp::create(b, f32Tile({blockM}), scales);
  ChannelReleaseOp::create(b, scaleChannel, handed, kLatentResults);
  return {scale, next(cursor, scaleChannel)};
}

Value MlaEmitter::emitScaledSlice(int64_t index, Value result, Value scale) {
  if (!facts.hasPartialScales())
    return emitQuotient(result, scale);
  DividedRows rows = getResultRows();
  return emitScaledRows(result, scale, /*initWeight=*/Value(), &rows, index)
      .front();
}

void MlaEmitter::storeSlice(const Slice &slice, Value o) {
  StoreResultOp::create(b, o, emitResultView("o", slice.first, slice.columns),
                        row, /*scratch=*/Value(), /*map=*/Value(),
                        /*coordinates=*/ValueRange(), plan.getEpilogue());
}

void MlaEmitter::storeRest(ValueRange results, Value scale) {
  ArrayRef<Slice> values = ArrayRef(slices).take_front(valueSlices);
  SmallVector<Value> scaled;
  DividedRows rows = getResultRows();
  if (sharesUnits())
    scaled = emitScaledRows(results, scale, /*initWeight=*/Value(), &rows);
  // A CTA leaves no registers to another one, so that what starts earlier waits
  // on the first SMs that are free, and takes their bandwidth alone.
  if (facts.o.isWorkspace())
    NVVM::GriddepcontrolOp::create(b,
                                   NVVM::GridDepActionKind::launch_dependents);
  int64_t last = getValueSlice(valueSlices - 1);
  for (auto [i, slice] : llvm::enumerate(values))
    if (int64_t(i) == last || !storesEarly())
      storeSlice(slice, scaled.empty() ? emitScaledSlice(i, results[i], scale)
                                       : scaled[i]);
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
  inits.append({splat(f32Tile({blockM}), 0), cursors[1]});
  Value trips = b.createOrFold<arith::SubIOp>(bounds.end, bounds.begin);
  Value one = context.i32(1);
  Value last = arith::SubIOp::create(b, trips, one);
  auto loop = scf::ForOp::create(
      b, context.i32(0), trips, one, inits,
      [&](OpBuilder &builder, Location, Value index, ValueRange carried) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToStart(builder.getInsertionBlock());
        Value isLast =
            arith::CmpIOp::create(b, arith::CmpIPredicate::eq, index, last);
        scf::YieldOp::create(b, emitResultBlock(isLast, carried));
      });
  ValueRange results = loop.getResults().slice(1 + valueSlices, valueSlices);
  ValueRange handed = loop.getResults().take_back(2);
  SmallVector<Value> scale;
  if (storesEarly()) {
    // Nothing was stored in a loop without blocks.
    Value isEmpty = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, last,
                                          context.i32(0));
    scale = emitIf(isEmpty, handed, [&]() {
      SmallVector<Value> scale = emitScale(handed.back());
      for (int64_t step = 0; step + 1 < valueSlices; ++step) {
        int64_t i = getValueSlice(step);
        storeSlice(values[i], emitScaledSlice(i, results[i], scale.front()));
      }
      return scale;
    });
  } else {
    scale = emitScale(handed.back());
  }
  storeRest(results, scale.front());
  SmallVector<Value> next = {loop.getResult(0), scale.back()};
  llvm::append_range(next, loop.getResults().slice(1, valueSlices));
  return next;
}

LogicalResult MlaEmitter::emitResultRole() {
  if (renewsEntry(facts, plan))
    context.getKernel()->setAttr(kRenewEntryAttr, b.getUnitAttr());
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
