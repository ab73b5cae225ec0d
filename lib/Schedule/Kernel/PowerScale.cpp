//===- PowerScale.cpp - Scales that are powers of two ---------------------===//

#include "attn/Schedule/Kernel/PowerScale.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::attn;

PowerScale attn::emitPowerScale(ImplicitLocOpBuilder &b, Value scales,
                                Value isSome) {
  // The byte is the exponent of f32, and what is behind it rounds up. Both
  // powers are normal numbers if neither exponent is below 1.
  constexpr int32_t kMantissaBits = 23, kBias = 127, kLeast = 1, kMost = 253;
  Type type = scales.getType(), words = b.getI32Type();
  auto tile = dyn_cast<RankedTensorType>(type);
  if (tile)
    words = tile.clone(words);
  auto word = [&](int32_t value) -> Value {
    IntegerAttr number = b.getI32IntegerAttr(value);
    if (!tile)
      return arith::ConstantOp::create(b, number);
    return arith::ConstantOp::create(
        b, DenseElementsAttr::get(cast<ShapedType>(words), number));
  };
  auto power = [&](Value exponent) -> Value {
    Value bits = arith::ShLIOp::create(b, exponent, word(kMantissaBits));
    return arith::BitcastOp::create(b, type, bits);
  };
  Value raised = arith::AddIOp::create(
      b, arith::BitcastOp::create(b, words, scales).getResult(),
      word((1 << kMantissaBits) - 1));
  Value code = arith::ShRUIOp::create(b, raised, word(kMantissaBits));
  code = arith::MinUIOp::create(
      b, arith::MaxUIOp::create(b, code, word(kLeast)), word(kMost));
  code = arith::SelectOp::create(b, isSome, code, word(kBias));
  return {power(code), power(arith::SubIOp::create(b, word(2 * kBias), code)),
          code};
}
