//===- KVLoopExpander.cpp - attn.kv_loop as pipelined loops ---------------===//
//
// Blocks are numbered in the order of execution: iteration t works on block
// end - 1 - t, so iteration 0 has the last keys and is the only one whose rows
// may not all exist. Each phase is a range of iterations and becomes an
// scf.for; the carried values and the ring's slot pass from one to the next.
//
// With N >= 2 stages, an iteration is
//
//   wait until N - 2 groups are pending; [barrier]
//   if t + N - 1 exists: copy its stages to slot t + N - 1 (mod N)
//   commit; compute from slot t (mod N)
//
// and the prologue copies iterations 0 to N - 2. With one stage, copies cannot
// be a block ahead, but those of K (what the block reads first) can be on their
// way during the softmax and those of V during the scores:
//
//   wait (K); [barrier]; copy V; commit; scores
//   wait (V); [barrier]; if t + 1 exists: copy its K; commit; softmax, output
//
// The barriers are not placed here but by attn-insert-fences.
//
//===----------------------------------------------------------------------===//

#include "KVLoopExpander.h"
#include "KVPhases.h"
#include "StageCopies.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::attn;

namespace {

class Expander {
public:
  explicit Expander(KVLoopOp loop)
      : loop(loop), body(loop.getBody().front()), builder(loop),
        loc(loop.getLoc()), depth(loop.getStages()) {}

  FailureOr<KVLoopSummary> run();

private:
  /// True if copies to the rings may start above `op`.
  bool isPassedByCopies(Operation *op);
  /// The wait above which the prologue can go, with what it needs moved there;
  /// null if there is none.
  CpAsyncWaitOp prepareWait();
  LogicalResult analyze();
  /// With one stage: the first op that reads a late stage, and the last one
  /// that reads an early stage; null if there is none.
  std::pair<Operation *, Operation *> findTurningPoints();

  Value constant(int64_t value);
  Value isLess(Value a, Value b);
  /// The first key of the block of iteration `t`.
  Value keyOf(Value t);
  /// The slot `steps` iterations after the one of `slot`.
  Value advance(Value slot, int64_t steps);
  /// The slot of `stage` for the copies of iteration t + `distance`.
  Value makeSlot(Stage &stage, Value slot, std::optional<int64_t> distance);
  /// Starts the copies of the stages that `which` selects.
  void issue(function_ref<bool(const Stage &)> which, Value key, Value slot,
             std::optional<int64_t> distance, bool inBounds);
  /// The same if `exists`, followed by a commit in any case, so that each
  /// iteration makes the same number of groups.
  void issueIf(Value exists, function_ref<bool(const Stage &)> which, Value key,
               Value slot, std::optional<int64_t> distance, bool inBounds);
  void prologue();
  SmallVector<Value> makeLoop(const KVPhaseRange &phase, ValueRange carried);
  SmallVector<Value> makeBody(const KVPhaseRange &phase, Value t,
                              ValueRange carried);

  KVLoopOp loop;
  Block &body;
  OpBuilder builder;
  Location loc;
  int64_t depth;
  SmallVector<Stage> stages;
  Value trips;
  Value lastBlock;
  /// The rows of iteration 0 may end before its block does.
  bool mayLackRows = true;
  /// The right phase has a loop of its own.
  bool hasRightPhase = false;
};

} // namespace

static bool always(const Stage &) { return true; }
static bool isEarly(const Stage &stage) { return stage.early; }
static bool isLate(const Stage &stage) { return !stage.early; }

//===----------------------------------------------------------------------===//
// Analysis
//===----------------------------------------------------------------------===//

LogicalResult Expander::analyze() {
  FailureOr<SmallVector<Stage>> collected = collectStages(loop);
  if (failed(collected))
    return failure();
  stages = std::move(*collected);

  auto softmaxes = body.getOps<OnlineSoftmaxOp>();
  Operation *softmax =
      softmaxes.empty() ? nullptr : (*softmaxes.begin()).getOperation();
  Operation *firstAccess = nullptr;
  for (Stage &stage : stages)
    if (!firstAccess || stage.first->isBeforeInBlock(firstAccess))
      firstAccess = stage.first;
  for (Stage &stage : stages)
    stage.early = softmax ? stage.first->isBeforeInBlock(softmax)
                          : stage.first == firstAccess;
  return success();
}

/// The allocation of a buffer; null if another op made it.
static AllocOp findAllocation(Value buffer) {
  while (auto view = buffer.getDefiningOp<ViewLikeOpInterface>())
    buffer = view.getViewSource();
  return buffer.getDefiningOp<AllocOp>();
}

bool Expander::isPassedByCopies(Operation *op) {
  Value buffer;
  if (auto load = dyn_cast<LocalLoadOp>(op))
    buffer = load.getSource();
  else if (auto store = dyn_cast<LocalStoreOp>(op))
    buffer = store.getDest();
  else
    return isa<AllocOp>(op) || isMemoryEffectFree(op) ||
           (op->getNumRegions() == 0 &&
            hasSingleEffect<MemoryEffects::Read>(op));
  AllocOp accessed = findAllocation(buffer);
  return accessed && llvm::none_of(stages, [&](Stage &stage) {
           AllocOp ring = findAllocation(stage.op.getRing());
           return !ring || ring == accessed;
         });
}

CpAsyncWaitOp Expander::prepareWait() {
  CpAsyncWaitOp wait;
  for (Operation *op = loop->getPrevNode(); op && !wait; op = op->getPrevNode())
    if (!(wait = dyn_cast<CpAsyncWaitOp>(op)) && !isPassedByCopies(op))
      return {};
  if (!wait)
    return {};
  SmallVector<Value> worklist = {loop.getBegin(), loop.getEnd()};
  for (Stage &stage : stages) {
    worklist.push_back(stage.op.getRing());
    worklist.push_back(stage.op.getSource());
    worklist.push_back(stage.op.getRow());
    for (Operation *op : stage.slice)
      llvm::append_range(worklist, op->getOperands());
  }
  SetVector<Operation *> moved;
  while (!worklist.empty()) {
    Operation *def = worklist.pop_back_val().getDefiningOp();
    if (!def || def->getBlock() != wait->getBlock() ||
        !wait->isBeforeInBlock(def) || !moved.insert(def))
      continue;
    if (isa<LocalLoadOp>(def) || def->getNumRegions() != 0)
      return {};
    llvm::append_range(worklist, def->getOperands());
  }
  SmallVector<Operation *> order = moved.takeVector();
  llvm::sort(order,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  for (Operation *op : order)
    op->moveBefore(wait);
  return wait;
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

Value Expander::constant(int64_t value) {
  return arith::ConstantIntOp::create(builder, loc, value, 32);
}

Value Expander::isLess(Value a, Value b) {
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, a, b);
}

Value Expander::keyOf(Value t) {
  Value index = arith::SubIOp::create(builder, loc, lastBlock, t);
  return arith::MulIOp::create(builder, loc, index, constant(loop.getBlock()));
}

Value Expander::advance(Value slot, int64_t steps) {
  if (steps % depth == 0)
    return slot;
  if (depth == 2)
    return arith::XOrIOp::create(builder, loc, slot, constant(1));
  Value next = arith::AddIOp::create(builder, loc, slot, constant(steps));
  Value wraps = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge,
                                      next, constant(depth));
  Value wrapped = arith::SubIOp::create(builder, loc, next, constant(depth));
  return arith::SelectOp::create(builder, loc, wraps, wrapped, next);
}

Value Expander::makeSlot(Stage &stage, Value slot,
                         std::optional<int64_t> distance) {
  IntegerAttr attr =
      distance ? builder.getI64IntegerAttr(*distance) : IntegerAttr();
  return SlotOp::create(builder, stage.op.getLoc(), stage.op.getType(),
                        stage.op.getRing(), slot, attr);
}

void Expander::issue(function_ref<bool(const Stage &)> which, Value key,
                     Value slot, std::optional<int64_t> distance,
                     bool inBounds) {
  IRMapping mapping;
  mapping.map(loop.getKey(), key);
  for (Stage &stage : stages) {
    if (!which(stage))
      continue;
    for (Operation *op : stage.slice)
      if (!mapping.contains(op))
        builder.clone(*op, mapping);
    Value dest = makeSlot(stage, slot, distance);
    startCopies(builder, loop, stage, dest, mapping, inBounds);
  }
}

void Expander::issueIf(Value exists, function_ref<bool(const Stage &)> which,
                       Value key, Value slot, std::optional<int64_t> distance,
                       bool inBounds) {
  auto guard = scf::IfOp::create(builder, loc, exists, /*else=*/false);
  {
    OpBuilder::InsertionGuard restore(builder);
    builder.setInsertionPointToStart(guard.thenBlock());
    issue(which, key, slot, distance, inBounds);
  }
  CpAsyncCommitOp::create(builder, loc);
}

void Expander::prologue() {
  if (depth == 1) {
    issueIf(isLess(constant(0), trips), isEarly, keyOf(constant(0)),
            constant(0), std::nullopt, /*inBounds=*/!mayLackRows);
    return;
  }
  for (int64_t t = 0; t + 1 < depth; ++t)
    issueIf(isLess(constant(t), trips), always, keyOf(constant(t)), constant(t),
            std::nullopt, /*inBounds=*/t > 0 || !mayLackRows);
}

//===----------------------------------------------------------------------===//
// The steady state
//===----------------------------------------------------------------------===//

SmallVector<Value> Expander::makeBody(const KVPhaseRange &phase, Value t,
                                      ValueRange carried) {
  Value slot = depth == 1 ? constant(0) : carried.back();
  IRMapping mapping;
  Value key = keyOf(t);
  mapping.map(loop.getKey(), key);
  for (auto [argument, value] : llvm::zip(loop.getIterArgs(), carried))
    mapping.map(argument, value);

  int64_t ahead = depth == 1 ? 1 : depth - 1;
  Value next = arith::AddIOp::create(builder, loc, t, constant(ahead));
  Value nextKey = arith::SubIOp::create(
      builder, loc, key,
      constant(ahead * static_cast<int64_t>(loop.getBlock())));

  Operation *firstLate = nullptr, *lastEarly = nullptr;
  if (!stages.empty())
    CpAsyncWaitOp::create(builder, loc, depth == 1 ? 0 : depth - 2);
  if (depth > 1 && !stages.empty()) {
    issueIf(isLess(next, trips), always, nextKey, advance(slot, ahead), ahead,
            /*inBounds=*/true);
  } else if (depth == 1) {
    std::tie(firstLate, lastEarly) = findTurningPoints();
    if (firstLate) {
      // Iteration 0 is in the right phase unless all of its rows exist.
      bool inBounds =
          !mayLackRows || (hasRightPhase && phase.kind != KVPhase::Right);
      issue(isLate, key, slot, 0, inBounds);
      CpAsyncCommitOp::create(builder, loc);
    }
  }

  // One stage: V is awaited and the next K copied as soon as K has been read.
  bool mustWait = firstLate;
  auto waitOnce = [&]() {
    if (mustWait)
      CpAsyncWaitOp::create(builder, loc, 0);
    mustWait = false;
  };
  for (Operation &op : body.without_terminator()) {
    if (&op == firstLate)
      waitOnce();
    auto stage = llvm::find_if(
        stages, [&](const Stage &stage) { return stage.op == &op; });
    if (stage != stages.end())
      mapping.map(stage->op.getResult(), makeSlot(*stage, slot, 0));
    else
      cloneForPhase(builder, &op, phase.kind, mapping);
    if (&op == lastEarly) {
      waitOnce();
      issueIf(isLess(next, trips), isEarly, nextKey, slot, ahead,
              /*inBounds=*/true);
    }
  }

  SmallVector<Value> results;
  for (Value value : body.getTerminator()->getOperands())
    results.push_back(mapping.lookupOrDefault(value));
  if (depth > 1)
    results.push_back(advance(slot, 1));
  return results;
}

std::pair<Operation *, Operation *> Expander::findTurningPoints() {
  Operation *firstLate = nullptr, *lastEarly = nullptr;
  for (Stage &stage : stages) {
    if (stage.early) {
      if (!lastEarly || lastEarly->isBeforeInBlock(stage.last))
        lastEarly = stage.last;
    } else if (!firstLate || stage.first->isBeforeInBlock(firstLate)) {
      firstLate = stage.first;
    }
  }
  return {firstLate, lastEarly};
}

SmallVector<Value> Expander::makeLoop(const KVPhaseRange &phase,
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

FailureOr<KVLoopSummary> Expander::run() {
  if (failed(analyze()))
    return failure();
  CpAsyncWaitOp wait;
  if (loop.getAboveWait() && !stages.empty() && (wait = prepareWait()))
    builder.setInsertionPoint(wait);
  trips = arith::SubIOp::create(builder, loc, loop.getEnd(), loop.getBegin());
  lastBlock = arith::SubIOp::create(builder, loc, loop.getEnd(), constant(1));
  mayLackRows = !isSameBound(loop.getFullEnd(), loop.getEnd());
  if (!stages.empty())
    prologue();
  if (wait) {
    // The prologue's groups are younger than those that the wait is for.
    int64_t groups = std::max<int64_t>(1, depth - 1);
    wait.setPending(wait.getPending() + groups);
    builder.setInsertionPoint(loop);
  }

  SmallVector<KVPhaseRange, 3> phases = makePhaseRanges(builder, loop, trips);
  hasRightPhase = phases.front().kind == KVPhase::Right;
  SmallVector<Value> carried(loop.getInits());
  if (depth > 1)
    carried.push_back(constant(0));
  for (const KVPhaseRange &phase : phases)
    carried = makeLoop(phase, carried);
  if (!stages.empty())
    CpAsyncWaitOp::create(builder, loc, 0);

  KVLoopSummary summary;
  summary.stages = depth;
  summary.copiesAhead = stages.empty() ? 0 : depth - 1;
  summary.groupsInFlight = stages.empty() ? 0 : std::max<int64_t>(1, depth - 1);
  for (const KVPhaseRange &phase : phases)
    summary.phases.push_back(phase.kind);
  summary.aboveWait = static_cast<bool>(wait);
  carried.resize(loop.getNumResults());
  loop.replaceAllUsesWith(carried);
  loop.erase();
  return summary;
}

FailureOr<KVLoopSummary> attn::expandKVLoop(KVLoopOp loop) {
  return Expander(loop).run();
}
