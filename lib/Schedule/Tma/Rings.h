//===- Rings.h - Rings of shared memory and their channels ------*- C++ -*-===//
//
// Rings of shared memory with their channels, the maps by which TMA fills them,
// and the loads; a role waits for what they bring.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_TMA_RINGS_H
#define ATTN_LIB_SCHEDULE_TMA_RINGS_H

#include "../Kernel/Pipe.h"
#include "TileWalk.h"

namespace mlir::attn {

/// Whose rows a ring holds, which says where a sequence's rows lie among those
/// of packed ones.
enum class RingRows { Queries, Keys };

/// A role of channels, and the partition that has it, or both of two that do.
struct Role {
  llvm::StringLiteral name, partition, second = "";

  operator StringRef() const { return name; }
};

/// A ring to be made.
struct RingSpec {
  /// The tensor that fills it, or what the ring is called.
  StringRef name;
  RingRows holds;
  int64_t stages, rows, columns;
  /// The roles that fill and read its slots.
  Role from, to;
  /// True if TMA fills it.
  bool isLoaded = true;
  TensorMapView view = TensorMapView::Whole;
  /// How `to` says that it has read a slot.
  SignalKind signal = SignalKind::Arrive;
  /// The tensor that fills it, where the ring has another name.
  StringRef tensor = {};
  /// Slots of a position in the channel, which are handed over together.
  int64_t together = 1;
  /// The type of what the slots hold, where that is not the type of the
  /// queries.
  Type elementType = {};
  /// Rows of a slot that follow each other in the tensor; 0 for all.
  int64_t placeRows = 0;
  /// Another shape of all slots, of as many bytes, that the memory has, too;
  /// empty if it has none.
  ArrayRef<int64_t> otherShape = {};
};

/// A ring of shared memory with its channel and the map that fills it.
struct Ring {
  /// The tensor that fills it, or what the ring is called.
  StringRef name;
  RingRows holds = RingRows::Keys;
  Value buffer, channel, map;
  /// The buffer as slots of another shape, if the ring was asked for one.
  Value otherBuffer;
  /// The map of the keys in front, where those of two pools come; else null.
  Value frontMap;
  /// The map that fills boxes without an element in the map, if there may be
  /// any.
  Value spare;
  /// The map that fills a slot of pages that the sequence has all rows of, if
  /// the map says where they end: copies of one dimension less are faster.
  Value whole;
  TensorMapView view = TensorMapView::Whole;
  BufferType slotType;
  /// Rows of a slot that follow each other in the tensor; 0 for all.
  int64_t placeRows = 0;
  /// Rows of a copy: those of a slot or place, or of as many boxes as fill it.
  int64_t boxRows = 0;
  /// CTAs of a cluster that copy a part of the rows each, for all of them. A
  /// slot is one box then.
  int64_t ctas = 1;

  /// Returns the rows in a slot that a role has acquired.
  Value at(const Slot &slot) const { return slot.in(buffer, slotType); }
};

/// Makes a channel between roles; of two each may hand slots on in parts.
Value makeChannel(ImplicitLocOpBuilder &b, StringRef name, int64_t stages,
                  ArrayRef<std::pair<Role, SignalKind>> roles,
                  ArrayRef<StringRef> firstParts = {},
                  ArrayRef<StringRef> secondParts = {});
/// Makes a ring between two roles, and its map if TMA fills it.
Ring makeRing(const TileWalk &walk, const RingSpec &spec);
/// Makes the ring of values as they lie in memory: keys x columns, or columns x
/// keys where the keys are contiguous.
Ring makeValueRing(const TileWalk &walk, int64_t stages, Role from, Role to);

/// Adds the map that fills a ring, whose view it may change to one that ends
/// with the sequence.
void addMap(const TileWalk &walk, Ring &ring);
/// Makes a map for boxes that have no element in the one of a bounded or packed
/// view: TMA reads the address of a map for them, and such a map's lies before
/// the tensor. They are outside of the spare one, too: in the place of rows
/// from the last one on it has four rows, in that of columns as many.
void addSpare(KernelContext &context, Ring &ring);
/// Prefetches the maps that are not null.
void prefetchMaps(ImplicitLocOpBuilder &b, ArrayRef<Value> maps);

/// Returns the part of a slot whose boxes hold any of its first `columns`
/// columns. Loads of a packed view must not ask for boxes beyond the tensor's
/// last column: TMA reads the address of a map for them.
Value narrowSlot(const TileWalk &walk, Value slot, int64_t columns);

/// Where a load finds its first row. The lead is where a bounded view's first
/// box lies, null in others.
struct LoadPlace {
  Value first, lead;
};

/// Finds the row `first` of the tile's sequence, or the keys at that place of
/// it. Stands before waits for the slot: entries of a table or list that it
/// reads bring the others near.
LoadPlace findLoadPlace(const TileWalk &walk, const Ring &ring, Value first);

/// Starts to load the rows of the tile's sequence from `first` on into the slot
/// `dest`, which `token` gives the right to: zeros for rows after its end; in a
/// transposed view all rows and the keys from `first` on. Columns begin at
/// `column`, i32, the first one if it is null. `lead` is where a bounded view's
/// first box lies, if that is known. Stands in one thread.
void startLoad(const TileWalk &walk, const Ring &ring, Value dest, Value token,
               Value head, Value first, Value column = {}, Value lead = {});

/// Where boxes begin that lie one behind the other in a slot: the first row,
/// and where a bounded view's first box lies, as findLoadPlace says; and the
/// first column, i32.
struct BoxPlace {
  LoadPlace rows;
  Value column;
};
/// Starts to load boxes of equal shape, each from a place of its own on. `dest`
/// is of any shape whose boxes lie so: rows of one box of columns, or boxes of
/// columns of one box of rows.
void startLoads(const TileWalk &walk, const Ring &ring, Value dest, Value token,
                Value head, ArrayRef<BoxPlace> places);

/// Rows that lie apart: the numbers that they have in a map of rows, a buffer,
/// and the first one that a load needs, i32. Null where rows follow each other.
/// Where keys come from two pools, i1 whether these are those in front.
struct RowNumbers {
  Value numbers, from, isFront;

  explicit operator bool() const { return static_cast<bool>(numbers); }
};

/// Starts to load such rows into the slot `dest`, as startLoad does.
void startGather(const TileWalk &walk, const Ring &ring, Value dest,
                 Value token, RowNumbers rows, Value column = {});

/// Allocates a number of each row of the slots of a ring, f32 or `type`.
Value allocRowNumbers(ImplicitLocOpBuilder &b, StringRef name, int64_t stages,
                      int64_t rows, Type type = {});
/// Returns the numbers, in `ring`, of the rows of the slot `slot`.
Value getRowNumbers(ImplicitLocOpBuilder &b, Value slot, Value ring);

/// Makes a map by which TMA stores `columns` columns of the rows of one
/// warpgroup.
Value makeResultMap(const AttentionTile &tile, int64_t rows, int64_t columns);
/// Returns the tile's first element in that map.
SmallVector<Value> getResultStart(const AttentionTile &tile,
                                  int64_t firstColumn);
/// Allocates a tile of results.
Value allocResults(const AttentionTile &tile);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_TMA_RINGS_H
