//===- StageCopies.cpp - Copies of attn.stage for other blocks ------------===//

#include "StageCopies.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::attn;

/// Finds the ops of the body that compute the source and the row.
static LogicalResult collectSlice(KVLoopOp loop, Stage &stage) {
  SetVector<Operation *> slice;
  SmallVector<Value> worklist = {stage.op.getSource(), stage.op.getRow()};
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (!loop.getBody().isAncestor(value.getParentRegion()) ||
        value == loop.getKey())
      continue;
    Operation *def = value.getDefiningOp();
    if (!def) {
      auto diag = stage.op.emitOpError(
          "expected rows that follow from the key index, so that copies can "
          "start ahead, got rows that depend on a carried value");
      diag.attachNote(value.getLoc()) << "the carried value is here";
      return diag;
    }
    if (def->getNumRegions() != 0 || !isMemoryEffectFree(def)) {
      auto diag = stage.op.emitOpError(
          "expected rows that follow from the key index, so that copies can "
          "start ahead, got rows that depend on an op with effects");
      diag.attachNote(def->getLoc()) << "the op is here";
      return diag;
    }
    if (slice.insert(def))
      llvm::append_range(worklist, def->getOperands());
  }
  stage.slice = slice.takeVector();
  llvm::sort(stage.slice,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return success();
}

/// Finds the first and the last op of the body that touches the slot.
static void findAccesses(Block &body, Stage &stage) {
  SmallVector<Value> views = {stage.op.getResult()};
  while (!views.empty()) {
    for (Operation *user : views.pop_back_val().getUsers()) {
      if (isa<ViewLikeOpInterface>(user)) {
        views.push_back(user->getResult(0));
        continue;
      }
      Operation *access = body.findAncestorOpInBlock(*user);
      if (!stage.first || access->isBeforeInBlock(stage.first))
        stage.first = access;
      if (!stage.last || stage.last->isBeforeInBlock(access))
        stage.last = access;
    }
  }
}

FailureOr<SmallVector<Stage>> attn::collectStages(KVLoopOp loop) {
  Block &body = loop.getBody().front();
  SmallVector<Stage> stages;
  for (StageOp op : body.getOps<StageOp>()) {
    Stage stage;
    stage.op = op;
    if (loop.getBody().isAncestor(op.getRing().getParentRegion()))
      return op.emitOpError("expected a ring from outside the loop");
    if (failed(collectSlice(loop, stage)))
      return failure();
    findAccesses(body, stage);
    // A stage that nobody reads is copied nevertheless: removing it is the
    // business of whoever wrote it.
    if (!stage.first)
      stage.first = stage.last = op;
    stages.push_back(stage);
  }
  return stages;
}

/// What `row` adds to the first key of its block, if that is a constant.
static std::optional<int64_t> distanceFromKey(KVLoopOp loop, Value row) {
  if (row == loop.getKey())
    return 0;
  auto add = row.getDefiningOp<arith::AddIOp>();
  APInt distance;
  if (!add || add.getLhs() != loop.getKey() ||
      !matchPattern(add.getRhs(), m_ConstantInt(&distance)))
    return std::nullopt;
  return distance.getSExtValue();
}

void attn::startCopies(OpBuilder &builder, KVLoopOp loop, const Stage &stage,
                       Value dest, IRMapping &mapping, bool blockExists) {
  StageOp op = stage.op;
  // Only rows counted from the first key are known to exist: other rows follow
  // from a table.
  std::optional<int64_t> first = distanceFromKey(loop, op.getRow());
  bool rowsExist = blockExists && first && *first >= 0 &&
                   *first + op.getType().getShape()[0] <=
                       static_cast<int64_t>(loop.getBlock());
  CpAsyncOp::create(builder, op.getLoc(),
                    mapping.lookupOrDefault(op.getSource()),
                    mapping.lookupOrDefault(op.getRow()), dest, rowsExist);
}
