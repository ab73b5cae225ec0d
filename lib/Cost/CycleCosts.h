//===- CycleCosts.h - What instructions cost --------------------*- C++ -*-===//
//
// From the numbers of the cycle table (CycleTable.h) to the costs of each
// instruction of a trace.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_COST_CYCLECOSTS_H
#define ATTN_LIB_COST_CYCLECOSTS_H

#include "attn/Cost/Timeline.h"
#include "attn/Target/CycleTable.h"

namespace mlir::attn::sim {

/// Units. Those up to Tmem exist once for each of the four schedulers, the
/// others once for each SM.
enum class Unit : uint8_t {
  None,
  Issue,
  Alu,
  Fma,
  Special, ///< MUFU and conversions
  Double,
  Mma,  ///< tensor core, mma.sync and wgmma
  Tmem, ///< a quarter of tensor memory
  Lsu,  ///< loads and stores
  Port, ///< of shared memory, where others than loads and stores use it too
  L2,
  TensorEngine, ///< tcgen05
};
inline constexpr unsigned numUnits = unsigned(Unit::TensorEngine) + 1;

enum class Group : uint8_t {
  None,
  Copies,
  Products,
  Bulk,
  TmemLoads,
  TmemStores
};
enum class GroupStep : uint8_t { Add, Commit, Wait };

/// What one instruction costs.
struct CycleCost {
  Activity activity = Activity::Compute;
  Unit unit = Unit::None;
  /// The unit is the SM's, not the scheduler's.
  bool isShared = false;
  /// Takes no issue slot: moves that ptxas removes.
  bool isFree = false;
  /// Machine instructions that it becomes.
  unsigned issues = 1;
  /// Reads memory, or changes what reads may see: no load moves above a store
  /// to its memory. Bit 0 is shared memory, bit 1 global.
  uint8_t loads = 0, stores = 0;
  /// Cycles that the unit is busy: fixed, for each wavefront or sector, and for
  /// each FLOP.
  double interval = 0, perTraffic = 0, perFlop = 0;
  /// Cycles that it takes of the float unit as well.
  double alsoFma = 0;
  /// Bytes of tensor memory.
  unsigned tmemBytes = 0;
  /// Cycles of the path to L2 for each sector.
  double l2PerTraffic = 0;
  /// From the end of that to the result.
  double latency = 0;
  /// The warp may run ahead of the unit by this many cycles; 0 is not at all
  /// limited.
  double queue = 0;
  Group group = Group::None;
  GroupStep step = GroupStep::Add;
  unsigned left = 0;
  bool waitsForAll = false;
};

/// Costs of all instructions of a trace.
std::vector<CycleCost> makeCycleCosts(const Trace &trace,
                                      const CycleNumbers &numbers);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_COST_CYCLECOSTS_H
