//===- SlicedLoopExpander.cpp - Loops over slices of key blocks -----------===//
//
// Where several stages of an attn.kv_loop load into one ring, they take its
// slots in turns: a block is a sequence of steps, each of which reads what its
// stages load, and the copies of a step start N - 1 steps ahead, in the same
// block or in the next one. Stages with no access to shared memory between them
// are one step (a slice of Q and one of K).
//
// Steps are unrolled, so that each has a known slot: step p has slot p (mod N).
// For that a block has a whole number of rounds of the ring, of which the last
// steps may have no stage. Step p of iteration t is
//
//   wait until N - 2 groups are pending; [barrier]
//   if it exists: copy the stages of step p + N - 1 to slot p + N - 1 (mod N)
//   commit; compute from slot p (mod N)
//
// and the prologue copies steps 0 to N - 2 of the first block. Of one slot each
// step copies what it computes from, and waits for it. The barriers are not
// placed here but by attn-insert-fences.
//
// Blocks with and without masks are one loop with a branch around the masks
// where nothing else tells them apart: a block of slices is long code, beside
// which a branch is nothing.
//
//===----------------------------------------------------------------------===//

#include "KVLoopExpander.h"
#include "KVPhases.h"
#include "StageCopies.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attn;

namespace {

class SlicedExpander {
public:
  explicit SlicedExpander(KVLoopOp loop)
      : loop(loop), body(loop.getBody().front()), builder(loop),
        loc(loop.getLoc()), depth(loop.getStages()) {}

  FailureOr<KVLoopSummary> run();

private:
  /// Divides the stages of a block among its steps.
  LogicalResult findSteps();

  Value constant(int64_t value) {
    return arith::ConstantIntOp::create(builder, loc, value, 32);
  }
  /// The first key of the block of iteration `t`.
  Value keyOf(Value t);
  /// The slot of `stage` in its step.
  Value makeSlot(const Stage &stage, int64_t step);
  /// Starts the copies of a step of the block that starts at `key`.
  void issue(int64_t step, Value key, bool blockExists);
  /// The same if `exists`, i1; null for always. Followed by a commit in any
  /// case, so that each step makes one group.
  void issueIf(Value exists, int64_t step, Value key, bool blockExists);
  /// True if the keys are a whole number of blocks.
  bool haveWholeBlocks();
  /// One phase for all blocks where their steps do the same but for the masks,
  /// which ask `maskedRanges` then.
  void joinPhases(SmallVectorImpl<KVPhaseRange> &phases);
  /// Whether iteration `t` is in one of `maskedRanges`.
  Value isMasked(Value t);
  /// Clones a mask for the iterations that need it.
  void cloneGuardedMask(Operation *op, Value masked, IRMapping &mapping);
  SmallVector<Value> makeLoop(const KVPhaseRange &phase, ValueRange carried);
  SmallVector<Value> makeBody(const KVPhaseRange &phase, Value t,
                              ValueRange carried);

  KVLoopOp loop;
  Block &body;
  OpBuilder builder;
  Location loc;
  const int64_t depth;
  /// The phases of joined ones that need masks.
  SmallVector<KVPhaseRange, 2> maskedRanges;
  /// The stages of each step, none in the last ones of a round.
  SmallVector<SmallVector<Stage, 2>> steps;
  Value trips, lastBlock;
  /// The keys of iteration 0 may end before its block does.
  bool mayLackRows = true;
  /// The right phase has a loop of its own.
  bool hasRightPhase = false;
};

} // namespace

LogicalResult SlicedExpander::findSteps() {
  auto stages = collectStages(loop);
  if (failed(stages))
    return failure();
  for (const Stage &stage : *stages) {
    bool isNewStep =
        steps.empty() || !stage.op->isBeforeInBlock(steps.back().front().first);
    if (!isNewStep)
      for (const Stage &other : steps.back())
        if (StageOp(other.op).getRing() == StageOp(stage.op).getRing())
          return StageOp(stage.op).emitOpError(
              "expected the slice before it in this ring to be read first");
    if (isNewStep)
      steps.emplace_back();
    steps.back().push_back(stage);
  }
  for (auto [index, step] : llvm::enumerate(steps))
    for (const Stage &stage : step)
      if (index + 1 < steps.size() &&
          !stage.last->isBeforeInBlock(steps[index + 1].front().op))
        return StageOp(stage.op).emitOpError(
            "expected its last access before the next slice");
  steps.resize(llvm::alignTo(steps.size(), depth));
  return success();
}

Value SlicedExpander::keyOf(Value t) {
  Value index = arith::SubIOp::create(builder, loc, lastBlock, t);
  return arith::MulIOp::create(builder, loc, index, constant(loop.getBlock()));
}

Value SlicedExpander::makeSlot(const Stage &stage, int64_t step) {
  StageOp op = stage.op;
  return SlotOp::create(builder, op.getLoc(), op.getType(), op.getRing(),
                        constant(step % depth), IntegerAttr());
}

void SlicedExpander::issue(int64_t step, Value key, bool blockExists) {
  IRMapping mapping;
  mapping.map(loop.getKey(), key);
  for (const Stage &stage : steps[step]) {
    for (Operation *op : stage.slice)
      if (!mapping.contains(op))
        builder.clone(*op, mapping);
    startCopies(builder, loop, stage, makeSlot(stage, step), mapping,
                blockExists);
  }
}

void SlicedExpander::issueIf(Value exists, int64_t step, Value key,
                             bool blockExists) {
  if (!exists) {
    issue(step, key, blockExists);
  } else if (!steps[step].empty()) {
    auto guard = scf::IfOp::create(builder, loc, exists, /*else=*/false);
    OpBuilder::InsertionGuard restore(builder);
    builder.setInsertionPointToStart(guard.thenBlock());
    issue(step, key, blockExists);
  }
  CpAsyncCommitOp::create(builder, loc);
}

/// What a value is where constants decide that.
static std::optional<APInt> evaluate(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant;
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumOperands() == 0 || op->getNumResults() != 1)
    return std::nullopt;
  SmallVector<Attribute> operands;
  for (Value operand : op->getOperands()) {
    std::optional<APInt> known = evaluate(operand);
    if (!known)
      return std::nullopt;
    operands.push_back(IntegerAttr::get(operand.getType(), *known));
  }
  SmallVector<OpFoldResult> results;
  if (failed(op->fold(operands, results)) || results.size() != 1)
    return std::nullopt;
  auto attr = dyn_cast<Attribute>(results.front());
  auto known = dyn_cast_if_present<IntegerAttr>(attr);
  return known ? std::optional(known.getValue()) : std::nullopt;
}

/// True if constants leave no iteration of a phase with masks.
static bool isNeverMasked(const KVPhaseRange &phase) {
  std::optional<APInt> begin = evaluate(phase.begin), end = evaluate(phase.end);
  return phase.kind != KVPhase::Interior && begin && end && *begin == *end;
}

bool SlicedExpander::haveWholeBlocks() {
  return llvm::all_of(body.getOps<StageOp>(), [&](StageOp stage) {
    auto view = stage.getSource().getDefiningOp<GlobalViewOp>();
    std::optional<APInt> rows;
    return view && (rows = evaluate(view.getRows())) &&
           rows->getSExtValue() % int64_t(loop.getBlock()) == 0;
  });
}

void SlicedExpander::joinPhases(SmallVectorImpl<KVPhaseRange> &phases) {
  // Other policies of the softmax differ between the phases.
  bool isUniform =
      llvm::all_of(body.getOps<OnlineSoftmaxOp>(), [](OnlineSoftmaxOp softmax) {
        return softmax.getPolicy() == SoftmaxPolicy::Exact;
      });
  if (!isUniform || phases.size() == 1)
    return;
  for (const KVPhaseRange &phase : phases)
    if (phase.kind != KVPhase::Interior)
      maskedRanges.push_back(phase);
  phases.assign({{KVPhase::Right, phases.front().begin, trips}});
}

Value SlicedExpander::isMasked(Value t) {
  using arith::CmpIPredicate;
  Value any;
  for (const KVPhaseRange &range : maskedRanges) {
    // The right one begins with the first iteration, the left one ends with
    // the last one.
    bool isRight = range.kind == KVPhase::Right;
    Value inside = arith::CmpIOp::create(
        builder, loc, isRight ? CmpIPredicate::slt : CmpIPredicate::sge, t,
        isRight ? range.end : range.begin);
    any = any ? arith::OrIOp::create(builder, loc, any, inside) : inside;
  }
  return any;
}

void SlicedExpander::cloneGuardedMask(Operation *op, Value masked,
                                      IRMapping &mapping) {
  Value source = mapping.lookupOrDefault(op->getOperand(0));
  auto guard = scf::IfOp::create(
      builder, loc, masked,
      [&](OpBuilder &nested, Location) {
        Operation *clone = nested.clone(*op, mapping);
        scf::YieldOp::create(nested, loc, clone->getResults());
      },
      [&](OpBuilder &nested, Location) {
        scf::YieldOp::create(nested, loc, source);
      });
  mapping.map(op->getResult(0), guard.getResult(0));
}

SmallVector<Value> SlicedExpander::makeBody(const KVPhaseRange &phase, Value t,
                                            ValueRange carried) {
  IRMapping mapping;
  Value key = keyOf(t);
  mapping.map(loop.getKey(), key);
  for (auto [argument, value] : llvm::zip(loop.getIterArgs(), carried))
    mapping.map(argument, value);
  Value next = arith::AddIOp::create(builder, loc, t, constant(1));
  Value hasNext = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt,
                                        next, trips);
  Value nextKey = arith::SubIOp::create(
      builder, loc, key, constant(static_cast<int64_t>(loop.getBlock())));
  // Iteration 0 is in the right phase unless all of its keys exist.
  bool blockExists =
      !mayLackRows || (hasRightPhase && phase.kind != KVPhase::Right);
  int64_t count = steps.size();
  auto issueAhead = [&](int64_t step) {
    int64_t ahead = step + depth - 1;
    bool isSame = ahead < count;
    issueIf(isSame ? Value() : hasNext, ahead % count, isSame ? key : nextKey,
            !isSame || blockExists);
  };

  Value masked = isMasked(t);
  int64_t step = -1;
  for (Operation &op : body.without_terminator()) {
    auto stage = dyn_cast<StageOp>(op);
    auto map = dyn_cast<MapElementsOp>(op);
    if (masked && (isa<ApplyMaskOp>(op) || (map && map.getHides()))) {
      cloneGuardedMask(&op, masked, mapping);
      continue;
    }
    if (!stage) {
      cloneForPhase(builder, &op, phase.kind, mapping);
      continue;
    }
    if (step + 1 < count && !steps[step + 1].empty() &&
        steps[step + 1].front().op == stage) {
      ++step;
      // The one slot of a ring is filled when it is free.
      if (depth > 1)
        CpAsyncWaitOp::create(builder, loc, depth - 2);
      issueAhead(step);
      if (depth == 1)
        CpAsyncWaitOp::create(builder, loc, 0);
    }
    const Stage *own = llvm::find_if(
        steps[step], [&](const Stage &other) { return other.op == stage; });
    mapping.map(stage.getResult(), makeSlot(*own, step));
  }
  while (++step < count)
    issueAhead(step);

  SmallVector<Value> results;
  for (Value value : body.getTerminator()->getOperands())
    results.push_back(mapping.lookupOrDefault(value));
  return results;
}

SmallVector<Value> SlicedExpander::makeLoop(const KVPhaseRange &phase,
                                            ValueRange carried) {
  auto makeIteration = [&](OpBuilder &nested, Location, Value t,
                           ValueRange arguments) {
    OpBuilder::InsertionGuard restore(builder);
    builder.setInsertionPointToStart(nested.getInsertionBlock());
    scf::YieldOp::create(builder, loc, makeBody(phase, t, arguments));
  };
  auto made = scf::ForOp::create(builder, loc, phase.begin, phase.end,
                                 constant(1), carried, makeIteration);
  made->setAttr(kPhaseAttr, KVPhaseAttr::get(builder.getContext(), phase.kind));
  return llvm::to_vector(ValueRange(made.getResults()));
}

FailureOr<KVLoopSummary> SlicedExpander::run() {
  if (failed(findSteps()))
    return failure();
  trips = arith::SubIOp::create(builder, loc, loop.getEnd(), loop.getBegin());
  lastBlock = arith::SubIOp::create(builder, loc, loop.getEnd(), constant(1));
  mayLackRows =
      !isSameBound(loop.getFullEnd(), loop.getEnd()) && !haveWholeBlocks();
  Value isAny = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt,
                                      constant(0), trips);
  for (int64_t step = 0; step + 1 < depth; ++step)
    issueIf(isAny, step, keyOf(constant(0)), !mayLackRows);

  SmallVector<KVPhaseRange, 3> phases = makePhaseRanges(builder, loop, trips);
  hasRightPhase = phases.front().kind == KVPhase::Right;
  llvm::erase_if(phases, isNeverMasked);
  joinPhases(phases);
  SmallVector<Value> carried(loop.getInits());
  for (const KVPhaseRange &phase : phases)
    carried = makeLoop(phase, carried);
  CpAsyncWaitOp::create(builder, loc, 0);

  KVLoopSummary summary;
  summary.stages = depth;
  summary.steps = steps.size();
  summary.groupsInFlight = depth - 1;
  for (const KVPhaseRange &phase : phases)
    summary.phases.push_back(phase.kind);
  loop.replaceAllUsesWith(carried);
  loop.erase();
  return summary;
}

bool attn::hasSlices(KVLoopOp loop) {
  DenseSet<Value> rings;
  return llvm::any_of(
      loop.getBody().front().getOps<StageOp>(),
      [&](StageOp stage) { return !rings.insert(stage.getRing()).second; });
}

FailureOr<KVLoopSummary> attn::expandSlicedKVLoop(KVLoopOp loop) {
  return SlicedExpander(loop).run();
}
