//===- LicenceState.h - What a partition holds ----------------------------===//

#ifndef ATTN_LIB_ANALYSIS_LICENCESTATE_H
#define ATTN_LIB_ANALYSIS_LICENCESTATE_H

#include "attn/Dialect/Attn/IR/AsyncEngine.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include <map>

namespace mlir::attn {

/// What an acquire gave.
struct Grant {
  Operation *acquire = nullptr;
  /// The parts that are not released yet, and the last release.
  unsigned held = 0;
  Operation *released = nullptr;

  auto tie() const { return std::tie(acquire, held, released); }
};

/// A grant, and parts of its slot.
using Right = std::pair<unsigned, unsigned>;

/// Accesses of an engine that end together, each with its grant.
struct Group {
  const AsyncEngine *engine = nullptr;
  bool isClosed = false;
  SmallVector<std::pair<unsigned, Operation *>, 2> accesses;

  auto tie() const { return std::tie(engine, isClosed, accesses); }
};

/// What a partition holds at one place of one of its paths.
struct LicenceState {
  /// Of tokens and indices, by the number of the value.
  std::map<unsigned, SmallVector<Right, 1>> rights;
  std::vector<Grant> grants;
  std::vector<Group> groups;

  bool operator==(const LicenceState &other) const;
  /// Drops grants that nothing names, and numbers the others as they are named,
  /// so that states that differ in numbers only are equal.
  void tidy();
};

} // namespace mlir::attn

#endif // ATTN_LIB_ANALYSIS_LICENCESTATE_H
