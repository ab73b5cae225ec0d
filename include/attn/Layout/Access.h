//===- Access.h - Addresses of register tiles in memory ---------*- C++ -*-===//
//
// The address algebra of the lowering. For a register tile and a buffer layout
// the byte address of an access is always
//
//   base + add + (xor)      with
//   add = access.addConst + sum of the form's add constants over set bits
//   xor = access.xorConst ^ XOR of the form's xor constants over set bits
//
// where the bits are those of the lane, warp and block index. The form is the
// part that depends on the thread: it is computed once and shared by all
// accesses. Constants are normalised: whatever cannot collide with a bit of the
// form moves from xorConst to addConst, so that it becomes an immediate offset,
// and only as many different xorConst are left as the swizzle makes necessary.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LAYOUT_ACCESS_H
#define ATTN_LAYOUT_ACCESS_H

#include "attn/Layout/AddressForm.h"
#include "attn/Layout/SharedLayout.h"
#include "attn/Layout/TileLayout.h"

namespace mlir::attn {

/// What one bit field of an index adds to an address or coordinate:
/// ((index >> firstBit) & ((1 << numBits) - 1)) * scale.
struct BitTerm {
  unsigned firstBit = 0;
  unsigned numBits = 1;
  int64_t scale = 0;

  int64_t evaluate(int64_t index) const {
    return ((index >> firstBit) & ((int64_t(1) << numBits) - 1)) * scale;
  }
};

/// The shortest list of terms whose sum (equally: whose XOR, when `forXor`) is
/// the sum (XOR) of the constants of the set bits. Use it to emit few
/// instructions: (lane & 7) * 144 instead of three selects.
llvm::SmallVector<BitTerm, 4> bitTerms(llvm::ArrayRef<int64_t> constants,
                                       bool forXor);

/// One ld.shared or st.shared (vector) of each thread.
struct VectorAccess {
  /// Tile registers in memory order.
  llvm::SmallVector<unsigned, 8> registers;
  AccessAddress address;
};

/// Shared loads or stores of a whole register tile.
struct VectorPlan {
  unsigned bytes = 0;
  llvm::SmallVector<AddressForm, 1> forms;
  llvm::SmallVector<VectorAccess> accesses;
  /// Registers that hold the element of another register: (copy, original).
  /// A load copies them; a store ignores them.
  llvm::SmallVector<std::pair<unsigned, unsigned>> copies;
  /// Lane, warp and block bits that only select copies: a store may be
  /// predicated on these bits being zero.
  unsigned laneBroadcastMask = 0;
  unsigned warpBroadcastMask = 0;
  unsigned blockBroadcastMask = 0;

  /// The different xorConst values: address registers that a lowering keeps.
  llvm::SmallVector<int64_t> xorConstants() const;
};

/// Addresses of single elements of a tile in a buffer of the same rank; element
/// coordinates are relative to the buffer's (view's) first element. An error
/// when the shapes do not fit or an address is not of the form.
llvm::Expected<ElementAddresses> elementAddresses(const TileLayout &tile,
                                                  const SharedLayout &buffer);

/// Plans vector accesses of up to `maxBytes` (a power of two up to 16) a
/// thread.
llvm::Expected<VectorPlan> planSharedAccess(const TileLayout &tile,
                                            const SharedLayout &buffer,
                                            unsigned maxBytes = 16);

/// One vector access of a thread to a strided tensor in global memory.
struct GlobalAccess {
  /// Tile registers in memory order.
  llvm::SmallVector<unsigned, 8> registers;
  /// Constant part of the first element's coordinates; the thread's part is the
  /// same for all accesses (GlobalPlan).
  Coords coords;
};

/// Direct vector loads or stores of a register tile. The thread's coordinates
/// along dim d are the sum of laneBases[d], warpBases[d] and blockBases[d] over
/// set bits.
struct GlobalPlan {
  /// Elements for each access.
  unsigned width = 0;
  unsigned contiguousDim = 0;
  llvm::SmallVector<llvm::SmallVector<int64_t, 5>, 2> laneBases;
  llvm::SmallVector<llvm::SmallVector<int64_t, 4>, 2> warpBases;
  llvm::SmallVector<llvm::SmallVector<int64_t, 2>, 2> blockBases;
  llvm::SmallVector<GlobalAccess> accesses;
  llvm::SmallVector<std::pair<unsigned, unsigned>> copies;
  unsigned laneBroadcastMask = 0;
  unsigned warpBroadcastMask = 0;
  unsigned blockBroadcastMask = 0;
  /// Bytes that one warp-wide access touches, over the 32-byte sectors that it
  /// needs for them: 1 is fully coalesced (rows assumed not adjacent).
  double sectorEfficiency = 0;
};

/// Plans accesses of at most `maxBytes` a thread, where memory is contiguous
/// along `contiguousDim` and rows are aligned to `maxBytes`.
llvm::Expected<GlobalPlan> planGlobalAccess(const TileLayout &tile,
                                            unsigned contiguousDim,
                                            unsigned elementBits,
                                            unsigned maxBytes = 16);

} // namespace mlir::attn

#endif // ATTN_LAYOUT_ACCESS_H
