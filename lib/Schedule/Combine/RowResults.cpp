//===- RowResults.cpp - What becomes of merged results --------------------===//

#include "RowResults.h"
#include "attn/Dialect/Attn/IR/NarrowFloats.h"
#include "attn/Dialect/Attn/IR/ScaleOffsets.h"
#include "attn/Dialect/Attn/IR/WarpMax.h"
#include "attn/Schedule/Kernel/PowerScale.h"

using namespace mlir;
using namespace mlir::attn;

Value attn::changeResults(KernelFrame &frame, const CombineFacts &facts,
                          const MergedColumns &place,
                          llvm::MutableArrayRef<Value> values) {
  ImplicitLocOpBuilder &b = frame.b;
  auto index = [&](Value value) -> Value {
    return value.getType().isInteger(32)
               ? value
               : arith::TruncIOp::create(b, b.getI32Type(), value).getResult();
  };
  if (!facts.usesResults())
    return {};
  Value first = index(place.column), most;
  double factor = facts.getGroupFactor() == 1 ? facts.outScale : 1;
  for (auto [number, value] : llvm::enumerate(values)) {
    Value column = arith::AddIOp::create(b, first, frame.i32(int64_t(number)));
    if (facts.outMod)
      value = frame
                  .cloneRegion(b, *facts.outMod,
                               {value, index(place.batch), index(place.head),
                                index(place.query), column})
                  .front();
    if (facts.amax) {
      // NaN is larger than all others.
      Value size = math::AbsFOp::create(b, value);
      most = most ? arith::MaximumFOp::create(b, most, size).getResult() : size;
    }
    if (factor != 1)
      value = arith::MulFOp::create(b, value, frame.f32(factor));
  }
  return most;
}

void attn::emitMergedAmax(KernelFrame &frame, Value largest) {
  ImplicitLocOpBuilder &b = frame.b;
  Value thread = arith::IndexCastUIOp::create(
      b, b.getI32Type(), gpu::ThreadIdOp::create(b, gpu::Dimension::x));
  Value lane =
      arith::AndIOp::create(b, thread, frame.i32(int32_t(kWarpLanes) - 1));
  emitWarpMax(b, largest, lane, [&](Value bits) {
    LLVM::AtomicRMWOp::create(b, LLVM::AtomicBinOp::umax,
                              frame.getPointer("amax"), bits,
                              LLVM::AtomicOrdering::monotonic,
                              /*syncscope=*/"device");
  });
}

/// Returns pairs of rounded results, i16 or i8.
static SmallVector<Value> narrowResults(KernelFrame &frame,
                                        const CombineFacts &facts,
                                        ArrayRef<Value> values) {
  SmallVector<Value> pairs;
  for (size_t i = 0; i < values.size(); i += 2) {
    if (facts.hasFloat4Results()) {
      pairs.push_back(narrowToPair4(frame.b, values[i], values[i + 1],
                                    !frame.target.has(Capability::Fp4)));
      continue;
    }
    pairs.push_back(narrowPair(
        frame.b, values[i], values[std::min(i + 1, values.size() - 1)],
        facts.o.elementType, !frame.target.has(Capability::Fp8)));
  }
  return pairs;
}

void attn::storeNarrow(KernelFrame &frame, const CombineFacts &facts,
                       ArrayRef<Value> values, Value address) {
  ImplicitLocOpBuilder &b = frame.b;
  SmallVector<Value> pairs = narrowResults(frame, facts, values);
  if (values.size() == 1) {
    Value byte = arith::TruncIOp::create(b, b.getI8Type(), pairs.front());
    LLVM::StoreOp::create(b, byte, address, 1);
    return;
  }
  Value whole = LLVM::UndefOp::create(
      b, VectorType::get({int64_t(pairs.size())}, pairs.front().getType()));
  for (auto [place, pair] : llvm::enumerate(pairs))
    whole = LLVM::InsertElementOp::create(b, whole, pair,
                                          frame.i32(int64_t(place)));
  int64_t perByte = facts.hasFloat4Results() ? 2 : 1;
  LLVM::StoreOp::create(b, whole, address, int64_t(values.size()) / perByte);
}

GroupScale attn::makeGroupScale(KernelFrame &frame, const CombineFacts &facts,
                                Value most) {
  ImplicitLocOpBuilder &b = frame.b;
  auto f32 = [&](double value) { return frame.f32(value); };
  auto isAbove = [&](Value x) -> Value {
    return arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, x, f32(0));
  };
  auto select = [&](Value condition, Value yes, Value no) -> Value {
    return arith::SelectOp::create(b, condition, yes, no);
  };
  bool isFloat4 = facts.hasFloat4Results();
  Type outType =
      isFloat4 ? Float4E2M1FNType::get(b.getContext()) : facts.o.elementType;
  double left = facts.getGroupFactor();
  float inverseOfLargest = 1 / getLargestNumber(outType);
  Value scale = arith::MulFOp::create(b, most, f32(left * inverseOfLargest));
  if (isa<Float8E8M0FNUType>(facts.oScales.elementType)) {
    PowerScale power = emitPowerScale(b, scale, isAbove(most));
    Value byte = arith::TruncIOp::create(b, b.getI8Type(), power.code);
    return {byte, power.inverse};
  }
  if (!isFloat4) {
    scale = select(isAbove(most), scale, f32(1));
    return {scale, arith::DivFOp::create(b, f32(1), scale)};
  }
  // NaN becomes the largest number of the scale's own type.
  double mostScale = getLargestNumber(facts.oScales.elementType);
  bool byIntegers = !frame.target.has(Capability::Fp8);
  Value stored = narrowToByte(
      b, arith::MinNumFOp::create(b, scale, f32(mostScale)), byIntegers);
  Value exact = widenByte(b, stored, byIntegers), some = isAbove(exact);
  Value inverse = arith::DivFOp::create(b, f32(1), select(some, exact, f32(1)));
  if (left != 1)
    inverse = arith::MulFOp::create(b, inverse, f32(left));
  // Nothing is left of numbers that are too small for a scale.
  return {stored, select(some, inverse, f32(0))};
}

Value attn::getTiledOffset(KernelFrame &frame, const CombineFacts &facts,
                           const MergedColumns &place) {
  ImplicitLocOpBuilder &b = frame.b;
  auto wide = [&](Value value) -> Value {
    return value.getType().isInteger(64) ? value : frame.widen(value);
  };
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, value, 64);
  };
  Value row = emitScaleRow(b, wide(place.batch), wide(frame.getSize("o", 2)),
                           wide(place.query));
  Value group =
      arith::DivUIOp::create(b, wide(place.column), number(facts.groupColumns));
  Value column = emitScaleColumn(
      b, wide(place.head), number(facts.valueDim / facts.groupColumns), group);
  return emitScaleTileOffset(b, row, column, frame.getStride("o_scales", 0));
}
