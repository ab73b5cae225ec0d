//===- CycleCosts.h - What instructions cost --------------------*- C++ -*-===//
//
// The numbers of the cycle model. Rates come from the target table; latencies
// are those of one generation, close enough for the others.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_COST_CYCLECOSTS_H
#define ATTN_LIB_COST_CYCLECOSTS_H

#include "attn/Cost/Timeline.h"

namespace mlir::attn::sim {

/// Units. Those up to Mma exist once for each of the four schedulers, the
/// others once for each SM.
enum class Unit : uint8_t {
  None,
  Issue,
  Alu,
  Fma,
  Special, ///< MUFU and conversions
  Double,
  Mma, ///< tensor core, mma.sync and wgmma
  Lsu,
  L2,
  TensorEngine, ///< tcgen05
};
inline constexpr unsigned numUnits = unsigned(Unit::TensorEngine) + 1;

enum class Group : uint8_t { None, Copies, Products, Bulk };
enum class GroupStep : uint8_t { Add, Commit, Wait };

/// From the signal that completes a phase to the instruction behind the wait.
inline constexpr double barrierLatency = 20;

/// What one instruction costs.
struct CycleCost {
  Activity activity = Activity::Compute;
  Unit unit = Unit::None;
  /// The unit is the SM's, not the scheduler's.
  bool isShared = false;
  /// Takes no issue slot: moves that ptxas removes.
  bool isFree = false;
  /// Reads memory, or changes what reads may see: no load moves above a store
  /// to its memory. Bit 0 is shared memory, bit 1 global.
  uint8_t loads = 0, stores = 0;
  /// Cycles that the unit is busy: fixed, for each wavefront or sector, and for
  /// each FLOP.
  double interval = 0, perTraffic = 0, perFlop = 0;
  /// Cycles of the path to L2 for each sector.
  double l2PerTraffic = 0;
  /// From the end of that to the result.
  double latency = 0;
  /// The warp may run ahead of the unit by this many cycles; 0 is not at all
  /// limited.
  double queue = 0;
  /// Of an operation that the instruction starts: its engine, cycles for each
  /// byte or FLOP, latency.
  Unit engine = Unit::L2;
  double enginePerUnit = 0, engineLatency = 0;
  Group group = Group::None;
  GroupStep step = GroupStep::Add;
  unsigned left = 0;
  bool waitsForAll = false;
};

/// Costs of all instructions of a trace.
std::vector<CycleCost> makeCycleCosts(const Trace &trace,
                                      const TargetRow &target);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_COST_CYCLECOSTS_H
