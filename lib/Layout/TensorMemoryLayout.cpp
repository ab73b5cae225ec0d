//===- TensorMemoryLayout.cpp - Buffers in tensor memory ------------------===//

#include "attn/Layout/TensorMemoryLayout.h"
#include "Errors.h"
#include "llvm/Support/MathExtras.h"
#include <map>

using namespace mlir::attn;
using llvm::Error;
using llvm::Expected;
using llvm::SmallVector;

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

Expected<TensorMemoryLayout> TensorMemoryLayout::get(int64_t rows, int64_t cols,
                                                     unsigned elementBits) {
  if (rows != 64 && rows != 128)
    return makeError("expected 64 or 128 rows in tensor memory, got {0}", rows);
  if (elementBits != 8 && elementBits != 16 && elementBits != 32)
    return makeError(
        "expected elements of 8, 16 or 32 bits in tensor memory, got "
        "{0}",
        elementBits);
  int64_t packed = 32 / elementBits;
  if (cols < packed || cols % packed != 0)
    return makeError("expected rows that fill whole columns of 32 bits in "
                     "tensor memory, got {0} elements of {1} bits",
                     cols, elementBits);
  TensorMemoryLayout result;
  Expected<LinearLayout> unit =
      LinearLayout::get({{"lane", kTmemLanes}, {"byte", 4}});
  if (!unit)
    return unit.takeError();
  // Rows of a warp lie in the first lanes that it reaches.
  SmallVector<Coords> lanes, bytes;
  int64_t warpRows = rows / 4;
  for (int64_t row = 1; row < rows; row *= 2)
    lanes.push_back(
        {row < warpRows ? row : row / warpRows * kTmemWarpLanes, 0});
  for (int64_t byte = elementBits / 8; byte < 4; byte *= 2)
    bytes.push_back({0, byte});
  if (Error error = unit->addAxis("dim0", lanes))
    return std::move(error);
  if (Error error = unit->addAxis("dim1", bytes))
    return std::move(error);
  result.unitLayout = *unit;
  result.extents = {rows, cols};
  result.bits = elementBits;
  return result;
}

Expected<TensorMemoryLayout> TensorMemoryLayout::getHalves(int64_t cols) {
  constexpr int64_t rows = kTmemLanes / 2;
  bool isPart = cols > 1 && cols < kHalvedColumns && llvm::isPowerOf2_64(cols);
  if (!isPart && (cols < 1 || cols % kHalvedColumns != 0))
    return makeError("expected a multiple of {0} columns in halves, or a power "
                     "of two from 2 on, got {1}",
                     kHalvedColumns, cols);
  TensorMemoryLayout result;
  Expected<LinearLayout> unit =
      LinearLayout::get({{"lane", kTmemLanes}, {"byte", 4}});
  if (!unit)
    return unit.takeError();
  SmallVector<Coords> lanes;
  for (int64_t row = 1; row < rows; row *= 2)
    lanes.push_back({row, 0});
  if (Error error = unit->addAxis("dim0", lanes))
    return std::move(error);
  if (Error error = unit->addAxis("dim1", {}))
    return std::move(error);
  result.unitLayout = *unit;
  result.extents = {rows, cols};
  result.bits = 32;
  result.half = std::min(cols, kHalvedColumns) / 2;
  return result;
}

TmemCell TensorMemoryLayout::cell(int64_t row, int64_t col) const {
  if (half)
    return {row + col / half % 2 * extents[0],
            col / (2 * half) * half + col % half, 0};
  int64_t packed = elementsPerColumn();
  Coords place = unitLayout.apply({row, col % packed});
  return {place[0], col / packed, place[1]};
}

void TensorMemoryLayout::print(llvm::raw_ostream &os) const {
  os << bits << "-bit " << unitLayout << " * (1, " << columns() << " columns)";
  if (half)
    os << " in halves";
}

std::string TensorMemoryLayout::str() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(os);
  return text;
}

//===----------------------------------------------------------------------===//
// Loads and stores
//===----------------------------------------------------------------------===//

namespace {

/// Where a warp's words of 32 bits lie: (lane of the warp's, column).
using Place = std::pair<int64_t, int64_t>;

/// A tile as words in the cells of a buffer.
struct WordPlaces {
  unsigned elementsPerWord = 1;
  /// The words of lane 0, and what each bit of the lane adds.
  SmallVector<Place> words;
  SmallVector<Place, 5> lanes;
};

} // namespace

/// The tile's words, if each is a word of the buffer too.
static Expected<WordPlaces> findWords(const TileLayout &tile,
                                      const TensorMemoryLayout &buffer) {
  if (tile.rank() != 2 || tile.shape() != buffer.shape())
    return makeError("expected a tile of {0} x {1}", buffer.shape()[0],
                     buffer.shape()[1]);
  WordPlaces places;
  int64_t packed = buffer.elementsPerColumn();
  places.elementsPerWord = packed;
  bool ownLanes = tile.numWarps() == 4 && tile.blockBits() == 0;
  // A warp reaches the lanes from 32 times its number on.
  for (unsigned bit = 0; ownLanes && bit < tile.warpBits(); ++bit) {
    Coords basis = tile.warpBasis(bit);
    TmemCell cell = buffer.cell(basis[0], basis[1]);
    ownLanes = cell.column == 0 && cell.lane == kTmemWarpLanes << bit;
  }
  if (!ownLanes)
    return makeError("expected four warps, each with a fourth of the rows");
  bool whole = tile.contiguity(1) >= packed;
  auto place = [&](const Coords &coords) -> Place {
    whole &= coords[1] % packed == 0;
    TmemCell cell = buffer.cell(coords[0], coords[1]);
    return {cell.lane, cell.column};
  };
  for (unsigned reg = 0; reg < tile.numRegisters(); reg += packed)
    places.words.push_back(place(tile.registerCoords(reg)));
  for (unsigned bit = 0; bit < TileLayout::laneBits; ++bit)
    places.lanes.push_back(place(tile.laneBasis(bit)));
  if (!whole)
    return makeError("expected the {0} elements of a column of 32 bits in one "
                     "thread",
                     packed);
  return places;
}

/// The most repetitions of a shape (PTX ISA, tcgen05.ld): 128 registers.
static constexpr int64_t kMostRegisters = 128;

/// The instructions of `shape` that move the words; nothing if it has other
/// words in its threads.
static std::optional<TmemPlan> divide(const WordPlaces &places,
                                      TmemShape shape) {
  // One instruction without repetitions, over the least tile that has one. Its
  // columns are words.
  bool halves = shape == TmemShape::S16x32bx2;
  int64_t least = shape == TmemShape::S16x256b   ? 8
                  : shape == TmemShape::S16x128b ? 4
                  : shape == TmemShape::S32x32b  ? 1
                                                 : 2;
  bool wide = getTmemLanes(shape) == 32;
  TileLayout one =
      llvm::cantFail(tmemRegisters(shape, wide ? kTmemLanes : 64, least));
  TmemPlan plan;
  plan.shape = shape;
  plan.elementsPerWord = places.elementsPerWord;
  for (unsigned bit = 0; bit < TileLayout::laneBits; ++bit) {
    Coords basis = one.laneBasis(bit);
    auto [lane, column] = places.lanes[bit];
    if (halves && bit + 1 == TileLayout::laneBits) {
      plan.split = column;
      if (lane != 0 || column <= 0)
        return std::nullopt;
    } else if (lane != basis[0] || column != basis[1]) {
      return std::nullopt;
    }
  }
  // Repetitions are one unit of columns further on, those of 16x32bx2 one
  // column.
  int64_t step = halves ? 1 : least;
  std::map<Place, unsigned> left;
  for (auto [word, place] : llvm::enumerate(places.words))
    if (!left.try_emplace(place, word).second)
      return std::nullopt;
  int64_t most = kMostRegisters / one.numRegisters();
  while (!left.empty()) {
    auto [lane, column] = left.begin()->first;
    if (lane != 0 && lane != 16)
      return std::nullopt;
    // The words of the repetition `index`, or none.
    auto take = [&](int64_t index) -> SmallVector<unsigned> {
      SmallVector<unsigned> words;
      for (unsigned reg = 0; reg < one.numRegisters(); ++reg) {
        Coords at = one.registerCoords(reg);
        auto it = left.find({lane + at[0], column + index * step + at[1]});
        if (it == left.end())
          return {};
        words.push_back(it->second);
      }
      return words;
    };
    int64_t count = 0;
    while (count < most && !take(count).empty())
      ++count;
    if (count == 0)
      return std::nullopt;
    TmemAccess access;
    access.count = llvm::bit_floor(static_cast<uint64_t>(count));
    access.lane = lane;
    access.column = column;
    for (unsigned index = 0; index < access.count; ++index)
      access.words.append(take(index));
    for (unsigned word : access.words)
      left.erase(places.words[word]);
    plan.accesses.push_back(std::move(access));
  }
  return plan;
}

Expected<TmemPlan>
mlir::attn::planTmemAccess(const TileLayout &tile,
                           const TensorMemoryLayout &buffer) {
  Expected<WordPlaces> places = findWords(tile, buffer);
  if (!places)
    return places.takeError();
  for (TmemShape shape : getTmemShapes())
    if (std::optional<TmemPlan> plan = divide(*places, shape))
      return *plan;
  return makeError("expected the registers of a shape of tcgen05.ld, got {0}",
                   tile.str());
}
