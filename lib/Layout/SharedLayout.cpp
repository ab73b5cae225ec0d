//===- SharedLayout.cpp - Buffers in shared memory ------------------------===//

#include "attn/Layout/SharedLayout.h"
#include "Errors.h"
#include "TextReader.h"
#include "attn/Layout/TileLayout.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir::attn;
using llvm::ArrayRef;
using llvm::Error;
using llvm::Expected;
using llvm::SmallVector;
using llvm::StringRef;

/// Shared memory of any target is smaller.
static constexpr int64_t maxBytes = int64_t(1) << 24;

/// 8 rows of one span, chunks of 16 bytes permuted as TMA does it: with the
/// span's n chunk bits, the chunk is XORed with the upper n of the row's 3
/// bits.
static LinearLayout swizzleUnit(unsigned spanBytes, unsigned elementBits) {
  int64_t spanElements = spanBytes * 8 / elementBits;
  int64_t chunkElements = 128 / elementBits;
  unsigned chunkBits = llvm::Log2_32(spanBytes / 16);
  std::string row = dimName(0), col = dimName(1);
  LinearLayout result =
      llvm::cantFail(LinearLayout::get({{kOffsetDim, 8 * spanElements}}));
  SmallVector<Coords> rows, cols;
  for (unsigned bit = 0; bit < 3; ++bit) {
    int64_t offset = spanElements << bit;
    if (bit + chunkBits >= 3)
      offset ^= chunkElements << (bit + chunkBits - 3);
    rows.push_back({offset});
  }
  for (int64_t offset = 1; offset < spanElements; offset *= 2)
    cols.push_back({offset});
  llvm::cantFail(result.addAxis(row, rows));
  llvm::cantFail(result.addAxis(col, cols));
  return result;
}

/// A permutation of the axes, which are named anew by position.
static LinearLayout permuteUnit(const LinearLayout &unit,
                                ArrayRef<unsigned> order) {
  LinearLayout result = unit.permuteAxes(order);
  for (unsigned i = 0; i < order.size(); ++i)
    result = result.renameAxis(dimName(order[i]), "new" + dimName(i));
  for (unsigned i = 0; i < order.size(); ++i)
    result = result.renameAxis("new" + dimName(i), dimName(i));
  return result;
}

Expected<SharedLayout> SharedLayout::get(const LinearLayout &unit,
                                         ArrayRef<SharedRepetition> repetitions,
                                         unsigned elementBits) {
  if (elementBits == 0 || elementBits % 8 || elementBits > 128 ||
      !llvm::isPowerOf2_32(elementBits))
    return makeError("expected elements of 8, 16, 32, 64 or 128 bits, got {0}",
                     elementBits);
  if (unit.dims().size() != 1 || unit.dims()[0].name != kOffsetDim)
    return makeError("expected a shared unit with the one dimension 'offset'");
  if (repetitions.size() != unit.axes().size())
    return makeError("expected {0} repetitions, got {1}", unit.axes().size(),
                     repetitions.size());
  if (!unit.isInjective())
    return makeError("expected different offsets for different elements, got "
                     "rank {0} of {1} bits",
                     unit.rank(), unit.totalInputBits());
  SharedLayout result;
  for (auto [index, axis] : llvm::enumerate(unit.axes())) {
    if (axis.name != dimName(index))
      return makeError("expected axis {0} to be 'dim{0}', got '{1}'", index,
                       axis.name);
    const SharedRepetition &rep = repetitions[index];
    if (rep.count < 1)
      return makeError("expected a positive repetition count, got {0}",
                       rep.count);
    if (rep.stride < 0 || rep.stride > maxBytes || rep.count > maxBytes ||
        unit.totalOutputBits() > 24 || rep.count * axis.size() > maxBytes ||
        rep.count * rep.stride > maxBytes)
      return makeError("expected a buffer below {0} bytes, got count {1} and "
                       "stride {2}",
                       maxBytes, rep.count, rep.stride);
    result.extents.push_back(axis.size() * rep.count);
    result.reps.push_back({rep.count, rep.count == 1 ? 0 : rep.stride});
  }
  result.origin.assign(result.extents.size(), 0);
  result.unitLayout = unit;
  result.bits = elementBits;
  for (unsigned span : {32, 64, 128}) {
    LinearLayout swizzle = swizzleUnit(span, elementBits);
    if (elementBits <= 128 &&
        (unit == swizzle ||
         (unit.axes().size() == 2 && permuteUnit(unit, {1, 0}) == swizzle)))
      result.span = span;
  }
  return result;
}

Expected<SharedLayout> SharedLayout::swizzled(int64_t rows, int64_t cols,
                                              unsigned elementBits,
                                              unsigned spanBytes,
                                              int64_t pitch) {
  if (rows < 1 || cols < 1 || rows > maxBytes || cols > maxBytes)
    return makeError("expected a positive shape, got {0}x{1}", rows, cols);
  if (elementBits < 8 || elementBits > 128 || !llvm::isPowerOf2_32(elementBits))
    return makeError("expected elements of 8, 16, 32, 64 or 128 bits, got {0}",
                     elementBits);
  if (spanBytes == 0) {
    if (pitch == 0)
      pitch = cols;
    if (pitch < cols)
      return makeError("expected a pitch of at least {0} elements, got {1}",
                       cols, pitch);
    int64_t run = int64_t(1) << llvm::countr_zero(uint64_t(cols));
    Expected<LinearLayout> unit = LinearLayout::get({{kOffsetDim, run}});
    if (!unit)
      return unit.takeError();
    SmallVector<Coords> bases;
    for (int64_t offset = 1; offset < run; offset *= 2)
      bases.push_back({offset});
    llvm::cantFail(unit->addAxis(dimName(0), {}));
    llvm::cantFail(unit->addAxis(dimName(1), bases));
    return get(*unit, {{rows, pitch}, {cols / run, run}}, elementBits);
  }
  if (spanBytes != 32 && spanBytes != 64 && spanBytes != 128)
    return makeError("expected a swizzle span of 0, 32, 64 or 128 bytes, got "
                     "{0}",
                     spanBytes);
  int64_t spanElements = spanBytes * 8 / elementBits;
  if (cols % spanElements)
    return makeError(
        "expected rows of a multiple of {0} elements for a span of "
        "{1} bytes, got {2}",
        spanElements, spanBytes, cols);
  if (pitch != 0)
    return makeError("expected no pitch with a swizzle, got {0}", pitch);
  int64_t groups = llvm::divideCeil(rows, 8);
  Expected<SharedLayout> result =
      get(swizzleUnit(spanBytes, elementBits),
          {{groups, 8 * spanElements},
           {cols / spanElements, groups * 8 * spanElements}},
          elementBits);
  if (result)
    result->extents[0] = rows;
  return result;
}

Expected<SharedLayout> SharedLayout::inPairs() const {
  if (rank() != 2 || span == 0)
    return makeError("expected a swizzled buffer of two dimensions, got {0}",
                     str());
  return swizzled(extents[0], extents[1] / 2, 2 * bits, span);
}

Expected<SharedLayout> SharedLayout::interleavedRows() const {
  if (rank() != 2 || span == 0 || extents[0] % 16 != 0)
    return makeError("expected a swizzled buffer with a multiple of 16 rows, "
                     "got {0}",
                     str());
  int64_t spanElements = int64_t(span) * 8 / bits;
  Expected<LinearLayout> result =
      LinearLayout::get({{kOffsetDim, 16 * spanElements}});
  if (!result)
    return result.takeError();
  auto along = [&](int64_t row, int64_t column) {
    return Coords{offset({row, column}) / elementBytes()};
  };
  SmallVector<Coords> columns;
  for (int64_t column = 1; column < spanElements; column *= 2)
    columns.push_back(along(0, column));
  if (Error error = result->addAxis(
          dimName(0), {along(2, 0), along(4, 0), along(9, 0), along(1, 0)}))
    return std::move(error);
  if (Error error = result->addAxis(dimName(1), columns))
    return std::move(error);
  return get(*result,
             {{extents[0] / 16, 16 * spanElements},
              {extents[1] / spanElements, extents[0] * spanElements}},
             bits);
}

Expected<SharedLayout> SharedLayout::quadColumns() const {
  if (rank() != 2 || span == 0 || bits != 16)
    return makeError("expected a swizzled buffer of 16-bit elements, got {0}",
                     str());
  SmallVector<Coords> rows, columns;
  for (uint64_t offset : unitLayout.flatBases(dimName(0)))
    rows.push_back({static_cast<int64_t>(offset)});
  for (uint64_t offset : unitLayout.flatBases(dimName(1)))
    columns.push_back({static_cast<int64_t>(offset)});
  // Bits of a column: i, h, and two of t, from where i, t and h were.
  Coords last = columns[3];
  columns.erase(columns.begin() + 3);
  columns.insert(columns.begin() + 1, last);
  LinearLayout unit = llvm::cantFail(
      LinearLayout::get({{kOffsetDim, unitLayout.dimSize(kOffsetDim)}}));
  llvm::cantFail(unit.addAxis(dimName(0), rows));
  llvm::cantFail(unit.addAxis(dimName(1), columns));
  SharedLayout result = *this;
  result.unitLayout = unit;
  result.span = 0;
  return result;
}

unsigned SharedLayout::chooseSpan(int64_t cols, unsigned elementBits) {
  int64_t rowBytes = cols * elementBits / 8;
  for (unsigned span : {128, 64, 32})
    if (rowBytes > 0 && rowBytes % span == 0)
      return span;
  return 0;
}

Expected<SharedLayout> SharedLayout::choose(int64_t rows, int64_t cols,
                                            unsigned elementBits) {
  unsigned span = chooseSpan(cols, elementBits);
  if (span || elementBits == 0 || 128 % elementBits)
    return swizzled(rows, cols, elementBits, span);
  int64_t chunkElements = 128 / elementBits;
  int64_t chunks = llvm::divideCeil(cols, chunkElements);
  return swizzled(rows, cols, elementBits, 0, (chunks | 1) * chunkElements);
}

Expected<SharedLayout> SharedLayout::linear(int64_t size,
                                            unsigned elementBits) {
  if (size < 1 || size > maxBytes)
    return makeError("expected a positive size, got {0}", size);
  int64_t run = int64_t(1) << llvm::countr_zero(uint64_t(size));
  return get(LinearLayout::identity(dimName(0), run, kOffsetDim),
             {{size / run, run}}, elementBits);
}

Coords SharedLayout::unitShape() const {
  Coords result;
  for (const LinearLayout::Space &axis : unitLayout.axes())
    result.push_back(axis.size());
  return result;
}

int64_t SharedLayout::offset(ArrayRef<int64_t> coords) const {
  assert(coords.size() == rank() && "one coordinate for each dimension");
  Coords unit = unitShape(), inUnit;
  int64_t result = 0;
  for (unsigned dim = 0; dim < rank(); ++dim) {
    int64_t coord = coords[dim] + origin[dim];
    inUnit.push_back(coord % unit[dim]);
    result += coord / unit[dim] * reps[dim].stride;
  }
  result += unitLayout.applyFlat(unitLayout.flattenInput(inUnit));
  return result * elementBytes();
}

std::optional<Coords> SharedLayout::find(int64_t byteOffset) const {
  if (byteOffset < 0 || !bits || byteOffset % elementBytes())
    return std::nullopt;
  int64_t rest = byteOffset / elementBytes();
  SmallVector<unsigned> order;
  for (unsigned dim = 0; dim < rank(); ++dim)
    order.push_back(dim);
  llvm::sort(order, [&](unsigned a, unsigned b) {
    return std::pair(-reps[a].stride, a) < std::pair(-reps[b].stride, b);
  });
  Coords result(rank(), 0), unit = unitShape();
  for (unsigned dim : order) {
    if (!reps[dim].stride)
      continue;
    int64_t index = std::min(rest / reps[dim].stride, reps[dim].count - 1);
    rest -= index * reps[dim].stride;
    result[dim] = index * unit[dim];
  }
  if (rest >= unitLayout.dimSize(kOffsetDim))
    return std::nullopt;
  // The unit is injective, so that its inverse on its image is unique.
  Expected<LinearLayout> point =
      LinearLayout::get({{kOffsetDim, unitLayout.dimSize(kOffsetDim)}});
  if (!point || point->addAxis("one", {{rest}}))
    return std::nullopt;
  Expected<LinearLayout> inverse = point->invertAndCompose(unitLayout);
  if (!inverse) {
    llvm::consumeError(inverse.takeError());
    return std::nullopt;
  }
  Coords inUnit = inverse->apply({1});
  for (unsigned dim = 0; dim < rank(); ++dim) {
    result[dim] += inUnit[dim] - origin[dim];
    if (result[dim] < 0 || result[dim] >= extents[dim])
      return std::nullopt;
  }
  if (offset(result) != byteOffset)
    return std::nullopt;
  return result;
}

int64_t SharedLayout::sizeBytes() const {
  int64_t result = unitLayout.dimSize(kOffsetDim);
  for (const SharedRepetition &rep : reps)
    result += (rep.count - 1) * rep.stride;
  return result * elementBytes();
}

int64_t SharedLayout::totalBytes() const {
  return (slots - 1) * slotStride + sizeBytes();
}

unsigned SharedLayout::alignment() const {
  constexpr unsigned kChunkBytes = 16;
  for (const LinearLayout::Space &axis : unitLayout.axes())
    for (uint64_t basis : unitLayout.flatBases(axis.name))
      if (!llvm::isPowerOf2_64(basis))
        return unitLayout.dimSize(kOffsetDim) * elementBytes();
  return kChunkBytes;
}

std::optional<unsigned> SharedLayout::contiguousDim() const {
  for (auto [dim, axis] : llvm::enumerate(unitLayout.axes()))
    if (axis.bits ? unitLayout.flatBases(axis.name).front() == 1
                  : reps[dim].stride == 1)
      return dim;
  return std::nullopt;
}

int64_t SharedLayout::contiguousElements() const {
  std::optional<unsigned> dim = contiguousDim();
  if (!dim)
    return 1;
  ArrayRef<uint64_t> along = unitLayout.flatBases(dimName(*dim));
  unsigned run = 0;
  while (run < along.size() && along[run] == uint64_t(1) << run)
    ++run;
  // Nothing else may reach into the run.
  uint64_t others = 0;
  for (auto [index, rep] : llvm::enumerate(reps)) {
    others |= rep.stride;
    for (uint64_t basis : unitLayout.flatBases(dimName(index))
                              .drop_front(index == *dim ? run : 0))
      others |= basis;
  }
  if (others)
    run = std::min<unsigned>(run, llvm::countr_zero(others));
  return int64_t(1) << run;
}

SharedLayout SharedLayout::permuted(ArrayRef<unsigned> order) const {
  assert(order.size() == rank() && "one entry for each dimension");
  SharedLayout result = *this;
  result.unitLayout = permuteUnit(unitLayout, order);
  for (auto [index, old] : llvm::enumerate(order)) {
    result.reps[index] = reps[old];
    result.extents[index] = extents[old];
    result.origin[index] = origin[old];
  }
  return result;
}

Expected<SharedLayout> SharedLayout::column() const {
  if (rank() != 2 || unitLayout.axes()[0].size() != 1)
    return makeError("expected plain rows to have a column of");
  return get(LinearLayout::identity(dimName(0), 1, kOffsetDim),
             {{extents[0], reps[0].stride}}, bits);
}

Expected<SharedLayout> SharedLayout::subview(ArrayRef<int64_t> offsets,
                                             ArrayRef<int64_t> sizes) const {
  if (offsets.size() != rank() || sizes.size() != rank())
    return makeError("expected {0} offsets and sizes, got {1} and {2}", rank(),
                     offsets.size(), sizes.size());
  SharedLayout result = *this;
  for (unsigned dim = 0; dim < rank(); ++dim) {
    if (offsets[dim] < 0 || sizes[dim] < 1 ||
        offsets[dim] > extents[dim] - sizes[dim])
      return makeError(
          "expected a part of {0} elements along dim{1}, got {2} at {3}",
          extents[dim], dim, sizes[dim], offsets[dim]);
    result.origin[dim] += offsets[dim];
    result.extents[dim] = sizes[dim];
  }
  return result;
}

Expected<SharedLayout> SharedLayout::ring(int64_t newSlots,
                                          int64_t newSlotBytes) const {
  if (newSlots < 1 || newSlots > maxBytes)
    return makeError("expected a positive number of slots, got {0}", newSlots);
  if (newSlotBytes == 0)
    newSlotBytes = llvm::alignTo(sizeBytes(), alignment());
  if (newSlotBytes < sizeBytes() || newSlotBytes % alignment())
    return makeError("expected slots a multiple of {0} and at least {1} bytes "
                     "apart, got {2}",
                     alignment(), sizeBytes(), newSlotBytes);
  SharedLayout result = *this;
  result.slots = newSlots;
  result.slotStride = newSlots == 1 ? 0 : newSlotBytes;
  return result;
}

bool SharedLayout::operator==(const SharedLayout &other) const {
  return unitLayout == other.unitLayout && reps == other.reps &&
         extents == other.extents && origin == other.origin &&
         bits == other.bits && slots == other.slots &&
         slotStride == other.slotStride;
}

void SharedLayout::print(llvm::raw_ostream &os) const {
  os << bits << "-bit ";
  unitLayout.print(os);
  os << " * (";
  llvm::interleaveComma(reps, os, [&](const SharedRepetition &rep) {
    os << rep.count << " @ " << rep.stride;
  });
  os << ')';
  auto list = [&](StringRef name, ArrayRef<int64_t> values) {
    os << ' ' << name << " (";
    llvm::interleaveComma(values, os);
    os << ')';
  };
  Coords whole = unitShape();
  for (auto [extent, rep] : llvm::zip_equal(whole, reps))
    extent *= rep.count;
  if (whole != extents)
    list("shape", extents);
  if (llvm::any_of(origin, [](int64_t value) { return value != 0; }))
    list("origin", origin);
  if (slots != 1)
    os << " slots " << slots << " @ " << slotStride;
}

std::string SharedLayout::str() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(os);
  return text;
}

Expected<SharedLayout> SharedLayout::parse(StringRef text) {
  TextReader reader(text);
  Expected<int64_t> elementBits = reader.integer();
  if (!elementBits)
    return elementBits.takeError();
  if (Error error = reader.expect("-bit"))
    return std::move(error);
  Expected<LinearLayout> unit = reader.linearLayout();
  if (!unit)
    return unit.takeError();
  if (Error error = reader.expect("*"))
    return std::move(error);
  if (Error error = reader.expect("("))
    return std::move(error);
  SmallVector<SharedRepetition> reps;
  auto pair = [&]() -> Expected<SharedRepetition> {
    Expected<int64_t> count = reader.integer();
    if (!count)
      return count.takeError();
    if (Error error = reader.expect("@"))
      return std::move(error);
    Expected<int64_t> stride = reader.integer();
    if (!stride)
      return stride.takeError();
    return SharedRepetition{*count, *stride};
  };
  do {
    Expected<SharedRepetition> rep = pair();
    if (!rep)
      return rep.takeError();
    reps.push_back(*rep);
  } while (reader.accept(","));
  if (Error error = reader.expect(")"))
    return std::move(error);
  if (*elementBits < 0 || *elementBits > 128)
    return makeError("expected elements of 8, 16, 32, 64 or 128 bits, got {0}",
                     *elementBits);
  Expected<SharedLayout> result = get(*unit, reps, *elementBits);
  if (!result)
    return result;
  auto list = [&]() -> Expected<Coords> {
    if (Error error = reader.expect("("))
      return std::move(error);
    Expected<Coords> values = reader.integers();
    if (!values)
      return values.takeError();
    if (Error error = reader.expect(")"))
      return std::move(error);
    return values;
  };
  Coords whole = result->extents, extents = whole, origin(result->rank(), 0);
  if (reader.accept("shape")) {
    Expected<Coords> values = list();
    if (!values)
      return values.takeError();
    extents = *values;
  }
  if (reader.accept("origin")) {
    Expected<Coords> values = list();
    if (!values)
      return values.takeError();
    origin = *values;
  }
  result = result->subview(origin, extents);
  if (!result)
    return result;
  if (reader.accept("slots")) {
    Expected<SharedRepetition> ring = pair();
    if (!ring)
      return ring.takeError();
    result = result->ring(ring->count, ring->stride);
    if (!result)
      return result;
  }
  if (Error error = reader.expectEnd())
    return std::move(error);
  return result;
}
