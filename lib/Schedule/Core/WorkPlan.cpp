//===- WorkPlan.cpp - Runs that a kernel in front deals -------------------===//

#include "WorkPlan.h"
#include "CommonChecks.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::attn;

static constexpr llvm::StringLiteral kWork = "work";

int64_t attn::getSeenKeys(const ProblemFacts &facts) {
  int64_t keys = ShapedType::isDynamic(facts.keys) ? kLengthLimit : facts.keys;
  MaskAttr mask = facts.mask;
  if (!mask.hasLeft() || !mask.hasRight())
    return keys;
  return std::min(keys, mask.rightBound() - mask.leftBound() + facts.queries);
}

void attn::makeWorkPlan(ProblemFacts &facts, int64_t runs) {
  AttentionOp op = facts.op;
  OpBuilder builder(op);
  constexpr int64_t words = PlanWorkOp::kRecordWords;
  auto type = MemRefType::get({runs, words}, builder.getI32Type());
  TensorFacts &work = facts.work;
  work.name = work.workspace = kWork;
  work.value = memref::AllocOp::create(builder, op.getLoc(), type);
  work.shape = {runs, words};
  work.strides = {words, 1};
  work.elementType = type.getElementType();
  work.extents = {SizeExpr(runs), SizeExpr(words)};
}

static SmallVector<TensorFacts> collectTensors(const ProblemFacts &facts) {
  TensorFacts work = facts.work;
  work.written = true;
  return {getDealtBatch(facts).first, work};
}

WorkPlanFrame::WorkPlanFrame(const ProblemFacts &facts, const TargetRow &target)
    : KernelFrame(target, AttentionOp(facts.op).getLoc(), collectTensors(facts),
                  /*scalars=*/{}),
      facts(facts) {}

KernelShape WorkPlanFrame::getShape() const {
  KernelShape shape;
  // A warp for each record.
  shape.grid = {getRuns(), 1, 1};
  shape.threads = 32;
  shape.warps = {{1, 1}};
  return shape;
}

void WorkPlanFrame::emit() {
  Value index = arith::IndexCastOp::create(
      b, b.getI32Type(), gpu::BlockIdOp::create(b, gpu::Dimension::x));
  auto [lengths, most] = getDealtBatch(facts);
  PlanWorkOp::create(b, index, getPointer(lengths.name),
                     i32(getSeenKeys(facts)), getRuns(), facts.batch, most,
                     getPointer(kWork));
}

WorkRecord attn::loadWorkRecord(KernelContext &context, Value index) {
  ImplicitLocOpBuilder &b = context.b;
  Value place = arith::MulIOp::create(b, context.widen(index),
                                      context.i64(PlanWorkOp::kRecordWords));
  WorkRecord record;
  int64_t word = 0;
  for (Value *each :
       {&record.sequence, &record.run, &record.runs, &record.keys})
    *each = context.loadElement(
        kWork, arith::AddIOp::create(b, place, context.i64(word++)));
  return record;
}
