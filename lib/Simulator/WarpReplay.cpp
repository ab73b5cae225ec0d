//===- WarpReplay.cpp - An order of warps that somebody states ------------===//

#include "WarpReplay.h"
#include "Async/CpAsync.h"
#include "Machine/Exec.h"
#include "WarpRunner.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir::attn;
using namespace mlir::attn::sim;

/// Instructions of a warp before engines end what it has started.
static constexpr uint32_t kQuantum = 1;

static bool canGoOn(const Cluster &cluster, const Warp &warp) {
  return llvm::any_of(warp.splits, [&](const Split &split) {
    return split.block == BlockKind::None &&
           split.pollProgress != cluster.progress;
  });
}

/// Where dynamic shared memory begins, behind what is declared.
static uint32_t getDynamicStart(const Machine &machine) {
  return machine.config.dynamicShared
             ? llvm::alignTo(machine.kernel.staticShared,
                             machine.program.dynamicSharedAlign)
             : 0;
}

static std::string describe(TurnEnd end, int64_t place) {
  switch (end) {
  case TurnEnd::Mbarrier:
    return llvm::formatv("to wait for the mbarrier at shared offset {0}",
                         place);
  case TurnEnd::Barrier:
    return llvm::formatv("to wait at barrier {0}", place);
  case TurnEnd::ClusterBarrier:
    return "to wait at the cluster barrier";
  case TurnEnd::Exit:
    return "to exit";
  case TurnEnd::Fault:
    return "to do what is wrong";
  }
  llvm_unreachable("all ends handled");
}

/// How a warp that cannot go on has ended its turn; nothing for what no turn
/// ends with.
static std::optional<ReplayTurn> getEnd(const Machine &machine,
                                        const Warp &warp) {
  ReplayTurn turn;
  if (warp.splits.empty()) {
    turn.end = TurnEnd::Exit;
    return turn;
  }
  for (const Split &split : warp.splits) {
    if (split.block == BlockKind::NamedBarrier) {
      turn.end = TurnEnd::Barrier;
      turn.place = split.arg;
      return turn;
    }
    if (split.block == BlockKind::ClusterBarrier) {
      turn.end = TurnEnd::ClusterBarrier;
      return turn;
    }
    if (split.block == BlockKind::None && split.pollAddress) {
      turn.end = TurnEnd::Mbarrier;
      turn.place = int64_t(split.pollAddress & 0xffffff) - SharedBase -
                   getDynamicStart(machine);
      return turn;
    }
  }
  return std::nullopt;
}

bool sim::replayTurn(Machine &machine, Cluster &cluster) {
  size_t number = cluster.replayed++;
  const ReplayTurn &turn = machine.config.replay[number];
  auto diverges = [&](std::string got) {
    machine.result.diverged = llvm::formatv(
        "turn {0}: expected warp {1} of CTA {2} {3}, got {4}", number,
        turn.warp, turn.cta, describe(turn.end, turn.place), got);
    machine.stop = true;
    return false;
  };
  if (turn.cta >= cluster.ctas.size() ||
      turn.warp >= cluster.ctas[turn.cta]->warps.size())
    return diverges("a launch without that warp");
  Warp &warp = *cluster.ctas[turn.cta]->warps[turn.warp];
  Exec x(machine, cluster);
  uint64_t limit = llvm::SaturatingMultiply<uint64_t>(machine.config.stepLimit,
                                                      cluster.ctas.size());
  do {
    runWarp(x, warp, kQuantum);
    while (completeEngineOp(cluster, /*random=*/false)) {
    }
    while (!canGoOn(cluster, warp) && !warp.cpAsync.ops.empty()) {
      x.warp = &warp;
      x.cta = warp.cta;
      completeCpAsync(x, warp);
      cluster.advance();
    }
  } while (!machine.stop && canGoOn(cluster, warp) && cluster.steps <= limit);
  if (machine.stop || turn.end == TurnEnd::Fault)
    return true;
  std::optional<ReplayTurn> end = getEnd(machine, warp);
  if (!end)
    return diverges("something else that it waits for");
  if (end->end != turn.end || end->place != turn.place)
    return diverges(describe(end->end, end->place));
  return true;
}
