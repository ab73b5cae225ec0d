//===- CopiedMemory.h - What cp.async copies, and where to ------*- C++ -*-===//
//
// Columns of a tensor that lie together have a view and memory of their own:
// all of them; slices, those of K, then those of V, which have the slots of one
// ring in turns; or groups of 8-bit keys, each with a ring, from which products
// take its columns as fragments of f16, for scores and, of latent keys, for
// values.
//
// A row of latent keys has rotated columns besides: of 16-bit keys they may be
// a tensor of their own, of 8-bit keys they are a group, of 16 or 8 bits.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_COPIED_COPIEDMEMORY_H
#define ATTN_LIB_SCHEDULE_COPIED_COPIEDMEMORY_H

#include "CopiedExtents.h"
#include "attn/Schedule/Kernel/AttentionTile.h"

namespace mlir::attn {

/// Columns of rows in global memory, and the memory to which they are copied: a
/// ring of blocks of rows, or of queries a tile of rows. Null without.
struct CopiedColumns {
  Value view, memory;
};

/// The memory of a kernel and what fills it.
class CopiedMemory {
public:
  CopiedMemory(const AttentionTile &tile, const CopiedPlan &plan,
               const CopiedExtents &extents)
      : tile(tile), plan(plan), extents(extents),
        partN(plan.getBlockN() / plan.getParts()) {}

  /// Makes the views of the tile's rows.
  void makeViews();
  /// Allocates the queries, then the rings.
  void allocate();
  /// True if queries go to registers by themselves, not by shared memory: plans
  /// may ask for it, and no tile may have columns that the tensor has not.
  bool loadsQueries() const;

  /// Returns the slot with the rows of `columns` from `first` on, which may be
  /// read from here on. The copy starts earlier, and one wait may be for
  /// several slots (attn.stage).
  Value stage(const CopiedColumns &columns, Value first) const;
  /// Returns the queries' columns `i` as they are in memory or registers.
  RankedTensorType getQueryTile(size_t i) const;

  /// The queries; of plans that stream them their rings.
  SmallVector<CopiedColumns> queries;
  /// Keys and values of each part of a block. Values are empty where they are
  /// columns of the keys.
  SmallVector<SmallVector<CopiedColumns>> keys, values;
  /// The scales of rows, one for each of several groups of columns.
  CopiedColumns keyScales, valueScales;

private:
  /// Columns `first` to `first` + `count` of a tensor, all if that is 0, which
  /// take `room` columns of memory.
  struct Columns {
    int64_t first, count, room;
  };
  /// Returns what a row of queries and keys, and of values, consists of.
  SmallVector<Columns> listKeyColumns() const;
  SmallVector<Columns> listValueColumns() const;
  SmallVector<Columns> listSlices(int64_t columns, int64_t room) const;
  SmallVector<Columns> listGroups(int64_t columns) const;
  bool isRope(const Columns &columns) const {
    return extents.isLatent && columns.first == tile.facts.valueDim;
  }
  void allocateRings();
  Value allocateScales(StringRef name, const TensorFacts &scales) const;
  /// Returns rings of `columns` of a block.
  BufferType getRing(const Columns &columns, Type elementType) const;

  const AttentionTile &tile;
  CopiedPlan plan;
  const CopiedExtents &extents;
  /// Keys of a part of a block.
  int64_t partN;
};

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_COPIED_COPIEDMEMORY_H
