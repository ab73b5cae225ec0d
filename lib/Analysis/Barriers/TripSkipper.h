//===- TripSkipper.h - Trips that are as those before them ------*- C++ -*-===//
//
// A loop with a million trips does in each of them what it did in the one
// before, once its rings have gone around. Where a state comes up again but for
// what counts trips, and each counter has moved on by some number, what comes
// of it is known as long as no counter gets to zero: these trips are left out.
// The step at which a counter gets there is not left out, nor is what follows.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_ANALYSIS_BARRIERS_TRIPSKIPPER_H
#define ATTN_LIB_ANALYSIS_BARRIERS_TRIPSKIPPER_H

#include "StateKey.h"

namespace mlir::attn::barriers {

class TripSkipper {
public:
  explicit TripSkipper(Machine &machine) : m(machine) {}
  /// Runs all warps as `Machine::run` does, with fewer trips. True if some were
  /// left out.
  bool run();

private:
  void look();
  bool skipTrips(const StateSummary &now);
  bool isAtLeast(const StateSummary::Count &count, int64_t sign,
                 int64_t least) const;
  int64_t countTrips(const StateSummary::Count &count, int64_t sign, int64_t by,
                     int64_t most) const;
  int64_t countTrips(const StateSummary &now) const;

  Machine &m;
  /// A state that came up before, and how many have since.
  std::optional<StateSummary> earlier;
  int64_t since = 0;
  /// How many states may come until a later one takes the place of `earlier`.
  int64_t patience = 1;
  bool hasSkipped = false;
};

} // namespace mlir::attn::barriers

#endif // ATTN_LIB_ANALYSIS_BARRIERS_TRIPSKIPPER_H
