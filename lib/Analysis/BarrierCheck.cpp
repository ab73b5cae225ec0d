//===- BarrierCheck.cpp - Is a kernel's synchronisation right? ------------===//
//
// From each state in which warps wait for a tile, the run goes on with a tile
// of each kind, and with none. Where no new state comes up any more, all tiles
// in all orders have been seen.
//
//===----------------------------------------------------------------------===//

#include "attn/Analysis/BarrierCheck.h"
#include "StateKey.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include <deque>

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::barriers;

namespace {

class Checker {
public:
  Checker(const Program &program, const BarrierCheckOptions &options)
      : program(program), options(options) {}
  BarrierReport run();

private:
  void explore(Machine start);
  bool judge(Machine &machine);
  bool finish(Machine machine);

  const Program &program;
  const BarrierCheckOptions &options;
  BarrierReport report;
  llvm::StringSet<> seen;
};

} // namespace

/// Takes over what a run has found; true if it may go on.
bool Checker::judge(Machine &machine) {
  report.steps = machine.getSteps();
  report.assumptions |= machine.getAssumptions();
  if (machine.getUnsupported()) {
    report.unsupported = machine.getUnsupported();
    return false;
  }
  if (machine.getWitness()) {
    report.witness = machine.getWitness();
    return false;
  }
  if (machine.isOverLimit()) {
    report.bound = llvm::formatv("the limit of {0} steps", options.limit).str();
    return false;
  }
  return true;
}

/// Runs a state to the end of the kernel.
bool Checker::finish(Machine machine) {
  machine.endTiles();
  machine.run();
  if (!judge(machine))
    return false;
  if (!machine.isDone())
    machine.reportDeadlock();
  else
    machine.checkExit();
  return judge(machine);
}

void Checker::explore(Machine start) {
  struct State {
    Machine machine;
    int64_t tiles;
  };
  std::deque<State> states;
  start.run();
  if (!judge(start))
    return;
  if (!start.wantsTile()) {
    finish(std::move(start));
    return;
  }
  seen.clear();
  seen.insert(makeStateKey(start));
  states.push_back({std::move(start), 0});
  while (!states.empty()) {
    State state = std::move(states.front());
    states.pop_front();
    ++report.states;
    report.tiles = std::max(report.tiles, state.tiles);
    state.machine.setSteps(report.steps);
    if (!finish(state.machine))
      return;
    for (int64_t tile : program.tileNumbers) {
      Machine next = state.machine;
      next.setSteps(report.steps);
      next.addTile(tile);
      next.run();
      if (!judge(next))
        return;
      if (!next.wantsTile()) {
        next.reportDeadlock();
        judge(next);
        return;
      }
      if (seen.insert(makeStateKey(next)).second)
        states.push_back({std::move(next), state.tiles + 1});
    }
  }
}

BarrierReport Checker::run() {
  report.classes = program.tileNumbers.size();
  report.blocks = program.blocks.size();
  for (std::array<int64_t, 3> block : program.blocks) {
    Machine start(program, options.profile);
    start.setLimit(options.limit);
    start.setSteps(report.steps);
    start.setBlock(block);
    report.warps = start.countWarps();
    explore(std::move(start));
    if (report.witness || report.unsupported || !report.bound.empty())
      break;
  }
  if (report.witness)
    report.verdict = BarrierVerdict::Witness;
  else if (report.unsupported)
    report.verdict = BarrierVerdict::Unsupported;
  else if (!report.bound.empty())
    report.verdict = BarrierVerdict::Bounded;
  else
    report.verdict = BarrierVerdict::Proved;
  return std::move(report);
}

BarrierReport attn::checkBarriers(gpu::GPUFuncOp kernel,
                                  const BarrierCheckOptions &options) {
  Program program;
  BarrierReport report;
  if (auto unsupported = compileProgram(kernel, program)) {
    report.unsupported = std::move(unsupported);
    return report;
  }
  if (!program.arguments.empty()) {
    report.unsupported = UnsupportedOp{
        kernel, llvm::formatv("it depends on the value of argument {0}",
                              program.arguments.front().second)};
    return report;
  }
  return Checker(program, options).run();
}
