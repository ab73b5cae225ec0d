//===- CombineEmit.cpp - The kernel of attn.combine -----------------------===//
//
// One thread: find the row and its columns, and merge their partial results.
//
//===----------------------------------------------------------------------===//

#include "../Core/WorkPlan.h"
#include "RowMerge.h"
#include "attn/Schedule/Core/CombineSchedule.h"
#include "attn/Schedule/Kernel/Control.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attn;

namespace {

class CombineEmitter {
public:
  CombineEmitter(CombineFrame &frame, const CombineFacts &facts,
                 CombinePlanAttr plan)
      : frame(frame), facts(facts), plan(plan), b(frame.b),
        way(getRowMergeWay(facts)), control(b) {}
  void run();

private:
  /// The thread's number among all, in a type that holds it.
  Value emitNumber(Type type);
  /// Returns how many sequences are merged at most: those of o, or one of each
  /// equal run.
  Value emitSequences();
  /// Returns the rows of these, in `type`.
  Value emitRows(Type type);
  MergedColumns emitPlace(Value number);
  /// Merges the rows of the sequence that begins in the run that `place` has as
  /// its batch.
  void mergePieces(MergedColumns place);
  /// Merges the rows of `place`.
  void mergeRows(const MergedColumns &place);
  Value integer(Type type, int64_t value) {
    return arith::ConstantOp::create(b, b.getIntegerAttr(type, value));
  }

  CombineFrame &frame;
  const CombineFacts &facts;
  CombinePlanAttr plan;
  ImplicitLocOpBuilder &b;
  RowMergeWay way;
  Control control;
  /// The largest size of the thread's results; nothing where nobody asks.
  std::optional<Var> largest;
};

} // namespace

/// True if threads are known to be few enough for their numbers to fit 32 bits.
static bool hasShortNumbers(const CombineFacts &facts) {
  int64_t elements = facts.valueDim;
  int64_t sequences = facts.equalRuns ? facts.equalRuns : facts.batch;
  for (int64_t extent : {sequences, facts.heads, facts.queries}) {
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

Value CombineEmitter::emitSequences() {
  if (facts.equalRuns)
    return frame.i32(facts.equalRuns);
  return frame.getExtent({{"o", 0}}, facts.batch);
}

Value CombineEmitter::emitRows(Type type) {
  auto wide = [&](Value value) -> Value {
    return type.isInteger(64) ? frame.widen(value) : value;
  };
  auto extent = [&](unsigned dim, int64_t known) -> Value {
    return wide(frame.getExtent({{"o", dim}}, known));
  };
  Value rows =
      arith::MulIOp::create(b, wide(emitSequences()), extent(1, facts.heads));
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

void CombineEmitter::mergePieces(MergedColumns place) {
  Type type = place.batch.getType();
  bool isWide = type.isInteger(64);
  Value index =
      isWide
          ? arith::TruncIOp::create(b, b.getI32Type(), place.batch).getResult()
          : place.batch;
  RunOfPieces run = loadRunOfPieces(frame, index);
  Value isMerged = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt,
                                         run.pieces, frame.i32(0));
  control.ifThen(isMerged, [&] {
    // The record of a piece is where its results are.
    place.firstPiece = arith::AddIOp::create(b, run.merged, index);
    place.pieces = run.pieces;
    place.batch = isWide ? frame.widen(run.merged) : run.merged;
    mergeRows(place);
  });
}

void CombineEmitter::mergeRows(const MergedColumns &place) {
  Value own = emitRowMerge(frame, facts, way, place);
  if (largest)
    *largest = own;
}

void CombineEmitter::run() {
  Type type = hasShortNumbers(facts) ? b.getI32Type() : b.getI64Type();
  Value number = emitNumber(type);
  Value count = arith::MulIOp::create(
      b, emitRows(type), integer(type, facts.valueDim / way.columns));
  Value exists =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ult, number, count);
  if (facts.amax)
    largest.emplace(control, frame.f32(0));
  control.ifThen(exists, [&] {
    MergedColumns place = emitPlace(number);
    if (facts.equalRuns)
      mergePieces(place);
    else
      mergeRows(place);
  });
  if (largest)
    emitMergedAmax(frame, *largest);
}

void attn::emitCombine(CombineFrame &frame, const CombineFacts &facts,
                       CombinePlanAttr plan) {
  CombineEmitter(frame, facts, plan).run();
}
