//===- SlotChecks.cpp - Checks at accesses to slots -----------------------===//

#include "Instrumenter.h"
#include "attn/Analysis/Memory/SharedAccess.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::instrument;
using arith::CmpIPredicate;

/// The other barriers of a channel: `k.producer` and `k.consumer`, or whatever
/// two names there are with one dot.
static MBarrierAllocOp findPartner(gpu::GPUFuncOp kernel,
                                   MBarrierAllocOp barriers) {
  StringRef channel = nameOf(barriers).rsplit('.').first;
  SmallVector<MBarrierAllocOp> found;
  kernel.walk([&](MBarrierAllocOp other) {
    auto [prefix, suffix] = nameOf(other).rsplit('.');
    if (other != barriers && prefix == channel && !suffix.empty() &&
        other.getType() == barriers.getType())
      found.push_back(other);
  });
  return found.size() == 1 ? found.front() : MBarrierAllocOp();
}

void Instrumenter::instrumentWrite(const BulkLoad &load) {
  Operation *op = load.op;
  AllocOp alloc = findAlloc(load.buffer);
  SlotOp slot = load.buffer.getDefiningOp<SlotOp>();
  MBarrierAllocOp full = published.lookup(alloc);
  MBarrierAllocOp empty = full ? findPartner(kernel, full) : MBarrierAllocOp();
  if (!slot || !empty ||
      slot.getSource().getType().getNumSlots() != arrays[full].slots)
    return;
  ImplicitLocOpBuilder b(op->getLoc(), op);
  Words w(b, kernel);
  Team team = findTeam(op);
  StringRef buffer = getBufferName(alloc);
  int64_t wrong =
      sites.add("signal of another slot", op, full, team.name, buffer);
  int64_t taken =
      sites.add("write to a slot in use", op, empty, team.name, buffer);
  Value index = load.index;
  Value sent = w.load(w.add(ownOf(w, team, full, index), w.constant(4)));
  Value waited = w.load(ownOf(w, team, empty, slot.getIndex()));
  Value last =
      w.load(w.add(signalsOf(w, empty, slot.getIndex()), w.constant(4)));
  inOneLane(b, w, op, [&] {
    reportIf(b, w, w.compare(CmpIPredicate::ne, index, slot.getIndex()), wrong,
             slot.getIndex(), slot.getIndex(), index, w.constant(0));
    Value needed = w.add(sent, w.constant(-1));
    reportIf(b, w, w.compare(CmpIPredicate::slt, waited, needed), taken,
             slot.getIndex(), w.add(needed, w.constant(-1)),
             w.add(waited, w.constant(-1)), last);
  });
}

void Instrumenter::instrumentRead(Operation *op, AllocOp alloc, SlotOp slot) {
  MBarrierAllocOp full = published.lookup(alloc);
  Team team = findTeam(op);
  Region *region = team.op ? &team.op.getPartitions()[team.index] : nullptr;
  // A rare path touches nothing but slots that the path in front of it did.
  if (!full || isAlone(op) || op->getParentOfType<RareOp>() ||
      arrays[full].count == 0 ||
      !waited.contains({region, full.getOperation()}) ||
      slot.getSource().getType().getNumSlots() != arrays[full].slots)
    return;
  ImplicitLocOpBuilder b(op->getLoc(), op);
  Words w(b, kernel);
  StringRef buffer = getBufferName(alloc);
  Value index = slot.getIndex();
  int64_t early =
      sites.add("read of a slot not waited for", op, full, team.name, buffer);
  Value signals = signalsOf(w, full, index);
  Value seen = w.load(ownOf(w, team, full, index));
  Value last = w.load(w.add(signals, w.constant(4)));
  Value written = divide(b, w, w.load(signals), arrays[full].count);
  MBarrierAllocOp empty = findPartner(kernel, full);
  bool isReleased = empty && arrays[empty].count != 0 &&
                    signalled.contains({region, empty.getOperation()});
  Value released;
  int64_t late = 0;
  if (isReleased) {
    late = sites.add("read of a slot given back", op, empty, team.name, buffer);
    released = w.load(w.add(ownOf(w, team, empty, index), w.constant(4)));
  }
  inOneLane(b, w, op, [&] {
    reportIf(b, w, w.compare(CmpIPredicate::ne, seen, written), early, index,
             w.add(written, w.constant(-1)), w.add(seen, w.constant(-1)), last);
    if (!isReleased)
      return;
    Value isLate = w.both(w.compare(CmpIPredicate::sge, released, seen),
                          w.compare(CmpIPredicate::eq, seen, written));
    reportIf(b, w, isLate, late, index, w.add(seen, w.constant(-1)), released,
             w.constant(0));
  });
}
