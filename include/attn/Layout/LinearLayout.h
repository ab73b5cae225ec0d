//===- LinearLayout.h - Labelled linear maps over F2 ------------*- C++ -*-===//
//
// A LinearLayout maps the bits of named input axes (register, lane, warp,
// block, or any other) to the bits of named output dimensions (dim0, dim1,
// offset, ...). All sizes are powers of two. The map is linear over F2: the
// value of an input is the XOR of the bases of its set bits. Everything that
// the compiler knows about where an element lives is computed from such maps.
//
// Bits are numbered from the least significant one. Where several axes or
// dimensions are flattened into one integer, the first one named is the least
// significant.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LAYOUT_LINEARLAYOUT_H
#define ATTN_LAYOUT_LINEARLAYOUT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdint>
#include <optional>
#include <string>

namespace mlir::attn {

/// One coordinate for each dimension, in elements.
using Coords = llvm::SmallVector<int64_t, 2>;

/// A linear map over F2 between labelled bit spaces.
class LinearLayout {
public:
  /// A labelled input or output space of 2^bits values.
  struct Space {
    std::string name;
    unsigned bits = 0;

    int64_t size() const { return int64_t(1) << bits; }
    bool operator==(const Space &other) const {
      return name == other.name && bits == other.bits;
    }
  };

  /// The largest number of output bits (and of input bits) of one layout.
  static constexpr unsigned maxBits = 62;

  /// The layout without inputs and outputs.
  LinearLayout() = default;

  /// A layout with the given output dimensions and no input yet; each size is
  /// a power of two.
  static llvm::Expected<LinearLayout>
  get(llvm::ArrayRef<std::pair<llvm::StringRef, int64_t>> dims);

  /// Appends an input axis with one basis for each of its bits. A basis has one
  /// coordinate for each output dimension, inside that dimension's size.
  llvm::Error addAxis(llvm::StringRef name, llvm::ArrayRef<Coords> bases);

  /// axis i -> dim i, for 0 <= i < size (a power of two).
  static LinearLayout identity(llvm::StringRef axis, int64_t size,
                               llvm::StringRef dim);
  /// axis i -> dim 0 (a broadcast), for 0 <= i < size (a power of two).
  static LinearLayout zeros(llvm::StringRef axis, int64_t size,
                            llvm::StringRef dim);
  /// axis i -> dim i * stride, with stride a power of two.
  static LinearLayout strided(llvm::StringRef axis, int64_t size,
                              int64_t stride, llvm::StringRef dim);

  llvm::ArrayRef<Space> axes() const { return inputs; }
  llvm::ArrayRef<Space> dims() const { return outputs; }
  /// Number of bits of an axis or a dimension; 0 for a name that is absent.
  unsigned axisBits(llvm::StringRef name) const;
  unsigned dimBits(llvm::StringRef name) const;
  int64_t axisSize(llvm::StringRef name) const {
    return int64_t(1) << axisBits(name);
  }
  int64_t dimSize(llvm::StringRef name) const {
    return int64_t(1) << dimBits(name);
  }
  bool hasAxis(llvm::StringRef name) const;
  bool hasDim(llvm::StringRef name) const;
  unsigned totalInputBits() const { return columns.size(); }
  unsigned totalOutputBits() const;

  /// The image of one input bit, one coordinate for each dimension.
  Coords basis(llvm::StringRef axis, unsigned bit) const;
  /// The image of one input bit along one dimension.
  int64_t basisAlong(llvm::StringRef axis, unsigned bit,
                     llvm::StringRef dim) const;
  /// The images of all bits of an axis, each flattened to one integer.
  llvm::ArrayRef<uint64_t> flatBases(llvm::StringRef axis) const;

  /// The value of the map; `indices` has one entry for each axis.
  Coords apply(llvm::ArrayRef<int64_t> indices) const;
  /// The value of the map on flattened inputs, flattened.
  uint64_t applyFlat(uint64_t input) const;
  /// Conversions between one integer and one coordinate per space.
  uint64_t flattenInput(llvm::ArrayRef<int64_t> indices) const;
  Coords unflattenInput(uint64_t input) const;
  uint64_t flattenOutput(llvm::ArrayRef<int64_t> coords) const;
  Coords unflattenOutput(uint64_t output) const;

  /// Direct sum. Axes and dimensions that both sides name are stacked: bits of
  /// `this` are the less significant ones.
  llvm::Expected<LinearLayout> product(const LinearLayout &outer) const;
  /// `outer` after `this`; the dimensions of `this` are the axes of `outer`, in
  /// any order, and must not be larger.
  llvm::Expected<LinearLayout> compose(const LinearLayout &outer) const;
  /// The inverse map; an error unless the map is a bijection.
  llvm::Expected<LinearLayout> invert() const;
  /// A right inverse of a surjective map: for each output the preimage in which
  /// all free input bits are zero (free bits as in freeMask). An error unless
  /// the map is surjective.
  llvm::Expected<LinearLayout> pseudoInvert() const;
  /// The map x -> other's preimage of this(x): where `other` keeps the element
  /// that this layout has at x. Both have the same dimensions; an error when
  /// `other` does not hold an element of this layout.
  llvm::Expected<LinearLayout>
  invertAndCompose(const LinearLayout &other) const;

  /// The layout q with `*this == inner.product(q)`, when it exists. Spaces of q
  /// are those of `this`, those that inner uses up keep 0 bits.
  std::optional<LinearLayout> divideLeft(const LinearLayout &inner) const;
  /// The layout q with `*this == q.product(outer)`, when it exists.
  std::optional<LinearLayout> divideRight(const LinearLayout &outer) const;
  /// Drops the given dimensions that the given axes map onto by the identity
  /// and that no other axis reaches: the rest of the map, when this is so.
  std::optional<LinearLayout>
  quotient(llvm::ArrayRef<llvm::StringRef> names) const;
  /// Only the given axes and dimensions; other coordinates are dropped.
  LinearLayout sublayout(llvm::ArrayRef<llvm::StringRef> axisNames,
                         llvm::ArrayRef<llvm::StringRef> dimNames) const;

  /// Dimensions in another order (a permutation of indices), axes likewise.
  LinearLayout permuteDims(llvm::ArrayRef<unsigned> order) const;
  LinearLayout permuteAxes(llvm::ArrayRef<unsigned> order) const;
  /// The same bits under other dimensions or axes of the same total size.
  llvm::Expected<LinearLayout>
  reshapeDims(llvm::ArrayRef<std::pair<llvm::StringRef, int64_t>> dims) const;
  llvm::Expected<LinearLayout>
  reshapeAxes(llvm::ArrayRef<std::pair<llvm::StringRef, int64_t>> axes) const;
  LinearLayout flattenDims(llvm::StringRef name) const;
  LinearLayout flattenAxes(llvm::StringRef name) const;
  LinearLayout renameDim(llvm::StringRef from, llvm::StringRef to) const;
  LinearLayout renameAxis(llvm::StringRef from, llvm::StringRef to) const;

  unsigned rank() const;
  bool isSurjective() const { return rank() == totalOutputBits(); }
  bool isInjective() const { return rank() == totalInputBits(); }
  bool isInvertible() const { return isSurjective() && isInjective(); }
  /// Bits of an axis that add nothing to the image of the bits before them
  /// (all earlier axes included): values that differ only there are copies.
  uint64_t freeMask(llvm::StringRef axis) const;

  bool operator==(const LinearLayout &other) const {
    return inputs == other.inputs && outputs == other.outputs &&
           columns == other.columns;
  }
  bool operator!=(const LinearLayout &other) const { return !(*this == other); }

  /// `{register: [0,1] [8,0]; lane: [0,2] -> dim0: 16, dim1: 4}`.
  void print(llvm::raw_ostream &os) const;
  std::string str() const;
  /// Reads what print writes; white space is free.
  static llvm::Expected<LinearLayout> parse(llvm::StringRef text);

private:
  std::pair<unsigned, unsigned> axisRange(llvm::StringRef name) const;
  unsigned dimShift(unsigned index) const;
  std::optional<unsigned> axisIndex(llvm::StringRef name) const;
  std::optional<unsigned> dimIndex(llvm::StringRef name) const;

  llvm::SmallVector<Space, 4> inputs;
  llvm::SmallVector<Space, 2> outputs;
  /// Images of all input bits, axis after axis, flattened.
  llvm::SmallVector<uint64_t, 16> columns;
};

inline llvm::raw_ostream &operator<<(llvm::raw_ostream &os,
                                     const LinearLayout &layout) {
  layout.print(os);
  return os;
}

} // namespace mlir::attn

#endif // ATTN_LAYOUT_LINEARLAYOUT_H
