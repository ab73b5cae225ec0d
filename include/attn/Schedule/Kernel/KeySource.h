//===- KeySource.h - Where the keys of a tile come from ---------*- C++ -*-===//
//
// Keys and values are rows of a batch, rows of packed sequences, rows of pages
// that a table names, or blocks of a batch's rows that a list names. Whoever
// emits a loop over keys asks for their number and for views of their rows, and
// does not know which it is.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_KERNEL_KEYSOURCE_H
#define ATTN_SCHEDULE_KERNEL_KEYSOURCE_H

#include "attn/Schedule/Kernel/EmitBlockBounds.h"
#include <memory>

namespace mlir::attn {

/// Rows of a batch or page that TMA copies together, i32.
struct KeyRows {
  /// The first one, and how many of the batch's or page's rows belong to the
  /// sequence: up to 0 for none.
  Value row, end;
};

/// Which places a row sees, i32: those below `limit`, and from query + `lower`
/// to query + `upper`.
struct SeenPlaces {
  Value limit, lower, upper;
};

/// Finds the keys of a sequence, and says where they are.
class KeySource {
public:
  /// Makes the source of the problem's keys.
  static std::unique_ptr<KeySource> create(KernelContext &context);
  virtual ~KeySource() = default;

  /// Finds the keys of the tile at `at` whose first row is `row`, i32, those of
  /// a sequence: emits their number and where they begin.
  virtual void find(const TileCoordinates &at, Value row) = 0;
  /// Returns the rows of k or v that belong to a key head of the sequence, as
  /// many as it is long: `columns` of them from `first` on, all if 0. What else
  /// memory holds does not exist in the view.
  virtual Value emitView(StringRef name, const TileCoordinates &at,
                         int64_t first, int64_t columns) = 0;
  /// Returns whole rows.
  Value emitView(StringRef name, const TileCoordinates &at) {
    return emitView(name, at, /*first=*/0, /*columns=*/0);
  }
  /// Returns one column of such rows, as a view of rank 1.
  virtual Value emitColumnView(StringRef name, const TileCoordinates &at,
                               int64_t column) = 0;
  /// Returns the number that the key at place `first` of the sequence has in
  /// masks, and the keys behind it in its block have from there on, i32.
  virtual Value emitKey(Value first) { return first; }
  /// True if that is not its place.
  virtual bool isListed() const { return false; }
  /// True if rows of k and v that the sequence does not have follow its own, so
  /// that TMA has to be told in each copy where these end.
  virtual bool isBounded() const { return false; }
  /// Returns the batch or page that the keys from `first` on are in, i32; one
  /// that does not exist is outside of the pool. No entry of the table after
  /// that of the last key is read. Only if bounded.
  virtual Value emitLead(Value first) {
    llvm_unreachable("only of bounded keys");
  }
  /// Returns i1 whether that is outside of the pool; null if it never is.
  virtual Value emitIsAbsent(Value lead) { return {}; }
  /// Returns i1 whether a query of the sequence, the row `getQuery` returns,
  /// does not see the key at `place`, whatever masks say. Only where places
  /// are hidden (ProblemFacts::hidesPlaces).
  virtual Value emitIsHidden(function_ref<Value()> getQuery, Value place) {
    return emitIsAbsent(emitLead(place));
  }
  /// Returns i1 whether the keys from place `first` on, a multiple of `align`,
  /// are those in front, where blocks come from one of two pools; null where
  /// they do not. Then only these are hidden by what stands in their place.
  virtual Value emitIsFront(Value first) { return {}; }
  /// Returns what rows see of the block at place `first`, where blocks come
  /// from one of two pools; the bounds are null where there are none.
  virtual SeenPlaces emitSeen(Value first) {
    llvm_unreachable("only of keys from two pools");
  }
  /// Stores in `dest`, a buffer of i32, which rows of a pool the keys from
  /// `first` on are (attn.page_rows): those of the key head of `at`. Only of
  /// keys in pages of pools that have a pitch of rows.
  virtual void emitRowNumbers(Value first, const TileCoordinates &at,
                              Value dest) {
    llvm_unreachable("only of keys in pages");
  }
  /// Returns where in it they are.
  virtual KeyRows emitRows(Value first) {
    llvm_unreachable("only of bounded keys");
  }

  /// The number of keys, i32.
  Value length;
  /// The first row in packed tensors, i64; null where there is none.
  Value start;
  /// The blocks of a list, full ones first.
  ListedBlocks listed;
  /// Keys of each of two pools begin at a multiple of so many places: those of
  /// blocks of so many keys come from one of them. Places behind the last key
  /// in front have none.
  int64_t align = 1;
  /// Places from the first one on that all rows see as far as masks say, where
  /// rows may not see those behind; null elsewhere.
  Value whole;
  /// The number of `kv_lengths` where something else has it, i32; else null.
  Value known;
};

/// Returns the length of a packed sequence, and sets `start` to its first row,
/// i64.
Value emitPackedLength(KernelContext &context, StringRef name, Value batch,
                       Value &start);

} // namespace mlir::attn

#endif // ATTN_SCHEDULE_KERNEL_KEYSOURCE_H
