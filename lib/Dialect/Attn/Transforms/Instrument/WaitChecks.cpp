//===- WaitChecks.cpp - Checks at waits and signals -----------------------===//

#include "../ClusterWait.h"
#include "../LowerTiles/ClusterRanks.h"
#include "Instrumenter.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::instrument;
using arith::CmpIPredicate;

void Instrumenter::inOneLane(ImplicitLocOpBuilder &b, Words &w, Operation *op,
                             function_ref<void()> body) {
  if (isAlone(op))
    return body();
  auto branch = scf::IfOp::create(b, w.isFirstLane(), /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    body();
  }
  // Matrix instructions want all lanes at one place.
  NVVM::SyncWarpOp::create(b, w.constant(-1));
}

Value Instrumenter::goesOn(ImplicitLocOpBuilder &b, Words &w, Operation *op) {
  Value flag = w.load(w.sharedAddress(start));
  Value isZero = w.compare(CmpIPredicate::eq, flag, w.constant(0));
  if (isAlone(op))
    return isZero;
  return NVVM::VoteSyncOp::create(b, b.getI1Type(), w.constant(-1), isZero,
                                  NVVM::VoteSyncKind::all);
}

void Instrumenter::skipOnceGivenUp(Operation *op) {
  if (options.timeout == 0)
    return;
  ImplicitLocOpBuilder b(op->getLoc(), op);
  Words w(b, kernel);
  auto branch =
      scf::IfOp::create(b, goesOn(b, w, op), /*withElseRegion=*/false);
  op->moveBefore(branch.thenBlock()->getTerminator());
}

void Instrumenter::reportIf(ImplicitLocOpBuilder &b, Words &w, Value condition,
                            int64_t record, Value slot, Value expected,
                            Value seen, Value other) {
  auto branch = scf::IfOp::create(b, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  if (options.timeout != 0) {
    // What comes behind a hang is its fault.
    Value flag = w.load(w.sharedAddress(start));
    Value isKept = w.compare(CmpIPredicate::eq, flag, w.constant(0));
    auto kept = scf::IfOp::create(b, isKept, /*withElseRegion=*/false);
    b.setInsertionPointToStart(kept.thenBlock());
  }
  w.report(record, {w.cta(), w.warp(), slot, expected, seen, other});
}

/// Steps of a random generator that mix what comes in (those of MurmurHash3's
/// end, which are in the public domain).
static Value mix(ImplicitLocOpBuilder &b, Words &w, Value value) {
  auto fold = [&](int64_t bits) {
    value = arith::XOrIOp::create(
        b, value, arith::ShRUIOp::create(b, value, w.constant(bits)));
  };
  fold(16);
  value = arith::MulIOp::create(b, value, w.constant(int32_t(0x85ebca6b)));
  fold(13);
  value = arith::MulIOp::create(b, value, w.constant(int32_t(0xc2b2ae35)));
  fold(16);
  return value;
}

void Instrumenter::pause(Words &w, ImplicitLocOpBuilder &b, int64_t site,
                         Value count) {
  if (options.delay == 0)
    return;
  Value seed = w.add(w.loadSeed(), w.constant(int32_t(options.seed)));
  seed = mix(b, w, w.add(seed, w.multiply(w.cta(), 64)));
  seed = mix(b, w, w.add(seed, w.multiply(w.warp(), 4096)));
  seed = mix(b, w, w.add(seed, w.add(count, w.constant(site << 20))));
  // Half of the pauses are none.
  Value isPause = w.compare(CmpIPredicate::slt, seed, w.constant(0));
  auto branch = scf::IfOp::create(b, isPause, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  Value bits = arith::ShRUIOp::create(b, seed, w.constant(4));
  w.sleep(arith::RemUIOp::create(b, bits, w.constant(options.delay + 1)));
}

//===----------------------------------------------------------------------===//
// Waits
//===----------------------------------------------------------------------===//

/// Waits after which a CTA that has given up ends: loops that go on until a
/// word says so would never.
static constexpr int64_t kWaitsBehind = 1 << 20;
/// Pauses in which all others that wait see that one of them gave up.
static constexpr int64_t kPauses = 32, kPauseNanoseconds = 200000;

void Instrumenter::giveUp(ImplicitLocOpBuilder &b, Words &w, int64_t record,
                          ArrayRef<Value> values) {
  w.report(record, values);
  auto loop =
      scf::ForOp::create(b, w.constant(0), w.constant(kPauses), w.constant(1));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  w.sleep(w.constant(kPauseNanoseconds));
}

void Instrumenter::waitWithLimit(MBarrierWaitOp op, Words &w,
                                 ImplicitLocOpBuilder &b, Value phase) {
  Team team = findTeam(op);
  MBarrierAllocOp alloc = allocOf(op.getBarriers());
  int64_t record = sites.add("hang", op, alloc, team.name);
  Value flag = w.sharedAddress(start);
  Value address =
      w.add(w.sharedAddress(*alloc.getOffset()), w.multiply(op.getIndex(), 8));
  Value pointer = LLVM::IntToPtrOp::create(
      b, LLVM::LLVMPointerType::get(b.getContext(), 3), address);
  Type i64 = b.getI64Type();
  Value none = arith::ConstantIntOp::create(b, 0, 64);
  auto loop = scf::WhileOp::create(b, TypeRange(i64), ValueRange(none));
  OpBuilder::InsertionGuard guard(b);
  Block *before =
      b.createBlock(&loop.getBefore(), {}, TypeRange(i64), {op.getLoc()});
  auto tryWait = NVVM::MBarrierTryWaitOp::create(
      b, b.getI1Type(), pointer, op.getParity(), /*ticks=*/Value(),
      NVVM::MemScopeKind::CTA);
  if (op.getCluster())
    tryWait->setDiscardableAttr(kClusterWaitAttr, b.getUnitAttr());
  Value done = tryWait;
  Value isTrue = arith::ConstantIntOp::create(b, 1, 1);
  Value started = before->getArgument(0);
  auto branch =
      scf::IfOp::create(b, TypeRange{b.getI1Type(), i64},
                        arith::XOrIOp::create(b, done, isTrue).getResult(),
                        /*addThenBlock=*/true, /*addElseBlock=*/true);
  b.setInsertionPointToStart(branch.elseBlock());
  Value isFalse = arith::ConstantIntOp::create(b, 0, 1);
  scf::YieldOp::create(b, ValueRange{isFalse, started});

  // Not yet complete.
  b.setInsertionPointToStart(branch.thenBlock());
  Value now = w.now();
  Value isFirst = arith::CmpIOp::create(b, CmpIPredicate::eq, started, none);
  Value since = arith::SelectOp::create(b, isFirst, now, started);
  Value waited = arith::SubIOp::create(b, now, since);
  Value isLate = arith::CmpIOp::create(
      b, CmpIPredicate::ugt, waited,
      arith::ConstantIntOp::create(b, options.timeout * 1000, 64));
  Value wasGiven = w.compare(CmpIPredicate::ne, w.load(flag), w.constant(0));
  Value stops = arith::OrIOp::create(b, isLate, wasGiven);
  Value isBehind = w.both(wasGiven, isFirst);
  Value isWitness =
      w.both(stops, arith::XOrIOp::create(
                        b, isBehind, arith::ConstantIntOp::create(b, 1, 1)));
  auto witness = scf::IfOp::create(b, isWitness, /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard inner(b);
    b.setInsertionPointToStart(witness.thenBlock());
    Value signals = signalsOf(w, alloc, op.getIndex());
    w.fetchAdd(flag, w.constant(1));
    // Lanes come here on their own, so that none waits for the others.
    if (!isAlone(op)) {
      auto first = scf::IfOp::create(b, w.isFirstLane(),
                                     /*withElseRegion=*/false);
      b.setInsertionPointToStart(first.thenBlock());
    }
    giveUp(b, w, record,
           {w.cta(), w.warp(), op.getIndex(), phase, w.load(signals),
            w.load(w.add(signals, w.constant(4)))});
    b.setInsertionPointToStart(witness.elseBlock());
    auto behind = scf::IfOp::create(b, isBehind, /*withElseRegion=*/false);
    b.setInsertionPointToStart(behind.thenBlock());
    Value count = w.fetchAdd(flag, w.constant(1));
    Value ends = w.compare(CmpIPredicate::ugt, count, w.constant(kWaitsBehind));
    auto last = scf::IfOp::create(b, ends, /*withElseRegion=*/false);
    b.setInsertionPointToStart(last.thenBlock());
    w.exit();
  }
  Value again =
      arith::XOrIOp::create(b, stops, arith::ConstantIntOp::create(b, 1, 1));
  scf::YieldOp::create(b, ValueRange{again, since});
  b.setInsertionPointAfter(branch);
  scf::ConditionOp::create(b, branch.getResult(0),
                           ValueRange{branch.getResult(1)});
  Block *after =
      b.createBlock(&loop.getAfter(), {}, TypeRange(i64), {op.getLoc()});
  scf::YieldOp::create(b, after->getArguments());
}

void Instrumenter::instrument(MBarrierWaitOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Words w(b, kernel);
  Team team = findTeam(op);
  MBarrierAllocOp alloc = allocOf(op.getBarriers());
  const Barriers array = arrays[alloc];
  bool isCounted = options.checks && array.count != 0;
  Value index = op.getIndex();
  Value own = ownOf(w, team, alloc, index);
  // Phases waited for have numbers 0, 1, ...: the one of this parity that is
  // the last one waited for, or comes behind it.
  Value before = w.load(own);
  Value steps = w.add(w.add(before, op.getParity()), w.constant(1));
  Value phases = w.add(before, arith::AndIOp::create(b, steps, w.constant(1)));
  int64_t site = sites.size();
  Value signals = signalsOf(w, alloc, index);
  Value phase = w.add(phases, w.constant(-1));
  if (options.timeout != 0)
    waitWithLimit(op, w, b, phase);
  else
    b.setInsertionPointAfter(op);
  int64_t slip = isCounted ? sites.add("slip", op, alloc, team.name) : 0;
  inOneLane(b, w, op, [&] {
    w.store(own, phases);
    if (!isCounted)
      return;
    Value complete = divide(b, w, w.load(signals), array.count);
    Value slipped = w.compare(CmpIPredicate::sgt, complete, phases);
    reportIf(b, w, slipped, slip, index, phase, complete,
             w.load(w.add(signals, w.constant(4))));
  });
  pause(w, b, site, phases);
  if (options.timeout != 0)
    op.erase();
}

//===----------------------------------------------------------------------===//
// Signals
//===----------------------------------------------------------------------===//

void Instrumenter::signal(Operation *op, Value barriers, Value index,
                          std::optional<int64_t> ctas, bool leader,
                          std::optional<int64_t> bits) {
  ImplicitLocOpBuilder b(op->getLoc(), op);
  Words w(b, kernel);
  Team team = findTeam(op);
  MBarrierAllocOp alloc = allocOf(barriers);
  const Barriers array = arrays[alloc];
  int64_t record = sites.add("signal in the wrong phase", op, alloc, team.name);
  Value own = w.add(ownOf(w, team, alloc, index), w.constant(4));
  Value sent = w.load(own);
  pause(w, b, record, sent);
  if (!options.checks)
    return;
  inOneLane(b, w, op, [&] {
    w.store(own, w.add(sent, w.constant(1)));
    bool isRemote = ctas || leader;
    for (int64_t rank = 0; rank < ctas.value_or(1); ++rank) {
      Value signals = signalsOf(w, alloc, index), last;
      if (isRemote)
        signals =
            w.inCTA(signals, lowering::getMember(b, w.constant(rank), bits));
      Value count = w.fetchAdd(signals, w.constant(1), isRemote);
      if (isRemote) {
        last = w.constant(0);
      } else {
        Value place = w.add(signals, w.constant(4));
        last = w.load(place);
        w.store(place, w.constant(record + 1));
      }
      if (array.count == 0)
        continue;
      Value phase = divide(b, w, count, array.count);
      reportIf(b, w, w.compare(CmpIPredicate::ne, phase, sent), record, index,
               sent, phase, last);
    }
  });
}

void Instrumenter::instrument(MBarrierArriveOp op) {
  signal(op, op.getBarriers(), op.getIndex(), op.getCtas(), op.getLeader(),
         op.getRankBits());
}

void Instrumenter::instrument(MBarrierExpectTxOp op) {
  signal(op, op.getBarriers(), op.getIndex(), op.getCtas(), false,
         op.getRankBits());
}
