//===- BarrierReport.h - What the check of barriers has found ---*- C++ -*-===//

#ifndef ATTN_ANALYSIS_BARRIERS_BARRIERREPORT_H
#define ATTN_ANALYSIS_BARRIERS_BARRIERREPORT_H

#include "attn/Dialect/Attn/IR/Attn.h"

namespace mlir::attn {

/// What counts as an order.
enum class OrderProfile {
  /// What the PTX manual orders, and A4 where signals cross CTAs.
  Isa,
  /// Also A6: a signal orders a generic read before an asynchronous overwrite.
  Hw
};

struct BarrierCheckOptions {
  OrderProfile profile = OrderProfile::Isa;
  /// Signals to other CTAs name the cluster as their scope, so that nothing
  /// rests on A4.
  bool clusterScope = false;
  /// Steps of warps after which the check ends with what it has seen.
  int64_t limit = 4000000;
  /// The same until a tile of each kind has been followed from one state:
  /// where that takes much, a short limit does not leave what others take.
  int64_t firstTileLimit = INT64_MAX;
  /// Leaves out no trips of loops. That gives the same verdict, for which it
  /// is there: tests compare them.
  bool followsAllTrips = false;
  /// Looks for an error again with all trips, which says in which phase it is.
  bool namesPhases = true;
};

/// Who does something, as far as that is known; -1 where it is not.
struct BarrierActor {
  int64_t cta = -1;  ///< in the cluster
  int64_t warp = -1; ///< in the CTA
  /// An mbarrier: where its array is made, the place in it, and the phase.
  Operation *barrier = nullptr;
  int64_t slot = -1, phase = -1;
};

/// Something at an op.
struct OpNote {
  Operation *op = nullptr;
  std::string text;
  BarrierActor actor = {};
};

/// What the check cannot follow.
using UnsupportedOp = OpNote;

/// Which condition does not hold. Those up to `Generation` make one run speak
/// for all orders: where one of them fails, later ones are not judged.
enum class BarrierFault {
  Attribution,
  Count,
  Slip,
  EarlyWait,
  Generation,
  Deadlock,
  Race,
  Proxy,
  TensorFence,
  InFlight,
  Lifetime,
  Exit,
  Unwritten,
  Request
};

/// Such as "phase slip".
StringRef stringifyBarrierFault(BarrierFault fault);

/// The first thing that is wrong.
struct BarrierWitness {
  BarrierFault fault = BarrierFault::Deadlock;
  Operation *op = nullptr;
  std::string text;
  BarrierActor actor = {};
  SmallVector<OpNote> notes;
};

enum class BarrierVerdict {
  /// All tiles, in any number and order.
  Proved,
  /// Something is wrong.
  Witness,
  /// There is something that the check cannot follow.
  Unsupported,
  /// Nothing is wrong as far as it was followed.
  Bounded
};

struct BarrierReport {
  BarrierVerdict verdict = BarrierVerdict::Unsupported;
  std::optional<BarrierWitness> witness;
  std::optional<UnsupportedOp> unsupported;
  /// Who waits for whom depends on what only the launch gives: extents, or what
  /// is in global memory.
  bool isOfLaunch = false;
  /// Numbers of the launch, and what is computed from them, that were followed
  /// whatever they are.
  int64_t unknowns = 0;
  /// Why the check ended early.
  std::string bound;
  /// What the proof rests on beyond the PTX manual: bit n of assumption n of
  /// docs/Simulator.md.
  uint32_t assumptions = 0;
  /// Warps of a cluster, steps that they took, states at the start of a tile,
  /// kinds of tiles by their trip counts, tiles in a row that were followed.
  int64_t warps = 0;
  int64_t steps = 0;
  int64_t states = 0;
  int64_t classes = 0;
  /// Kinds of CTAs that differ before and behind their tiles.
  int64_t blocks = 0;
  int64_t tiles = 0;
};

/// Such as "A1 A4", or "none".
std::string describeAssumptions(uint32_t bits);

} // namespace mlir::attn

#endif // ATTN_ANALYSIS_BARRIERS_BARRIERREPORT_H
