//===- MatrixAccess.cpp - ldmatrix and stmatrix from layouts --------------===//
//
// The tile's registers are grouped into words; each word is one 8x8 matrix at
// constant coordinates. Matrices whose coordinates differ in two single bits
// are grouped by four: lane bits 0..2 then select the matrix row and lane bits
// 3 and 4 the matrix, so that one address form serves every group with the same
// two bits. The pair of bits that covers most matrices is taken first, what is
// left goes to smaller instructions.
//
//===----------------------------------------------------------------------===//

#include "attn/Layout/MatrixAccess.h"
#include "AddressAlgebra.h"
#include "Errors.h"
#include "llvm/Support/MathExtras.h"
#include <map>

using namespace mlir::attn;
using llvm::ArrayRef;
using llvm::Error;
using llvm::Expected;
using llvm::SmallVector;

std::optional<MatrixPlan::Source> MatrixPlan::sourceOf(unsigned reg) const {
  for (auto [index, access] : llvm::enumerate(accesses))
    for (auto [place, held] : llvm::enumerate(access.registers))
      if (held == reg)
        return Source{unsigned(index), unsigned(place / elementsPerWord),
                      unsigned(place % elementsPerWord)};
  return std::nullopt;
}

namespace {
/// One 8x8 matrix of the tile: a 32-bit word of registers.
struct Matrix {
  Coords coords;
  SmallVector<unsigned, 4> registers;
  bool planned = false;
};

/// A step between matrices: one bit of one coordinate.
struct Step {
  unsigned dim;
  int64_t delta;
  /// Distance of the registers that it connects.
  unsigned registerDistance;
};

/// Finds the matrices and groups them into instructions.
class MatrixPlanner {
public:
  MatrixPlanner(const TileLayout &tile, const SharedLayout &buffer)
      : tile(tile), buffer(buffer) {}

  Expected<MatrixPlan> run(unsigned maxMatrices);

private:
  bool lanesAre(ArrayRef<Coords> expected) const;
  Error findMatrices();
  void findSteps();
  SmallVector<unsigned, 4> group(unsigned matrix, ArrayRef<Step> steps) const;
  unsigned coverage(ArrayRef<Step> steps) const;
  Error emit(ArrayRef<Step> steps);

  const TileLayout &tile;
  const SharedLayout &buffer;
  unsigned contiguous = 0;
  unsigned rows = 0;
  SmallVector<Matrix> matrices;
  std::map<Coords, unsigned> matrixAt;
  SmallVector<Step> steps;
  MatrixPlan plan;
};
} // namespace

bool MatrixPlanner::lanesAre(ArrayRef<Coords> expected) const {
  for (auto [bit, basis] : llvm::enumerate(expected))
    if (tile.laneBasis(bit) != basis)
      return false;
  return true;
}

Error MatrixPlanner::findMatrices() {
  unsigned bits = buffer.elementBits();
  if (tile.rank() != 2 || buffer.rank() != 2)
    return makeError("expected a tile and a buffer of two dimensions, got {0} "
                     "and {1}",
                     tile.rank(), buffer.rank());
  if (bits > 32)
    return makeError("expected elements of at most 32 bits, got {0}", bits);
  std::optional<unsigned> dim = buffer.contiguousDim();
  int64_t perWord = 32 / bits, perRow = 4 * perWord;
  if (!dim || buffer.contiguousElements() < perRow)
    return makeError("expected rows of 16 contiguous bytes in the buffer, got "
                     "{0}",
                     buffer.contiguousElements() * buffer.elementBytes());
  contiguous = *dim;
  rows = 1 - contiguous;
  auto at = [&](unsigned along, int64_t value) {
    Coords result(2, 0);
    result[along] = value;
    return result;
  };
  unsigned pack;
  if (lanesAre({at(contiguous, perWord), at(contiguous, 2 * perWord),
                at(rows, 1), at(rows, 2), at(rows, 4)})) {
    plan.trans = false;
    pack = contiguous;
  } else if (bits == 16 &&
             lanesAre({at(rows, 2), at(rows, 4), at(contiguous, 1),
                       at(contiguous, 2), at(contiguous, 4)})) {
    plan.trans = true;
    pack = rows;
  } else {
    return makeError("expected lanes that hold 8x8 matrices of 16-bit elements "
                     "along or across the buffer's rows");
  }
  plan.elementsPerWord = perWord;
  std::map<Coords, unsigned> registerAt;
  for (unsigned reg = 0; reg < tile.numRegisters(); ++reg)
    if (!registerAt.try_emplace(tile.registerCoords(reg), reg).second)
      return makeError("expected a tile without copies in registers");
  for (unsigned reg = 0; reg < tile.numRegisters(); ++reg) {
    Matrix matrix{tile.registerCoords(reg), {}, false};
    if (matrix.coords[pack] % perWord)
      continue;
    for (unsigned dim = 0; dim < 2; ++dim)
      if (matrix.coords[dim] % (dim == contiguous ? perRow : 8))
        return makeError("expected registers at the corners of 8x8 matrices");
    for (int64_t i = 0; i < perWord; ++i) {
      Coords coords = matrix.coords;
      coords[pack] += i;
      auto held = registerAt.find(coords);
      if (held == registerAt.end())
        return makeError("expected each thread to hold {0} elements of a word",
                         perWord);
      matrix.registers.push_back(held->second);
    }
    matrixAt[matrix.coords] = matrices.size();
    matrices.push_back(matrix);
  }
  // Register coordinates are closed under XOR and the first word is complete.
  assert(matrices.size() * perWord == tile.numRegisters() && "whole words");
  return Error::success();
}

void MatrixPlanner::findSteps() {
  for (unsigned dim = 0; dim < 2; ++dim)
    for (int64_t delta = 1; delta < tile.shape()[dim]; delta *= 2)
      for (unsigned index = 0; index < matrices.size(); ++index) {
        SmallVector<unsigned, 4> pair = group(index, Step{dim, delta, 0});
        if (pair.empty())
          continue;
        steps.push_back({dim, delta,
                         matrices[pair[1]].registers.front() -
                             matrices[pair[0]].registers.front()});
        break;
      }
}

/// The matrices that the steps reach from one, in the order of lane bits 3 and
/// 4; empty when one is missing, planned already or needs a carry.
SmallVector<unsigned, 4> MatrixPlanner::group(unsigned matrix,
                                              ArrayRef<Step> steps) const {
  SmallVector<unsigned, 4> result;
  for (unsigned member = 0; member < 1u << steps.size(); ++member) {
    Coords coords = matrices[matrix].coords;
    for (auto [bit, step] : llvm::enumerate(steps)) {
      if ((coords[step.dim] + buffer.viewOffsets()[step.dim]) & step.delta)
        return {};
      if ((member >> bit) & 1)
        coords[step.dim] += step.delta;
    }
    auto place = matrixAt.find(coords);
    if (place == matrixAt.end() || matrices[place->second].planned)
      return {};
    result.push_back(place->second);
  }
  return result;
}

unsigned MatrixPlanner::coverage(ArrayRef<Step> steps) const {
  // Groups of the same steps never overlap: their first members have all the
  // steps' bits clear.
  unsigned result = 0;
  for (unsigned index = 0; index < matrices.size(); ++index)
    result += !group(index, steps).empty();
  return result;
}

Error MatrixPlanner::emit(ArrayRef<Step> steps) {
  ThreadBases thread = threadBases(tile);
  thread.lanes.assign(TileLayout::laneBits, Coords(2, 0));
  for (unsigned bit = 0; bit < 3; ++bit)
    thread.lanes[bit][rows] = int64_t(1) << bit;
  for (auto [bit, step] : llvm::enumerate(steps))
    thread.lanes[3 + bit][step.dim] = step.delta;
  SmallVector<Coords> constants;
  SmallVector<SmallVector<unsigned, 4>> groups;
  for (unsigned index = 0; index < matrices.size(); ++index) {
    SmallVector<unsigned, 4> members = group(index, steps);
    if (members.empty())
      continue;
    // In the whole buffer, where group has made sure that steps do not carry.
    constants.push_back(matrices[index].coords);
    for (unsigned dim = 0; dim < 2; ++dim) {
      constants.back()[dim] += buffer.viewOffsets()[dim];
      for (const auto &axis :
           {ArrayRef<Coords>(thread.lanes), ArrayRef<Coords>(thread.warps),
            ArrayRef<Coords>(thread.blocks)})
        for (const Coords &basis : axis)
          if (constants.back()[dim] & basis[dim])
            return makeError("expected dim{0} of the tile's matrices to start "
                             "at a multiple of its unit in the buffer, got "
                             "offset {1}",
                             dim, buffer.viewOffsets()[dim]);
    }
    for (unsigned member : members)
      matrices[member].planned = true;
    groups.push_back(std::move(members));
  }
  Expected<ElementAddresses> addresses =
      computeAddresses(thread, constants, buffer, Coords(2, 0));
  if (!addresses)
    return addresses.takeError();
  for (auto [members, address] :
       llvm::zip_equal(groups, addresses->registers)) {
    MatrixAccess access;
    access.num = members.size();
    for (unsigned member : members)
      access.registers.append(matrices[member].registers);
    access.address = address;
    access.address.form = plan.forms.size();
    plan.accesses.push_back(access);
  }
  plan.forms.push_back(addresses->form);
  return Error::success();
}

Expected<MatrixPlan> MatrixPlanner::run(unsigned maxMatrices) {
  if (Error error = findMatrices())
    return std::move(error);
  findSteps();
  plan.warpBroadcastMask = tile.warpBroadcastMask();
  plan.blockBroadcastMask = tile.blockBroadcastMask();
  for (unsigned num = llvm::Log2_32(maxMatrices); num > 0; --num)
    while (true) {
      SmallVector<Step, 2> best;
      unsigned bestCoverage = 0;
      bool bestMixed = false;
      auto consider = [&](SmallVector<Step, 2> candidate) {
        // Words of one instruction follow the register order.
        if (candidate.size() == 2 &&
            candidate[1].registerDistance < candidate[0].registerDistance)
          std::swap(candidate[0], candidate[1]);
        unsigned covered = coverage(candidate);
        bool mixed =
            candidate.size() == 2 && candidate[0].dim != candidate[1].dim;
        if (covered > bestCoverage ||
            (covered && covered == bestCoverage && mixed && !bestMixed)) {
          best = candidate;
          bestCoverage = covered;
          bestMixed = mixed;
        }
      };
      for (unsigned i = 0; i < steps.size(); ++i) {
        if (num == 1)
          consider({steps[i]});
        for (unsigned j = i + 1; num == 2 && j < steps.size(); ++j)
          consider({steps[i], steps[j]});
      }
      if (!bestCoverage)
        break;
      if (Error error = emit(best))
        return std::move(error);
    }
  if (llvm::any_of(matrices, [](const Matrix &m) { return !m.planned; }))
    if (Error error = emit({}))
      return std::move(error);
  llvm::sort(plan.accesses, [](const MatrixAccess &a, const MatrixAccess &b) {
    return *llvm::min_element(a.registers) < *llvm::min_element(b.registers);
  });
  return std::move(plan);
}

Expected<MatrixPlan> mlir::attn::planMatrixAccess(const TileLayout &tile,
                                                  const SharedLayout &buffer,
                                                  unsigned maxMatrices) {
  if (maxMatrices != 1 && maxMatrices != 2 && maxMatrices != 4)
    return makeError("expected 1, 2 or 4 matrices, got {0}", maxMatrices);
  if (tile.shape() != buffer.shape())
    return makeError("expected a buffer of the tile's shape");
  return MatrixPlanner(tile, buffer).run(maxMatrices);
}
