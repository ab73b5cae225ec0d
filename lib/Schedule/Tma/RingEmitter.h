//===- RingEmitter.h - Rings that TMA fills ---------------------*- C++ -*-===//
//
// Rings of shared memory with their channels, the maps by which TMA fills them,
// and the loads, whoever waits for what they bring.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_TMA_RINGEMITTER_H
#define ATTN_LIB_SCHEDULE_TMA_RINGEMITTER_H

#include "PersistentTiles.h"

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
  /// What the slots hold, where that is not the type of the queries.
  Type elementType = {};
};

/// A ring of shared memory with its channel and the map that fills it.
struct Ring {
  /// The tensor that fills it, or what the ring is called.
  StringRef name;
  RingRows holds = RingRows::Keys;
  Value buffer, channel, map;
  /// What fills boxes without an element in the map, if there may be any.
  Value spare;
  /// What fills a slot of pages that the sequence has all rows of, if the map
  /// says where they end: copies of one dimension less are faster.
  Value whole;
  TensorMapView view = TensorMapView::Whole;
  BufferType slotType;
  /// Rows of a copy: those of a slot, or of as many boxes as fill it.
  int64_t boxRows = 0;
  /// CTAs of a cluster that copy a part of the rows each, for all of them. A
  /// slot is one box then.
  int64_t ctas = 1;
};

/// How the counter's tiles reach all roles; null values where none deals.
struct TileDealer {
  Value counter, channel, ring;
};

class RingEmitter : public PersistentTiles {
public:
  using PersistentTiles::PersistentTiles;

  /// A channel between roles; of two each may hand slots on in parts.
  Value makeChannel(StringRef name, int64_t stages,
                    ArrayRef<std::pair<Role, SignalKind>> roles,
                    ArrayRef<StringRef> firstParts = {},
                    ArrayRef<StringRef> secondParts = {});
  /// A ring between two roles, and its map if TMA fills it.
  Ring makeRing(const RingSpec &spec);
  /// Adds the map that fills a ring, whose view it may change to one that ends
  /// with the sequence.
  void addMap(Ring &ring);
  /// Makes a map for boxes that have no element in the one of a bounded or
  /// packed view: TMA reads the address of a map for them, and such a map's
  /// lies in front of the tensor. They are outside of the spare one, too: in
  /// the place of rows from the last one on it has four rows, in that of
  /// columns as many.
  void addSpare(Ring &ring);
  /// The ring of values as they lie in memory: keys x columns, or columns x
  /// keys where the keys are contiguous.
  Ring makeValueRing(int64_t stages, Role from, Role to);
  /// A map by which TMA stores `columns` columns of the rows of one warpgroup,
  /// and the tile's first element in it.
  Value makeResultMap(int64_t rows, int64_t columns);
  SmallVector<Value> emitResultStart(int64_t firstColumn);
  /// A counter, whose tiles the first of the roles hands on to the others.
  TileDealer makeDealer(ArrayRef<std::pair<Role, SignalKind>> roles);
  /// Lets the loop have its tiles from `dealer`, if that deals.
  void setDealer(TileLoopOp loop, const TileDealer &dealer);
  /// Memory for a tile of results.
  Value allocResults();

  Value advance(Value cursor, const Ring &ring) {
    return CursorAdvanceOp::create(b, cursor, ring.channel);
  }
  /// Waits for a slot; its view and token.
  std::pair<Value, Value> acquire(const Ring &ring, Value cursor,
                                  StringRef role);
  /// Memory for a number of each row of the slots of a ring.
  Value allocRowNumbers(StringRef name, int64_t stages, int64_t rows);
  /// Those of a slot that was acquired, which are handed on with it.
  Value emitRowNumbers(Value slot, Value ring);
  void release(const Ring &ring, Value token, StringRef role) {
    ChannelReleaseOp::create(b, ring.channel, token, role);
  }
  /// Loads the rows of the tile's sequence from `first` on into the next slot,
  /// zeros for rows behind its end; in a transposed view all rows and the keys
  /// from `first` on. Stands in one thread.
  void load(const Ring &ring, Value cursor, StringRef role, Value head,
            Value first);
  /// The same for a slot that was acquired, which whoever did hands on; from
  /// `column` on, i32, the first one if it is null. `lead` is where a bounded
  /// view's first box lies, if that is known.
  void fill(const Ring &ring, Value slot, Value token, Value head, Value first,
            Value column = {}, Value lead = {});
  void prefetchMaps(ArrayRef<Value> maps);
  /// In one thread, what `emit` makes.
  void elect(function_ref<void()> emit);

private:
  /// The extents of a box of `rows` rows of queries in front of its columns.
  SmallVector<int64_t> getQueryBox(int64_t rows) const;
  /// The query that row `row` of the tile's is.
  Value emitQuery(Value row);
  /// Where the boxes of a slot begin.
  struct BoxStarts {
    /// The first element in a map of the ring's view, of each box if the view
    /// is bounded.
    SmallVector<Value> coords;
    /// Whether no element of a box is inside, i1; none without a spare map.
    SmallVector<Value> outside;
  };
  BoxStarts emitBoxStart(const Ring &ring, Value head, Value first,
                         Value column);
  /// Those of a bounded view in these batches or pages.
  BoxStarts emitBoundedStarts(const Ring &ring, Value head, Value first,
                              Value column, ArrayRef<Value> leads);
  /// The same if the sequence has all of the rows.
  BoxStarts emitWholeStarts(const Ring &ring, Value head, Value first,
                            Value column, ArrayRef<Value> leads);
  /// The first row of a box of a slot whose first row is `first`.
  Value emitBoxRow(const Ring &ring, Value first, int64_t box);
  /// Loads a slot of a bounded view, whose first box is in `lead` if that is
  /// known.
  void loadBounded(const Ring &ring, Value slot, Value token, Value head,
                   Value first, Value column, Value lead = {});
  void emitLoad(const Ring &ring, Value slot, Value token,
                const BoxStarts &start);
};

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_TMA_RINGEMITTER_H
