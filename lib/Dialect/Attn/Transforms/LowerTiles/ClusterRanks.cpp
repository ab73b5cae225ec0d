//===- ClusterRanks.cpp - Ranks of CTAs in a cluster ----------------------===//

#include "ClusterRanks.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::attn;

static Value makeConstant(ImplicitLocOpBuilder &b, int64_t value,
                          unsigned width = 32) {
  return arith::ConstantIntOp::create(b, value, width);
}

/// Returns `index` with its lowest bits at the places of `bits`.
static int64_t spread(int64_t index, int64_t bits) {
  int64_t rank = 0;
  for (int64_t rest = bits; rest != 0; rest &= rest - 1, index >>= 1)
    rank |= index & 1 ? rest & -rest : 0;
  return rank;
}

Value lowering::getRank(ImplicitLocOpBuilder &b) {
  return NVVM::ClusterId::create(b, b.getI32Type());
}

Value lowering::getLeader(ImplicitLocOpBuilder &b, RankBits bits) {
  if (!bits)
    return makeConstant(b, 0);
  return arith::AndIOp::create(b, getRank(b), makeConstant(b, ~*bits));
}

Value lowering::isClusterLeader(ImplicitLocOpBuilder &b, RankBits bits) {
  Value rank = getRank(b);
  if (bits)
    rank = arith::AndIOp::create(b, rank, makeConstant(b, *bits));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, rank,
                               makeConstant(b, 0));
}

Value lowering::getMember(ImplicitLocOpBuilder &b, Value index, RankBits bits) {
  if (!bits)
    return index;
  Value rank = getLeader(b, bits);
  int64_t from = 0;
  for (int64_t to = 0; *bits >> to != 0; ++to) {
    if (!(*bits >> to & 1))
      continue;
    Value bit = arith::AndIOp::create(b, index, makeConstant(b, 1 << from));
    bit = arith::ShLIOp::create(b, bit, makeConstant(b, to - from));
    rank = arith::OrIOp::create(b, rank, bit);
    ++from;
  }
  return rank;
}

Value lowering::getNumber(ImplicitLocOpBuilder &b, RankBits bits) {
  Value rank = getRank(b), number;
  if (!bits)
    return rank;
  int64_t to = 0;
  for (int64_t from = 0; *bits >> from != 0; ++from) {
    if (!(*bits >> from & 1))
      continue;
    Value bit = arith::AndIOp::create(b, rank, makeConstant(b, 1 << from));
    bit = arith::ShRUIOp::create(b, bit, makeConstant(b, from - to));
    number = number ? arith::OrIOp::create(b, number, bit).getResult() : bit;
    ++to;
  }
  return number;
}

Value lowering::getMask(ImplicitLocOpBuilder &b, int64_t ctas, RankBits bits) {
  if (!bits)
    return makeConstant(b, (1 << ctas) - 1, 16);
  int64_t mask = 0;
  for (int64_t index = 0; index < ctas; ++index)
    mask |= int64_t(1) << spread(index, *bits);
  Value shifted =
      arith::ShLIOp::create(b, makeConstant(b, mask), getLeader(b, bits));
  return arith::TruncIOp::create(b, b.getI16Type(), shifted);
}
