//===- BarrierWitness.cpp - An order of warps that shows what is wrong ----===//
//
// The check follows tiles of all kinds in any order. A launch takes them in one
// order, so that the run is made again as the launch would have it, and what
// warps do on the way is noted down.
//
//===----------------------------------------------------------------------===//

#include "BarrierMachine.h"
#include "attn/Analysis/Barriers/BarrierCheck.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::barriers;

static WitnessSite describe(Operation *op, StringRef text,
                            const BarrierActor &actor) {
  WitnessSite site;
  site.text = text.str();
  site.op = op->getName().getStringRef().str();
  if (auto place = op->getLoc()->findInstanceOf<FileLineColLoc>()) {
    site.file = place.getFilename().str();
    site.line = place.getLine();
    site.column = place.getColumn();
  }
  site.cta = actor.cta;
  site.warp = actor.warp;
  if (auto array = dyn_cast_or_null<MBarrierAllocOp>(actor.barrier)) {
    site.barrier = array.getName().value_or("").str();
    // A channel's barriers are called by it and the role that signals them.
    auto [channel, role] = StringRef(site.barrier).split('.');
    if (!role.empty())
      site.channel = channel.str();
    site.slot = actor.slot;
    site.phase = actor.phase;
    site.position =
        actor.phase * array.getResult().getType().getCount() + actor.slot;
  }
  return site;
}

/// Runs the first cluster of a kind of blocks as a launch has it; nothing if
/// nothing is wrong there.
static std::optional<BarrierWitness> runOnce(const Program &program,
                                             const BarrierCheckOptions &options,
                                             std::array<int64_t, 3> block,
                                             std::vector<ReplayTurn> &turns) {
  Machine run(program, options);
  run.setLimit(options.limit);
  run.setBlock(block);
  run.record(turns);
  for (int64_t tile : program.allTiles)
    run.addTile(tile);
  run.endTiles();
  run.run();
  if (!run.isDone())
    run.reportDeadlock();
  else
    run.checkExit();
  if (run.isOverLimit())
    return std::nullopt;
  return run.getWitness();
}

SyncWitness attn::recordWitness(gpu::GPUFuncOp kernel,
                                const BarrierCheckOptions &options,
                                const BarrierReport &report) {
  SyncWitness result;
  result.kernel = kernel.getName().str();
  result.profile = options.profile == OrderProfile::Hw ? "hw" : "isa";
  auto take = [&](const BarrierWitness &witness) {
    result.fault = stringifyBarrierFault(witness.fault).str();
    result.sites = {describe(witness.op, witness.text, witness.actor)};
    for (const OpNote &note : witness.notes)
      result.sites.push_back(describe(note.op, note.text, note.actor));
  };
  take(*report.witness);
  Program program;
  if (compileProgram(kernel, program, /*isOfOneCluster=*/true))
    return result;
  // One cluster does all tiles.
  bool runsAllTiles = program.hasTiles || program.unlikeLoop;
  if (!runsAllTiles) {
    program = Program();
    if (compileProgram(kernel, program))
      return result;
  }
  // A run needs numbers in place of unknowns.
  if (program.isOpen)
    return result;
  for (std::array<int64_t, 3> block : program.blocks) {
    std::vector<ReplayTurn> turns;
    auto found = runOnce(program, options, block, turns);
    bool isSame = found && found->fault == report.witness->fault &&
                  found->op == report.witness->op;
    // The first cluster that shows anything will do until one shows this.
    if (!found || (!isSame && !result.turns.empty()))
      continue;
    take(*found);
    result.turns = std::move(turns);
    result.runsAllTiles = runsAllTiles;
    result.block = block;
    if (isSame)
      break;
  }
  return result;
}
