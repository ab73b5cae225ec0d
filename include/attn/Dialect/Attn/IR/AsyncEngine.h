//===- AsyncEngine.h - What accesses memory later than its op ---*- C++ -*-===//
//
// An asynchronous op starts accesses to shared or tensor memory that an engine
// carries out. What analyses have to know of an engine is a row here; a dialect
// that adds an engine makes a row of its own. Engines are the same if their
// rows are.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_IR_ASYNCENGINE_H
#define ATTN_DIALECT_ATTN_IR_ASYNCENGINE_H

#include "llvm/ADT/StringRef.h"

namespace mlir::attn {

struct AsyncEngine {
  /// How it becomes known that an access has ended.
  enum class Completion {
    /// A wait for the executing thread's groups, of which the youngest may be
    /// left out. An access ends no later than its group.
    Groups,
    /// An mbarrier that counts bytes: what waits for it comes behind the
    /// access.
    Barrier
  };

  /// Behind "buffer 'k'" in messages, such as "whose copy is not awaited".
  llvm::StringLiteral unfinished;
  /// What to do about it, such as "an attn.cp_async.wait has to cover its
  /// group".
  llvm::StringLiteral remedy;
  /// Through the async proxy (PTX ISA, Async proxy).
  bool isAsyncProxy;
  Completion completion;
  /// Its accesses to tensor memory are ordered with those of other threads by
  /// tcgen05.fence only (PTX ISA, tcgen05 memory consistency model).
  bool isTensorCore = false;
};

/// cp.async (PTX ISA, cp.async): generic proxy, groups of a thread.
inline constexpr AsyncEngine kCopyGroups = {
    "whose copy is not awaited",
    "the copy starts here; an attn.cp_async.wait has to cover its group",
    /*isAsyncProxy=*/false, AsyncEngine::Completion::Groups};
/// wgmma (PTX ISA, wgmma.mma_async): async proxy, groups of a warpgroup.
inline constexpr AsyncEngine kWgmmaGroups = {
    "which an attn.wgmma still reads",
    "it starts here; an attn.wgmma.wait has to cover it",
    /*isAsyncProxy=*/true, AsyncEngine::Completion::Groups};
/// TMA loads (PTX ISA, cp.async.bulk.tensor): an mbarrier counts their bytes.
inline constexpr AsyncEngine kBulkLoads = {
    "whose load is not awaited",
    "the load starts here; its mbarrier has to be awaited",
    /*isAsyncProxy=*/true, AsyncEngine::Completion::Barrier};
/// TMA stores (PTX ISA, cp.async.bulk.tensor): bulk groups of a thread.
inline constexpr AsyncEngine kBulkStores = {
    "which an attn.tma.store still reads",
    "it starts here; an attn.tma.wait has to cover its group",
    /*isAsyncProxy=*/true, AsyncEngine::Completion::Groups};
/// tcgen05.mma (PTX ISA, tcgen05.mma): a commit signals an mbarrier.
inline constexpr AsyncEngine kTensorProducts = {
    "which an attn.tcgen05.mma still reads",
    "it starts here; the mbarrier of its commit has to be awaited",
    /*isAsyncProxy=*/true, AsyncEngine::Completion::Barrier,
    /*isTensorCore=*/true};
/// tcgen05.ld: a wait covers all loads of a thread.
inline constexpr AsyncEngine kTensorLoads = {
    "whose columns it still reads",
    "it starts here; an attn.tmem.wait has to cover it",
    /*isAsyncProxy=*/false, AsyncEngine::Completion::Groups,
    /*isTensorCore=*/true};
/// tcgen05.st: a wait covers all stores of a thread.
inline constexpr AsyncEngine kTensorStores = {
    "whose columns it still writes",
    "it starts here; an attn.tmem.store_wait has to cover it",
    /*isAsyncProxy=*/false, AsyncEngine::Completion::Groups,
    /*isTensorCore=*/true};
/// st.async (PTX ISA, st.async): generic proxy, an mbarrier counts its bytes.
inline constexpr AsyncEngine kSends = {
    "whose store is not awaited",
    "the store starts here; its mbarrier has to be awaited",
    /*isAsyncProxy=*/false, AsyncEngine::Completion::Barrier};
/// clusterlaunchcontrol.try_cancel (PTX ISA): async proxy, an mbarrier counts
/// the bytes of the response.
inline constexpr AsyncEngine kClusterRequests = {
    "whose response is not awaited",
    "the request starts here; its mbarrier has to be awaited",
    /*isAsyncProxy=*/true, AsyncEngine::Completion::Barrier};

} // namespace mlir::attn

#endif // ATTN_DIALECT_ATTN_IR_ASYNCENGINE_H
