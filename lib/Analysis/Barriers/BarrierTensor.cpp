//===- BarrierTensor.cpp - Tensor memory and its products -----------------===//
//
// Products of a thread form a stream: they end in the order in which they were
// started (A1), and their signals arrive in it (A2). What a signal carries is
// what the products before it were started after, and these themselves.
//
//===----------------------------------------------------------------------===//

#include "BarrierMachine.h"
#include "attn/Layout/TensorMemoryLayout.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::barriers;

void Machine::fenceTensor(Warp &warp, bool isBehindWait) {
  if (isBehindWait)
    orderOwn(warp, &Knowledge::handed, &Knowledge::tensor);
  else
    orderOwn(warp, &Knowledge::tensor, &Knowledge::handed);
}

//===----------------------------------------------------------------------===//
// Lifetime
//===----------------------------------------------------------------------===//

/// True if the warp has gone on, or has stopped for good.
bool Machine::takeTensor(Warp &warp, const Step &step) {
  if (warp.local != 0)
    return true;
  TensorMemory &tensor = tensors[warp.cta];
  // Each CTA of a pair waits until the other one takes its part too. What both
  // have then, both know of.
  auto joinPair = [&] {
    const TensorMemory &peer = tensors[warp.cta ^ 1];
    tensor.waits = !peer.isBegun;
    if (tensor.waits)
      return false;
    done(warp).generic.set(peer.event);
    done(warp).cause.set(peer.event);
    return true;
  };
  if (tensor.waits)
    return joinPair();
  if (tensor.isTaken || tensor.leaveStep) {
    reportCondition(BarrierFault::Lifetime, here(warp),
                    nameOf(warp) +
                        " takes columns of tensor memory a second time",
                    {noteAt(tensor.takeStep, "the first time")});
    return true;
  }
  if (step.isOfPair && barriers.back().phase == 0) {
    reportCondition(BarrierFault::Lifetime, here(warp),
                    nameOf(warp) +
                        " takes columns of tensor memory for a pair whose "
                        "other CTA may not have started: a cluster barrier has "
                        "to come before it");
    return true;
  }
  for (uint32_t number = step.first; number < step.last; ++number) {
    uint32_t event = makeAccess(warp, number, warp.cta);
    if (event == 0)
      return true;
    done(warp).generic.set(event);
    done(warp).cause.set(event);
  }
  tensor.isTaken = true;
  tensor.written.clear();
  tensor.written.resize(kTmemLanes / kTmemCellLanes * kTmemColumns);
  tensor.columns = step.value;
  tensor.takeStep = warp.pc;
  tensor.event = newEvent();
  done(warp).generic.set(tensor.event);
  done(warp).cause.set(tensor.event);
  tensor.isBegun = true;
  return !step.isOfPair || joinPair();
}

bool Machine::isTensorUsable(Warp &warp, const AccessInfo &info, uint8_t cta) {
  const TensorMemory &tensor = tensors[cta];
  StringRef name = info.footprint.getName();
  if (!tensor.isTaken || tensor.isOver) {
    SmallVector<OpNote> notes;
    if (tensor.leaveStep)
      notes.push_back(noteAt(tensor.leaveStep, "they were given back here"));
    reportCondition(BarrierFault::Lifetime, here(warp),
                    llvm::formatv("{0} touches '{1}' {2}", nameOf(warp), name,
                                  tensor.leaveStep
                                      ? "after its columns were given back"
                                      : "before its columns are taken"),
                    std::move(notes));
    return false;
  }
  if (!known(warp, &Knowledge::generic).test(tensor.event)) {
    reportCondition(BarrierFault::Lifetime, here(warp),
                    llvm::formatv("{0} touches '{1}' without being ordered "
                                  "after what takes its columns",
                                  nameOf(warp), name),
                    {noteAt(tensor.takeStep, "they are taken here")});
    return false;
  }
  if (program->tensorColumns > tensor.columns) {
    reportCondition(BarrierFault::Lifetime, here(warp),
                    llvm::formatv("the kernel's allocations have {0} columns, "
                                  "{1} were taken",
                                  program->tensorColumns, tensor.columns),
                    {noteAt(tensor.takeStep, "they are taken here")});
    return false;
  }
  return true;
}

void Machine::leaveTensor(Warp &warp, const Step &step) {
  if (warp.local != 0)
    return;
  TensorMemory &tensor = tensors[warp.cta];
  if (!tensor.isTaken || tensor.columns != step.value)
    return reportCondition(
        BarrierFault::Lifetime, here(warp),
        llvm::formatv("{0} gives back {1} columns, {2} are taken", nameOf(warp),
                      step.value, tensor.isTaken ? tensor.columns : 0));
  auto end = [&](uint8_t cta, bool isLast) {
    for (size_t i = 0; i < accesses.size();) {
      const Access &access = accesses[i];
      if (!access.isTensor || access.cta != cta) {
        ++i;
        continue;
      }
      if (!warp.knows.all.tensor.test(access.event))
        report(BarrierFault::Lifetime, here(warp),
               llvm::formatv(
                   "{0} gives columns back while {1} by {2} of '{3}' may be in "
                   "flight",
                   nameOf(warp), access.isWrite ? "a write" : "a read",
                   whoIs(access.warp),
                   program->accesses[access.info].footprint.getName()),
               {noteAt(access.step, "it starts here; a wait for it has to come "
                                    "before its thread's last barrier")});
      if (!isLast) {
        ++i;
        continue;
      }
      forget(access.event);
      accesses.replaceByLast(i);
    }
  };
  // Either CTA of a pair may be the first one, and neither may go on with the
  // columns of the other one: both have to know of all uses.
  bool isLast = !step.isOfPair || tensor.isOver;
  end(warp.cta, isLast);
  if (step.isOfPair)
    end(warp.cta ^ 1, isLast);
  if (!isLast) {
    TensorMemory &peer = tensors[warp.cta ^ 1];
    peer.isOver = true;
    peer.leaveStep = warp.pc;
  }
  tensor.isTaken = tensor.isOver = false;
  tensor.written.clear();
  tensor.leaveStep = warp.pc;
  forget(tensor.event);
  tensor.event = 0;
}

//===----------------------------------------------------------------------===//
// What somebody has written
//===----------------------------------------------------------------------===//

/// Calls `use` with the first cell of each range of an access, and the one
/// behind its last.
static void forEachRange(const Program &program, const Access &access,
                         llvm::function_ref<void(int64_t, int64_t)> use) {
  const Footprint &footprint = program.accesses[access.info].footprint;
  for (ByteRange range : footprint.parts[access.part]) {
    int64_t start = access.base - kTensorStart;
    use((start + range.begin) / kTmemCellBytes,
        (start + range.end) / kTmemCellBytes);
  }
}

/// The first cell of an access that nobody has written since the CTA has taken
/// its columns. Writes that come later in other orders are races.
std::optional<int64_t> Machine::findUnwritten(const Access &access) const {
  const llvm::BitVector &written = tensors[access.cta].written;
  std::optional<int64_t> found;
  forEachRange(*program, access, [&](int64_t first, int64_t last) {
    int cell = written.find_first_unset_in(first, last);
    if (cell >= 0 && !found)
      found = cell;
  });
  return found;
}

/// A path that may be left out has written nothing.
void Machine::writeTensor(Warp &warp, const Access &made) {
  if (!warp.rare.empty())
    return;
  forEachRange(*program, made, [&](int64_t first, int64_t last) {
    tensors[made.cta].written.set(first, last);
  });
}

/// Where it matters whether a product is added, tiles of which one adds and the
/// other one does not go on by themselves.
bool Machine::agreeOnSum(Warp &warp, const Step &step) {
  if (step.args.empty())
    return true;
  auto varied = warp.varied.find(step.args[0]);
  const llvm::BitVector &written = tensors[warp.cta].written;
  if (varied == warp.varied.end() || written.all())
    return true;
  for (uint32_t number = step.first; number < step.last; ++number) {
    const AccessInfo &info = program->accesses[number];
    Access access;
    if (!info.isAddedTo || !findBase(warp, info, access.base))
      continue;
    access.info = number;
    access.cta = warp.cta;
    if (findUnwritten(access))
      return agree(varied->second, /*isCondition=*/true);
  }
  return true;
}

/// When a path that may be left out is taken follows from values, such as that
/// results of earlier blocks are there.
void Machine::readTensor(Warp &warp, const Access &made) {
  if (!warp.rare.empty())
    return;
  std::optional<int64_t> cell = findUnwritten(made);
  if (!cell)
    return;
  const Step &step = program->steps[made.step];
  if (made.isWrite && !step.args.empty()) {
    int64_t adds = 0;
    if (!get(warp, step.args[0], adds,
             "whether it is added to what nobody has written"))
      return;
    if (!adds)
      return;
  }
  const Footprint &footprint = program->accesses[made.info].footprint;
  int64_t lane = *cell / kTmemColumns * kTmemCellLanes;
  TmemAllocOp alloc = footprint.tensorAlloc;
  report(BarrierFault::Unwritten, here(warp),
         llvm::formatv("{0} by {1} takes what nobody has written: column {2} "
                       "of '{3}' in lanes {4} to {5}",
                       made.isWrite ? "this sum" : "this read", nameOf(warp),
                       *cell % kTmemColumns - int64_t(*alloc.getColumn()),
                       footprint.getName(), lane, lane + kTmemCellLanes - 1),
         {OpNote{alloc, "allocated here", BarrierActor()},
          noteAt(tensors[made.cta].takeStep, "its columns are taken here")});
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

bool Machine::knowsTensor(const Warp &warp, const Access &earlier,
                          const Access &made) {
  if (known(warp, &Knowledge::tensor).test(earlier.event))
    return true;
  if (program->steps[made.step].code != Code::Product ||
      !warp.products.tensor.test(earlier.event))
    return false;
  // The manual orders products with one accumulator.
  bool isSameAccumulator = earlier.isWrite && made.isWrite &&
                           earlier.base == made.base &&
                           program->accesses[earlier.info].footprint.parts ==
                               program->accesses[made.info].footprint.parts;
  if (!isSameAccumulator)
    assume(Assumption::MmaOrder);
  return true;
}

void Machine::startProduct(Warp &warp, const Step &step) {
  Knowledge &products = warp.products;
  assert(isElected(warp) && "one thread starts products");
  for (const Knowledge *knows : {&warp.knows.all, &warp.knows.elected}) {
    products.generic.join(knows->async);
    products.async.join(knows->async);
    products.cause.join(knows->cause);
    products.tensor.join(knows->tensor);
    products.handed.join(knows->tensor);
  }
  SmallVector<uint32_t, 4> events;
  for (uint32_t number = step.first; number < step.last; ++number)
    for (uint8_t cta = 0; cta < program->cluster; ++cta) {
      if (cta != warp.cta && (!step.isOfPair || cta != (warp.cta ^ 1)))
        continue;
      uint32_t event = makeAccess(warp, number, cta);
      if (event == 0)
        return;
      events.push_back(event);
    }
  for (uint32_t event : events) {
    products.generic.set(event);
    products.async.set(event);
    products.cause.set(event);
    products.tensor.set(event);
    products.handed.set(event);
  }
}

void Machine::signalProducts(Warp &warp, const Step &step) {
  uint32_t index = 0;
  if (!getBarrier(warp, step, index))
    return;
  if (warp.commits.empty() && program->cluster > 1)
    warp.commits.resize(program->cluster);
  bool isDone =
      step.forEachTarget(warp.cta, program->cluster, [&](uint32_t cta) {
        uint32_t number = cta * perCta + index;
        if (!isUsable(warp, number))
          return false;
        uint32_t event =
            signal(warp, number, step.value, 0, 0, Sender::Products);
        if (event == 0)
          return false;
        EventSet &earlier =
            warp.commits.empty() ? warp.products.cause : warp.commits[cta];
        earlier.set(event);
        return true;
      });
  if (!isDone)
    return;
  if (warp.hasSignalled)
    assume(Assumption::CommitOrder);
  warp.hasSignalled = true;
}
