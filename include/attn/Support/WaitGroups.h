//===- WaitGroups.h - Who waits for whom where nobody can go on -*- C++ -*-===//
//
// The check of barriers and the simulator both end where no warp can go on.
// They know who waits where and for what; here that becomes one sentence that
// goes around the cycle, and one group for all who wait in one place for the
// same.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_SUPPORT_WAITGROUPS_H
#define ATTN_SUPPORT_WAITGROUPS_H

#include "attn/Support/WarpNames.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace mlir::attn {

/// A warp that cannot go on.
struct Waiter {
  /// Any number that says who it is.
  unsigned warp = 0;
  /// Where it waits; the same number for the same place.
  uint64_t place = 0;
  /// The event that it waits for, such as "phase 3 of 'k.full'[2]".
  std::string awaited;
  /// The signals that have not come, such as "1 arrival"; empty where nothing
  /// is counted.
  std::string lacks;
  /// The warps that would let it go on, as far as they are known.
  llvm::SmallVector<unsigned, 4> awaitedOf;
  /// The warps that have done so before, and have exited.
  llvm::SmallVector<unsigned, 4> exited;
};

/// Warps that wait in one place for the same.
struct WaitGroup {
  llvm::SmallVector<unsigned, 8> warps;
  uint64_t place = 0;
  std::string awaited, lacks;
  llvm::SmallVector<unsigned, 8> awaitedOf, exited;
  /// A sentence for its place, such as "warp 4 waits here for phase 0 of
  /// 'k.empty'[0], which lacks 1 arrival from warps 0-3".
  std::string text;
  /// The summary says all of it.
  bool isSaid = false;
};

/// What waiters are called.
struct WaiterNames {
  /// By their numbers.
  std::vector<WarpName> warps;
  CtaNames ctas = CtaNames::None;
  /// What some warps are called together, in front of their numbers; may be
  /// absent.
  std::function<std::string(llvm::ArrayRef<unsigned>)> role;
};

struct WaitGroups {
  /// The cycle, or the way to what nobody brings, such as "warps 0-3 wait for
  /// phase 1 of 'k.full'[0] from warp 4, which waits for phase 0 of
  /// 'k.empty'[0]", cut to a line.
  std::string summary;
  /// All groups, those of the summary first and in its order.
  std::vector<WaitGroup> groups;
};

/// Groups waiters and finds out who waits for whom. Where the same happens in
/// all CTAs that are meant, these are named once. There is at least one waiter.
WaitGroups groupWaiters(llvm::ArrayRef<Waiter> waiters,
                        const WaiterNames &names);

} // namespace mlir::attn

#endif // ATTN_SUPPORT_WAITGROUPS_H
