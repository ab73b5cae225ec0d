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

void attn::emitShare(KernelContext &context, BlockBounds &bounds, Value index,
                     int64_t count) {
  ImplicitLocOpBuilder &b = context.b;
  auto min = [&](Value x, Value y) -> Value {
    return arith::MinSIOp::create(b, x, y);
  };
  auto add = [&](Value x, Value y) -> Value {
    return arith::AddIOp::create(b, x, y);
  };
  Value shares = context.i32(count);
  Value blocks = arith::SubIOp::create(b, bounds.end, bounds.begin);
  Value each = arith::DivUIOp::create(b, blocks, shares);
  Value rest = arith::RemUIOp::create(b, blocks, shares);
  bounds.begin = add(bounds.begin, add(arith::MulIOp::create(b, index, each),
                                       min(index, rest)));
  Value isLonger =
      arith::CmpIOp::create(b, arith::CmpIPredicate::slt, index, rest);
  bounds.end = add(add(bounds.begin, each),
                   arith::ExtUIOp::create(b, b.getI32Type(), isLonger));
  auto clamp = [&](Value x) -> Value {
    return min(arith::MaxSIOp::create(b, x, bounds.begin), bounds.end);
  };
  bounds.fullBegin = clamp(bounds.fullBegin);
  bounds.fullEnd = clamp(bounds.fullEnd);
}
