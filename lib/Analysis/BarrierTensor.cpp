//===- BarrierTensor.cpp - Tensor memory and its products -----------------===//
//
// Products of a thread form a stream: they end in the order in which they were
// started (A1), and their signals arrive in it (A2). What a signal carries is
// what the products before it were started after, and these themselves.
//
//===----------------------------------------------------------------------===//

#include "BarrierMachine.h"
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

void Machine::takeTensor(Warp &warp, const Step &step) {
  if (warp.local != 0)
    return;
  TensorMemory &tensor = tensors[warp.cta];
  if (tensor.isTaken)
    return reportCondition(BarrierFault::Lifetime, here(warp),
                           nameOf(warp) +
                               " takes columns of tensor memory a second time",
                           {noteAt(tensor.takeStep, "the first time")});
  for (uint32_t number = step.first; number < step.last; ++number) {
    uint32_t event = makeAccess(warp, number, warp.cta);
    if (event == 0)
      return;
    done(warp).generic.set(event);
    done(warp).cause.set(event);
  }
  tensor.isTaken = true;
  tensor.columns = step.value;
  tensor.takeStep = warp.pc;
  tensor.event = newEvent();
  done(warp).generic.set(tensor.event);
  done(warp).cause.set(tensor.event);
}

bool Machine::isTensorUsable(Warp &warp, const AccessInfo &info) {
  const TensorMemory &tensor = tensors[warp.cta];
  StringRef name = info.footprint.getName();
  if (!tensor.isTaken) {
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
                                  "behind what takes its columns",
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
  for (size_t i = 0; i < accesses.size();) {
    const Access &access = accesses[i];
    if (!access.isTensor || access.cta != warp.cta) {
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
    forget(access.event);
    accesses.replaceByLast(i);
  }
  tensor.isTaken = false;
  tensor.leaveStep = warp.pc;
  forget(tensor.event);
  tensor.event = 0;
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
  for (uint32_t number = step.first; number < step.last; ++number) {
    uint32_t event = makeAccess(warp, number, warp.cta);
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
  uint32_t number = warp.cta * perCta + index;
  if (!isUsable(warp, number))
    return;
  uint32_t event = signal(warp, number, 1, 0, 0, Sender::Products);
  if (event == 0)
    return;
  if (warp.hasSignalled)
    assume(Assumption::CommitOrder);
  warp.hasSignalled = true;
  warp.products.cause.set(event);
}
