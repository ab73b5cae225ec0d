//===- AttentionTile.h - A tile of queries and its keys ---------*- C++ -*-===//

#ifndef ATTN_SCHEDULE_KERNEL_ATTENTIONTILE_H
#define ATTN_SCHEDULE_KERNEL_ATTENTIONTILE_H

#include "attn/Schedule/Kernel/EmitBlockBounds.h"
#include "attn/Schedule/Kernel/KeySource.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <array>

namespace mlir::attn {

/// Which keys each row of a tile keeps, by a mask that key_range describes, as
/// attn.row_keys gives them; null where mask_mod is asked.
struct KeptKeys {
  Value from, to, exact;
};

/// The tile of queries that a kernel works on. A kernel sets the place of a
/// tile when it has found it; the functions that emit scores and results read
/// it.
struct AttentionTile {
  /// Describes tiles of `blockM` rows. With `group` above 1 the heads of a
  /// group are rows of their query: the first `members` of as many rows, all if
  /// 0.
  AttentionTile(KernelContext &context, int64_t blockM, int64_t group = 1,
                int64_t members = 0);

  //===--------------------------------------------------------------------===//
  // Types and constants
  //===--------------------------------------------------------------------===//

  /// Returns the type of a tile in registers, whose layout a pass chooses.
  RankedTensorType tileType(ArrayRef<int64_t> shape, Type elementType) const {
    return RankedTensorType::get(shape, elementType,
                                 AutoLayoutAttr::get(b.getContext()));
  }
  /// Returns such a type of f32.
  RankedTensorType f32Tile(ArrayRef<int64_t> shape) const {
    return tileType(shape, b.getF32Type());
  }
  /// Returns the type of a buffer in shared memory, whose layout a pass
  /// chooses: of the type of the queries, or another one.
  BufferType bufferType(ArrayRef<int64_t> shape) const {
    return bufferType(shape, facts.elementType);
  }
  BufferType bufferType(ArrayRef<int64_t> shape, Type elementType) const {
    return BufferType::get(b.getContext(), shape, elementType,
                           AutoLayoutAttr::get(b.getContext()),
                           MemorySpace::Shared);
  }
  /// Returns the type of queries and probabilities in products.
  Type getOperandType() const {
    return facts.hasNarrowKeys() ? Type(b.getF16Type()) : facts.elementType;
  }
  /// Makes a tile of equal f32 elements.
  Value splat(RankedTensorType type, double value) const {
    return arith::ConstantOp::create(
        b, DenseElementsAttr::get(type, b.getF32FloatAttr(value)));
  }
  /// Makes a tile of row values of a scalar f32.
  Value splatRows(Value scalar) const {
    return tensor::SplatOp::create(b, scalar, f32Tile({blockM}));
  }
  /// Allocates shared memory.
  Value alloc(StringRef name, BufferType type) const {
    return AllocOp::create(b, type, b.getStringAttr(name), IntegerAttr(),
                           StringAttr());
  }

  //===--------------------------------------------------------------------===//
  // Rows
  //===--------------------------------------------------------------------===//

  /// Returns how many rows the tile's queries have: for each as many as heads
  /// are packed.
  Value getRows() const { return packedRows ? packedRows : queries; }
  /// True if no tile has rows that do not exist.
  bool hasWholeTiles() const;
  /// Returns the place and the lengths of the tile, for bounds of its rows.
  BoundedTiles getBoundedTiles() const {
    return {at,      queries, keys,           group,
            members, range,   source->listed, source->whole};
  }
  /// Returns the tile's rows in tensors of queries.
  HeadRows getQueryRows() const;

  /// The kernel, its problem and its builder.
  KernelContext &context;
  const ProblemFacts &facts;
  ImplicitLocOpBuilder &b;
  /// Rows of a tile.
  const int64_t blockM;
  /// Rows of the tiles that are placed side by side, whether or not the last
  /// ones have any.
  int64_t rowsTogether = blockM;
  /// Columns of the accumulator of the results: those of v, and padding.
  int64_t resultColumns;
  /// True if the softmax has whole maxima.
  bool hasWholeMaxima = false;
  /// Rows of a query, and the heads that these are. After them, where heads are
  /// fewer, stand rows that do not exist.
  const int64_t group, members;
  /// Where keys and values lie.
  std::unique_ptr<KeySource> source;

  /// Where the tile is, its first row, and its blocks of keys.
  TileCoordinates at;
  Value row;
  BlockBounds bounds;
  KeptKeys rowKeys;
  /// The tile's keys where its place says them, and whether they are the keys
  /// of each row, i1; null elsewhere.
  RangeValues range;
  Value isOneDocument;
  /// The lengths of the tile's sequences, i32.
  Value queries, keys;
  /// The first rows of the sequences in packed tensors, i64; null otherwise.
  Value queryStart, keyStart;
  /// The row of the batch, i32, from which rows and keys are counted; null for
  /// the first one.
  Value origin;
  /// The factors of q k and of v, f32; null where units are ones.
  Value scoreDescale, valueDescale;
  /// The units of the rows' queries, where heads that have their own are packed
  /// and `scoreDescale` is without them; null elsewhere.
  Value rowDescale;
  /// Rows of the sequence's queries, as many for each as heads are packed; null
  /// where each query has one row.
  Value packedRows;
};

/// Reads the lengths of the tile's sequences and where they start. The tile
/// begins at `row`.
void emitLengths(AttentionTile &tile, Value row);

/// Narrows the tile's bounds to the blocks of its run: an equal part of them,
/// in whole blocks of `blockN` keys, of which the last ones may be fewer or
/// none, or the blocks of the keys that the problem gives the run.
void emitRun(AttentionTile &tile, int64_t blockN);

/// Returns a view of the tile's rows in q: of `columns` columns from `first`
/// on, all if 0.
Value emitQueryView(const AttentionTile &tile, int64_t first = 0,
                    int64_t columns = 0);

/// Some columns of results.
struct ResultColumns {
  /// `columns` columns from `first` on, all if 0.
  int64_t first = 0, columns = 0;
  /// Where the columns are in parts of `partColumns`: which part is meant, i32;
  /// null for the first one.
  Value part = {};
  int64_t partColumns = 0;
  /// Column `first` alone, as values of rows.
  bool isOneColumn = false;
  /// So many columns from `first` on are one integer of 32 bits, as a value of
  /// rows.
  int64_t inWord = 0;
};

/// Returns the first one of these columns of results, i32.
Value emitFirstColumn(const AttentionTile &tile, const ResultColumns &columns);

/// Returns a view of the tile's rows in the output `name`, o, lse or o_scales;
/// in a partial result of the rows of the tile's run.
Value emitResultView(const AttentionTile &tile, StringRef name,
                     const ResultColumns &columns = {});

/// Returns a view of the tile's rows in the output `name`, o or lse, which
/// partial results are merged into.
Value emitMergedView(const AttentionTile &tile, StringRef name,
                     const ResultColumns &columns = {});

/// Makes the body of `map` at the tile's builder. Returns its element, row and
/// column.
std::array<Value, 3> openElements(const AttentionTile &tile, MapElementsOp map);

} // namespace mlir::attn

#endif // ATTN_SCHEDULE_KERNEL_ATTENTIONTILE_H
