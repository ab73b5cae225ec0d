//===- TileLayout.cpp - Register tiles: unit and repetition ---------------===//

#include "attn/Layout/TileLayout.h"
#include "Errors.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/MathExtras.h"
#include <map>

using namespace mlir::attn;
using llvm::ArrayRef;
using llvm::Expected;
using llvm::SmallVector;
using llvm::StringRef;

/// A register number is a 32-bit value; tiles are far smaller.
static constexpr int64_t maxRegisters = 1 << 16;

std::string mlir::attn::dimName(unsigned index) {
  return ("dim" + llvm::Twine(index)).str();
}

/// Restricts a layout with all warps of its unit to a number of them.
llvm::Error TileLayout::setNumWarps(unsigned numWarps) {
  unsigned all = 1u << warpBits();
  if (numWarps > all || 2 * numWarps <= all)
    return makeError("expected more than half of the unit's {0} warps, got {1}",
                     all, numWarps);
  warps = numWarps;
  if (hasAllWarps())
    return llvm::Error::success();
  unsigned low = partialWarpBit();
  Coords unit = unitShape(), step = warpBasis(low);
  for (unsigned bit = low; bit < warpBits(); ++bit)
    for (unsigned dim = 0; dim < rank(); ++dim)
      if (warpBasis(bit)[dim] != step[dim] << (bit - low))
        return makeError("expected warp bits {0} to {1} of {2} warps to count "
                         "along one dimension",
                         low, warpBits() - 1, numWarps);
  auto moves = [](int64_t coord) { return coord != 0; };
  const int64_t *along = llvm::find_if(step, moves);
  if (along == step.end())
    return llvm::Error::success();
  unsigned dim = along - step.begin();
  // Above the bits that all combinations exist of nothing else moves.
  bool isAlone = llvm::count_if(step, moves) == 1 &&
                 unit[dim] == *along << (warpBits() - low);
  for (const LinearLayout::Space &axis : unitLayout.axes())
    for (unsigned bit = 0; bit < axis.bits; ++bit)
      isAlone &= (axis.name == kWarpAxis && bit >= low) ||
                 unitLayout.basis(axis.name, bit)[dim] < *along;
  if (!isAlone)
    return makeError("expected {0} warps to be alone at the end of dim{1}",
                     numWarps, dim);
  if (llvm::any_of(reps, [&](const Repetition &rep) { return rep.dim == dim; }))
    return makeError("expected no repetition along dim{0}, which {1} warps "
                     "share, no power of two",
                     dim, numWarps);
  extents[dim] = *along * (warps >> low);
  return llvm::Error::success();
}

Expected<TileLayout> TileLayout::get(const LinearLayout &unit,
                                     ArrayRef<Repetition> repetitions,
                                     unsigned numWarps) {
  static constexpr StringRef axisNames[] = {kRegisterAxis, kLaneAxis, kWarpAxis,
                                            kBlockAxis};
  for (auto [index, dim] : llvm::enumerate(unit.dims()))
    if (dim.name != dimName(index))
      return makeError("expected dimension {0} to be 'dim{0}', got '{1}'",
                       index, dim.name);
  for (const LinearLayout::Space &axis : unit.axes())
    if (!llvm::is_contained(axisNames, axis.name))
      return makeError("expected an axis among register, lane, warp, block, "
                       "got '{0}'",
                       axis.name);
  for (auto [name, limit] : {std::pair(StringRef(kRegisterAxis), maxRegisters),
                             std::pair(StringRef(kLaneAxis), int64_t(numLanes)),
                             std::pair(StringRef(kWarpAxis), int64_t(32)),
                             std::pair(StringRef(kBlockAxis), int64_t(16))})
    if (unit.axisSize(name) > limit)
      return makeError("expected at most {0} {1}s, got {2}", limit, name,
                       unit.axisSize(name));
  if (!unit.isSurjective())
    return makeError("expected the unit to hold every element, got rank {0} of "
                     "{1} bits",
                     unit.rank(), unit.totalOutputBits());

  TileLayout result;
  SmallVector<std::string> names;
  SmallVector<std::pair<StringRef, int64_t>> dims;
  for (const LinearLayout::Space &dim : unit.dims())
    dims.emplace_back(dim.name, dim.size());
  Expected<LinearLayout> normalised = LinearLayout::get(dims);
  if (!normalised)
    return normalised.takeError();
  for (StringRef name : axisNames) {
    SmallVector<Coords> bases;
    for (unsigned bit = 0, e = unit.axisBits(name); bit < e; ++bit)
      bases.push_back(unit.basis(name, bit));
    if (name == kLaneAxis)
      bases.resize(laneBits, Coords(dims.size(), 0));
    if (llvm::Error error = normalised->addAxis(name, bases))
      return std::move(error);
  }
  result.unitLayout = std::move(*normalised);
  for (const LinearLayout::Space &dim : unit.dims())
    result.extents.push_back(dim.size());
  int64_t registers = unit.axisSize(kRegisterAxis);
  for (const Repetition &rep : repetitions) {
    if (rep.dim >= dims.size())
      return makeError("expected a repetition along one of {0} dimensions, got "
                       "dim{1}",
                       dims.size(), rep.dim);
    if (rep.count < 1)
      return makeError("expected a positive repetition count, got {0}",
                       rep.count);
    if (rep.count > maxRegisters || registers * rep.count > maxRegisters)
      return makeError("expected at most {0} registers, got {1} x {2}",
                       maxRegisters, registers, rep.count);
    if (rep.count == 1)
      continue;
    result.reps.push_back(rep);
    result.extents[rep.dim] *= rep.count;
    registers *= rep.count;
  }
  result.registers = registers;
  if (llvm::Error error =
          result.setNumWarps(numWarps ? numWarps : 1u << result.warpBits()))
    return std::move(error);
  return result;
}

Coords TileLayout::unitShape() const {
  Coords result;
  for (const LinearLayout::Space &dim : unitLayout.dims())
    result.push_back(dim.size());
  return result;
}

int64_t TileLayout::numElements() const {
  int64_t result = 1;
  for (int64_t extent : extents)
    result *= extent;
  return result;
}

Coords TileLayout::registerCoords(unsigned reg) const {
  assert(reg < registers && "register outside the tile");
  Coords stride = unitShape();
  Coords result = unitLayout.unflattenOutput(
      unitLayout.applyFlat(reg % numUnitRegisters()));
  int64_t rest = reg / numUnitRegisters();
  for (const Repetition &rep : reps) {
    result[rep.dim] += stride[rep.dim] * (rest % rep.count);
    rest /= rep.count;
    stride[rep.dim] *= rep.count;
  }
  return result;
}

Coords TileLayout::coords(const TileIndex &index) const {
  Coords result = registerCoords(index.reg);
  Coords thread = unitLayout.apply({0, index.lane, index.warp, index.block});
  for (auto [coord, part] : llvm::zip_equal(result, thread))
    coord ^= part;
  return result;
}

Coords TileLayout::laneBasis(unsigned bit) const {
  return unitLayout.basis(kLaneAxis, bit);
}
Coords TileLayout::warpBasis(unsigned bit) const {
  return unitLayout.basis(kWarpAxis, bit);
}
Coords TileLayout::blockBasis(unsigned bit) const {
  return unitLayout.basis(kBlockAxis, bit);
}

SmallVector<int64_t, 5> TileLayout::laneBases(unsigned dim) const {
  SmallVector<int64_t, 5> result;
  for (unsigned bit = 0; bit < laneBits; ++bit)
    result.push_back(laneBasis(bit)[dim]);
  return result;
}
SmallVector<int64_t, 4> TileLayout::warpBases(unsigned dim) const {
  SmallVector<int64_t, 4> result;
  for (unsigned bit = 0; bit < warpBits(); ++bit)
    result.push_back(warpBasis(bit)[dim]);
  return result;
}
SmallVector<int64_t, 2> TileLayout::blockBases(unsigned dim) const {
  SmallVector<int64_t, 2> result;
  for (unsigned bit = 0; bit < blockBits(); ++bit)
    result.push_back(blockBasis(bit)[dim]);
  return result;
}

bool TileLayout::isDisjoint() const {
  // Bits that several registers set are one source; all other axes count bit
  // by bit.
  uint64_t seen = 0;
  for (uint64_t column : unitLayout.flatBases(kRegisterAxis))
    seen |= column;
  for (StringRef axis : {kLaneAxis, kWarpAxis, kBlockAxis})
    for (uint64_t column : unitLayout.flatBases(axis)) {
      if (seen & column)
        return false;
      seen |= column;
    }
  return true;
}

std::optional<TileIndex> TileLayout::find(ArrayRef<int64_t> coords) const {
  if (coords.size() != rank())
    return std::nullopt;
  Coords unit = unitShape(), inUnit, index;
  for (unsigned dim = 0; dim < rank(); ++dim) {
    if (coords[dim] < 0 || coords[dim] >= extents[dim])
      return std::nullopt;
    inUnit.push_back(coords[dim] % unit[dim]);
    index.push_back(coords[dim] / unit[dim]);
  }
  Expected<LinearLayout> inverse = unitLayout.pseudoInvert();
  if (!inverse) {
    llvm::consumeError(inverse.takeError());
    return std::nullopt;
  }
  Coords place = inverse->apply(inUnit);
  int64_t reg = place[0], scale = numUnitRegisters();
  for (const Repetition &rep : reps) {
    reg += scale * (index[rep.dim] % rep.count);
    index[rep.dim] /= rep.count;
    scale *= rep.count;
  }
  return TileIndex{unsigned(reg), unsigned(place[1]), unsigned(place[2]),
                   unsigned(place[3])};
}

unsigned TileLayout::broadcastMask(StringRef axis) const {
  unsigned mask = 0;
  for (auto [bit, column] : llvm::enumerate(unitLayout.flatBases(axis)))
    if (!column)
      mask |= 1u << bit;
  return mask;
}

unsigned TileLayout::contiguity(unsigned dim) const {
  unsigned result = 1;
  uint64_t threadBits = 0;
  for (StringRef axis : {kLaneAxis, kWarpAxis, kBlockAxis})
    for (unsigned bit = 0, e = unitLayout.axisBits(axis); bit < e; ++bit)
      threadBits |= unitLayout.basis(axis, bit)[dim];
  for (unsigned width = 2; registers % width == 0; width *= 2) {
    if (threadBits & (width - 1))
      break;
    bool contiguous = true;
    for (unsigned reg = 0; reg < registers && contiguous; ++reg) {
      Coords expected = registerCoords(reg - reg % width);
      contiguous = expected[dim] % width == 0;
      expected[dim] += reg % width;
      contiguous &= registerCoords(reg) == expected;
    }
    if (!contiguous)
      break;
    result = width;
  }
  return result;
}

static Coords dropDim(ArrayRef<int64_t> coords, unsigned dim) {
  Coords result(coords.begin(), coords.end());
  result.erase(result.begin() + dim);
  return result;
}

Expected<TileLayout> TileLayout::slice(unsigned dim) const {
  if (dim >= rank())
    return makeError("expected a dimension below {0}, got {1}", rank(), dim);
  SmallVector<std::string> names;
  SmallVector<std::pair<StringRef, int64_t>> dims;
  for (unsigned i = 0; i + 1 < rank(); ++i)
    names.push_back(dimName(i));
  Coords shape = dropDim(unitShape(), dim);
  for (auto [name, size] : llvm::zip_equal(names, shape))
    dims.emplace_back(name, size);
  Expected<LinearLayout> sliced = LinearLayout::get(dims);
  if (!sliced)
    return sliced.takeError();
  // Registers that would repeat what other registers of the thread hold go.
  SmallVector<StringRef> kept;
  for (unsigned i = 0; i < rank(); ++i)
    if (i != dim)
      kept.push_back(unitLayout.dims()[i].name);
  uint64_t copies =
      unitLayout.sublayout({kRegisterAxis}, kept).freeMask(kRegisterAxis);
  for (const LinearLayout::Space &axis : unitLayout.axes()) {
    SmallVector<Coords> bases;
    for (unsigned bit = 0; bit < axis.bits; ++bit)
      if (axis.name != kRegisterAxis || !((copies >> bit) & 1))
        bases.push_back(dropDim(unitLayout.basis(axis.name, bit), dim));
    if (llvm::Error error = sliced->addAxis(axis.name, bases))
      return std::move(error);
  }
  SmallVector<Repetition> keptReps;
  for (const Repetition &rep : reps)
    if (rep.dim != dim)
      keptReps.push_back({rep.dim - (rep.dim > dim), rep.count});
  return get(*sliced, keptReps, warps);
}

SmallVector<unsigned> TileLayout::sliceRegisters(unsigned dim) const {
  Expected<TileLayout> sliced = slice(dim);
  if (!sliced) {
    llvm::consumeError(sliced.takeError());
    return {};
  }
  std::map<Coords, unsigned> registerAt;
  for (unsigned reg = 0; reg < sliced->numRegisters(); ++reg)
    registerAt.try_emplace(sliced->registerCoords(reg), reg);
  SmallVector<unsigned> result;
  for (unsigned reg = 0; reg < registers; ++reg)
    result.push_back(registerAt.at(dropDim(registerCoords(reg), dim)));
  return result;
}

template <unsigned N>
static SmallVector<unsigned, N> nonZero(ArrayRef<int64_t> bases) {
  SmallVector<unsigned, N> result;
  for (auto [bit, basis] : llvm::enumerate(bases))
    if (basis)
      result.push_back(bit);
  return result;
}

SmallVector<unsigned, 5> TileLayout::laneBitsAlong(unsigned dim) const {
  return nonZero<5>(laneBases(dim));
}
SmallVector<unsigned, 4> TileLayout::warpBitsAlong(unsigned dim) const {
  return nonZero<4>(warpBases(dim));
}
SmallVector<unsigned, 2> TileLayout::blockBitsAlong(unsigned dim) const {
  return nonZero<2>(blockBases(dim));
}

bool TileLayout::isSeparable(unsigned dim) const {
  if (!hasAllWarps() && warpBasis(partialWarpBit())[dim] != 0)
    return false;
  for (StringRef axis : {kLaneAxis, kWarpAxis, kBlockAxis})
    for (unsigned bit = 0, e = unitLayout.axisBits(axis); bit < e; ++bit) {
      Coords basis = unitLayout.basis(axis, bit);
      if (basis[dim] && llvm::any_of(dropDim(basis, dim),
                                     [](int64_t coord) { return coord != 0; }))
        return false;
    }
  return true;
}

/// True when `order` holds each of 0 ... size-1 once.
static bool isPermutation(ArrayRef<unsigned> order, unsigned size) {
  SmallVector<bool> seen(size, false);
  for (unsigned index : order) {
    if (index >= size || seen[index])
      return false;
    seen[index] = true;
  }
  return order.size() == size;
}

Expected<TileLayout>
TileLayout::permuteRegisters(ArrayRef<unsigned> bits,
                             ArrayRef<unsigned> order) const {
  if (!isPermutation(bits, unitLayout.axisBits(kRegisterAxis)))
    return makeError("expected a permutation of {0} register bits",
                     unitLayout.axisBits(kRegisterAxis));
  if (!isPermutation(order, reps.size()))
    return makeError("expected a permutation of {0} repetitions", reps.size());
  for (unsigned i = 0; i < order.size(); ++i)
    for (unsigned j = i + 1; j < order.size(); ++j)
      if (order[j] < order[i] && reps[order[i]].dim == reps[order[j]].dim)
        return makeError("expected repetitions of dim{0} to keep their order",
                         reps[order[i]].dim);
  SmallVector<std::pair<StringRef, int64_t>> dims;
  for (const LinearLayout::Space &dim : unitLayout.dims())
    dims.emplace_back(dim.name, dim.size());
  Expected<LinearLayout> unit = LinearLayout::get(dims);
  if (!unit)
    return unit.takeError();
  for (const LinearLayout::Space &axis : unitLayout.axes()) {
    SmallVector<Coords> bases;
    for (unsigned bit = 0; bit < axis.bits; ++bit)
      bases.push_back(unitLayout.basis(
          axis.name, axis.name == kRegisterAxis ? bits[bit] : bit));
    if (llvm::Error error = unit->addAxis(axis.name, bases))
      return std::move(error);
  }
  SmallVector<Repetition> newReps;
  for (unsigned index : order)
    newReps.push_back(reps[index]);
  return get(*unit, newReps, warps);
}

TileLayout TileLayout::transposed(ArrayRef<unsigned> order) const {
  assert(isPermutation(order, rank()) && "one entry for each dimension");
  TileLayout result = *this;
  LinearLayout permuted = unitLayout.permuteDims(order);
  // Through names that cannot clash with those still to be replaced.
  for (unsigned i = 0; i < rank(); ++i)
    permuted = permuted.renameDim(dimName(order[i]), "new" + dimName(i));
  for (unsigned i = 0; i < rank(); ++i) {
    permuted = permuted.renameDim("new" + dimName(i), dimName(i));
    result.extents[i] = extents[order[i]];
    for (auto [rep, old] : llvm::zip_equal(result.reps, reps))
      if (old.dim == order[i])
        rep.dim = i;
  }
  result.unitLayout = permuted;
  return result;
}

TileLayout TileLayout::canonical() const {
  SmallVector<Repetition> merged;
  for (const Repetition &rep : reps) {
    if (!merged.empty() && merged.back().dim == rep.dim)
      merged.back().count *= rep.count;
    else
      merged.push_back(rep);
  }
  LinearLayout unit = unitLayout;
  SmallVector<Repetition> left;
  for (const Repetition &rep : merged) {
    if (!left.empty()) {
      left.push_back(rep);
      continue;
    }
    int64_t power = int64_t(1) << llvm::countr_zero(uint64_t(rep.count));
    Expected<LinearLayout> grown = unit.product(
        LinearLayout::identity(kRegisterAxis, power, dimName(rep.dim)));
    if (!grown) {
      llvm::consumeError(grown.takeError());
      return *this;
    }
    unit = std::move(*grown);
    if (rep.count > power)
      left.push_back({rep.dim, rep.count / power});
  }
  Expected<TileLayout> result = get(unit, left, warps);
  if (!result) {
    llvm::consumeError(result.takeError());
    return *this;
  }
  return *result;
}

std::optional<SmallVector<unsigned>>
TileLayout::registersFrom(const TileLayout &source) const {
  if (extents != source.extents || warps != source.warps ||
      blockBits() != source.blockBits())
    return std::nullopt;
  for (StringRef axis : {kLaneAxis, kWarpAxis, kBlockAxis})
    for (unsigned bit = 0, e = unitLayout.axisBits(axis); bit < e; ++bit)
      if (unitLayout.basis(axis, bit) != source.unitLayout.basis(axis, bit))
        return std::nullopt;
  std::map<Coords, unsigned> registerAt;
  for (unsigned reg = 0; reg < source.registers; ++reg)
    registerAt.try_emplace(source.registerCoords(reg), reg);
  SmallVector<unsigned> result;
  for (unsigned reg = 0; reg < registers; ++reg) {
    auto place = registerAt.find(registerCoords(reg));
    if (place == registerAt.end())
      return std::nullopt;
    result.push_back(place->second);
  }
  return result;
}

bool TileLayout::sameUpToRegisters(const TileLayout &other) const {
  return registersFrom(other) && other.registersFrom(*this);
}
