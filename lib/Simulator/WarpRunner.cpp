//===- WarpRunner.cpp - Running one warp ----------------------------------===//
//
// Lanes of a warp that share a program counter form a split. The split with
// the lowest program counter runs first, and splits merge when they meet: that
// reconverges structured code where compilers place their joins. Instructions
// that need several lanes wait for them, so correctness never depends on this
// order. From time to time another split gets a turn, as independent thread
// scheduling promises.
//
//===----------------------------------------------------------------------===//

#include "WarpRunner.h"
#include "Machine/DroppedLoads.h"
#include "Machine/TraceRecorder.h"
#include "Sanitizer/OpenAccesses.h"
#include "Sanitizer/ProductRegisters.h"
#include "Sanitizer/TensorLoads.h"
#include "WarpExit.h"

using namespace mlir::attn::sim;

static void exitLanes(Exec &x, Split &split, uint32_t lanes) {
  Warp &warp = *x.warp;
  split.mask &= ~lanes;
  warp.live &= ~lanes;
  warp.cta->liveThreads -= llvm::popcount(lanes);
  x.cluster.advance();
  // What waits for lanes of this warp looks again.
  for (Split &s : warp.splits)
    if (s.block == BlockKind::Converge || s.block == BlockKind::WarpSync)
      s.block = BlockKind::None;
  exitAtBarriers(warp);
}

/// The lowest split that can do something new, or with `rotate` one of the
/// others, which take turns.
static unsigned pickSplit(Warp &warp, bool rotate) {
  auto isStuck = [&](const Split &s) {
    return s.pollProgress == warp.cta->cluster->progress;
  };
  unsigned best = ~0u, runnable = 0;
  for (unsigned i = 0; i < warp.splits.size(); ++i) {
    const Split &s = warp.splits[i];
    if (s.block != BlockKind::None)
      continue;
    ++runnable;
    if (best == ~0u || (isStuck(s) != isStuck(warp.splits[best])
                            ? isStuck(warp.splits[best])
                            : s.pc < warp.splits[best].pc))
      best = i;
  }
  if (!rotate || runnable < 2)
    return best;
  unsigned skip = warp.quantumCount / 4 % (runnable - 1);
  for (unsigned i = 0;; ++i)
    if (i != best && warp.splits[i].block == BlockKind::None && skip-- == 0)
      return i;
}

namespace {

/// One turn of a warp.
class Turn {
public:
  Turn(Exec &x, Warp &warp, uint32_t quantum);
  void run();

private:
  /// Executes the next instruction of the split at `index`.
  void step();
  /// The lanes of the split that pass the guard.
  uint32_t applyGuard(const Inst &I, uint32_t mask);
  void execute(const Inst &I);
  /// Does what the instruction has asked for.
  void finish(Split &split);
  void branch(Split &split);
  void branchIndirect(Split &split);
  void exit(Split &split);
  void joinOthers();
  void mergeAll();

  Exec &x;
  Warp &warp;
  TraceRecorder *recorder;
  uint32_t quantum;
  /// Gives another split than the lowest a turn.
  bool isForced;
  unsigned index = 0;
  /// Another split may have to run.
  bool reschedules = false;
  uint64_t executed = 0, lanes = 0;
};

} // namespace

Turn::Turn(Exec &x, Warp &warp, uint32_t quantum)
    : x(x), warp(warp), recorder(x.cluster.recorder.get()), quantum(quantum),
      isForced(warp.splits.size() > 1 && (++warp.quantumCount & 3) == 3) {
  x.warp = &warp;
  x.cta = warp.cta;
  x.regs = warp.file.words;
  x.poison = warp.file.poison.data();
  x.origin = warp.file.origin.data();
}

uint32_t Turn::applyGuard(const Inst &I, uint32_t mask) {
  uint32_t p = x.regs[I.guardOff];
  if (x.poison[I.guardMeta] & mask) {
    Operand guard;
    guard.meta = I.guardMeta;
    x.active = mask;
    x.checkPoison(guard, "a predicate that guards an instruction");
  }
  return mask & (I.guardNegated ? ~p : p);
}

void Turn::execute(const Inst &I) {
  x.action = Action::None;
  if (LLVM_LIKELY(!recorder))
    return I.fn(x, I);
  TraceRecorder::Before before = recorder->look(x.cluster);
  I.fn(x, I);
  if (x.action != Action::Block && x.action != Action::Fault)
    recorder->executed(x, before);
}

void Turn::branch(Split &split) {
  split.resumed = false;
  if (x.active == split.mask) {
    split.pc = x.branchTarget;
    return;
  }
  Split taken;
  taken.pc = x.branchTarget;
  taken.mask = x.active;
  split.mask &= ~x.active;
  ++split.pc;
  warp.splits.push_back(taken);
  reschedules = true;
}

void Turn::branchIndirect(Split &split) {
  uint32_t left = x.active;
  uint32_t rest = split.mask & ~x.active;
  split.resumed = false;
  llvm::SmallVector<Split, 4> made;
  while (left) {
    uint32_t target = x.laneTargets[llvm::countr_zero(left)];
    Split s;
    s.pc = target;
    forLanes(left, [&](unsigned lane) {
      if (x.laneTargets[lane] == target)
        s.mask |= 1u << lane;
    });
    left &= ~s.mask;
    made.push_back(s);
  }
  if (rest) {
    split.mask = rest;
    ++split.pc;
  } else {
    split = made.pop_back_val();
  }
  warp.splits.append(made.begin(), made.end());
  reschedules = warp.splits.size() > 1;
}

void Turn::exit(Split &split) {
  uint32_t gone = x.active;
  ++split.pc;
  split.resumed = false;
  exitLanes(x, split, gone);
  if (split.mask)
    return;
  warp.splits.erase(warp.splits.begin() + index);
  reschedules = true;
}

void Turn::finish(Split &split) {
  switch (x.action) {
  case Action::None:
    ++split.pc;
    split.resumed = false;
    break;
  case Action::Yield:
    ++split.pc;
    split.resumed = false;
    quantum = 0;
    break;
  case Action::Branch:
    branch(split);
    break;
  case Action::Indirect:
    branchIndirect(split);
    break;
  case Action::Exit:
    exit(split);
    break;
  case Action::Block:
    split.resumed = split.block != BlockKind::Converge;
    reschedules = true;
    break;
  case Action::Fault:
    x.machine.stop = true;
    quantum = 0;
    reschedules = true;
    break;
  }
}

void Turn::step() {
  --quantum;
  Split &split = warp.splits[index];
  uint32_t pc = split.pc;
  const Inst &I = x.machine.program.code[pc];
  x.pc = pc;
  x.split = &split;
  x.splitMask = x.active = split.mask;
  x.resumed = split.resumed;
  if (I.hasGuard)
    x.active = applyGuard(I, split.mask);
  ++x.cluster.execCount[pc];
  if (LLVM_UNLIKELY(!warp.visits.empty()))
    x.cluster.droppedLoads->note(warp, pc, split.mask, x.active);
  ++executed;
  lanes += llvm::popcount(x.active);
  if (x.active) {
    if (I.touchesLoaded && !warp.order.open.unused.empty())
      noteUse(warp, I);
    if (I.touchesTensorLoad && !warp.tcgen05.loading.empty())
      checkTensorLoads(x, I);
    if (I.feedsProduct)
      noteProductWrite(x, I);
    execute(I);
    finish(split);
    return;
  }
  if (LLVM_UNLIKELY(recorder != nullptr))
    recorder->skipped(x);
  split.pc = pc + 1;
  split.resumed = false;
}

/// Merges with a split that waits at the same place; lets a lower one run.
void Turn::joinOthers() {
  Split *current = &warp.splits[index];
  for (unsigned i = 0; i < warp.splits.size(); ++i) {
    Split &s = warp.splits[i];
    if (i == index)
      continue;
    if (s.pc == current->pc && !s.resumed && !current->resumed &&
        (s.block == BlockKind::None || s.block == BlockKind::Converge)) {
      current->mask |= s.mask;
      warp.splits.erase(warp.splits.begin() + i);
      reschedules = true;
      break;
    }
    if (!isForced && s.block == BlockKind::None && s.pc < current->pc)
      reschedules = true;
  }
}

/// Splits may have become equal by blocking or branching.
void Turn::mergeAll() {
  auto isOpen = [](const Split &s) {
    return !s.resumed &&
           (s.block == BlockKind::None || s.block == BlockKind::Converge);
  };
  for (unsigned i = 0; i < warp.splits.size(); ++i)
    for (unsigned j = i + 1; j < warp.splits.size();) {
      Split &a = warp.splits[i], &b = warp.splits[j];
      if (a.pc == b.pc && isOpen(a) && isOpen(b)) {
        a.mask |= b.mask;
        a.block = BlockKind::None;
        warp.splits.erase(warp.splits.begin() + j);
      } else {
        ++j;
      }
    }
}

void Turn::run() {
  while (quantum && !warp.splits.empty()) {
    index = pickSplit(warp, isForced);
    if (index == ~0u)
      break;
    reschedules = false;
    while (quantum && !reschedules) {
      step();
      if (warp.splits.size() > 1 && !reschedules)
        joinOthers();
    }
    mergeAll();
  }
  x.cluster.steps += executed;
  x.cluster.laneCount += lanes;
}

void mlir::attn::sim::runWarp(Exec &x, Warp &warp, uint32_t quantum) {
  Turn(x, warp, quantum).run();
}
