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

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <string>
#include <vector>

namespace mlir::attn {

/// A warp that cannot go on.
struct Waiter {
  /// Any number that says who it is.
  unsigned warp = 0;
  /// Where it waits; the same number for the same place.
  uint64_t place = 0;
  /// What for, such as "phase 3 of 'k.full'[2]".
  std::string awaited;
  /// What has not come, such as "1 arrival"; empty where nothing is counted.
  std::string lacks;
  /// Who would let it go on, as far as that is known.
  llvm::SmallVector<unsigned, 4> awaitedOf;
};

/// Warps that wait in one place for the same.
struct WaitGroup {
  llvm::SmallVector<unsigned, 8> warps;
  uint64_t place = 0;
  std::string awaited, lacks;
  llvm::SmallVector<unsigned, 8> awaitedOf;
};

struct WaitGroups {
  /// The cycle, or the way to what nobody brings, such as "warps 0-3 wait for
  /// phase 1 of 'k.full'[0] from warp 4; warp 4 waits for phase 0 of
  /// 'k.empty'[0], which lacks 1 arrival".
  std::string summary;
  /// All groups, those of the summary first and in its order.
  std::vector<WaitGroup> groups;
};

/// Returns what a group waits for, as a sentence for its place: "warp 4 waits
/// here for phase 0 of 'k.empty'[0], which lacks 1 arrival from warps 0-3".
std::string
describeGroup(const WaitGroup &group,
              llvm::function_ref<std::string(llvm::ArrayRef<unsigned>)> name);

/// Groups waiters and finds out who waits for whom; `name` says what warps are
/// called. There is at least one waiter.
WaitGroups
groupWaiters(llvm::ArrayRef<Waiter> waiters,
             llvm::function_ref<std::string(llvm::ArrayRef<unsigned>)> name);

} // namespace mlir::attn

#endif // ATTN_SUPPORT_WAITGROUPS_H
