//===- Assumption.h - What is relied on beyond the PTX manual ---*- C++ -*-===//
//
// The list of docs/Simulator.md. The simulator grants them by profile or by
// name; the check of barriers says which ones its proof rests on.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_SUPPORT_ASSUMPTION_H
#define ATTN_SUPPORT_ASSUMPTION_H

#include <cstdint>

namespace mlir::attn {

/// As docs/Simulator.md numbers them.
enum class Assumption : uint8_t {
  MmaOrder = 1,        ///< A1: products of a thread execute in issue order
  CommitOrder = 2,     ///< A2: commits of a thread arrive in issue order
  LoadUse = 3,         ///< A3: a used tcgen05.ld has read its cells
  ClusterScope = 4,    ///< A4: default-scope signals reach the cluster
  NoTensorFence = 5,   ///< A5: waits order tcgen05 without its fences
  NoProxyFenceWar = 6, ///< A6: generic access, signal, asynchronous overwrite
  WarpLockstep = 7,    ///< A7: lanes of a warp see each other's shared memory
  SameValue = 8,       ///< A8: warps may store the same value
  LateSignal = 9,      ///< A9: signals to an invalidated mbarrier are lost
  CopyProxy = 10,      ///< A10: finished cp.async writes reach the async proxy
  MovedResult = 11,    ///< A11: a move of an accumulator waits for its product
  OwnWait = 12,        ///< A12: a warp may wait for its wgmma groups alone
};
constexpr unsigned numAssumptions = 12;

} // namespace mlir::attn

#endif // ATTN_SUPPORT_ASSUMPTION_H
