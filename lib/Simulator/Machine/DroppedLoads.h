//===- DroppedLoads.h - Races of loads that nobody needs --------*- C++ -*-===//

#ifndef ATTN_LIB_SIMULATOR_MACHINE_DROPPEDLOADS_H
#define ATTN_LIB_SIMULATOR_MACHINE_DROPPEDLOADS_H

#include "../Clocks/Shadow.h"
#include "../PTX/LoadFates.h"
#include "Machine.h"

namespace mlir::attn::sim {

struct Warp;

/// Keeps races of loads back until it is known whether the value that was read
/// makes a difference, which is when the warp's cluster ends. LoadFates.h says
/// why. Usable from several host threads.
class DroppedLoads {
public:
  DroppedLoads(Machine &machine, const LoadFates &fates)
      : machine(machine), fates(fates) {}

  /// Makes room in a warp for what it executes.
  void prepare(Warp &warp) const;
  /// A warp comes to an instruction with `reached` lanes, of which `active`
  /// pass the guard.
  void note(Warp &warp, uint32_t pc, uint32_t reached, uint32_t active) const;

  /// Takes a race in which `reader` is a load; false where it is none whose
  /// fate is known, and the race has to be reported.
  bool hold(const Stamp &reader, const Finding &race);
  /// Decides what is held of a cluster that ends.
  void finish(Cluster &cluster);

private:
  /// Lanes of a load of one warp.
  struct Reader {
    uint32_t cluster, rank, warp, inst;
    bool operator<(const Reader &o) const {
      return std::tie(cluster, rank, warp, inst) <
             std::tie(o.cluster, o.rank, o.warp, o.inst);
    }
  };
  struct Held {
    Finding race;
    uint32_t lanes = 0;
    uint64_t count = 0;
  };
  static Reader makeReader(const Stamp &stamp) {
    return {stamp.cluster, stamp.rank, stamp.warp, stamp.inst};
  }
  void decide(Held held, uint32_t unused);

  Machine &machine;
  const LoadFates &fates;
  std::mutex mutex;
  /// By reader and the other access.
  std::map<std::pair<Reader, unsigned>, Held> held;
  /// Lanes that have read and not used it, of clusters that are over.
  std::map<Reader, uint32_t> dropped;
  std::set<uint32_t> finished;
};

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_MACHINE_DROPPEDLOADS_H
