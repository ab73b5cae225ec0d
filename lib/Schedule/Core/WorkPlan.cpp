//===- WorkPlan.cpp - Runs that a kernel in front deals -------------------===//

#include "WorkPlan.h"
#include "../../Planner/Facts/Documents.h"
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
  if (shape.cutTiles)
    runs = llvm::divideCeil(PlanTilesOp::countWords(shape.cutTiles.capacity),
                            words);
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

static SmallVector<TensorFacts> collectTensors(const ProblemFacts &facts,
                                               const KernelShape &shape) {
  TensorFacts work = facts.work;
  work.written = true;
  return {shape.cutTiles ? findDocuments(facts)->numbers
                         : getDealtBatch(facts).first,
          work};
}

WorkPlanFrame::WorkPlanFrame(const ProblemFacts &facts,
                             const KernelShape &shape, const TargetRow &target)
    : KernelFrame(target, AttentionOp(facts.op).getLoc(),
                  collectTensors(facts, shape), /*scalars=*/{}),
      facts(facts), equalRuns(shape.equalRuns), cutTiles(shape.cutTiles) {}

KernelShape WorkPlanFrame::getShape() const {
  KernelShape shape;
  if (cutTiles) {
    constexpr int64_t warps = PlanTilesOp::kThreads / 32;
    shape.grid = {1, 1, 1};
    shape.threads = PlanTilesOp::kThreads;
    shape.warps = {{warps, 1}};
    return shape;
  }
  // A warp for each record, or for each of equal runs.
  shape.grid = {getRuns(), 1, 1};
  shape.threads = 32;
  shape.warps = {{1, 1}};
  return shape;
}

void WorkPlanFrame::emitCutTiles() {
  Documents documents = *findDocuments(facts);
  const TensorFacts &numbers = documents.numbers;
  // Without a row for each batch all have the same one.
  Value stride = documents.hasBatches ? getStride(numbers.name, 0) : i64(0);
  PlanTilesOp::create(b, getPointer(numbers.name), i32(facts.batch), stride,
                      i32(facts.queries), documents.search.getElement(),
                      cutTiles.blockM, cutTiles.blockN, cutTiles.align,
                      facts.mask, cutTiles.capacity, cutTiles.most,
                      getPointer(kWork));
}

void WorkPlanFrame::emit() {
  if (cutTiles)
    return emitCutTiles();
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

Value attn::loadTileCount(KernelFrame &frame) {
  Value count;
  loadWords(frame, frame.i32(0), {&count});
  return count;
}

TileRecord attn::loadTile(KernelFrame &frame, Value index) {
  ImplicitLocOpBuilder &b = frame.b;
  // A record has two of the plan's rows, and stands behind the first one.
  static_assert(PlanTilesOp::kRecordWords == 2 * PlanWorkOp::kRecordWords);
  Value next = arith::AddIOp::create(b, index, frame.i32(1));
  TileRecord tile;
  Value isOne;
  loadWords(frame, arith::MulIOp::create(b, next, frame.i32(2)),
            {&tile.batch, &tile.origin, &tile.query, &tile.queries, &tile.begin,
             &tile.end, &isOne});
  tile.isOne =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ne, isOne, frame.i32(0));
  return tile;
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
