//===- BarrierEmit.cpp - The steps of a kernel ----------------------------===//

#include "BarrierCompiler.h"
#include "attn/Analysis/Flow/HandleFlow.h"
#include "attn/Dialect/Attn/IR/BulkStores.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::barriers;

void Compiler::fail(Operation *op, std::string why) {
  if (!unsupportedOp)
    unsupportedOp = UnsupportedOp{op, std::move(why)};
}

Slot Compiler::slotOf(Value value) {
  if (!isDemanded(value))
    return kNoSlot;
  return slots.try_emplace(value, slots.size() + temporaries).first->second;
}

Slot Compiler::newTemporary() { return slots.size() + temporaries++; }

Step &Compiler::emit(Code code, Operation *op) {
  Step &step = program.steps.emplace_back();
  step.code = code;
  step.op = op;
  step.isElected = isElected(op);
  return step;
}

/// Takes all values before it sets the first one, since some of those that are
/// set may be among those that are taken.
void Compiler::copyAll(Operation *op, ValueRange from, ValueRange to) {
  SmallVector<std::pair<Slot, Slot>> copies;
  for (auto [source, target] : llvm::zip(from, to))
    if (isDemanded(target) && source != target)
      copies.push_back({slotOf(source), slotOf(target)});
  bool overlaps = llvm::any_of(copies, [&](const auto &set) {
    return llvm::any_of(
        copies, [&](const auto &taken) { return taken.first == set.second; });
  });
  if (overlaps) {
    for (auto &[source, target] : copies) {
      Slot temporary = newTemporary();
      Step &step = emit(Code::Copy, op);
      step.dst = temporary;
      step.args = {source};
      source = temporary;
    }
  }
  for (auto [source, target] : copies) {
    Step &step = emit(Code::Copy, op);
    step.dst = target;
    step.args = {source};
  }
}

void Compiler::emitBlock(Block &block) {
  for (Operation &op : block) {
    if (unsupportedOp)
      return;
    emitOp(&op);
  }
}

void Compiler::emitOp(Operation *op) {
  emitUses(op);
  // The number of a tile that this op computes is given.
  if (auto tile = tiles.find(op); tile != tiles.end())
    return emit(Code::Tile, op).takeDealt(slotOf(tile->second));
  if (!needed.contains(op)) {
    if (emittedBefore.contains(op))
      return;
    if (llvm::any_of(op->getResults(),
                     [&](Value value) { return isDemanded(value); }))
      emitScalar(op);
    return;
  }
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return tileValues.contains(op) ? emitTileLoop(loop) : emitFor(loop);
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return emitWhile(loop);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return emitIf(branch);
  if (auto rare = dyn_cast<RareOp>(op))
    return emitRare(rare);
  if (auto parts = dyn_cast<WarpSpecializeOp>(op))
    return emitPartitions(parts);
  if (auto commit = dyn_cast<CommitOpInterface>(op))
    return emitCommit(commit);
  if (isa<TmemReserveOp, TmemDeallocOp>(op))
    return emitTensorMemory(op);
  if (auto take = dyn_cast<TeamTakeOp>(op))
    return emitTeamTake(take);
  if (auto share = dyn_cast<TeamShareOp>(op))
    return emitTeamShare(share);
  if (isa<ElectOp>(op))
    return emitInSomeThreads(op, Code::Elect);
  if (isa<ClusterLeaderOp>(op))
    return emitInSomeThreads(op, Code::Leader);
  if (auto async = dyn_cast<AsyncOpInterface>(op))
    return emitAsync(async);
  auto element = dyn_cast<ElementOpInterface>(op);
  if (Value heard = element ? element.getHeardInteger() : Value()) {
    emitAccesses(op);
    Step &step = emit(Code::ReadWord, op);
    step.dst = slotOf(heard);
    step.first = program.accesses.size() - 1;
    return;
  }
  if (llvm::any_of(op->getOperandTypes(), llvm::IsaPred<BufferType>))
    return emitAccesses(op);
  emitSynchronisation(op);
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

void Compiler::emitScalar(Operation *op) {
  Slot dst = slotOf(op->getResult(0));
  auto launch = [&](LaunchNumber number, unsigned dim) {
    Step &step = emit(Code::Launch, op);
    step.dst = dst;
    step.launch = number;
    step.dim = dim;
  };
  if (auto id = dyn_cast<gpu::BlockIdOp>(op))
    return launch(LaunchNumber::Block, unsigned(id.getDimension()));
  if (auto id = dyn_cast<gpu::GridDimOp>(op))
    return launch(LaunchNumber::Grid, unsigned(id.getDimension()));
  if (auto id = dyn_cast<gpu::ClusterBlockIdOp>(op)) {
    if (id.getDimension() == gpu::Dimension::x)
      return launch(LaunchNumber::Rank, 0);
    program.constants.push_back({dst, 0});
    return;
  }
  if (isa<WarpgroupIndexOp>(op))
    return launch(LaunchNumber::Warpgroup, 0);
  if (isa<TeamIndexOp>(op))
    return launch(LaunchNumber::Team, 0);
  if (isa<InFlightType>(op->getResult(0).getType())) {
    // Registers of which nothing is pending.
    program.constants.push_back({dst, 0});
    return;
  }
  if (std::optional<int64_t> number = getConstantNumber(op->getResult(0))) {
    program.constants.push_back({dst, *number});
    return;
  }
  if (emitComparison(op))
    return;
  auto emitAddressed = [&](auto &&place) {
    Step &step = emit(Code::Compute, op);
    step.dst = dst;
    step.address = std::move(place.first);
    for (Value number : place.second)
      step.args.push_back(slotOf(number));
  };
  if (auto load = dyn_cast<LLVM::LoadOp>(op))
    return emitAddressed(getGlobalAddress(load, program.kernel));
  if (auto find = dyn_cast<FindKeyOp>(op))
    return emitAddressed(getFoundKey(find, program.kernel));
  if (auto deal = dyn_cast<DealRunOp>(op)) {
    // Numbers that nobody knows, which are the same in all threads.
    for (OpResult result : deal->getResults()) {
      if (!isDemanded(result))
        continue;
      Step &step = emit(Code::Compute, op);
      step.dst = slotOf(result);
      step.address = getDealtNumber(result, program.kernel);
      step.args = {slotOf(deal.getIndex())};
    }
    return;
  }
  bool isInteger = llvm::all_of(op->getOperandTypes(),
                                [](Type type) { return type.isIntOrIndex(); });
  Arithmetic compute =
      isInteger && op->getNumResults() == 1 && op->getNumOperands() <= 3
          ? getPlainArithmetic(op)
          : Arithmetic();
  // Without a way to compute it the value stays unknown, which matters where
  // something needs it.
  Step &step = emit(Code::Compute, op);
  step.dst = dst;
  step.compute = std::move(compute);
  step.isNamed = isPlaceOnly(op);
  for (Value operand : op->getOperands())
    step.args.push_back(slotOf(operand));
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

void Compiler::emitIf(scf::IfOp op) {
  if (hasSidesAlike(op))
    return emitBlock(*op.thenBlock());
  uint32_t test = here();
  emit(Code::Branch, op).args = {slotOf(op.getCondition())};
  emitBlock(*op.thenBlock());
  copyAll(op, op.thenYield().getOperands(), op.getResults());
  uint32_t end = here();
  emit(Code::Jump, op);
  program.steps[test].target = here();
  if (op.elseBlock()) {
    emitBlock(*op.elseBlock());
    copyAll(op, op.elseYield().getOperands(), op.getResults());
  }
  program.steps[end].target = here();
}

void Compiler::emitInSomeThreads(Operation *op, Code code) {
  uint32_t test = here();
  Step &step = emit(code, op);
  // Outside of partitions a thread of the CTA's first warp is elected.
  step.value = !getPartition(op).first;
  if (auto elect = dyn_cast<ElectOp>(op))
    step.flag = elect.getEachWarpgroup();
  else if (auto leader = dyn_cast<ClusterLeaderOp>(op))
    step.where =
        SignalMask::get(std::nullopt, /*leader=*/true, leader.getRankBits());
  emitBlock(op->getRegion(0).front());
  program.steps[test].target = here();
}

void Compiler::emitPartitions(WarpSpecializeOp op) {
  uint32_t dispatch = here();
  emit(Code::Partition, op);
  SmallVector<uint32_t> ends;
  for (Region &region : op.getPartitions()) {
    program.steps[dispatch].targets.push_back(here());
    emitBlock(region.front());
    ends.push_back(here());
    emit(Code::Jump, op);
  }
  for (uint32_t end : ends)
    program.steps[end].target = here();
}

/// A path that some warps take: what it knows and frees is no merit of those
/// that do not take it, what it touches is touched.
void Compiler::emitRare(RareOp op) {
  if (op.getEachWarpgroup()) {
    Step &vote = emit(Code::NamedBarrier, op);
    vote.flag = true;
    vote.value = 128;
    if (std::optional<int64_t> id = op.getBarrier())
      vote.first = *id;
    else
      fail(op, "its vote has no barrier (attn-insert-fences)");
  }
  emit(Code::RareBegin, op);
  Block &body = op.getBody().front();
  emitBlock(body);
  emit(Code::RareEnd, op);
  for (auto [index, result] : llvm::enumerate(op.getResults())) {
    if (!isDemanded(result))
      continue;
    Step &step = emit(Code::Join, op);
    step.dst = slotOf(result);
    step.args = {slotOf(op.getDefaults()[index]),
                 slotOf(body.getTerminator()->getOperand(index))};
    if (!isa<InFlightType>(result.getType()))
      fail(op, "who waits for whom depends on the path that it takes");
  }
}

//===----------------------------------------------------------------------===//
// Synchronisation
//===----------------------------------------------------------------------===//

bool Compiler::isElected(Operation *op) const {
  return op->getParentOfType<ElectOp>() != nullptr;
}

int64_t Compiler::countWarps(Operation *op) const {
  auto [parts, index] = getPartition(op);
  if (parts)
    return parts.getWarps()[index];
  return program.teams > 1 ? 1 : program.warps;
}

/// Whether a fence stands behind an initialisation, in front of all by which
/// others may learn of it.
static bool isFencedInit(MBarrierInitOp init) {
  for (Operation *op = init; op; op = op->getNextNode()) {
    if (isa<MBarrierFenceInitOp>(op))
      return true;
    bool signals = isSynchronisation(op) || isa<AsyncOpInterface>(op) ||
                   op->getNumRegions() != 0;
    if (signals && !isa<MBarrierInitOp>(op) && !isMemoryEffectFree(op))
      return false;
  }
  return false;
}

void Compiler::emitBarrierOp(Operation *op) {
  // Lanes of a warp act one by one where no thread is elected.
  int64_t lanes = isElected(op) ? 1 : 32;
  Step &step = program.steps.back();
  if (auto init = dyn_cast<MBarrierInitOp>(op)) {
    step.array = arrays.lookup(init.getBarriers());
    step.value = init.getCount();
    step.flag = isFencedInit(init);
  } else if (auto inval = dyn_cast<MBarrierInvalOp>(op)) {
    step.array = arrays.lookup(inval.getBarriers());
  } else if (auto expect = dyn_cast<MBarrierExpectTxOp>(op)) {
    step.array = arrays.lookup(expect.getBarriers());
    step.index = slotOf(expect.getIndex());
    step.value = expect.getBytes();
    step.ctas = expect.getCtas().value_or(1);
    step.where = SignalMask::get(expect.getCtas(), expect.getLeader(),
                                 expect.getRankBits());
    step.times = lanes;
  } else if (auto arrive = dyn_cast<MBarrierArriveOp>(op)) {
    step.array = arrays.lookup(arrive.getBarriers());
    step.index = slotOf(arrive.getIndex());
    step.ctas = arrive.getCtas().value_or(1);
    step.where = SignalMask::get(arrive.getCtas(), arrive.getLeader(),
                                 arrive.getRankBits());
  } else if (auto wait = dyn_cast<MBarrierWaitOp>(op)) {
    step.array = arrays.lookup(wait.getBarriers());
    step.index = slotOf(wait.getIndex());
    step.args = {slotOf(wait.getParity())};
  } else if (auto fence = dyn_cast<Tcgen05FenceOp>(op)) {
    step.flag = fence.getKind() == TensorFence::After;
  }
  bool isKnown = llvm::all_of(op->getOperands(), [&](Value operand) {
    return !isa<MBarriersType>(operand.getType()) || arrays.contains(operand);
  });
  if (!isKnown)
    fail(op, "its mbarriers do not come from an attn.mbarrier.alloc");
  if (step.ctas > program.cluster)
    fail(op, "it signals to more CTAs than the cluster has");
}

void Compiler::emitSynchronisation(Operation *op) {
  // Initialisations are published by the barrier behind them; to what needs
  // the fence they say that it is there.
  if (isa<MBarrierFenceInitOp>(op))
    return;
  APInt mask;
  if (auto sync = dyn_cast<NVVM::SyncWarpOp>(op);
      sync && (!matchPattern(sync.getMask(), m_ConstantInt(&mask)) ||
               !mask.isAllOnes()))
    return fail(op, "not all threads of a warp come to it");
  static const std::pair<StringRef, Code> codes[] = {
      {MBarrierInitOp::getOperationName(), Code::Init},
      {MBarrierInvalOp::getOperationName(), Code::Inval},
      {MBarrierExpectTxOp::getOperationName(), Code::Expect},
      {MBarrierArriveOp::getOperationName(), Code::Arrive},
      {MBarrierWaitOp::getOperationName(), Code::Wait},
      {gpu::BarrierOp::getOperationName(), Code::CtaBarrier},
      {TileArriveOp::getOperationName(), Code::CtaBarrier},
      {InOrderOp::getOperationName(), Code::CtaBarrier},
      {NamedBarrierOp::getOperationName(), Code::NamedBarrier},
      {ClusterBarrierOp::getOperationName(), Code::ClusterBarrier},
      {TeamBarrierOp::getOperationName(), Code::WarpBarrier},
      {NVVM::SyncWarpOp::getOperationName(), Code::WarpBarrier},
      {TurnStartOp::getOperationName(), Code::TurnStart},
      {TurnTakeOp::getOperationName(), Code::TurnTake},
      {TurnPassOp::getOperationName(), Code::TurnPass},
      {FenceProxyOp::getOperationName(), Code::FenceProxy},
      {Tcgen05FenceOp::getOperationName(), Code::FenceTensor}};
  StringRef name = op->getName().getStringRef();
  const auto *found = llvm::find_if(
      codes, [&](const auto &entry) { return entry.first == name; });
  assert(found != std::end(codes) && "every op that synchronises has a step");
  // One in front of the count of the CTAs and one behind it; of what these do
  // to global memory only stores in flight are followed.
  if (isa<TileArriveOp>(op)) {
    emit(Code::Publish, op);
    emit(found->second, op);
  }
  Step &step = emit(found->second, op);
  if (auto named = dyn_cast<NamedBarrierOp>(op)) {
    step.index = slotOf(named.getId());
    step.value = named.getThreads();
    step.flag = named.getEachWarpgroup();
  } else if (isa<TurnStartOp, TurnTakeOp, TurnPassOp>(op)) {
    step.value = op->getAttrOfType<IntegerAttr>("id").getInt();
    step.times = countWarps(op) / 4;
  } else {
    emitBarrierOp(op);
  }
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

void Compiler::addAccesses(Operation *op, Step &step,
                           std::optional<bool> byEngine) {
  step.first = step.last = program.accesses.size();
  // What is said of the op is the reason here, and no error.
  std::string reason;
  ScopedDiagnosticHandler handler(op->getContext(), [&](Diagnostic &diag) {
    reason = diag.str();
    return success();
  });
  auto footprints = getFootprints(op, countWarps(op));
  auto tensor = getTensorFootprints(op);
  if (failed(footprints) || failed(tensor))
    return fail(op, reason);
  footprints->append(tensor->begin(), tensor->end());
  for (Footprint &footprint : *footprints) {
    if (byEngine && *byEngine != (footprint.getEngine() != nullptr))
      continue;
    AccessInfo info;
    info.footprint = std::move(footprint);
    info.isExact = !step.isCollective() ||
                   info.footprint.by == RowParts::Warps ||
                   info.footprint.by == RowParts::Lanes;
    if (info.footprint.slotIndex)
      info.index = slotOf(info.footprint.slotIndex);
    info.isLate = lateLoads.contains(op) && !info.footprint.isWrite();
    program.accesses.push_back(std::move(info));
  }
  step.last = program.accesses.size();
  if (auto late = lateLoads.find(op); late != lateLoads.end())
    late->second = {step.first, step.last};
}

/// The access is to one element.
void Compiler::useElement(Operation *op, Value index) {
  AccessInfo &info = program.accesses.back();
  auto type =
      cast<BufferType>(op->getOperand(info.footprint.access.operand).getType());
  int64_t bytes = type.getElementType().getIntOrFloatBitWidth() / 8;
  info.footprint.parts = {{{0, bytes}}};
  info.footprint.by = RowParts::Whole;
  info.footprint.slotBytes = bytes;
  info.footprint.numSlots = type.getShape()[0];
  info.index = slotOf(index);
}

void Compiler::emitAccesses(Operation *op) {
  Step &step = emit(Code::Access, op);
  addAccesses(op, step);
  if (unsupportedOp)
    return;
  auto element = dyn_cast<ElementOpInterface>(op);
  if (!element)
    return;
  useElement(op, element.getElementIndex());
  if (Value told = element.getToldInteger())
    step.args = {slotOf(told)};
}

/// An asynchronous write that an mbarrier counts.
void Compiler::emitFill(AsyncOpInterface op) {
  auto fill = dyn_cast<ChannelUserOpInterface>(op.getOperation());
  auto [barriers, index] =
      fill ? fill.getFillBarrier() : std::pair<Value, Value>();
  if (!barriers || !arrays.contains(barriers))
    return fail(op, "it is not known which mbarrier counts its bytes");
  bool isExchange = fill.isExchange();
  if (!isElected(op) && !isExchange)
    return fail(op, "it does not stand in attn.elect, so that each lane of its "
                    "warps would start it");
  // A thread reads numbers of rows before it starts their copy.
  if (hasOwnAccess(op))
    addAccesses(op, emit(Code::Access, op), /*byEngine=*/false);
  Slot taken = fill.takesTile() ? newTemporary() : kNoSlot;
  if (fill.takesTile())
    emit(Code::Tile, op).takeDealt(taken);
  Step &step = emit(Code::Fill, op);
  step.flag = isExchange;
  addAccesses(op, step, /*byEngine=*/true);
  if (unsupportedOp)
    return;
  step.array = arrays.lookup(barriers);
  step.index = slotOf(index);
  step.where = fill.getFillTargets();
  step.ctas = fill.getFilledCTAs().value_or(
      step.where == SignalMask::own() ? 1 : program.cluster);
  step.isOfPair = fill.isFilledAtLeader();
  if (step.ctas > program.cluster)
    return fail(op, "it goes to more CTAs than the cluster has");
  if (isExchange && step.ctas != program.cluster)
    return fail(op, "it goes to the other one of two CTAs, and the cluster has "
                    "more");
  // The parts of a multicast come from all CTAs.
  const Footprint &footprint = program.accesses[step.first].footprint;
  step.value = fill.getFilledBytes();
  if (footprint.by == RowParts::CTAs)
    step.value /= footprint.parts.size();
  if (isExchange)
    step.value /= countWarps(op);
  if (auto [element, value] = fill.getFilledElement(); element) {
    useElement(op, element);
    step.args = {value ? slotOf(value) : taken};
  }
}

/// Returns true for an op of both CTAs of a pair, with ranks 2n and 2n + 1.
static bool isOfPair(Operation *op) {
  auto group = dyn_cast<TensorGroupOpInterface>(op);
  return group && group.isOfPair();
}

/// Accesses of the products of the one thread that executes the op.
void Compiler::emitProduct(Operation *op) {
  Step &step = emit(Code::Product, op);
  step.isOfPair = isOfPair(op);
  addAccesses(op, step);
  if (unsupportedOp)
    return;
  Value sum = cast<ProductOpInterface>(op).getAccumulator();
  for (AccessInfo &info :
       MutableArrayRef(program.accesses).drop_front(step.first))
    info.isAddedTo = info.footprint.isTensor() && info.footprint.isWrite() &&
                     sum == op->getOperand(info.footprint.access.operand);
  if (Value condition = getSumCondition(op))
    step.args = {slotOf(condition)};
}

/// A signal behind the products or copies of the threads that execute the op.
void Compiler::emitCommit(CommitOpInterface op) {
  auto [barriers, index] = op.getCommitBarrier();
  const AsyncEngine *engine = &op.getCommittedEngine();
  assert((engine == &kTensorProducts || engine == &kCopyGroups) &&
         "two engines have commits that signal");
  if (!arrays.contains(barriers))
    return fail(op, "its mbarriers do not come from an attn.mbarrier.alloc");
  Step &step = emit(Code::Signal, op);
  step.array = arrays.lookup(barriers);
  step.index = slotOf(index);
  step.ctas = op.countCommitCTAs();
  step.where = op.getCommitTargets();
  step.value = op.countCommitArrivals();
  step.flag = engine == &kCopyGroups;
  if (step.ctas > program.cluster)
    fail(op, "it signals to more CTAs than the cluster has");
}

/// The first warp takes columns or gives them back, with a barrier of the CTA
/// that lets others use them, or comes behind their uses.
void Compiler::emitTensorMemory(Operation *op) {
  if (auto dealloc = dyn_cast<TmemDeallocOp>(op)) {
    emit(Code::FenceTensor, op);
    emit(Code::CtaBarrier, op);
    emit(Code::FenceTensor, op).flag = true;
    Step &leave = emit(Code::LeaveTensor, op);
    leave.value = dealloc.getColumns();
    leave.isOfPair = isOfPair(op);
    return;
  }
  Step &take = emit(Code::TakeTensor, op);
  take.isOfPair = isOfPair(op);
  take.value = cast<TmemReserveOp>(op).getColumns();
  addAccesses(op, take);
  if (unsupportedOp)
    return;
  // All read what the first warp has written.
  AccessInfo read = program.accesses[take.first];
  emit(Code::CtaBarrier, op);
  Step &step = emit(Code::Access, op);
  step.first = program.accesses.size();
  read.footprint.access.isWrite = false;
  program.accesses.push_back(std::move(read));
  step.last = program.accesses.size();
}

void Compiler::emitAsync(AsyncOpInterface op) {
  const AsyncEngine &engine = op.getAsyncEngine();
  int number = getEngineNumber(engine);
  if (number < 0)
    return fail(op, "the order that its engine keeps is not known");
  if (engine.completion == AsyncEngine::Completion::Barrier)
    return engine.isTensorCore ? emitProduct(op) : emitFill(op);
  if (std::optional<int64_t> pending = op.getAwaitedGroups()) {
    Step &step = emit(Code::Await, op);
    step.dim = number;
    step.value = *pending;
    step.flag = awaitsOnlyReads(op);
    if (auto wait = dyn_cast<ProductWaitOpInterface>(op.getOperation()))
      for (Value awaited : wait.getAwaited())
        step.args.push_back(slotOf(awaited));
    return;
  }
  bool touches = llvm::any_of(op->getOperandTypes(), llvm::IsaPred<BufferType>);
  if (touches && &engine == &kBulkStores && !isElected(op))
    return fail(op, "it does not stand in attn.elect, so that each lane of its "
                    "warps would start it");
  Step &step = emit(touches ? Code::Issue : Code::Commit, op);
  step.dim = number;
  // A wait for accesses to tensor memory is one for all of them.
  step.flag = op.closesGroup() || unsigned(number) >= kFirstTensorEngine;
  if (op->getNumResults() == 1)
    step.dst = slotOf(op->getResult(0));
  if (touches)
    addAccesses(op, step);
}
