//===- EmitBlockBounds.cpp - A kernel finds the keys of a tile ------------===//

#include "EmitBlockBounds.h"

using namespace mlir;
using namespace mlir::attn;

namespace {

/// Bounds as i32 values.
struct ValueMath {
  using Number = Value;
  Value constant(int64_t value) const { return context.i32(value); }
  Value add(Value x, Value y) const {
    return b.createOrFold<arith::AddIOp>(x, y);
  }
  Value addConstant(Value x, int64_t c) const {
    return c == 0 ? x : add(x, context.i32(c));
  }
  Value sub(Value x, Value y) const { return arith::SubIOp::create(b, x, y); }
  Value min(Value x, Value y) const { return arith::MinSIOp::create(b, x, y); }
  Value max(Value x, Value y) const {
    return b.createOrFold<arith::MaxSIOp>(x, y);
  }
  Value multiply(Value x, Value y) const {
    return arith::MulIOp::create(b, x, y);
  }
  Value divide(Value x, Value y) const {
    return arith::DivUIOp::create(b, x, y);
  }

  KernelContext &context;
  ImplicitLocOpBuilder &b;
};

} // namespace

BlockBounds attn::emitBlockBounds(KernelContext &context, Value row,
                                  Value queries, Value keys, int64_t blockM,
                                  int64_t blockN, int64_t group) {
  return findBlockBounds(ValueMath{context, context.b}, context.facts.mask, row,
                         queries, keys, blockM, blockN, group);
}
