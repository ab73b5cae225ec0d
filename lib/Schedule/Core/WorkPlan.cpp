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

void attn::makeWorkPlan(ProblemFacts &facts, const KernelShape &shape) {
  AttentionOp op = facts.op;
  OpBuilder builder(op);
  constexpr int64_t words = PlanWorkOp::kRecordWords;
  static_assert(words == PlanPiecesOp::kRecordWords);
  int64_t runs = shape.plannedRuns;
  if (const EqualRuns &equal = shape.equalRuns)
    runs = equal.runs + PlanPiecesOp::countRecords(equal.runs, facts.batch);
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

WorkPlanFrame::WorkPlanFrame(const ProblemFacts &facts,
                             const KernelShape &shape, const TargetRow &target)
    : KernelFrame(target, AttentionOp(facts.op).getLoc(), collectTensors(facts),
                  /*scalars=*/{}),
      facts(facts), equalRuns(shape.equalRuns) {}

KernelShape WorkPlanFrame::getShape() const {
  KernelShape shape;
  // A warp for each record, or for each of equal runs.
  shape.grid = {getRuns(), 1, 1};
  shape.threads = 32;
  shape.warps = {{1, 1}};
  return shape;
}

void WorkPlanFrame::emit() {
  Value index = arith::IndexCastOp::create(
      b, b.getI32Type(), gpu::BlockIdOp::create(b, gpu::Dimension::x));
  auto [lengths, most] = getDealtBatch(facts);
  Value capacity = i32(getSeenKeys(facts));
  if (equalRuns)
    PlanPiecesOp::create(b, index, getPointer(lengths.name), capacity,
                         equalRuns.runs, facts.batch, equalRuns.block,
                         equalRuns.start, equalRuns.fewest, getPointer(kWork));
  else
    PlanWorkOp::create(b, index, getPointer(lengths.name), capacity, getRuns(),
                       facts.batch, most, getPointer(kWork));
}

/// Loads the numbers of record `index`, i32, in their order.
static void loadWords(KernelFrame &frame, Value index,
                      ArrayRef<Value *> words) {
  ImplicitLocOpBuilder &b = frame.b;
  Value place = arith::MulIOp::create(b, frame.widen(index),
                                      frame.i64(PlanWorkOp::kRecordWords));
  for (auto [word, each] : llvm::enumerate(words))
    *each = frame.loadElement(
        kWork, arith::AddIOp::create(b, place, frame.i64(int64_t(word))));
}

WorkRecord attn::loadWorkRecord(KernelContext &context, Value index) {
  WorkRecord record;
  loadWords(context, index,
            {&record.sequence, &record.run, &record.runs, &record.keys});
  return record;
}

RunOfPieces attn::loadRunOfPieces(KernelFrame &frame, Value index) {
  RunOfPieces run;
  loadWords(frame, index, {&run.first, &run.end, &run.merged, &run.pieces});
  return run;
}

PieceRecord attn::loadPiece(KernelFrame &frame, int64_t runs, Value index) {
  PieceRecord piece;
  loadWords(frame, arith::AddIOp::create(frame.b, index, frame.i32(runs)),
            {&piece.sequence, &piece.keys, &piece.first, &piece.blocks});
  return piece;
}
