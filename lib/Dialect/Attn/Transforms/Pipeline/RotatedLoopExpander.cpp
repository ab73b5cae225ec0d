//===- RotatedLoopExpander.cpp - attn.kv_loop with QK ahead ---------------===//
//
// The body of a loop over key blocks is cut into three parts: A starts the
// product that feeds the softmax (QK), B is the softmax and what stands around
// it, C is the product that uses its probabilities (PV). Iterations are
// rotated, so that PV of one block runs under the softmax of the next one:
//
//   A(0); wait 0; B(0)
//   for j = 1, 2, ...: A(j); start C(j-1); wait 1; B(j) with wait 0 before its
//                      first use of the accumulator
//   C(n-1)
//
// Slots of channels are acquired with the product that reads them and released
// behind its wait. With an exact softmax those that C reads are acquired before
// the late wait in B: the acquire is a loop, and ptxas moves neither the
// exponentials of B nor the wait across it. Without it the wait goes up to the
// first exponential, and none of them runs under PV
// (docs/Rationale/Pipeline.md). The first block keeps all masks, which is right
// for a block of any phase.
//
//===----------------------------------------------------------------------===//

#include "RotatedLoopExpander.h"
#include "ExpandSoftmax.h"

using namespace mlir;
using namespace mlir::attn;

//===----------------------------------------------------------------------===//
// Analysis
//===----------------------------------------------------------------------===//

void RotatedExpander::addSlice(
    Value value, DenseSet<Operation *> &part,
    SmallVectorImpl<ChannelUserOpInterface> &acquires) {
  SmallVector<Value> worklist = {value};
  while (!worklist.empty()) {
    Operation *def = worklist.pop_back_val().getDefiningOp();
    if (!def || def->getBlock() != &body)
      continue;
    if (auto acquire = dyn_cast<ChannelUserOpInterface>(def);
        acquire && acquire.getChannelUse() == ChannelUse::Acquire) {
      if (!llvm::is_contained(acquires, acquire))
        acquires.push_back(acquire);
      continue;
    }
    if (part.insert(def).second)
      llvm::append_range(worklist, def->getOperands());
  }
}

SmallVector<Operation *>
RotatedExpander::findReleases(ArrayRef<ChannelUserOpInterface> acquires) {
  SmallVector<Operation *> releases;
  for (auto user : body.getOps<ChannelUserOpInterface>()) {
    if (user.getChannelUse() != ChannelUse::Release)
      continue;
    Operation *acquire = user.getUsedHandle()->get().getDefiningOp();
    if (acquire && llvm::is_contained(acquires, acquire))
      releases.push_back(user);
  }
  return releases;
}

LogicalResult RotatedExpander::findProducts() {
  SmallVector<ProductOpInterface> products(body.getOps<ProductOpInterface>());
  SmallVector<OnlineSoftmaxOp> softmaxes(body.getOps<OnlineSoftmaxOp>());
  bool ordered = products.size() == 2 && softmaxes.size() == 1 &&
                 products[0]->isBeforeInBlock(softmaxes[0]) &&
                 softmaxes[0]->isBeforeInBlock(products[1]);
  if (!ordered)
    return loop.emitOpError("with qk_ahead expected two products with an "
                            "attn.online_softmax between them, got ")
           << products.size() << " products and " << softmaxes.size()
           << " attn.online_softmax";
  qk = products[0], pv = products[1], softmax = softmaxes[0];
  if (!softmax.getO())
    return softmax.emitOpError(
        "with qk_ahead expected the accumulator as an operand, got none");
  for (auto [product, wait] :
       {std::pair(qk, &qkWait), std::pair(pv, &pvWait)}) {
    if (product.getCompletion() != ProductCompletion::Wait)
      return product->emitOpError(
          "with qk_ahead expected a product in flight, in registers");
    if (!product->hasOneUse() ||
        !(*wait = dyn_cast<ProductWaitOpInterface>(*product->user_begin())) ||
        (*wait)->getNumResults() != 1)
      return product->emitOpError("with qk_ahead expected a wait of its own");
  }
  return success();
}

LogicalResult RotatedExpander::analyze() {
  if (failed(findProducts()))
    return failure();
  if (!body.getOps<StageOp>().empty())
    return loop.emitOpError(
        "with qk_ahead expected slots of channels, got attn.stage");

  if (loop.getPvBehind() && softmax.getPolicy() != SoftmaxPolicy::Optimistic)
    return softmax.emitOpError("with pv_behind expected the policy "
                               "'optimistic', got '")
           << stringifySoftmaxPolicy(softmax.getPolicy()) << "'";
  if (failed(divide()))
    return failure();
  Operation *yield = body.getTerminator();
  auto position = llvm::find(yield->getOperands(), pvWait->getResult(0));
  if (position == yield->operand_end())
    return pvWait->emitOpError(
        "with qk_ahead expected the accumulator to be carried");
  accumulator = position - yield->operand_begin();
  return loop.getFirst() ? analyzeFirst() : success();
}

LogicalResult RotatedExpander::divide() {
  DenseSet<Operation *> sliceA = {qk}, sliceC = {pv};
  SmallVector<ChannelUserOpInterface> acquiresA, shared;
  for (Value operand : qk->getOperands())
    addSlice(operand, sliceA, acquiresA);
  for (ChannelUserOpInterface acquire : acquiresA) {
    sliceA.insert(acquire);
    for (Value operand : acquire->getOperands())
      addSlice(operand, sliceA, shared);
  }
  addSlice(pv.getB(), sliceC, acquiresC);
  // Probabilities in shared memory are written behind the last PV's wait: in
  // front of this one's, from registers that the loop carries.
  for (auto store : body.getOps<LocalStoreOp>())
    if (store.getDest() == pv.getA())
      sliceC.insert(store);
  // A policy with a rare path has the branch that keeps the wait in its place;
  // an acquire in front of it would keep the conversion of P in front too,
  // which must not write registers that PV reads.
  // With one slot the producer waits for the release behind the late wait.
  early = softmax.getPolicy() == SoftmaxPolicy::Exact &&
          llvm::all_of(acquiresC, [](ChannelUserOpInterface acquire) {
            auto type = cast<ChannelType>(acquire.getUsedChannel().getType());
            return type.getDepth() > 1;
          });
  if (!early)
    for (ChannelUserOpInterface acquire : acquiresC) {
      sliceC.insert(acquire);
      for (Value operand : acquire->getOperands())
        addSlice(operand, sliceC, shared);
    }
  for (Operation *op : sliceA)
    if (sliceC.contains(op) || op == softmax)
      return op->emitOpError("with qk_ahead expected QK to be independent of "
                             "the softmax and of PV");
  releasesA = findReleases(acquiresA);
  // A slot that something behind QK reads, too, is released where the body says
  // so: with the softmax.
  llvm::erase_if(releasesA, [&](Operation *release) {
    Operation *op = qkWait->getNextNode();
    while (op && op != release &&
           (isMemoryEffectFree(op) || isa<ChannelUserOpInterface>(op)))
      op = op->getNextNode();
    return op != release;
  });
  releasesC = findReleases(acquiresC);
  for (Operation &op : body.without_terminator()) {
    if (sliceA.contains(&op))
      partA.push_back(&op);
    else if (sliceC.contains(&op))
      partC.push_back(&op);
    else if (&op != qkWait && &op != pvWait &&
             !llvm::is_contained(releasesA, &op) &&
             !llvm::is_contained(releasesC, &op))
      partB.push_back(&op);
  }
  llvm::SetVector<Value> inputs;
  for (Operation *op : partC)
    for (Value operand : op->getOperands()) {
      Operation *def = operand.getDefiningOp();
      if (operand.getParentBlock() == &body && (!def || !sliceC.contains(def)))
        inputs.insert(operand);
    }
  if (early)
    for (ChannelUserOpInterface acquire : acquiresC)
      inputs.insert(acquire.getMadeHandle());
  inputsC = inputs.takeVector();
  return success();
}

//===----------------------------------------------------------------------===//
// Emission
//===----------------------------------------------------------------------===//

Value RotatedExpander::keyOf(Value iteration) {
  Value index = arith::SubIOp::create(builder, loc, lastBlock, iteration);
  return arith::MulIOp::create(builder, loc, index, constant(loop.getBlock()));
}

SmallVector<Value> RotatedExpander::lookupAll(ArrayRef<Value> values,
                                              IRMapping &mapping) {
  return llvm::map_to_vector(
      values, [&](Value value) { return mapping.lookupOrDefault(value); });
}

ProductWaitOpInterface RotatedExpander::cloneWait(ProductWaitOpInterface wait,
                                                  Value inFlight,
                                                  int64_t pending) {
  IRMapping mapping;
  mapping.map(wait.getAwaited()[0], inFlight);
  auto clone = cast<ProductWaitOpInterface>(builder.clone(*wait, mapping));
  clone.setPendingGroups(pending);
  return clone;
}

LateWait RotatedExpander::startPV(ValueRange inputs, bool isFirst) {
  IRMapping mapping;
  mapping.map(inputsC, inputs);
  startProduct(mapping, isFirst);
  LateWait late;
  late.wait = cloneWait(pvWait, mapping.lookup(pv.getProduct()), 0);
  for (Operation *release : releasesC)
    late.releases.push_back(builder.clone(*release, mapping));
  return late;
}

void RotatedExpander::waitForQK(int64_t pending, IRMapping &mapping,
                                bool releases) {
  ProductWaitOpInterface wait =
      cloneWait(qkWait, mapping.lookup(qk.getProduct()), pending);
  mapping.map(qkWait->getResult(0), wait->getResult(0));
  if (releases)
    cloneAll(releasesA, mapping);
}

OnlineSoftmaxOp RotatedExpander::emitSoftmaxPart(KVPhase phase,
                                                 IRMapping &mapping) {
  OnlineSoftmaxOp copy;
  for (Operation *op : partB) {
    Operation *clone = cloneForPhase(builder, op, phase, mapping);
    if (op == softmax)
      copy = cast<OnlineSoftmaxOp>(clone);
  }
  return copy;
}

SmallVector<Value> RotatedExpander::collectCarried(IRMapping &mapping) {
  SmallVector<Value> values;
  for (auto [index, value] :
       llvm::enumerate(body.getTerminator()->getOperands()))
    if (index != accumulator)
      values.push_back(mapping.lookupOrDefault(value));
  return values;
}

void RotatedExpander::bindIteration(Value iteration, ValueRange carried,
                                    IRMapping &mapping) {
  mapping.map(loop.getKey(), keyOf(iteration));
  unsigned next = 0;
  for (auto [index, argument] : llvm::enumerate(loop.getIterArgs()))
    if (index != accumulator)
      mapping.map(argument, carried[next++]);
}

SmallVector<Value> RotatedExpander::emitIteration(KVPhase phase,
                                                  Value iteration,
                                                  ValueRange carried,
                                                  bool isFirst) {
  IRMapping mapping;
  unsigned others = loop.getNumResults() - 1;
  bindIteration(iteration, carried, mapping);
  takeTurn();
  startQK(mapping);
  LateWait late = startPV(carried.drop_front(others), isFirst);
  passTurn();
  mapping.map(loop.getIterArgs()[accumulator], late.wait->getResult(0));
  // PV's group is younger than QK's.
  bool rescores = loop.getRescore() && phase == KVPhase::Interior;
  waitForQK(/*pending=*/1, mapping, /*releases=*/!rescores);
  late.softmax = emitSoftmaxPart(phase, mapping);
  if (rescores) {
    late.scores = cast<ProductOpInterface>(
        mapping.lookup(qk.getProduct()).getDefiningOp());
    cloneAll(releasesA, mapping);
  }
  // The wait for QK comes first.
  Operation *before = late.softmax;
  late.wait->moveBefore(before);
  for (Operation *release : late.releases)
    release->moveBefore(before);
  if (early)
    for (ChannelUserOpInterface acquire : acquiresC)
      late.acquires.push_back(
          mapping.lookup(acquire.getMadeHandle()).getDefiningOp());
  lateWaits.push_back(late);

  SmallVector<Value> results = collectCarried(mapping);
  llvm::append_range(results, lookupAll(inputsC, mapping));
  return results;
}

SmallVector<Value> RotatedExpander::makeLoop(KVPhase phase, Value begin,
                                             Value end, ValueRange carried) {
  // Carried: the loop's values, the accumulator left out, then part C's inputs
  // of the iteration before.
  auto makeIteration = [&](OpBuilder &nested, Location, Value iteration,
                           ValueRange arguments) {
    OpBuilder::InsertionGuard restore(builder);
    builder.setInsertionPointToStart(nested.getInsertionBlock());
    scf::YieldOp::create(
        builder, loc,
        emitIteration(phase, iteration, arguments, /*isFirst=*/false));
  };
  auto made = scf::ForOp::create(builder, loc, begin, end, constant(1), carried,
                                 makeIteration);
  made->setAttr(kPhaseAttr, KVPhaseAttr::get(builder.getContext(), phase));
  return llvm::to_vector(ValueRange(made.getResults()));
}

SmallVector<KVPhase> RotatedExpander::emitBlocks(SmallVector<Value> &carried) {
  carried = emitFirstBlock();
  SmallVector<KVPhaseRange, 3> ranges = makePhaseRanges(builder, loop, trips);
  Value begin = constant(1);
  // PV of a first block with sizes of its own is the one that the loop with PV
  // behind starts with, or stands beside a second block apart.
  KVPhase second = loop.getSecond().value_or(KVPhase::Right);
  bool startsBehind = !runs.empty() && loop.getPvBehind() &&
                      second == KVPhase::Interior &&
                      llvm::any_of(ranges, [](const KVPhaseRange &range) {
                        return range.kind == KVPhase::Interior;
                      });
  if (!runs.empty() && !startsBehind) {
    carried = emitSecondBlock(second, carried);
    begin = constant(2);
  }
  // Phases that end before `second` keep their loops, which are empty: behind
  // the branch for the second block alone ptxas took slots and descriptors out
  // of the uniform registers (docs/Rationale/WarpSpecialization.md).
  SmallVector<KVPhase> kinds;
  for (const KVPhaseRange &range : ranges) {
    Value end = arith::MaxSIOp::create(builder, loc, range.end, begin);
    kinds.push_back(range.kind);
    if (range.kind != KVPhase::Interior || !loop.getPvBehind()) {
      carried = makeLoop(range.kind, begin, end, carried);
      begin = end;
      continue;
    }
    // Blocks behind go in pairs and one: an even number leaves one over.
    Value trips = arith::SubIOp::create(builder, loc, end, begin);
    Value odd = arith::AndIOp::create(builder, loc, trips, constant(1));
    Value some = arith::MinSIOp::create(builder, loc, trips, constant(1));
    Value left = arith::SubIOp::create(builder, loc, some, odd);
    if (startsBehind) {
      Value last = arith::SubIOp::create(builder, loc, end, left);
      carried = makeBehindLoop(begin, last, carried, /*isFirst=*/true);
      carried = makeLoop(range.kind, last, end, carried);
    } else {
      Value first = arith::AddIOp::create(builder, loc, begin, left);
      carried = makeLoop(range.kind, begin, first, carried);
      carried = makeBehindLoop(first, end, carried, /*isFirst=*/false);
    }
    begin = end;
  }

  // PV of the last block.
  unsigned others = loop.getNumResults() - 1;
  LateWait last =
      startPV(ValueRange(carried).drop_front(others), /*isFirst=*/false);
  carried.resize(others);
  carried.insert(carried.begin() + accumulator, last.wait->getResult(0));
  return kinds;
}

LogicalResult RotatedExpander::finishWaits() {
  for (OnlineSoftmaxOp softmax : behind)
    if (failed(expandOnlineSoftmax(softmax, /*inFlight=*/true)))
      return failure();
  for (LateWait &late : lateWaits) {
    Block *block = late.wait->getBlock();
    if (failed(
            expandOnlineSoftmax(late.softmax, /*inFlight=*/false, late.scores)))
      return failure();
    Operation *first = nullptr;
    for (Operation *user : late.wait->getUsers()) {
      Operation *ancestor = block->findAncestorOpInBlock(*user);
      if (!first || ancestor->isBeforeInBlock(first))
        first = ancestor;
    }
    for (Operation *acquire : late.acquires)
      acquire->moveBefore(first);
    late.wait->moveBefore(first);
    for (Operation *release : late.releases)
      release->moveBefore(first);
  }
  return success();
}

FailureOr<KVLoopSummary> RotatedExpander::run() {
  if (failed(analyze()))
    return failure();
  trips = arith::SubIOp::create(builder, loc, loop.getEnd(), loop.getBegin());
  lastBlock = arith::SubIOp::create(builder, loc, loop.getEnd(), constant(1));
  Value some = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sgt,
                                     trips, constant(0));
  auto branch = scf::IfOp::create(builder, loc, loop.getResultTypes(), some,
                                  /*withElseRegion=*/true);
  KVLoopSummary summary;
  summary.stages = 1;
  builder.setInsertionPointToStart(branch.thenBlock());
  SmallVector<Value> carried;
  summary.phases = emitBlocks(carried);
  scf::YieldOp::create(builder, loc, carried);
  builder.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(builder, loc, loop.getInits());
  loop.replaceAllUsesWith(branch.getResults());
  loop.erase();
  if (failed(finishWaits()))
    return failure();
  return summary;
}

FailureOr<KVLoopSummary> attn::expandRotatedKVLoop(KVLoopOp loop) {
  return RotatedExpander(loop).run();
}
