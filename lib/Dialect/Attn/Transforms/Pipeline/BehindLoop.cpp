//===- BehindLoop.cpp - PV one block behind the softmax -------------------===//
//
// The unmasked blocks of a rotated loop (RotatedLoopExpander.cpp) with PV of a
// block in flight over the whole softmax of the next one:
//
//   A(1); C(0); wait 1
//   in pairs: B(j) ; A(j+1); C(j); wait 1 with the release of what C(j-1) read
//   wait 0; B(n-1)
//
// Wait 1 leaves the last PV in flight, so that it means two products at once:
// this QK, and the PV before. Nothing else waits; a rare path of the softmax,
// which changes the accumulator, does for itself. Probabilities of one block
// are read while those of the next one are written: the pair gives each its own
// registers without moves.
//
//===----------------------------------------------------------------------===//

#include "RotatedLoopExpander.h"

using namespace mlir;
using namespace mlir::attn;

SmallVector<Value> BehindState::flatten() const {
  SmallVector<Value> values = carried;
  values.append({scores, accumulator});
  llvm::append_range(values, tokens);
  return values;
}

/// What a release gives back.
static Value getToken(Operation *release) {
  return cast<ChannelUserOpInterface>(release).getUsedHandle()->get();
}

BehindState RotatedExpander::startBehind(Value iteration, ValueRange carried,
                                         bool isFirst) {
  unsigned others = loop.getNumResults() - 1;
  IRMapping mapping, previous;
  bindIteration(iteration, carried, mapping);
  takeTurn();
  startQK(mapping);
  previous.map(inputsC, carried.drop_front(others));
  startProduct(previous, isFirst);
  passTurn();
  waitForQK(/*pending=*/1, mapping);
  BehindState state;
  llvm::append_range(state.carried, carried.take_front(others));
  state.scores = mapping.lookup(qkWait->getResult(0));
  state.accumulator = previous.lookup(pv.getProduct());
  for (Operation *release : releasesC)
    state.tokens.push_back(previous.lookup(getToken(release)));
  return state;
}

SmallVector<Value>
RotatedExpander::emitBehindSoftmax(Value iteration, const BehindState &state) {
  IRMapping mapping;
  bindIteration(iteration, state.carried, mapping);
  mapping.map(qkWait->getResult(0), state.scores);
  // The softmax takes a tile; its expansion moves the wait to the rare path.
  ProductWaitOpInterface ready =
      cloneWait(pvWait, state.accumulator, /*pending=*/0);
  mapping.map(loop.getIterArgs()[accumulator], ready->getResult(0));
  behind.push_back(emitSoftmaxPart(KVPhase::Interior, mapping));
  SmallVector<Value> carried = collectCarried(mapping);
  llvm::append_range(carried, lookupAll(inputsC, mapping));
  return carried;
}

SmallVector<Operation *>
RotatedExpander::releaseTokens(ArrayRef<Value> tokens) {
  SmallVector<Operation *> releases;
  for (auto [release, token] : llvm::zip(releasesC, tokens)) {
    IRMapping mapping;
    mapping.map(getToken(release), token);
    releases.push_back(builder.clone(*release, mapping));
  }
  return releases;
}

SmallVector<Value> RotatedExpander::emitBehindBlocks(Value begin, Value end,
                                                     ValueRange carried,
                                                     bool isFirst) {
  BehindState state = startBehind(begin, carried, isFirst);
  unsigned others = state.carried.size();
  Value last = arith::SubIOp::create(builder, loc, end, constant(1));
  auto makePair = [&](OpBuilder &nested, Location, Value iteration,
                      ValueRange arguments) {
    OpBuilder::InsertionGuard restore(builder);
    builder.setInsertionPointToStart(nested.getInsertionBlock());
    BehindState current{llvm::to_vector(arguments.take_front(others)),
                        arguments[others], arguments[others + 1],
                        llvm::to_vector(arguments.drop_front(others + 2))};
    for (int64_t i : {0, 1}) {
      Value own = arith::AddIOp::create(builder, loc, iteration, constant(i));
      SmallVector<Value> values = emitBehindSoftmax(own, current);
      Value next = arith::AddIOp::create(builder, loc, own, constant(1));
      BehindState started = startBehind(next, values, /*isFirst=*/false);
      releaseTokens(current.tokens);
      current = started;
    }
    scf::YieldOp::create(builder, loc, current.flatten());
  };
  auto pairs = scf::ForOp::create(builder, loc, begin, last, constant(2),
                                  state.flatten(), makePair);
  pairs->setAttr(kPhaseAttr,
                 KVPhaseAttr::get(builder.getContext(), KVPhase::Interior));

  // The last block awaits PV, so that what follows finds the accumulator ready.
  ValueRange results = pairs.getResults();
  IRMapping mapping;
  bindIteration(last, results, mapping);
  mapping.map(qkWait->getResult(0), results[others]);
  LateWait late;
  late.wait = cloneWait(pvWait, results[others + 1], /*pending=*/0);
  late.releases =
      releaseTokens(llvm::to_vector(results.drop_front(others + 2)));
  mapping.map(loop.getIterArgs()[accumulator], late.wait->getResult(0));
  late.softmax = emitSoftmaxPart(KVPhase::Interior, mapping);
  Operation *before = late.softmax;
  late.wait->moveBefore(before);
  for (Operation *release : late.releases)
    release->moveBefore(before);
  lateWaits.push_back(late);
  SmallVector<Value> values = collectCarried(mapping);
  llvm::append_range(values, lookupAll(inputsC, mapping));
  return values;
}

SmallVector<Value> RotatedExpander::makeBehindLoop(Value begin, Value end,
                                                   ValueRange carried,
                                                   bool isFirst) {
  Value some = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt,
                                     begin, end);
  auto branch = scf::IfOp::create(builder, loc, carried.getTypes(), some,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(builder, loc,
                       emitBehindBlocks(begin, end, carried, isFirst));
  builder.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(builder, loc, carried);
  return llvm::to_vector(ValueRange(branch.getResults()));
}
