//===- BarrierTeams.cpp - Teams of one warp each --------------------------===//
//
// A team is one warp, whose threads share out what an op does. It stands here
// as a partition of its own.
//
//===----------------------------------------------------------------------===//

#include "BarrierCompiler.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::barriers;

void Compiler::readTeams() {
  program.teams = getTeams(program.kernel);
  if (program.teams == 1)
    return;
  program.teamBytes = getTeamBytes(program.kernel);
  program.firstWarps.clear();
  for (int64_t team = 0; team < program.teams; ++team)
    program.firstWarps.push_back(team);
}

/// What counts warps or elects a thread takes the CTA for one team.
bool Compiler::isKnownOfTeams(Operation *op) const {
  if (isa<gpu::BarrierOp, TileArriveOp, InOrderOp, TeamBarrierOp, TeamTakeOp,
          TeamShareOp>(op))
    return true;
  if (auto async = dyn_cast<AsyncOpInterface>(op))
    return &async.getAsyncEngine() == &kCopyGroups;
  return !isElected(op) && !isa<ElementOpInterface>(op) &&
         llvm::any_of(op->getOperandTypes(), llvm::IsaPred<BufferType>);
}

void Compiler::emitTeamAccess(Operation *op, int64_t first, int64_t last,
                              std::optional<int64_t> readsOn) {
  uint32_t branch = here();
  Step &teams = emit(Code::Teams, op);
  teams.first = first;
  teams.last = last;
  Step &step = emit(Code::Access, op);
  addAccesses(op, step);
  if (unsupportedOp)
    return;
  // The op says that it writes its buffer, or both; here each by itself.
  program.accesses.resize(step.first + 1);
  step.last = step.first + 1;
  program.accesses.back().footprint.access.isWrite = !readsOn;
  program.accesses.back().teamsOn = readsOn.value_or(0);
  program.steps[branch].target = here();
}

/// The teams that give write their own buffer, all meet, and those that take
/// read the giver's.
void Compiler::emitTeamTake(TeamTakeOp op) {
  int64_t from = op.getFrom();
  int64_t takers = std::clamp<int64_t>(program.teams - from, 0, from);
  emitTeamAccess(op, from, from + takers, std::nullopt);
  emit(Code::CtaBarrier, op);
  emitTeamAccess(op, 0, takers, from);
}

/// All teams write their own buffer, meet, and read everybody's.
void Compiler::emitTeamShare(TeamShareOp op) {
  int64_t teams = program.teams;
  emitTeamAccess(op, 0, teams, std::nullopt);
  emit(Code::CtaBarrier, op);
  for (int64_t distance = 1 - teams; distance < teams; ++distance)
    emitTeamAccess(op, std::max<int64_t>(0, -distance),
                   std::min(teams, teams - distance), distance);
}
