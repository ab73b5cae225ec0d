//===- RowResults.cpp - What becomes of merged results --------------------===//

#include "RowResults.h"
#include "attn/Dialect/Attn/IR/NarrowFloats.h"

using namespace mlir;
using namespace mlir::attn;

void attn::changeResults(KernelFrame &frame, const CombineFacts &facts,
                         const MergedColumns &place,
                         llvm::MutableArrayRef<Value> values) {
  ImplicitLocOpBuilder &b = frame.b;
  auto index = [&](Value value) -> Value {
    return value.getType().isInteger(32)
               ? value
               : arith::TruncIOp::create(b, b.getI32Type(), value).getResult();
  };
  Value first = index(place.column), factor = frame.f32(facts.outScale);
  for (auto [number, value] : llvm::enumerate(values)) {
    Value column = arith::AddIOp::create(b, first, frame.i32(int64_t(number)));
    Value changed =
        frame
            .cloneRegion(b, *facts.outMod,
                         {value, index(place.batch), index(place.head),
                          index(place.query), column})
            .front();
    value = arith::MulFOp::create(b, changed, factor);
  }
}

SmallVector<Value> attn::narrowResults(KernelFrame &frame,
                                       const CombineFacts &facts,
                                       ArrayRef<Value> values) {
  SmallVector<Value> pairs;
  for (size_t i = 0; i < values.size(); i += 2)
    pairs.push_back(narrowPair(
        frame.b, values[i], values[std::min(i + 1, values.size() - 1)],
        facts.o.elementType, !frame.target.has(Capability::Fp8)));
  return pairs;
}
