//===- Convert.cpp - From one register tile to another --------------------===//
//
// Conversions inside a warp: where every basis is a single coordinate bit, each
// bit lives in one place, a lane bit or a register bit (or a warp bit, which
// must agree). A conversion is then a permutation of these places. Bits that
// change between lanes and registers are exchanged one by one, which costs half
// a shuffle for each register; a permutation of lane bits that is left costs
// one shuffle for each register. A lane bit that only makes copies counts as a
// bit of its own.
//
//===----------------------------------------------------------------------===//

#include "attn/Layout/Convert.h"
#include "Errors.h"
#include "attn/Layout/BankConflicts.h"
#include "llvm/Support/MathExtras.h"
#include <map>
#include <vector>

using namespace mlir::attn;
using llvm::ArrayRef;
using llvm::Error;
using llvm::Expected;
using llvm::SmallVector;
using llvm::StringRef;

/// Issue slots of a warp that a barrier counts as.
static constexpr uint64_t barrierCost = 20;

StringRef mlir::attn::stringifyConversionKind(ConversionKind kind) {
  switch (kind) {
  case ConversionKind::None:
    return "none";
  case ConversionKind::Registers:
    return "registers";
  case ConversionKind::Shuffles:
    return "shuffles";
  case ConversionKind::Scratch:
    return "scratch";
  }
  llvm_unreachable("unknown conversion kind");
}

namespace {
/// Plans a conversion by exchanges between lane and register bits.
class ShufflePlanner {
public:
  ShufflePlanner(const TileLayout &source, const TileLayout &target,
                 unsigned elementBits)
      : source(source), target(target), elementBits(elementBits) {}

  std::optional<ConversionPlan> run();

private:
  bool collectBits();
  void exchangeBits();
  void permuteLanes();
  SmallVector<unsigned> numberRegisters(const TileLayout &tile) const;

  const TileLayout &source;
  const TileLayout &target;
  unsigned elementBits;
  /// Bit that each lane bit holds now, and shall hold; an all-zero basis made
  /// unique by a third coordinate stands for copies.
  SmallVector<Coords, 5> lanes, wanted;
  /// Bits that the intermediate register's number holds now.
  SmallVector<Coords> registerBits;
  /// Coordinates below these are covered by single bits, what is above is an
  /// index that lanes and warps do not touch.
  Coords lowSize;
  ConversionPlan plan;
};
} // namespace

static bool isSingleBit(const Coords &basis) {
  unsigned count = 0;
  for (int64_t coord : basis)
    count += llvm::popcount(uint64_t(coord));
  return count == 1;
}

static bool isZero(const Coords &basis) {
  return llvm::all_of(basis, [](int64_t coord) { return coord == 0; });
}

bool ShufflePlanner::collectBits() {
  unsigned rank = source.rank();
  lowSize.assign(rank, 1);
  SmallVector<Coords> fixed;
  for (const TileLayout *tile : {&source, &target}) {
    SmallVector<Coords, 5> &bits = tile == &source ? lanes : wanted;
    unsigned copies = 0;
    if (!tile->isDisjoint())
      return false;
    for (StringRef axis : {kLaneAxis, kWarpAxis, kBlockAxis})
      for (unsigned bit = 0, e = tile->unit().axisBits(axis); bit < e; ++bit) {
        Coords basis = tile->unit().basis(axis, bit);
        if (axis != kLaneAxis &&
            (source.unit().basis(axis, bit) != target.unit().basis(axis, bit)))
          return false;
        if (!isZero(basis) && !isSingleBit(basis))
          return false;
        for (unsigned dim = 0; dim < rank; ++dim)
          lowSize[dim] = std::max(lowSize[dim], 2 * basis[dim]);
        if (axis == kLaneAxis) {
          if (isZero(basis))
            basis.push_back(++copies);
          bits.push_back(basis);
        } else if (tile == &source) {
          fixed.push_back(basis);
        }
      }
  }
  // So are those of elements that share a 32-bit register.
  unsigned packBits = llvm::Log2_32(std::max(1u, 32 / elementBits));
  for (unsigned bit = 0,
                e = std::min(packBits, source.unit().axisBits(kRegisterAxis));
       bit < e; ++bit) {
    Coords basis = source.unit().basis(kRegisterAxis, bit);
    for (unsigned dim = 0; isSingleBit(basis) && dim < rank; ++dim)
      lowSize[dim] = std::max(lowSize[dim], 2 * basis[dim]);
  }
  // Copies in numbers that differ would have to be made or dropped.
  auto numCopies = [&](const SmallVector<Coords, 5> &bits) {
    return llvm::count_if(bits,
                          [&](const Coords &bit) { return bit.size() > rank; });
  };
  if (numCopies(lanes) != numCopies(wanted))
    return false;
  // The source's own register bits first, in its order: elements that share a
  // 32-bit register stay neighbours.
  auto addBit = [&](const Coords &basis) {
    if (!llvm::is_contained(lanes, basis) &&
        !llvm::is_contained(fixed, basis) &&
        !llvm::is_contained(registerBits, basis))
      registerBits.push_back(basis);
  };
  for (unsigned bit = 0, e = source.unit().axisBits(kRegisterAxis); bit < e;
       ++bit) {
    Coords basis = source.unit().basis(kRegisterAxis, bit);
    bool low = isSingleBit(basis);
    for (unsigned dim = 0; dim < rank; ++dim)
      low &= basis[dim] < lowSize[dim];
    if (low)
      addBit(basis);
  }
  for (unsigned dim = 0; dim < rank; ++dim)
    for (int64_t bit = 1; bit < lowSize[dim]; bit *= 2) {
      Coords basis(rank, 0);
      basis[dim] = bit;
      addBit(basis);
    }
  return true;
}

/// For each register of a tile (the source before, the target after all
/// rounds), its intermediate number.
SmallVector<unsigned>
ShufflePlanner::numberRegisters(const TileLayout &tile) const {
  SmallVector<unsigned> result;
  std::map<Coords, unsigned> highNumber;
  // Numbers of the high parts must not depend on the order of registers.
  for (unsigned reg = 0; reg < tile.numRegisters(); ++reg) {
    Coords high = tile.registerCoords(reg);
    for (auto [coord, size] : llvm::zip_equal(high, lowSize))
      coord /= size;
    highNumber[high] = 0;
  }
  for (auto [index, entry] : llvm::enumerate(highNumber))
    entry.second = index;
  for (unsigned reg = 0; reg < tile.numRegisters(); ++reg) {
    Coords coords = tile.registerCoords(reg), high = coords;
    for (auto [coord, size] : llvm::zip_equal(high, lowSize))
      coord /= size;
    unsigned number = highNumber[high] << registerBits.size();
    for (auto [position, bit] : llvm::enumerate(registerBits))
      for (unsigned dim = 0; dim < tile.rank(); ++dim)
        if (coords[dim] % lowSize[dim] & bit[dim])
          number |= 1u << position;
    result.push_back(number);
  }
  return result;
}

void ShufflePlanner::exchangeBits() {
  for (unsigned lane = 0; lane < TileLayout::laneBits; ++lane) {
    if (llvm::is_contained(wanted, lanes[lane]))
      continue;
    // The bit that this very lane bit shall hold, else any that some lane bit
    // shall hold.
    auto *position = llvm::find(registerBits, wanted[lane]);
    if (position == registerBits.end())
      position = llvm::find_if(registerBits, [&](const Coords &bit) {
        return llvm::is_contained(wanted, bit);
      });
    assert(position != registerBits.end() && "as many bits enter as leave");
    std::swap(*position, lanes[lane]);
    plan.rounds.push_back({ShuffleRound::Kind::Exchange,
                           unsigned(position - registerBits.begin()),
                           lane,
                           {}});
  }
}

void ShufflePlanner::permuteLanes() {
  if (lanes == wanted)
    return;
  ShuffleRound round;
  round.kind = ShuffleRound::Kind::Permute;
  for (const Coords &bit : wanted)
    round.sourceLanes.push_back(1u << (llvm::find(lanes, bit) - lanes.begin()));
  plan.rounds.push_back(round);
}

std::optional<ConversionPlan> ShufflePlanner::run() {
  if (!collectBits())
    return std::nullopt;
  // Registers that hold copies of each other have no number of their own.
  SmallVector<unsigned> start = numberRegisters(source);
  plan.initialRegisters.assign(start.size(), 0);
  SmallVector<bool> seen(start.size(), false);
  for (auto [reg, number] : llvm::enumerate(start)) {
    if (number >= seen.size() || seen[number])
      return std::nullopt;
    seen[number] = true;
    plan.initialRegisters[number] = reg;
  }
  exchangeBits();
  permuteLanes();
  plan.finalRegisters = numberRegisters(target);
  if (llvm::any_of(plan.finalRegisters,
                   [&](unsigned number) { return number >= seen.size(); }))
    return std::nullopt;
  plan.kind = ConversionKind::Shuffles;
  uint64_t words = llvm::divideCeil(seen.size() * elementBits, 32);
  uint64_t shuffles = 0;
  for (const ShuffleRound &round : plan.rounds) {
    bool exchange = round.kind == ShuffleRound::Kind::Exchange;
    shuffles += exchange ? llvm::divideCeil(words, 2) : words;
    plan.instructions += exchange ? words : 0;
  }
  plan.instructions += shuffles;
  plan.wavefronts = shuffles * source.numWarps();
  plan.cost = plan.instructions + shuffles;
  return plan;
}

/// True if a map of registers takes those of one pack to those of one pack, in
/// their order.
static bool mapsPacks(ArrayRef<unsigned> map, unsigned packing) {
  for (unsigned reg = 0; reg < map.size(); ++reg)
    if (map[reg] % packing != reg % packing ||
        map[reg] / packing != map[reg - reg % packing] / packing)
      return false;
  return true;
}

bool ConversionPlan::movesPacks(unsigned packing) const {
  return mapsPacks(initialRegisters, packing) &&
         llvm::all_of(rounds, [&](const ShuffleRound &round) {
           return round.kind == ShuffleRound::Kind::Permute ||
                  round.registerBit >= llvm::Log2_32(packing);
         });
}

bool ConversionPlan::keepsPacks(unsigned packing) const {
  return movesPacks(packing) && mapsPacks(finalRegisters, packing);
}

/// Through the scratch buffer that costs least.
static Expected<ConversionPlan> planScratch(const TileLayout &source,
                                            const TileLayout &target,
                                            unsigned elementBits) {
  std::vector<SharedLayout> candidates;
  auto consider = [&](Expected<SharedLayout> buffer, bool across) {
    if (buffer)
      candidates.push_back(across ? buffer->transposed() : *buffer);
    else
      llvm::consumeError(buffer.takeError());
  };
  const Coords &shape = source.shape();
  if (source.rank() == 1) {
    consider(SharedLayout::linear(shape[0], elementBits), false);
  } else if (source.rank() == 2) {
    for (bool across : {false, true}) {
      int64_t rows = shape[across], cols = shape[!across];
      consider(SharedLayout::choose(rows, cols, elementBits), across);
      for (unsigned span = SharedLayout::chooseSpan(cols, elementBits) / 2;
           span >= 32; span /= 2)
        consider(SharedLayout::swizzled(rows, cols, elementBits, span), across);
      int64_t chunk = 128 / elementBits;
      consider(
          SharedLayout::swizzled(rows, cols, elementBits, 0,
                                 (llvm::divideCeil(cols, chunk) | 1) * chunk),
          across);
    }
  }
  std::optional<ConversionPlan> best;
  Error failure = makeError("expected a tile of one or two dimensions to pass "
                            "through shared memory, got {0}",
                            source.rank());
  for (const SharedLayout &buffer : candidates) {
    Expected<VectorPlan> stores = planSharedAccess(source, buffer);
    if (!stores) {
      llvm::consumeError(std::move(failure));
      failure = stores.takeError();
      continue;
    }
    Expected<VectorPlan> loads = planSharedAccess(target, buffer);
    if (!loads) {
      llvm::consumeError(std::move(failure));
      failure = loads.takeError();
      continue;
    }
    ConversionPlan plan;
    plan.kind = ConversionKind::Scratch;
    plan.scratch = buffer;
    plan.instructions = stores->accesses.size() + loads->accesses.size();
    plan.wavefronts =
        countBankConflicts(*stores, source.numWarps()).wavefronts +
        countBankConflicts(*loads, target.numWarps()).wavefronts;
    plan.cost = plan.instructions + barrierCost +
                llvm::divideCeil(plan.wavefronts, source.numWarps());
    plan.stores = std::move(*stores);
    plan.loads = std::move(*loads);
    if (!best || plan.cost < best->cost ||
        (plan.cost == best->cost && plan.scratchBytes() < best->scratchBytes()))
      best = std::move(plan);
  }
  if (!best)
    return std::move(failure);
  llvm::consumeError(std::move(failure));
  return std::move(*best);
}

Expected<ConversionPlan> mlir::attn::planConversion(const TileLayout &source,
                                                    const TileLayout &target,
                                                    unsigned elementBits,
                                                    bool allowScratch) {
  if (elementBits < 4 || elementBits > 128 || !llvm::isPowerOf2_32(elementBits))
    return makeError("expected elements of 4, 8, 16, 32, 64 or 128 bits, got "
                     "{0}",
                     elementBits);
  if (source.shape() != target.shape())
    return makeError("expected layouts of one shape to convert between");
  if (source.numWarps() != target.numWarps() ||
      source.numBlocks() != target.numBlocks())
    return makeError("expected the same warps and blocks on both sides, got "
                     "{0} and {1} warps, {2} and {3} blocks",
                     source.numWarps(), target.numWarps(), source.numBlocks(),
                     target.numBlocks());
  for (unsigned bit = 0; bit < source.blockBits(); ++bit)
    if (source.blockBasis(bit) != target.blockBasis(bit))
      return makeError("expected elements to stay in their block");

  if (auto registers = target.registersFrom(source)) {
    ConversionPlan plan;
    plan.initialRegisters = std::move(*registers);
    bool inPlace = plan.initialRegisters.size() == source.numRegisters();
    for (auto [reg, from] : llvm::enumerate(plan.initialRegisters))
      inPlace &= reg == from;
    plan.kind = inPlace ? ConversionKind::None : ConversionKind::Registers;
    return plan;
  }
  std::optional<ConversionPlan> shuffles =
      ShufflePlanner(source, target, elementBits).run();
  // Shared memory belongs to the schedule, whose plan has counted all of it,
  // and a barrier makes warps wait for each other that else go their own ways.
  unsigned packing = std::max(1u, 32 / elementBits);
  if (shuffles && (!allowScratch || shuffles->movesPacks(packing)))
    return std::move(*shuffles);
  if (!allowScratch)
    return makeError("expected a conversion inside each warp, got elements "
                     "that have to pass through shared memory");
  Expected<ConversionPlan> scratch = planScratch(source, target, elementBits);
  if (scratch || !shuffles)
    return scratch;
  llvm::consumeError(scratch.takeError());
  return std::move(*shuffles);
}
