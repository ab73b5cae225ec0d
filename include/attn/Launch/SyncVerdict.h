//===- SyncVerdict.h - What was shown of a kernel's signals -----*- C++ -*-===//

#ifndef ATTN_LAUNCH_SYNCVERDICT_H
#define ATTN_LAUNCH_SYNCVERDICT_H

#include <cstdint>
#include <string>

namespace mlir::attn {

/// What the check of barriers said of a kernel (docs/BarrierCheck.md). A kernel
/// in which it found something wrong is not made.
struct SyncVerdict {
  enum class Kind {
    /// Right for any number of tiles in any order.
    Proved,
    /// Nothing was wrong as far as it was followed.
    Bounded,
    /// There is something that the check cannot follow.
    Unchecked
  };
  Kind kind = Kind::Unchecked;
  /// Which orders counted: isa, or hw. Empty if nothing was followed.
  std::string profile;
  /// What is relied on beyond the profile: bit n of assumption n
  /// (attn/Support/Assumption.h). Only where something was followed.
  uint32_t assumptions = 0;
  /// Bounded: tiles in a row that were followed.
  int64_t tiles = 0;
  /// Unless proved: why not.
  std::string reason;

  bool operator==(const SyncVerdict &other) const {
    return kind == other.kind && profile == other.profile &&
           assumptions == other.assumptions && tiles == other.tiles &&
           reason == other.reason;
  }
};

} // namespace mlir::attn

#endif // ATTN_LAUNCH_SYNCVERDICT_H
