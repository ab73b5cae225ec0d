//===- MlaResults.cpp - The warpgroups of the results of mla --------------===//

#include "../Wgmma/SlicedProducts.h"
#include "MlaKernel.h"
#include "attn/Dialect/Attn/IR/KernelAttrs.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::attn;

void MlaKernel::computeResults() {
  if (renewsEntry(facts, plan))
    context.getKernel()->setAttr(kRenewEntryAttr, b.getUnitAttr());
  Pipe handed(control, rings.handed, kLatentResults),
      scaled(control, rings.scaled, kLatentResults);
  std::vector<Pipe> value = openKeys(rings.getValues(), kLatentResults);
  bool inHalves = handsOnHalves(plan);
  unsigned lastSlice = rings.valueOrder.back();
  tiles.forTiles(control, [&] {
    // Queries on their way to the scores' registers.
    for (unsigned i = 0; i < value.size(); ++i) {
      if (!rings.slices[i].isHeld)
        continue;
      value[i].acquire().release();
      value[i].advance();
    }
    Vars o(control, makeZeros());
    Var scale(control, tile.splat(tile.f32Tile({plan.getBlockM()}), 0));
    auto takeScale = [&] {
      Slot slot = scaled.acquire();
      scale = loadRows(rings.scales);
      slot.release();
      scaled.advance();
    };
    // Stores all slices but the one whose products come last.
    auto storeEarly = [&] {
      takeScale();
      for (unsigned i : rings.valueOrder)
        if (i != lastSlice)
          storeScaled(i, o[i], scale);
    };
    Value one = context.i32(1), trips = countTrips();
    Value last = arith::SubIOp::create(b, trips, one);

    control.forRange(context.i32(0), trips, [&](Value trip) {
      Value isLast =
          arith::CmpIOp::create(b, arith::CmpIPredicate::eq, trip, last);
      Slot front = inHalves ? handed.acquire(kFrontHalf) : handed.acquire();
      o = emitRareRescale(b, loadRows(rings.factors), o.get());
      // The second half of the probabilities.
      Slot back;
      // The slice whose product was started last, and the slot that this reads.
      unsigned before = 0;
      Slot read;
      for (unsigned i : rings.valueOrder) {
        Slot slot = value[i].acquire();
        Value values = rings.slices[i].ring.at(slot);
        o[i] = multiplyValues(/*part=*/0, values, o[i]);
        if (inHalves) {
          if (!back)
            back = handed.acquire(kBackHalf);
          o[i] = multiplyValues(/*part=*/1, values, o[i]);
        }
        // The slot of the product before is free while this one runs.
        if (read) {
          o[before] =
              awaitProducts(b, o[before].get(), inHalves ? 2 : 1).front();
          read.release();
          // Of two slices one leaves here, so that the factor is taken once.
          if (storesEarly())
            control.ifThen(isLast, storeEarly);
        }
        read = slot;
        before = i;
        value[i].advance();
      }
      o[lastSlice] =
          awaitProducts(b, o[lastSlice].get(), /*pending=*/0).front();
      Slot whole = inHalves ? Slot::join({front, back}) : front;
      whole.release();
      read.release();
      handed.advance();
    });

    if (!storesEarly()) {
      takeScale();
    } else {
      // Nothing was stored in a loop without blocks.
      Value isEmpty = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, last,
                                            context.i32(0));
      control.ifThen(isEmpty, storeEarly);
    }
    storeRest(o.get(), scale);
  });
}

Value MlaKernel::loadRows(Value buffer) {
  return LocalLoadOp::create(b, tile.f32Tile({plan.getBlockM()}), buffer);
}

SmallVector<Value> MlaKernel::makeZeros() {
  SmallVector<Value> zeros;
  for (const LatentSlice &slice : rings.getValues())
    zeros.push_back(
        tile.splat(tile.f32Tile({plan.getBlockM(), slice.columns}), 0));
  return zeros;
}

Value MlaKernel::multiplyValues(int64_t part, Value values, Value sum) {
  int64_t columns = cast<BufferType>(values.getType()).getShape()[1];
  auto type = InFlightType::get(b.getContext(), {plan.getBlockM(), columns},
                                b.getF32Type(),
                                getLatentResultRows(plan, rings.units).divided);
  Value p = rings.probabilities;
  IntegerAttr keys, firstKey;
  if (handsOnHalves(plan)) {
    p = getHalf(part);
    keys = b.getI64IntegerAttr(plan.getBlockN() / 2);
  }
  if (part != 0)
    firstKey = b.getI64IntegerAttr(part * plan.getBlockN() / 2);
  return WgmmaOp::create(b, type, p, values, sum, /*columns=*/IntegerAttr(),
                         /*depth=*/keys, /*first=*/firstKey);
}

bool MlaKernel::sharesUnits() const {
  return facts.hasPartialScales() && facts.getUnitGroups() != rings.valueSlices;
}

bool MlaKernel::storesEarly() const {
  return leavesInSlices(facts, plan) && !sharesUnits();
}

void MlaKernel::storeScaled(int64_t index, Value result, Value scale) {
  if (!tile.at.piece)
    return storeOwn(index, result, scale);
  control.ifElse(
      tiles.isWhole(), [&] { storeWhole(index, result, scale); },
      [&] { storeOwn(index, result, scale); });
}

void MlaKernel::storeWhole(int64_t index, Value result, Value scale) {
  const LatentSlice &slice = rings.slices[index];
  auto type = cast<RankedTensorType>(result.getType());
  Value factor = BroadcastOp::create(b, type, scale);
  Value outFactor;
  if (facts.outScale != 0 && facts.outScale != 1)
    outFactor = tile.splat(type, facts.outScale);
  if (outFactor && !facts.usesResults())
    factor = arith::MulFOp::create(b, factor, outFactor);
  Value o = arith::MulFOp::create(b, result, factor);
  ResultColumns columns = {slice.first, slice.columns};
  if (facts.mergedMod)
    o = emitOutMod(tile, o, *facts.mergedMod, columns);
  if (facts.mergedAmax)
    emitAmax(tile, o, emitMergedView(tile, "o", columns));
  if (outFactor && facts.usesResults())
    o = arith::MulFOp::create(b, o, outFactor);
  if (Type narrow = facts.mergedO.elementType; !narrow.isF32())
    o = arith::TruncFOp::create(b, type.clone(narrow), o);
  StoreResultOp::create(b, o, emitMergedView(tile, "o", columns), tile.row,
                        /*scratch=*/Value(), /*map=*/Value(),
                        /*coordinates=*/ValueRange(), plan.getEpilogue());
}

void MlaKernel::storeOwn(int64_t index, Value result, Value scale) {
  const LatentSlice &slice = rings.slices[index];
  if (!facts.hasPartialScales())
    return storeSlice(
        index, emitQuotient(tile, result, scale, {slice.first, slice.columns}));
  DividedRows rows = getLatentResultRows(plan, rings.units);
  storeSlice(index, emitScaledRows(tile, result, scale, /*initWeight=*/Value(),
                                   &rows, {index})
                        .front());
}

void MlaKernel::storeSlice(int64_t index, Value o) {
  const LatentSlice &slice = rings.slices[index];
  StoreResultOp::create(
      b, o, emitResultView(tile, "o", {slice.first, slice.columns}), tile.row,
      /*scratch=*/Value(), /*map=*/Value(), /*coordinates=*/ValueRange(),
      plan.getEpilogue());
}

bool MlaKernel::isStoredEarly(int64_t index) const {
  return storesEarly() && index != rings.valueOrder.back();
}

void MlaKernel::releaseNext() {
  if (!facts.o.isWorkspace())
    return;
  // A CTA leaves no registers to another one, so that what starts earlier waits
  // on the first SMs that are free, and takes their bandwidth alone.
  auto release = [&] {
    NVVM::GriddepcontrolOp::create(b,
                                   NVVM::GridDepActionKind::launch_dependents);
  };
  if (tile.at.piece)
    control.ifThen(tiles.isLast, release);
  else
    release();
}

void MlaKernel::storeRest(ValueRange results, Value scale) {
  DividedRows rows = getLatentResultRows(plan, rings.units);
  auto scaleAll = [&] {
    return emitScaledRows(tile, results, scale, /*initWeight=*/Value(), &rows);
  };
  if (!sharesUnits()) {
    releaseNext();
    for (auto [i, result] : llvm::enumerate(results))
      if (!isStoredEarly(i))
        storeScaled(i, result, scale);
    return;
  }
  SmallVector<Value> scaled;
  if (!tile.at.piece)
    scaled = scaleAll();
  releaseNext();
  auto store = [&] {
    for (auto [i, each] : llvm::enumerate(scaled))
      storeSlice(i, each);
  };
  if (!tile.at.piece)
    return store();
  control.ifElse(
      tiles.isWhole(),
      [&] {
        for (auto [i, result] : llvm::enumerate(results))
          storeWhole(i, result, scale);
      },
      [&] {
        scaled = scaleAll();
        store();
      });
}
