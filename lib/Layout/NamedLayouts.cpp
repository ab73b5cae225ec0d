//===- NamedLayouts.cpp - Fragments of the matrix instructions ------------===//

#include "attn/Layout/NamedLayouts.h"
#include "Errors.h"
#include "UnitBases.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir::attn;
using llvm::ArrayRef;
using llvm::Error;
using llvm::Expected;
using llvm::SmallVector;
using llvm::StringRef;

/// Warps of a warpgroup (PTX ISA, wgmma and tcgen05.ld).
static constexpr unsigned kWarpgroupWarps = 4;

static Error checkGrid(WarpGrid grid) {
  auto isSize = [](unsigned size) { return size >= 1 && size <= 32; };
  if (!isSize(grid.m) || !isSize(grid.n) || !llvm::isPowerOf2_32(grid.n) ||
      (grid.n > 1 && !llvm::isPowerOf2_32(grid.m)))
    return makeError("expected powers of two up to 32 as warp grid, or any "
                     "number of rows in one column, got {0}x{1}",
                     grid.m, grid.n);
  if (!isSize(grid.copies) || !llvm::isPowerOf2_32(grid.copies) ||
      (grid.copies > 1 && !llvm::isPowerOf2_32(grid.m)))
    return makeError("expected copies of a grid of powers of two to be a power "
                     "of two up to 32, got {0} of {1}x{2}",
                     grid.copies, grid.m, grid.n);
  return Error::success();
}

static Error checkMultiple(StringRef what, int64_t value, int64_t factor) {
  if (value < factor || value % factor)
    return makeError("expected {0} to be a positive multiple of {1}, got {2}",
                     what, factor, value);
  return Error::success();
}

static Error checkShapeK(unsigned elementBits, unsigned shapeK) {
  if (elementBits != 8 && elementBits != 16)
    return makeError("expected operand elements of 8 or 16 bits, got {0}",
                     elementBits);
  unsigned small = 128 / elementBits;
  if (shapeK != small && shapeK != 2 * small)
    return makeError("expected an instruction depth of {0} or {1} for {2}-bit "
                     "elements, got {3}",
                     small, 2 * small, elementBits, shapeK);
  return Error::success();
}

/// Warp bits of a grid: m bits move by `stepM`, n bits by `stepN`, those of the
/// copies not at all; a step of zero makes copies too.
static SmallVector<Coords> warpBases(WarpGrid grid, Coords stepM,
                                     Coords stepN) {
  SmallVector<Coords> result;
  for (auto [size, step] : {std::pair(grid.m, stepM), std::pair(grid.n, stepN),
                            std::pair(grid.copies, Coords{0, 0})})
    for (unsigned bit = 0; bit < llvm::Log2_32_Ceil(size); ++bit)
      result.push_back({step[0] << bit, step[1] << bit});
  return result;
}

/// Rows of a unit of 16 for each warp, whose warps need not all exist.
static int64_t unitRows(WarpGrid grid) {
  return int64_t(16) << llvm::Log2_32_Ceil(grid.m);
}

Expected<TileLayout> mlir::attn::mmaAccumulator(int64_t m, int64_t n,
                                                WarpGrid grid) {
  if (Error error = checkGrid(grid))
    return std::move(error);
  int64_t unitM = int64_t(16) * grid.m, unitN = int64_t(8) * grid.n;
  if (Error error = checkMultiple("m", m, unitM))
    return std::move(error);
  if (Error error = checkMultiple("n", n, unitN))
    return std::move(error);
  UnitBases unit;
  if (grid.columnQuads) {
    unitN = int64_t(16) * grid.n;
    if (Error error = checkMultiple("n", n, unitN))
      return std::move(error);
    unit.registers = {{0, 2}, {8, 0}, {0, 1}};
    unit.lanes = {{0, 4}, {0, 8}, {1, 0}, {2, 0}, {4, 0}};
    unit.warps = warpBases(grid, {16, 0}, {0, 16});
    return unit.build(unitRows(grid), unitN, {{1, n / unitN}, {0, m / unitM}},
                      grid.getWarps());
  }
  unit.registers = {{0, 1}, {8, 0}};
  unit.lanes = {{0, 2}, {0, 4}, {1, 0}, {2, 0}, {4, 0}};
  int64_t run = 8;
  if (grid.columnRuns) {
    for (; run < n / grid.n; run *= 2)
      unit.registers.push_back({0, run});
    if (run != n / grid.n)
      return makeError("expected runs of a power of two of columns, got {0}",
                       n / grid.n);
    unitN = n;
  }
  unit.warps = warpBases(grid, {16, 0}, {0, run});
  return unit.build(unitRows(grid), unitN, {{1, n / unitN}, {0, m / unitM}},
                    grid.getWarps());
}

/// Registers of one operand word and its neighbours: `perWord` elements along
/// k, then the steps given.
static SmallVector<Coords> operandRegisters(unsigned perWord, unsigned kDim,
                                            ArrayRef<Coords> more) {
  SmallVector<Coords> result;
  for (int64_t step = 1; step < perWord; step *= 2) {
    Coords basis(2, 0);
    basis[kDim] = step;
    result.push_back(basis);
  }
  result.append(more.begin(), more.end());
  return result;
}

Expected<TileLayout> mlir::attn::mmaOperandA(int64_t m, int64_t k,
                                             unsigned elementBits,
                                             unsigned shapeK, WarpGrid grid) {
  if (Error error = checkGrid(grid))
    return std::move(error);
  if (Error error = checkShapeK(elementBits, shapeK))
    return std::move(error);
  int64_t unitM = int64_t(16) * grid.m;
  if (Error error = checkMultiple("m", m, unitM))
    return std::move(error);
  if (Error error = checkMultiple("k", k, shapeK))
    return std::move(error);
  int64_t perWord = 32 / elementBits, half = 4 * perWord;
  SmallVector<Coords> more = {{8, 0}};
  if (shapeK > half)
    more.push_back({0, half});
  UnitBases unit;
  unit.registers = operandRegisters(perWord, 1, more);
  unit.lanes = {{0, perWord}, {0, 2 * perWord}, {1, 0}, {2, 0}, {4, 0}};
  unit.warps = warpBases(grid, {16, 0}, {0, 0});
  return unit.build(unitRows(grid), shapeK, {{1, k / shapeK}, {0, m / unitM}},
                    grid.getWarps());
}

Expected<TileLayout> mlir::attn::mmaQuadOperandA(int64_t m, int64_t k,
                                                 WarpGrid grid) {
  if (Error error = checkGrid(grid))
    return std::move(error);
  int64_t unitM = int64_t(16) * grid.m, unitK = 16;
  if (Error error = checkMultiple("m", m, unitM))
    return std::move(error);
  if (Error error = checkMultiple("k", k, unitK))
    return std::move(error);
  UnitBases unit;
  unit.registers = {{0, 1}, {8, 0}, {0, 2}};
  unit.lanes = {{0, 4}, {0, 8}, {1, 0}, {2, 0}, {4, 0}};
  unit.warps = warpBases(grid, {16, 0}, {0, 0});
  return unit.build(unitRows(grid), unitK, {{1, k / unitK}, {0, m / unitM}},
                    grid.getWarps());
}

Expected<TileLayout> mlir::attn::mmaOperandB(int64_t k, int64_t n,
                                             unsigned elementBits,
                                             unsigned shapeK, WarpGrid grid) {
  if (Error error = checkGrid(grid))
    return std::move(error);
  if (Error error = checkShapeK(elementBits, shapeK))
    return std::move(error);
  if (grid.columnRuns)
    return makeError("expected no runs of columns in an operand B of mma.sync");
  int64_t unitN = int64_t(8) * grid.n;
  if (Error error = checkMultiple("k", k, shapeK))
    return std::move(error);
  if (Error error = checkMultiple("n", n, unitN))
    return std::move(error);
  int64_t perWord = 32 / elementBits, half = 4 * perWord;
  SmallVector<Coords> more;
  if (shapeK > half)
    more.push_back({half, 0});
  UnitBases unit;
  unit.registers = operandRegisters(perWord, 0, more);
  unit.lanes = {{perWord, 0}, {2 * perWord, 0}, {0, 1}, {0, 2}, {0, 4}};
  unit.warps = warpBases(grid, {0, 0}, {0, 8});
  return unit.build(shapeK, unitN, {{0, k / shapeK}, {1, n / unitN}},
                    grid.getWarps());
}

unsigned mlir::attn::mmaShapeK(int64_t k, unsigned elementBits) {
  if (elementBits != 8 && elementBits != 16)
    return 0;
  for (unsigned shapeK : {256 / elementBits, 128 / elementBits})
    if (k > 0 && k % shapeK == 0)
      return shapeK;
  return 0;
}

std::optional<SmallVector<unsigned>>
mlir::attn::accumulatorAsOperandA(const TileLayout &accumulator,
                                  const TileLayout &operand) {
  return operand.registersFrom(accumulator);
}

Expected<TileLayout> mlir::attn::blocked(ArrayRef<int64_t> shape,
                                         ArrayRef<int64_t> perThread,
                                         unsigned numWarps,
                                         ArrayRef<unsigned> order) {
  unsigned rank = shape.size();
  if (perThread.size() != rank || order.size() != rank || rank == 0)
    return makeError("expected shape, elements per thread and order of one "
                     "rank, got {0}, {1} and {2}",
                     rank, perThread.size(), order.size());
  if (!llvm::isPowerOf2_32(numWarps))
    return makeError("expected a power of two as number of warps, got {0}",
                     numWarps);
  SmallVector<bool> seen(rank, false);
  for (unsigned dim : order) {
    if (dim >= rank || seen[dim])
      return makeError("expected the order to be a permutation of {0} "
                       "dimensions",
                       rank);
    seen[dim] = true;
  }
  Coords unitShape(rank, 1);
  SmallVector<Coords> registers, threads;
  for (unsigned dim : order) {
    if (!llvm::isPowerOf2_64(perThread[dim]))
      return makeError("expected a power of two of elements for each thread, "
                       "got {0}",
                       perThread[dim]);
    if (Error error = checkMultiple("the extent", shape[dim], perThread[dim]))
      return std::move(error);
    for (; unitShape[dim] < perThread[dim]; unitShape[dim] *= 2) {
      registers.emplace_back(rank, 0);
      registers.back()[dim] = unitShape[dim];
    }
  }
  unsigned threadBits = TileLayout::laneBits + llvm::Log2_32(numWarps);
  for (unsigned dim : order)
    while (threads.size() < threadBits &&
           shape[dim] % (2 * unitShape[dim]) == 0) {
      threads.emplace_back(rank, 0);
      threads.back()[dim] = unitShape[dim];
      unitShape[dim] *= 2;
    }
  threads.resize(threadBits, Coords(rank, 0));
  SmallVector<std::string> names;
  for (unsigned dim = 0; dim < rank; ++dim)
    names.push_back(dimName(dim));
  SmallVector<std::pair<StringRef, int64_t>> dims;
  for (unsigned dim = 0; dim < rank; ++dim)
    dims.emplace_back(names[dim], unitShape[dim]);
  Expected<LinearLayout> unit = LinearLayout::get(dims);
  if (!unit)
    return unit.takeError();
  if (Error error = unit->addAxis(kRegisterAxis, registers))
    return std::move(error);
  ArrayRef<Coords> all = threads;
  if (Error error =
          unit->addAxis(kLaneAxis, all.take_front(TileLayout::laneBits)))
    return std::move(error);
  if (Error error =
          unit->addAxis(kWarpAxis, all.drop_front(TileLayout::laneBits)))
    return std::move(error);
  SmallVector<Repetition> reps;
  for (unsigned dim : order)
    reps.push_back({dim, shape[dim] / unitShape[dim]});
  return TileLayout::get(*unit, reps);
}

static Error checkWarpgroups(unsigned warpgroups) {
  if (warpgroups < 1 || warpgroups > 8)
    return makeError("expected 1 to 8 warpgroups, got {0}", warpgroups);
  return Error::success();
}

Expected<TileLayout> mlir::attn::wgmmaAccumulator(int64_t m, int64_t n,
                                                  unsigned warpgroups) {
  if (Error error = checkWarpgroups(warpgroups))
    return std::move(error);
  return mmaAccumulator(m, n, {4 * warpgroups, 1});
}

Expected<TileLayout> mlir::attn::wgmmaOperandA(int64_t m, int64_t k,
                                               unsigned elementBits,
                                               unsigned warpgroups) {
  if (Error error = checkWarpgroups(warpgroups))
    return std::move(error);
  if (elementBits != 8 && elementBits != 16)
    return makeError("expected operand elements of 8 or 16 bits, got {0}",
                     elementBits);
  return mmaOperandA(m, k, elementBits, 256 / elementBits, {4 * warpgroups, 1});
}

Expected<TransposeTiles> mlir::attn::transposeTiles(int64_t k, int64_t n,
                                                    unsigned numWarps) {
  if (!llvm::isPowerOf2_32(numWarps) || numWarps > 32)
    return makeError("expected a power of two up to 32 of warps, got {0}",
                     numWarps);
  if (Error error = checkMultiple("k", k, 32))
    return std::move(error);
  if (Error error = checkMultiple("n", n, 16))
    return std::move(error);
  UnitBases source, dest;
  source.registers = {{1, 0}, {8, 0}, {16, 0}};
  source.lanes = {{2, 0}, {4, 0}, {0, 1}, {0, 2}, {0, 4}};
  dest.registers = {{0, 1}, {8, 0}, {0, 8}};
  dest.lanes = {{0, 2}, {0, 4}, {1, 0}, {2, 0}, {4, 0}};
  int64_t unitK = 32, unitN = 16;
  for (unsigned warps = 1; warps < numWarps; warps *= 2) {
    if (n % (2 * unitN) == 0) {
      source.warps.push_back({0, unitN / 2});
      dest.warps.push_back({unitN, 0});
      unitN *= 2;
    } else if (k % (2 * unitK) == 0) {
      source.warps.push_back({unitK, 0});
      dest.warps.push_back({0, unitK / 2});
      unitK *= 2;
    } else {
      return makeError("expected {0} warps to share {1} x {2} elements in "
                       "pieces of 32 x 16",
                       numWarps, k, n);
    }
  }
  int64_t countK = k / unitK, countN = n / unitN;
  Expected<TileLayout> from =
      source.build(unitK, unitN / 2, {{0, countK}, {1, countN}}, numWarps);
  if (!from)
    return from.takeError();
  Expected<TileLayout> to =
      dest.build(unitN, unitK / 2, {{1, countK}, {0, countN}}, numWarps);
  if (!to)
    return to.takeError();
  return TransposeTiles{*from, *to};
}

namespace {
/// One instruction of a shape that repeats nothing.
struct TmemUnit {
  TmemShape shape;
  llvm::StringLiteral name;
  unsigned lanes;
  /// Columns; that of 16x32bx2 is the least, with halves one column apart.
  int64_t columns;
  SmallVector<Coords, 2> registerBases;
  SmallVector<Coords, 5> laneBases;
};
} // namespace

/// PTX ISA, "tcgen05 matrix fragments" of each shape.
static ArrayRef<TmemUnit> getTmemUnits() {
  static const TmemUnit units[] = {
      {TmemShape::S32x32b,
       "32x32b",
       32,
       1,
       {},
       {{1, 0}, {2, 0}, {4, 0}, {8, 0}, {16, 0}}},
      {TmemShape::S16x64b,
       "16x64b",
       16,
       2,
       {},
       {{8, 0}, {0, 1}, {1, 0}, {2, 0}, {4, 0}}},
      {TmemShape::S16x128b,
       "16x128b",
       16,
       4,
       {{8, 0}},
       {{0, 1}, {0, 2}, {1, 0}, {2, 0}, {4, 0}}},
      {TmemShape::S16x256b,
       "16x256b",
       16,
       8,
       {{0, 1}, {8, 0}},
       {{0, 2}, {0, 4}, {1, 0}, {2, 0}, {4, 0}}},
      {TmemShape::S16x32bx2,
       "16x32bx2",
       16,
       2,
       {},
       {{1, 0}, {2, 0}, {4, 0}, {8, 0}, {0, 1}}},
  };
  return units;
}

static const TmemUnit &getTmemUnit(TmemShape shape) {
  return getTmemUnits()[static_cast<unsigned>(shape)];
}

ArrayRef<TmemShape> mlir::attn::getTmemShapes() {
  static constexpr TmemShape shapes[] = {
      TmemShape::S32x32b, TmemShape::S16x64b, TmemShape::S16x128b,
      TmemShape::S16x256b, TmemShape::S16x32bx2};
  return shapes;
}

StringRef mlir::attn::stringifyTmemShape(TmemShape shape) {
  return getTmemUnit(shape).name;
}

std::optional<TmemShape> mlir::attn::symbolizeTmemShape(StringRef name) {
  for (const TmemUnit &unit : getTmemUnits())
    if (unit.name == name)
      return unit.shape;
  return std::nullopt;
}

unsigned mlir::attn::getTmemLanes(TmemShape shape) {
  return getTmemUnit(shape).lanes;
}

Expected<TileLayout> mlir::attn::tmemRegisters(TmemShape shape, int64_t m,
                                               int64_t n) {
  const TmemUnit &part = getTmemUnit(shape);
  if (m != 128 && (m != 64 || part.lanes == 32))
    return makeError("expected {0} rows for {1}, got {2}",
                     part.lanes == 32 ? "128" : "64 or 128", part.name, m);
  if (Error error = checkMultiple("n", n, part.columns))
    return std::move(error);
  UnitBases unit;
  llvm::append_range(unit.registers, part.registerBases);
  llvm::append_range(unit.lanes, part.laneBases);
  int64_t columns = part.columns;
  if (shape == TmemShape::S16x32bx2) {
    int64_t split = (n & -n) / 2;
    for (int64_t column = 1; column < split; column *= 2)
      unit.registers.push_back({0, column});
    unit.lanes.back() = {0, split};
    columns = 2 * split;
  }
  if (part.lanes == 16 && m == 128)
    unit.registers.push_back({16, 0});
  unit.warps = {{m / 4, 0}, {m / 2, 0}};
  return unit.build(m, columns, {{1, n / columns}}, kWarpgroupWarps);
}

Expected<TileLayout> mlir::attn::tmemHalfRegisters(int64_t n) {
  constexpr int64_t rows = 64, most = 128;
  bool isPart = n > 1 && n < most && llvm::isPowerOf2_64(n);
  int64_t columns = isPart ? n : most, half = columns / 2;
  if (n < 1 || n % columns != 0)
    return makeError("expected n to be a multiple of {0} or a power of two "
                     "below, got {1}",
                     most, n);
  UnitBases unit;
  for (int64_t column = 1; column < half; column *= 2)
    unit.registers.push_back({0, column});
  for (int64_t row = 1; row < rows / 2; row *= 2)
    unit.lanes.push_back({row, 0});
  unit.warps = {{rows / 2, 0}, {0, half}};
  return unit.build(rows, columns, {{1, n / columns}}, kWarpgroupWarps);
}
