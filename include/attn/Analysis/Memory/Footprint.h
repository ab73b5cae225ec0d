//===- Footprint.h - The bytes of one warp's part ---------------*- C++ -*-===//
//
// `SharedAccess` says what all threads of an op touch together. A footprint is
// cut finer: by the slot, whose index is known when the access happens, and by
// the rows that belong to a warpgroup or, of a multicast, to a CTA. Cells of
// tensor memory are bytes of a range of their own, which no byte of shared
// memory is in.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_ANALYSIS_MEMORY_FOOTPRINT_H
#define ATTN_ANALYSIS_MEMORY_FOOTPRINT_H

#include "attn/Analysis/Memory/SharedAccess.h"

namespace mlir::attn {

/// Bytes [begin, end).
struct ByteRange {
  int64_t begin = 0;
  int64_t end = 0;

  bool operator==(ByteRange other) const {
    return begin == other.begin && end == other.end;
  }
};

/// Where tensor memory starts, behind all of shared memory.
inline constexpr int64_t kTensorStart = int64_t(1) << 32;

/// Bytes of a cell of tensor memory there, and lanes that count as one since no
/// layout takes a part of them: all columns of the first of them come first.
inline constexpr int64_t kTmemCellBytes = 4;
inline constexpr int64_t kTmemCellLanes = 16;

/// Whose part of the rows a footprint's part is.
enum class RowParts {
  /// One part: everybody who takes part in the access touches all of it.
  Whole,
  /// A part of each warp of the partition, the first one the first, which it
  /// touches all of.
  Warps,
  /// A part of each warpgroup of the partition, the first one the first.
  Warpgroups,
  /// A part of each CTA of a cluster, which all CTAs get.
  CTAs,
  /// Of tensor memory the lanes that a warp reaches, by its number in the CTA
  /// modulo 4. It touches all of them.
  Lanes
};

struct Footprint {
  /// Of tensor memory without alloc.
  SharedAccess access;
  TmemAllocOp tensorAlloc;
  /// Bytes from the start of the alloc, for slot 0, of each part.
  SmallVector<SmallVector<ByteRange, 1>, 1> parts;
  RowParts by = RowParts::Whole;
  /// The bits of a CTA's rank that say which part is its own.
  uint32_t rankBits = ~0u;
  /// The index of the slot, null if the access goes through none; slots lie
  /// `slotBytes` apart.
  Value slotIndex;
  int64_t slotBytes = 0;
  int64_t numSlots = 1;

  bool isWrite() const { return access.isWrite; }
  bool isTensor() const { return bool(tensorAlloc); }
  /// The result of the alloc.
  Value getMemory() const;
  /// Where the alloc begins, once it has its place.
  int64_t getStart() const;
  StringRef getName() const;
  const AsyncEngine *getEngine() const { return access.engine; }
};

/// How far a team's buffers lie behind those of the team before it, once they
/// have their places.
int64_t getTeamBytes(gpu::GPUFuncOp kernel);

/// The bytes of rows [first, first + count) in one slot of a buffer, in order
/// and joined where they meet. An error while its layout is auto.
llvm::Expected<SmallVector<ByteRange, 1>>
getRowBytes(BufferType type, int64_t first, int64_t count);

/// Columns of an allocation of tensor memory, as a view shows them.
struct TensorColumns {
  TmemAllocOp alloc;
  /// From the start of the slot, or of the allocation without one.
  int64_t first = 0;
  int64_t count = 0;
  /// The slot that the view goes through, if it does.
  SlotOp slot;
};

/// What a buffer shows; without alloc if it does not come from an
/// attn.tmem_alloc through views.
TensorColumns findTensorColumns(Value buffer);

/// The footprints of an op's accesses to tensor memory. An error at an op whose
/// buffer does not come from an allocation.
FailureOr<SmallVector<Footprint, 2>> getTensorFootprints(Operation *op);

/// The footprints of an op's accesses to shared memory, each cut into its
/// parts: for an op in a partition of `warps` warps. An error at an op that
/// getSharedAccesses refuses.
FailureOr<SmallVector<Footprint, 2>> getFootprints(Operation *op,
                                                   int64_t warps);

} // namespace mlir::attn

#endif // ATTN_ANALYSIS_MEMORY_FOOTPRINT_H
