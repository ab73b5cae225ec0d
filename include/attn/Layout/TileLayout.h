//===- TileLayout.h - Register tiles: unit and repetition -------*- C++ -*-===//
//
// Which thread holds which element of a tile in which register. A tile is a
// power-of-two *unit*, a LinearLayout from (register, lane, warp, block) to
// (dim0, dim1, ...), repeated any number of times along its dimensions; the
// repetitions are further registers. So a 128x96 tile is a 64x8 unit with
// repetition (dim1, 12), (dim0, 2), without padding.
//
// Register number = unit register + unit registers * (i0 + n0 * (i1 + n1 *
// ...)) where i0, i1, ... are the indices of the repetitions in list order.
// Coordinate along a dimension = unit coordinate + unit size * index, where
// several repetitions of one dimension nest, the first one innermost.
//
// The warps need not fill the unit: three warpgroups are 12 of the 16 warps of
// a unit of 256 rows, and hold a tile of 192 rows. The highest warp bits, which
// not all combinations exist of, then count in binary along the end of one
// dimension (or all make copies), so that a prefix of the warps holds a prefix
// of the unit and nothing is padded.
//
// Since the unit's size is a power of two, a coordinate is always the XOR of a
// register constant (registerCoords) and the bases of the set lane, warp and
// block bits. When no coordinate bit has two of these sources (isDisjoint), the
// XOR is a sum.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LAYOUT_TILELAYOUT_H
#define ATTN_LAYOUT_TILELAYOUT_H

#include "attn/Layout/LinearLayout.h"
#include "llvm/ADT/bit.h"

namespace mlir::attn {

/// Names of the axes of a TileLayout's unit.
inline constexpr llvm::StringLiteral kRegisterAxis("register");
inline constexpr llvm::StringLiteral kLaneAxis("lane");
inline constexpr llvm::StringLiteral kWarpAxis("warp");
inline constexpr llvm::StringLiteral kBlockAxis("block");

/// Name of tile dimension `index`: dim0, dim1, ...
std::string dimName(unsigned index);

/// A place where an element of a tile lives; block is the CTA in a CGA.
struct TileIndex {
  unsigned reg = 0;
  unsigned lane = 0;
  unsigned warp = 0;
  unsigned block = 0;

  bool operator==(const TileIndex &other) const {
    return reg == other.reg && lane == other.lane && warp == other.warp &&
           block == other.block;
  }
};

/// `count` copies of what is inside, along `dim`.
struct Repetition {
  unsigned dim = 0;
  int64_t count = 1;

  bool operator==(const Repetition &other) const {
    return dim == other.dim && count == other.count;
  }
};

/// The distribution of a tile over registers, lanes, warps and blocks.
class TileLayout {
public:
  static constexpr unsigned numLanes = 32;
  static constexpr unsigned laneBits = 5;

  TileLayout() = default;

  /// A layout from its unit and repetitions. The unit has the dimensions dim0,
  /// dim1, ... and axes among register, lane, warp, block; axes that are absent
  /// are added with size one, lanes that are absent hold copies. An error
  /// unless the unit is surjective and counts are positive. Repetitions of
  /// count one are dropped. `numWarps` is the number of warps that hold the
  /// tile, more than half of the unit's; 0 stands for all of them. Where it is
  /// no power of two, the bits above its lowest set one count along the end of
  /// one dimension, which has no repetitions, or hold copies.
  static llvm::Expected<TileLayout> get(const LinearLayout &unit,
                                        llvm::ArrayRef<Repetition> repetitions,
                                        unsigned numWarps = 0);

  const LinearLayout &unit() const { return unitLayout; }
  llvm::ArrayRef<Repetition> repetitions() const { return reps; }
  unsigned rank() const { return unitLayout.dims().size(); }
  /// Extent of each dimension, in elements.
  const Coords &shape() const { return extents; }
  Coords unitShape() const;
  int64_t numElements() const;

  /// Registers (elements) that each thread holds, copies included.
  unsigned numRegisters() const { return registers; }
  unsigned numUnitRegisters() const {
    return 1u << unitLayout.axisBits(kRegisterAxis);
  }
  /// Bits of a warp's number; not all combinations need be warps.
  unsigned warpBits() const { return unitLayout.axisBits(kWarpAxis); }
  unsigned blockBits() const { return unitLayout.axisBits(kBlockAxis); }
  unsigned numWarps() const { return warps; }
  unsigned numBlocks() const { return 1u << blockBits(); }

  /// The element that a place holds.
  Coords coords(const TileIndex &index) const;
  /// The element of register `reg` in lane 0 of warp 0 of block 0.
  Coords registerCoords(unsigned reg) const;
  /// What a bit of the lane, warp or block index adds (by XOR), for each
  /// dimension.
  Coords laneBasis(unsigned bit) const;
  Coords warpBasis(unsigned bit) const;
  Coords blockBasis(unsigned bit) const;
  /// The same along one dimension, for all bits.
  llvm::SmallVector<int64_t, 5> laneBases(unsigned dim) const;
  llvm::SmallVector<int64_t, 4> warpBases(unsigned dim) const;
  llvm::SmallVector<int64_t, 2> blockBases(unsigned dim) const;
  /// True when every coordinate bit has one source, so that coordinates are
  /// sums: register constant + lane part + warp part + block part.
  bool isDisjoint() const;

  /// A place of the element: the one with the lowest lane, warp, block and
  /// register among the copies. Nothing for coordinates outside the tile.
  std::optional<TileIndex> find(llvm::ArrayRef<int64_t> coords) const;

  /// Bits of the lane, warp or block index that only select a copy. Other
  /// threads hold the same element when they differ in these bits only.
  unsigned laneBroadcastMask() const { return broadcastMask(kLaneAxis); }
  unsigned warpBroadcastMask() const { return broadcastMask(kWarpAxis); }
  unsigned blockBroadcastMask() const { return broadcastMask(kBlockAxis); }

  /// The largest power of two n such that registers n*i ... n*i+n-1 hold
  /// elements that follow each other along `dim`, aligned to n.
  unsigned contiguity(unsigned dim) const;

  /// Layout of a reduction along `dim` in which every thread keeps its own
  /// result: the dimension is dropped, bits that moved only along it become
  /// broadcast bits, and registers that would be copies are removed.
  llvm::Expected<TileLayout> slice(unsigned dim) const;
  /// For each register, the register of slice(dim) that holds the element with
  /// the same remaining coordinates in the same thread. Reductions accumulate
  /// into it, broadcasts along `dim` read from it.
  llvm::SmallVector<unsigned> sliceRegisters(unsigned dim) const;
  /// Lane, warp and block bits that move along `dim`: what a reduction combines
  /// by a shuffle with lane XOR (1 << bit), through scratch, or through the
  /// cluster.
  llvm::SmallVector<unsigned, 5> laneBitsAlong(unsigned dim) const;
  llvm::SmallVector<unsigned, 4> warpBitsAlong(unsigned dim) const;
  llvm::SmallVector<unsigned, 2> blockBitsAlong(unsigned dim) const;
  /// True when lane, warp and block bits that move along `dim` move along
  /// nothing else, and all combinations of them exist, so that the butterflies
  /// of laneBitsAlong are a reduction.
  bool isSeparable(unsigned dim) const;

  /// The layout with its unit's register bits and its repetitions reordered:
  /// new bit i is old bit `bits[i]`, new repetition i is old `order[i]`.
  /// Repetitions of the same dimension must keep their order.
  llvm::Expected<TileLayout>
  permuteRegisters(llvm::ArrayRef<unsigned> bits,
                   llvm::ArrayRef<unsigned> order) const;
  /// The same layout with dimensions in another order.
  TileLayout transposed(llvm::ArrayRef<unsigned> order) const;
  /// The same layout, register for register, with as many repetitions as
  /// possible moved into the unit: powers of two of the counts, as long as the
  /// registers stay the fastest. Layouts with equal maps have equal canonical
  /// forms where their repetitions do not interleave.
  TileLayout canonical() const;

  /// For each register of this layout, the register of `source` that holds the
  /// same element in the same thread, for every thread; nothing when some
  /// element would have to move between threads. The identity means that values
  /// can be reused as they are.
  std::optional<llvm::SmallVector<unsigned>>
  registersFrom(const TileLayout &source) const;
  /// True when both hold the same elements in the same threads, in any register
  /// order.
  bool sameUpToRegisters(const TileLayout &other) const;

  bool operator==(const TileLayout &other) const {
    return unitLayout == other.unitLayout && reps == other.reps &&
           warps == other.warps;
  }
  bool operator!=(const TileLayout &other) const { return !(*this == other); }

  /// `{register: ... -> dim0: 16, dim1: 8} * (dim1 x 12, dim0 x 2)`, and
  /// ` of 12 warps` where these are not all of the unit's.
  void print(llvm::raw_ostream &os) const;
  std::string str() const;
  static llvm::Expected<TileLayout> parse(llvm::StringRef text);

private:
  unsigned broadcastMask(llvm::StringRef axis) const;
  /// Of the warp bits that not all combinations exist of, the lowest one.
  unsigned partialWarpBit() const { return llvm::countr_zero(warps); }
  bool hasAllWarps() const { return warps == 1u << warpBits(); }
  llvm::Error setNumWarps(unsigned numWarps);

  LinearLayout unitLayout;
  llvm::SmallVector<Repetition, 4> reps;
  Coords extents;
  unsigned registers = 0;
  unsigned warps = 1;
};

inline llvm::raw_ostream &operator<<(llvm::raw_ostream &os,
                                     const TileLayout &layout) {
  layout.print(os);
  return os;
}

} // namespace mlir::attn

#endif // ATTN_LAYOUT_TILELAYOUT_H
