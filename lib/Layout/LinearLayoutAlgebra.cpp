//===- LinearLayoutAlgebra.cpp - Products, inverses, quotients ------------===//
//
// Linear algebra over F2 on flattened bit vectors. Elimination keeps, for each
// pivot, the combination of input bits that produces it, so that one pass gives
// rank, free bits and preimages.
//
//===----------------------------------------------------------------------===//

#include "Errors.h"
#include "attn/Layout/LinearLayout.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir::attn;
using llvm::ArrayRef;
using llvm::Expected;
using llvm::SmallVector;
using llvm::StringRef;

namespace {
/// Incremental elimination of column vectors.
class Elimination {
public:
  /// Adds the image of the next input bit; false when it depends on the images
  /// before it (the bit is free).
  bool add(uint64_t vector) {
    uint64_t combination = uint64_t(1) << count++;
    reduce(vector, combination);
    if (!vector)
      return false;
    pivots.push_back({vector, combination});
    return true;
  }

  /// The input with zero free bits that maps to `vector`.
  std::optional<uint64_t> preimage(uint64_t vector) const {
    uint64_t combination = 0;
    reduce(vector, combination);
    if (vector)
      return std::nullopt;
    return combination;
  }

private:
  struct Pivot {
    uint64_t vector;
    uint64_t combination;
  };

  // Pivots are kept so that each has a leading bit of its own that pivots added
  // later do not contain; hence reduction in the order of insertion suffices.
  void reduce(uint64_t &vector, uint64_t &combination) const {
    for (const Pivot &pivot : pivots)
      if (vector & llvm::bit_floor(pivot.vector)) {
        vector ^= pivot.vector;
        combination ^= pivot.combination;
      }
  }

  SmallVector<Pivot, 16> pivots;
  unsigned count = 0;
};
} // namespace

static Elimination eliminate(ArrayRef<uint64_t> columns) {
  Elimination result;
  for (uint64_t column : columns)
    result.add(column);
  return result;
}

unsigned LinearLayout::rank() const {
  Elimination elimination;
  unsigned result = 0;
  for (uint64_t column : columns)
    result += elimination.add(column);
  return result;
}

uint64_t LinearLayout::freeMask(StringRef axis) const {
  Elimination elimination;
  auto [first, bits] = axisRange(axis);
  uint64_t mask = 0;
  for (auto [index, column] : llvm::enumerate(columns)) {
    bool added = elimination.add(column);
    if (!added && index >= first && index < first + bits)
      mask |= uint64_t(1) << (index - first);
  }
  return mask;
}

Expected<LinearLayout> LinearLayout::product(const LinearLayout &outer) const {
  LinearLayout result;
  result.inputs = inputs;
  result.outputs = outputs;
  auto stack = [](llvm::SmallVectorImpl<Space> &spaces, ArrayRef<Space> more) {
    for (const Space &space : more) {
      auto *same = llvm::find_if(
          spaces, [&](const Space &other) { return other.name == space.name; });
      if (same == spaces.end())
        spaces.push_back(space);
      else
        same->bits += space.bits;
    }
  };
  stack(result.inputs, outer.inputs);
  stack(result.outputs, outer.outputs);
  unsigned inputBits = columns.size() + outer.columns.size();
  unsigned outputBits = totalOutputBits() + outer.totalOutputBits();
  if (inputBits > maxBits || outputBits > maxBits)
    return makeError("expected at most {0} bits in a product, got {1}", maxBits,
                     std::max(inputBits, outputBits));
  auto embed = [&](const LinearLayout &part, uint64_t column, bool isOuter) {
    Coords coords(result.outputs.size(), 0);
    for (auto [dim, coord] :
         llvm::zip_equal(part.outputs, part.unflattenOutput(column)))
      coords[*result.dimIndex(dim.name)] = coord
                                           << (isOuter ? dimBits(dim.name) : 0);
    return result.flattenOutput(coords);
  };
  for (const Space &axis : result.inputs) {
    for (uint64_t column : flatBases(axis.name))
      result.columns.push_back(embed(*this, column, /*isOuter=*/false));
    for (uint64_t column : outer.flatBases(axis.name))
      result.columns.push_back(embed(outer, column, /*isOuter=*/true));
  }
  return result;
}

Expected<LinearLayout> LinearLayout::compose(const LinearLayout &outer) const {
  for (const Space &dim : outputs)
    if (dim.bits > outer.axisBits(dim.name))
      return makeError(
          "expected dimension '{0}' of size {1} to fit the axis, got size {2}",
          dim.name, dim.size(), outer.axisSize(dim.name));
  LinearLayout result;
  result.inputs = inputs;
  result.outputs = outer.outputs;
  for (uint64_t column : columns) {
    Coords coords = unflattenOutput(column);
    Coords indices(outer.inputs.size(), 0);
    for (auto [dim, coord] : llvm::zip_equal(outputs, coords))
      if (std::optional<unsigned> index = outer.axisIndex(dim.name))
        indices[*index] = coord;
    result.columns.push_back(outer.applyFlat(outer.flattenInput(indices)));
  }
  return result;
}

Expected<LinearLayout> LinearLayout::invert() const {
  if (!isInvertible())
    return makeError(
        "expected a bijection to invert, got rank {0} of {1} input "
        "and {2} output bits",
        rank(), totalInputBits(), totalOutputBits());
  return pseudoInvert();
}

Expected<LinearLayout> LinearLayout::pseudoInvert() const {
  Elimination elimination = eliminate(columns);
  LinearLayout result;
  result.inputs.assign(outputs.begin(), outputs.end());
  result.outputs.assign(inputs.begin(), inputs.end());
  for (unsigned bit = 0, e = totalOutputBits(); bit < e; ++bit) {
    std::optional<uint64_t> preimage = elimination.preimage(uint64_t(1) << bit);
    if (!preimage)
      return makeError("expected a surjective map to invert, got rank {0} of "
                       "{1} output bits",
                       rank(), totalOutputBits());
    result.columns.push_back(*preimage);
  }
  return result;
}

Expected<LinearLayout>
LinearLayout::invertAndCompose(const LinearLayout &other) const {
  Elimination elimination = eliminate(other.columns);
  LinearLayout result;
  result.inputs = inputs;
  result.outputs.assign(other.inputs.begin(), other.inputs.end());
  if (outputs.size() != other.outputs.size())
    return makeError("expected {0} dimensions, got {1}", outputs.size(),
                     other.outputs.size());
  for (const Space &dim : outputs)
    if (!other.hasDim(dim.name) || other.dimBits(dim.name) < dim.bits)
      return makeError("expected dimension '{0}' of size {1} in both maps, got "
                       "size {2}",
                       dim.name, dim.size(), other.dimSize(dim.name));
  for (uint64_t column : columns) {
    Coords coords(outputs.size(), 0);
    for (auto [dim, coord] : llvm::zip_equal(outputs, unflattenOutput(column)))
      coords[*other.dimIndex(dim.name)] = coord;
    std::optional<uint64_t> preimage =
        elimination.preimage(other.flattenOutput(coords));
    if (!preimage)
      return makeError("expected every element in both maps, got one that the "
                       "inverted map does not hold");
    result.columns.push_back(*preimage);
  }
  return result;
}

std::optional<LinearLayout>
LinearLayout::divideLeft(const LinearLayout &inner) const {
  for (const Space &axis : inner.inputs)
    if (axis.bits > axisBits(axis.name))
      return std::nullopt;
  for (const Space &dim : inner.outputs)
    if (dim.bits > dimBits(dim.name))
      return std::nullopt;
  LinearLayout result;
  for (const Space &axis : inputs)
    result.inputs.push_back({axis.name, axis.bits - inner.axisBits(axis.name)});
  for (const Space &dim : outputs)
    result.outputs.push_back({dim.name, dim.bits - inner.dimBits(dim.name)});
  for (const Space &axis : inputs) {
    unsigned innerBits = inner.axisBits(axis.name);
    for (unsigned bit = 0; bit < axis.bits; ++bit) {
      Coords high;
      for (auto [dim, coord] :
           llvm::zip_equal(outputs, basis(axis.name, bit))) {
        int64_t low =
            bit < innerBits ? inner.basisAlong(axis.name, bit, dim.name) : 0;
        unsigned shift = inner.dimBits(dim.name);
        if ((coord & ((int64_t(1) << shift) - 1)) != low ||
            (bit < innerBits && (coord >> shift)))
          return std::nullopt;
        high.push_back(coord >> shift);
      }
      if (bit >= innerBits)
        result.columns.push_back(result.flattenOutput(high));
    }
  }
  return result;
}

std::optional<LinearLayout>
LinearLayout::divideRight(const LinearLayout &outer) const {
  for (const Space &axis : outer.inputs)
    if (axis.bits > axisBits(axis.name))
      return std::nullopt;
  for (const Space &dim : outer.outputs)
    if (dim.bits > dimBits(dim.name))
      return std::nullopt;
  LinearLayout result;
  for (const Space &axis : inputs)
    result.inputs.push_back({axis.name, axis.bits - outer.axisBits(axis.name)});
  for (const Space &dim : outputs)
    result.outputs.push_back({dim.name, dim.bits - outer.dimBits(dim.name)});
  for (const Space &axis : inputs) {
    unsigned innerBits = axis.bits - outer.axisBits(axis.name);
    for (unsigned bit = 0; bit < axis.bits; ++bit) {
      Coords low;
      for (auto [dim, coord] :
           llvm::zip_equal(outputs, basis(axis.name, bit))) {
        unsigned shift = dim.bits - outer.dimBits(dim.name);
        int64_t high =
            bit < innerBits
                ? 0
                : outer.basisAlong(axis.name, bit - innerBits, dim.name);
        int64_t rest = coord & ((int64_t(1) << shift) - 1);
        if ((coord >> shift) != high || (bit >= innerBits && rest))
          return std::nullopt;
        low.push_back(rest);
      }
      if (bit < innerBits)
        result.columns.push_back(result.flattenOutput(low));
    }
  }
  return result;
}

std::optional<LinearLayout>
LinearLayout::quotient(ArrayRef<StringRef> names) const {
  SmallVector<StringRef> axisNames, dimNames;
  for (StringRef name : names)
    if (!hasAxis(name) || !hasDim(name) || axisBits(name) != dimBits(name))
      return std::nullopt;
  for (const Space &axis : inputs) {
    bool dropped = llvm::is_contained(names, axis.name);
    if (!dropped)
      axisNames.push_back(axis.name);
    for (unsigned bit = 0; bit < axis.bits; ++bit)
      for (const Space &dim : outputs) {
        bool own = dropped && dim.name == axis.name;
        int64_t expected = own ? int64_t(1) << bit : 0;
        if ((dropped || llvm::is_contained(names, dim.name)) &&
            basisAlong(axis.name, bit, dim.name) != expected)
          return std::nullopt;
      }
  }
  for (const Space &dim : outputs)
    if (!llvm::is_contained(names, dim.name))
      dimNames.push_back(dim.name);
  return sublayout(axisNames, dimNames);
}

LinearLayout LinearLayout::sublayout(ArrayRef<StringRef> axisNames,
                                     ArrayRef<StringRef> dimNames) const {
  LinearLayout result;
  for (const Space &dim : outputs)
    if (llvm::is_contained(dimNames, dim.name))
      result.outputs.push_back(dim);
  for (const Space &axis : inputs) {
    if (!llvm::is_contained(axisNames, axis.name))
      continue;
    result.inputs.push_back(axis);
    for (uint64_t column : flatBases(axis.name)) {
      Coords kept;
      for (auto [dim, coord] :
           llvm::zip_equal(outputs, unflattenOutput(column)))
        if (llvm::is_contained(dimNames, dim.name))
          kept.push_back(coord);
      result.columns.push_back(result.flattenOutput(kept));
    }
  }
  return result;
}

LinearLayout LinearLayout::permuteDims(ArrayRef<unsigned> order) const {
  assert(order.size() == outputs.size() && "one entry for each dimension");
  LinearLayout result;
  result.inputs = inputs;
  for (unsigned index : order)
    result.outputs.push_back(outputs[index]);
  for (uint64_t column : columns) {
    Coords coords = unflattenOutput(column), permuted;
    for (unsigned index : order)
      permuted.push_back(coords[index]);
    result.columns.push_back(result.flattenOutput(permuted));
  }
  return result;
}

LinearLayout LinearLayout::permuteAxes(ArrayRef<unsigned> order) const {
  assert(order.size() == inputs.size() && "one entry for each axis");
  LinearLayout result;
  result.outputs = outputs;
  for (unsigned index : order) {
    result.inputs.push_back(inputs[index]);
    result.columns.append(flatBases(inputs[index].name).begin(),
                          flatBases(inputs[index].name).end());
  }
  return result;
}

/// Spaces of the given sizes that together have `bits` bits.
static Expected<SmallVector<LinearLayout::Space>>
makeSpaces(ArrayRef<std::pair<StringRef, int64_t>> spaces, unsigned bits) {
  SmallVector<LinearLayout::Space> result;
  unsigned total = 0;
  for (auto &[name, size] : spaces) {
    if (size < 1 || !llvm::isPowerOf2_64(size))
      return makeError("expected a power of two as size of '{0}', got {1}",
                       name, size);
    result.push_back({name.str(), unsigned(llvm::Log2_64(size))});
    total += result.back().bits;
  }
  if (total != bits)
    return makeError("expected {0} bits in the new shape, got {1}", bits,
                     total);
  return result;
}

Expected<LinearLayout>
LinearLayout::reshapeDims(ArrayRef<std::pair<StringRef, int64_t>> dims) const {
  auto spaces = makeSpaces(dims, totalOutputBits());
  if (!spaces)
    return spaces.takeError();
  LinearLayout result = *this;
  result.outputs.assign(spaces->begin(), spaces->end());
  return result;
}

Expected<LinearLayout>
LinearLayout::reshapeAxes(ArrayRef<std::pair<StringRef, int64_t>> axes) const {
  auto spaces = makeSpaces(axes, totalInputBits());
  if (!spaces)
    return spaces.takeError();
  LinearLayout result = *this;
  result.inputs.assign(spaces->begin(), spaces->end());
  return result;
}

LinearLayout LinearLayout::flattenDims(StringRef name) const {
  LinearLayout result = *this;
  result.outputs = {{name.str(), totalOutputBits()}};
  return result;
}

LinearLayout LinearLayout::flattenAxes(StringRef name) const {
  LinearLayout result = *this;
  result.inputs = {{name.str(), totalInputBits()}};
  return result;
}

LinearLayout LinearLayout::renameDim(StringRef from, StringRef to) const {
  LinearLayout result = *this;
  for (Space &dim : result.outputs)
    if (dim.name == from)
      dim.name = to.str();
  return result;
}

LinearLayout LinearLayout::renameAxis(StringRef from, StringRef to) const {
  LinearLayout result = *this;
  for (Space &axis : result.inputs)
    if (axis.name == from)
      axis.name = to.str();
  return result;
}
