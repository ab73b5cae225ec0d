//===- BarrierTurns.cpp - Which steps go along when a ring turns ----------===//
//
// Turning a ring by k positions moves its cursors k positions on, its mbarriers
// and slots k places on, and changes the parity of those that go over the end.
// Two states that differ so are taken for one, which rests on this alone: each
// step that may still come does from the one what it does from the other one, k
// positions further on. What is asked of steps for that:
//
//  - cursors are copied to cursors, go on by one, and are taken apart into slot
//    and parity; nothing else is made of them, of parities, or on the way from
//    one cursor to the next;
//  - a cursor comes from another one: a constant does not turn;
//  - a wait takes slot and parity of one cursor at one position, since only
//    then both go over the end at once;
//  - a slot is used as the place of an mbarrier or of memory that turns along,
//    and for nothing else; these are found so alone.
//
// A ring for which the last two do not hold keeps its slots: it is turned by so
// many positions as it has, which changes all of its parities and nothing else.
// For what else does not hold it is not turned as long as such a step may come.
//
//===----------------------------------------------------------------------===//

#include "BarrierProgram.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::barriers;

namespace {

class Turns {
public:
  explicit Turns(Program &program) : program(program), uses(program.ringUses) {}
  void run();

private:
  void nameTemporaries();
  void checkSlots(const Step &step);
  void checkPlace(Slot index, uint32_t ring);
  void checkPositions(Step &step);
  void keepSlots(uint32_t ring) {
    if (ring != kNoRing)
      program.rings[ring].keepsSlots = true;
  }
  ArrayRef<AccessInfo> accessesOf(const Step &step) const {
    ArrayRef<AccessInfo> all = program.accesses;
    if (step.code == Code::ReadWord)
      return all.slice(step.first, 1);
    return step.touchesMemory() ? all.slice(step.first, step.last - step.first)
                                : ArrayRef<AccessInfo>();
  }
  /// What a value is, also one that only a copy of several has.
  RingUse useOf(Slot slot) const {
    return slot == kNoSlot ? RingUse() : uses[slot];
  }

  Program &program;
  std::vector<RingUse> uses;
};

} // namespace

/// True for steps that name one mbarrier of an array.
static bool namesBarrier(Code code) {
  return code == Code::Expect || code == Code::Arrive || code == Code::Wait ||
         code == Code::Fill || code == Code::Signal;
}

/// Where several values are copied at once, each is kept in a value of its own
/// meanwhile.
void Turns::nameTemporaries() {
  for (const Step &step : program.steps)
    if (step.code == Code::Copy && uses[step.dst].kind == RingUse::None)
      if (RingUse use = useOf(step.args[0]); use.kind == RingUse::Cursor)
        uses[step.dst] = use;
}

/// What is in this place turns with the ring only if its index does.
void Turns::checkPlace(Slot index, uint32_t ring) {
  RingUse use = useOf(index);
  bool isOfRing = use.kind == RingUse::Index && use.ring == ring;
  if (isOfRing)
    return;
  keepSlots(ring);
  if (use.kind == RingUse::Index)
    keepSlots(use.ring);
}

void Turns::checkSlots(const Step &step) {
  if (namesBarrier(step.code))
    checkPlace(step.index, program.arrays[step.array].ring);
  else if (RingUse use = useOf(step.index); use.kind == RingUse::Index)
    keepSlots(use.ring);
  for (const AccessInfo &info : accessesOf(step))
    checkPlace(info.index, info.ring);
  RingUse made = useOf(step.dst);
  for (Slot slot : step.args) {
    RingUse use = useOf(slot);
    if (use.kind == RingUse::Index &&
        !(step.code == Code::Compute && made.kind == RingUse::Index &&
          made.ring == use.ring))
      keepSlots(use.ring);
    if (use.kind == RingUse::Parity && step.code == Code::Wait &&
        useOf(step.index).cursor != use.cursor)
      keepSlots(use.ring);
  }
}

void Turns::checkPositions(Step &step) {
  auto stop = [&](uint32_t ring) {
    if (ring != kNoRing && !llvm::is_contained(step.stopsTurns, ring))
      step.stopsTurns.push_back(ring);
  };
  RingUse made = useOf(step.dst);
  bool isPart = false;
  for (Slot slot : step.args) {
    RingUse use = useOf(slot);
    if (use.kind == RingUse::None || use.kind == RingUse::Index)
      continue;
    bool goesAlong = false;
    if (use.kind == RingUse::Parity)
      goesAlong = step.code == Code::Wait &&
                  program.arrays[step.array].ring == use.ring;
    else if (step.code == Code::Copy)
      goesAlong = made.kind == RingUse::Cursor && made.ring == use.ring;
    else if (step.code == Code::Compute)
      goesAlong = made.kind != RingUse::None && made.ring == use.ring;
    if (!goesAlong)
      stop(use.ring);
    isPart |= goesAlong;
  }
  if (made.kind == RingUse::Cursor && !isPart)
    stop(made.ring);
  // Initialised, all are in one phase, wherever the ring stands.
  if (step.code == Code::Init)
    stop(program.arrays[step.array].ring);
  if (step.code == Code::Wait) {
    RingUse parity = useOf(step.args[0]);
    uint32_t ring = program.arrays[step.array].ring;
    if (parity.kind != RingUse::Parity || parity.ring != ring)
      stop(ring);
  }
  // A cursor in place of a slot.
  auto checkIndex = [&](Slot slot) {
    RingUse use = useOf(slot);
    if (use.kind != RingUse::None && use.kind != RingUse::Index)
      stop(use.ring);
  };
  checkIndex(step.index);
  for (const AccessInfo &info : accessesOf(step))
    checkIndex(info.index);
}

void Turns::run() {
  nameTemporaries();
  for (const Step &step : program.steps)
    checkSlots(step);
  for (AccessInfo &info : program.accesses)
    if (info.ring != kNoRing && program.rings[info.ring].keepsSlots)
      info.ring = kNoRing;
  for (Step &step : program.steps)
    checkPositions(step);
}

void barriers::findTurns(Program &program) { Turns(program).run(); }
