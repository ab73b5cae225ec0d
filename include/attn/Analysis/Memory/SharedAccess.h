//===- SharedAccess.h - Which bytes of shared memory are used ---*- C++ -*-===//
//
// An access is described by the buffer's alloc, a range of bytes, and, for a
// slot of a ring, by what is known about its position in the ring.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_ANALYSIS_MEMORY_SHAREDACCESS_H
#define ATTN_ANALYSIS_MEMORY_SHAREDACCESS_H

#include "attn/Dialect/Attn/IR/Attn.h"

namespace mlir::attn {

/// One access of an op to shared memory, by all threads of the CTA together.
struct SharedAccess {
  Operation *op = nullptr;
  /// The operand through which the buffer is touched.
  unsigned operand = 0;
  AllocOp alloc;
  bool isWrite = false;
  /// What carries it out, if it ends later than its op; else null.
  const AsyncEngine *engine = nullptr;
  /// Bytes [begin, end) of the alloc. For a slot of unknown index the bytes of
  /// the whole ring.
  int64_t begin = 0;
  int64_t end = 0;
  /// The slot that the view goes through, if it does.
  SlotOp slot;
  /// Its index, if that is a constant.
  std::optional<int64_t> slotIndex;
  /// If each warpgroup of the partition touches its own part of the rows only,
  /// the first one the first part: the rows of all of them and the bytes of a
  /// row that lie together. 0 otherwise.
  int64_t ownRows = 0;
  int64_t ownSpan = 0;

  /// True for accesses through the async proxy (PTX ISA, Async proxy).
  bool isAsyncProxy() const { return engine && engine->isAsyncProxy; }
  /// True if mbarriers order it before and behind other accesses.
  bool isOrderedByBarriers() const {
    return engine && engine->completion == AsyncEngine::Completion::Barrier;
  }
  /// True if a wait for groups has to cover it.
  bool isInGroup() const {
    return engine && engine->completion == AsyncEngine::Completion::Groups;
  }
};

/// The alloc behind a buffer, through views; null if there is none.
AllocOp findAlloc(Value buffer);

/// Bytes of an alloc, all slots included. An error while its layout is auto.
llvm::Expected<int64_t> getAllocBytes(AllocOp alloc);

/// True for ops that only make another view of a buffer.
bool isBufferView(Operation *op);

/// The accesses of one op (not of its regions). An error at the op if a buffer
/// does not come from an attn.alloc through views, or if the op does not say
/// what it does with it.
FailureOr<SmallVector<SharedAccess, 2>> getSharedAccesses(Operation *op);

/// True for a copy that a thread starts after it has read another buffer, such
/// as numbers of rows, itself: no engine carries out that access.
bool hasOwnAccess(Operation *op);

/// Makes an access through a slot of a ring of unknown index one to slot
/// `index`, if the ring is the alloc.
void narrowToSlot(SharedAccess &access, int64_t index);

/// True if the two may touch the same bytes: by their offsets, or, before there
/// are any, if they go to the same alloc.
bool bytesOverlap(const SharedAccess &a, const SharedAccess &b);

/// True if no two warpgroups touch the same bytes with the one and the other:
/// the parts of the rows that each has are the same.
bool haveSameOwnRows(const SharedAccess &a, const SharedAccess &b);

/// True if both ops share a buffer, or a slot of the same ring, out among the
/// threads of a partition, and in the same way: what a thread touches follows
/// from the types, so that it is the same thread that touches a byte again.
bool areSharedOutAlike(const SharedAccess &a, const SharedAccess &b);

/// A buffer's name in messages: that of its alloc, or "buffer".
StringRef getBufferName(AllocOp alloc);

} // namespace mlir::attn

#endif // ATTN_ANALYSIS_MEMORY_SHAREDACCESS_H
