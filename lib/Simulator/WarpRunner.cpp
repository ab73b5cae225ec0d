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
#include "Machine/TraceRecorder.h"
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

static unsigned pickSplit(Warp &warp, bool rotate) {
  unsigned best = ~0u, other = ~0u;
  for (unsigned i = 0; i < warp.splits.size(); ++i) {
    const Split &s = warp.splits[i];
    if (s.block != BlockKind::None)
      continue;
    bool stuck = s.pollProgress == warp.cta->cluster->progress;
    if (best == ~0u) {
      best = i;
      continue;
    }
    const Split &b = warp.splits[best];
    bool bestStuck = b.pollProgress == warp.cta->cluster->progress;
    if (stuck != bestStuck ? bestStuck : s.pc < b.pc) {
      other = best;
      best = i;
    } else {
      other = i;
    }
  }
  return rotate && other != ~0u ? other : best;
}

void mlir::attn::sim::runWarp(Exec &x, Warp &warp, uint32_t quantum) {
  x.warp = &warp;
  x.cta = warp.cta;
  x.regs = warp.file.words.data();
  x.poison = warp.file.poison.data();
  x.origin = warp.file.origin.data();
  bool forced = warp.splits.size() > 1 && (++warp.quantumCount & 3) == 3;
  const Inst *code = x.machine.program.code.data();
  uint64_t *execCount = x.cluster.execCount.data();
  uint64_t executed = 0, lanes = 0;
  TraceRecorder *recorder = x.cluster.recorder.get();
  while (quantum && !warp.splits.empty()) {
    unsigned index = pickSplit(warp, forced);
    if (index == ~0u)
      break;
    bool reschedule = false;
    while (quantum && !reschedule) {
      --quantum;
      Split &split = warp.splits[index];
      uint32_t pc = split.pc;
      const Inst &I = code[pc];
      x.pc = pc;
      x.split = &split;
      x.splitMask = x.active = split.mask;
      x.resumed = split.resumed;
      if (I.hasGuard) {
        uint32_t p = x.regs[I.guardOff];
        x.active &= I.guardNegated ? ~p : p;
        if (x.poison[I.guardMeta] & split.mask) {
          Operand guard;
          guard.meta = I.guardMeta;
          x.active = split.mask;
          x.checkPoison(guard, "a predicate that guards an instruction");
          x.active = split.mask & (I.guardNegated ? ~p : p);
        }
      }
      ++execCount[pc];
      ++executed;
      lanes += llvm::popcount(x.active);
      if (!x.active) {
        if (LLVM_UNLIKELY(recorder != nullptr))
          recorder->skipped(warp, pc);
        split.pc = pc + 1;
        split.resumed = false;
      } else {
        x.action = Action::None;
        if (LLVM_LIKELY(!recorder)) {
          I.fn(x, I);
        } else {
          TraceRecorder::Before before = recorder->look(x.cluster);
          I.fn(x, I);
          if (x.action != Action::Block && x.action != Action::Fault)
            recorder->executed(x, before);
        }
        switch (x.action) {
        case Action::None:
          split.pc = pc + 1;
          split.resumed = false;
          break;
        case Action::Yield:
          split.pc = pc + 1;
          split.resumed = false;
          quantum = 0;
          break;
        case Action::Branch:
          split.resumed = false;
          if (x.active == split.mask) {
            split.pc = x.branchTarget;
          } else {
            Split taken;
            taken.pc = x.branchTarget;
            taken.mask = x.active;
            split.mask &= ~x.active;
            split.pc = pc + 1;
            warp.splits.push_back(taken);
            reschedule = true;
          }
          break;
        case Action::Indirect: {
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
            split.pc = pc + 1;
          } else {
            split = made.pop_back_val();
          }
          warp.splits.append(made.begin(), made.end());
          reschedule = warp.splits.size() > 1;
          break;
        }
        case Action::Exit: {
          uint32_t gone = x.active;
          split.pc = pc + 1;
          split.resumed = false;
          exitLanes(x, split, gone);
          if (!split.mask) {
            warp.splits.erase(warp.splits.begin() + index);
            reschedule = true;
          }
          break;
        }
        case Action::Block:
          split.resumed = split.block != BlockKind::Converge;
          reschedule = true;
          break;
        case Action::Fault:
          x.machine.stop = true;
          quantum = 0;
          reschedule = true;
          break;
        }
      }
      if (warp.splits.size() > 1 && !reschedule) {
        // Merge with splits that wait at the same place; let a lower one run.
        Split *current = &warp.splits[index];
        for (unsigned i = 0; i < warp.splits.size(); ++i) {
          Split &s = warp.splits[i];
          if (i == index)
            continue;
          if (s.pc == current->pc && !s.resumed && !current->resumed &&
              (s.block == BlockKind::None || s.block == BlockKind::Converge)) {
            current->mask |= s.mask;
            warp.splits.erase(warp.splits.begin() + i);
            reschedule = true;
            break;
          }
          if (!forced && s.block == BlockKind::None && s.pc < current->pc)
            reschedule = true;
        }
      }
    }
    // Splits may have become equal by blocking or branching.
    for (unsigned i = 0; i < warp.splits.size(); ++i)
      for (unsigned j = i + 1; j < warp.splits.size();) {
        Split &a = warp.splits[i], &b = warp.splits[j];
        auto open = [](const Split &s) {
          return !s.resumed &&
                 (s.block == BlockKind::None || s.block == BlockKind::Converge);
        };
        if (a.pc == b.pc && open(a) && open(b)) {
          a.mask |= b.mask;
          a.block = BlockKind::None;
          warp.splits.erase(warp.splits.begin() + j);
        } else {
          ++j;
        }
      }
  }
  x.cluster.steps += executed;
  x.cluster.laneCount += lanes;
}
