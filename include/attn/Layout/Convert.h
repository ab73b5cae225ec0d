//===- Convert.h - From one register tile to another ------------*- C++ -*-===//
//
// Plans the conversion of a register tile between two layouts of one shape:
// nothing, other registers, shuffles inside the warp, or, where none of these
// serves, a round trip through shared memory.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LAYOUT_CONVERT_H
#define ATTN_LAYOUT_CONVERT_H

#include "attn/Layout/Access.h"

namespace mlir::attn {

enum class ConversionKind {
  /// Every register stays where it is.
  None,
  /// Elements stay in their threads.
  Registers,
  /// Elements stay in their warps.
  Shuffles,
  /// Elements pass through shared memory.
  Scratch
};

/// "none", "registers", "shuffles" or "scratch".
llvm::StringRef stringifyConversionKind(ConversionKind kind);

/// One step of a conversion inside a warp. It acts on the current registers.
struct ShuffleRound {
  enum class Kind {
    /// For every register pair (r, r ^ (1 << registerBit)), r with the bit
    /// clear: lanes whose bit `laneBit` is clear give r ^ (1 << registerBit)
    /// and get into it, the others give and get r: one shuffle by
    /// lane XOR (1 << laneBit) and two selects. Swaps the two bits' roles.
    Exchange,
    /// Every register is read from lane `source`(lane), which is linear:
    /// the XOR of sourceLanes over the set bits of the lane.
    Permute
  };
  Kind kind = Kind::Exchange;
  unsigned registerBit = 0;
  unsigned laneBit = 0;
  llvm::SmallVector<unsigned, 5> sourceLanes;
};

/// How to convert, and what it costs.
struct ConversionPlan {
  ConversionKind kind = ConversionKind::None;
  /// None, Registers: the source register of each result register. Shuffles:
  /// the source register that each intermediate register starts from.
  llvm::SmallVector<unsigned> initialRegisters;
  llvm::SmallVector<ShuffleRound> rounds;
  /// Shuffles: the intermediate register of each result register.
  llvm::SmallVector<unsigned> finalRegisters;
  /// Scratch: where the tile is placed, and both sides' accesses, with a
  /// barrier of the participating warps between them.
  SharedLayout scratch;
  VectorPlan stores;
  VectorPlan loads;

  /// Shuffles: true if `packing` registers that start at a multiple of it stay
  /// together between threads, so that packed elements move in whole registers.
  bool movesPacks(unsigned packing) const;
  /// Shuffles: true if they are together in the result too.
  bool keepsPacks(unsigned packing) const;

  int64_t scratchBytes() const {
    return kind == ConversionKind::Scratch ? scratch.sizeBytes() : 0;
  }
  /// Instructions of each warp: shuffles and selects, or shared accesses.
  uint64_t instructions = 0;
  /// Shared-memory wavefronts of all warps; a shuffle takes one.
  uint64_t wavefronts = 0;
  /// One number to compare plans by, in issue slots of a warp: instructions,
  /// wavefronts of a warp, and 20 for a barrier.
  uint64_t cost = 0;
};

/// Plans the conversion of a tile with elements of `elementBits` (a power of
/// two from 8 to 128) from `source` to `target`: inside of warps where elements
/// that share a register of 32 bits stay together, else through the cheapest
/// scratch buffer; never through one unless `allowScratch`. An error when the
/// shapes or the number of warps or blocks differ, when elements would have to
/// move between blocks, or when only scratch would serve and is not allowed.
llvm::Expected<ConversionPlan> planConversion(const TileLayout &source,
                                              const TileLayout &target,
                                              unsigned elementBits,
                                              bool allowScratch = true);

} // namespace mlir::attn

#endif // ATTN_LAYOUT_CONVERT_H
