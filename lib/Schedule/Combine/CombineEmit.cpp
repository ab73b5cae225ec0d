//===- CombineEmit.cpp - The kernel of attn.combine -----------------------===//
//
// One thread: find the row and its columns, and merge their partial results.
//
//===----------------------------------------------------------------------===//

#include "RowMerge.h"
#include "attn/Schedule/Core/CombineSchedule.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attn;

namespace {

class CombineEmitter {
public:
  CombineEmitter(CombineFrame &frame, const CombineFacts &facts,
                 CombinePlanAttr plan)
      : frame(frame), facts(facts), plan(plan), b(frame.b),
        way(getRowMergeWay(facts)) {}
  void run();

private:
  /// The thread's number among all, in a type that holds it.
  Value emitNumber(Type type);
  /// The product of the extents of o, in `type`.
  Value emitRows(Type type);
  MergedColumns emitPlace(Value number);
  Value integer(Type type, int64_t value) {
    return arith::ConstantOp::create(b, b.getIntegerAttr(type, value));
  }

  CombineFrame &frame;
  const CombineFacts &facts;
  CombinePlanAttr plan;
  ImplicitLocOpBuilder &b;
  RowMergeWay way;
};

} // namespace

/// True if threads are known to be few enough for their numbers to fit 32 bits.
static bool hasShortNumbers(const CombineFacts &facts) {
  int64_t elements = facts.valueDim;
  for (int64_t extent : {facts.batch, facts.heads, facts.queries}) {
    if (ShapedType::isDynamic(extent) ||
        llvm::MulOverflow(elements, extent, elements))
      return false;
  }
  // The last CTA has threads behind the last element.
  return elements < (int64_t(1) << 30);
}

Value CombineEmitter::emitNumber(Type type) {
  auto get = [&](Value id) -> Value {
    return arith::IndexCastUIOp::create(b, type, id);
  };
  Value cta = get(gpu::BlockIdOp::create(b, gpu::Dimension::x));
  Value thread = get(gpu::ThreadIdOp::create(b, gpu::Dimension::x));
  return arith::AddIOp::create(
      b, arith::MulIOp::create(b, cta, integer(type, plan.getThreads())),
      thread);
}

Value CombineEmitter::emitRows(Type type) {
  auto extent = [&](unsigned dim, int64_t known) -> Value {
    Value value = frame.getExtent({{"o", dim}}, known);
    return type.isInteger(64) ? frame.widen(value) : value;
  };
  Value rows =
      arith::MulIOp::create(b, extent(0, facts.batch), extent(1, facts.heads));
  return arith::MulIOp::create(b, rows, extent(2, facts.queries));
}

MergedColumns CombineEmitter::emitPlace(Value number) {
  Type type = number.getType();
  auto wide = [&](Value value) -> Value {
    return type.isInteger(64) ? frame.widen(value) : value;
  };
  auto split = [&](Value value, Value by) {
    return std::pair<Value, Value>(arith::DivUIOp::create(b, value, by),
                                   arith::RemUIOp::create(b, value, by));
  };
  MergedColumns place;
  auto [row, group] =
      split(number, integer(type, facts.valueDim / way.columns));
  place.column = arith::MulIOp::create(b, group, integer(type, way.columns));
  Value rest;
  std::tie(rest, place.query) =
      split(row, wide(frame.getExtent({{"o", 2}}, facts.queries)));
  std::tie(place.batch, place.head) =
      split(rest, wide(frame.getExtent({{"o", 1}}, facts.heads)));
  return place;
}

void CombineEmitter::run() {
  Type type = hasShortNumbers(facts) ? b.getI32Type() : b.getI64Type();
  Value number = emitNumber(type);
  Value count = arith::MulIOp::create(
      b, emitRows(type), integer(type, facts.valueDim / way.columns));
  Value exists =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ult, number, count);
  auto branch = scf::IfOp::create(b, exists, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  emitRowMerge(frame, facts, way, emitPlace(number));
}

void attn::emitCombine(CombineFrame &frame, const CombineFacts &facts,
                       CombinePlanAttr plan) {
  CombineEmitter(frame, facts, plan).run();
}
