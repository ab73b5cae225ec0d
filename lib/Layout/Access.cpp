//===- Access.cpp - Addresses of register tiles in memory -----------------===//

#include "attn/Layout/Access.h"
#include "AddressAlgebra.h"
#include "Errors.h"
#include "llvm/Support/MathExtras.h"
#include <map>
#include <set>

using namespace mlir::attn;
using llvm::ArrayRef;
using llvm::Expected;
using llvm::SmallVector;

SmallVector<BitTerm, 4> mlir::attn::bitTerms(ArrayRef<int64_t> constants,
                                             bool forXor) {
  SmallVector<BitTerm, 4> result;
  // A product is the XOR of its shifted copies only where these do not overlap.
  auto extends = [&](const BitTerm &term, int64_t constant) {
    if (constant != term.scale << term.numBits)
      return false;
    for (unsigned shift = 1; forXor && shift <= term.numBits; ++shift)
      if (term.scale & (term.scale << shift))
        return false;
    return true;
  };
  for (auto [bit, constant] : llvm::enumerate(constants)) {
    if (!constant)
      continue;
    if (!result.empty() &&
        result.back().firstBit + result.back().numBits == bit &&
        extends(result.back(), constant))
      ++result.back().numBits;
    else
      result.push_back({unsigned(bit), 1, constant});
  }
  return result;
}

SmallVector<int64_t> VectorPlan::xorConstants() const {
  return distinctConstants(accesses, [](const VectorAccess &access) {
    return access.address.xorConst;
  });
}

Expected<ElementAddresses>
mlir::attn::elementAddresses(const TileLayout &tile,
                             const SharedLayout &buffer) {
  if (tile.shape() != buffer.shape()) {
    auto text = [](ArrayRef<int64_t> shape) {
      std::string result;
      llvm::raw_string_ostream os(result);
      llvm::interleave(shape, os, "x");
      return result;
    };
    return makeError("expected a buffer of the tile's shape {0}, got {1}",
                     text(tile.shape()), text(buffer.shape()));
  }
  SmallVector<Coords> constants;
  for (unsigned reg = 0; reg < tile.numRegisters(); ++reg)
    constants.push_back(tile.registerCoords(reg));
  return computeAddresses(threadBases(tile), constants, buffer,
                          buffer.viewOffsets());
}

Expected<VectorPlan> mlir::attn::planSharedAccess(const TileLayout &tile,
                                                  const SharedLayout &buffer,
                                                  unsigned maxBytes) {
  unsigned elementBytes = buffer.elementBytes();
  if (!llvm::isPowerOf2_32(maxBytes) || maxBytes > 16 ||
      maxBytes < elementBytes)
    return makeError("expected an access of {0} to 16 bytes, got {1}",
                     elementBytes, maxBytes);
  Expected<ElementAddresses> addresses = elementAddresses(tile, buffer);
  if (!addresses)
    return addresses.takeError();
  VectorPlan plan;
  plan.forms.push_back(addresses->form);
  plan.laneBroadcastMask = tile.laneBroadcastMask();
  plan.warpBroadcastMask = tile.warpBroadcastMask();
  plan.blockBroadcastMask = tile.blockBroadcastMask();

  std::map<std::pair<int64_t, int64_t>, unsigned> first;
  SmallVector<unsigned> originals;
  for (unsigned reg = 0; reg < tile.numRegisters(); ++reg) {
    const AccessAddress &address = addresses->registers[reg];
    auto [place, isNew] =
        first.try_emplace({address.xorConst, address.addConst}, reg);
    if (isNew)
      originals.push_back(reg);
    else
      plan.copies.push_back({reg, place->second});
  }
  for (unsigned bytes = maxBytes; bytes >= elementBytes; bytes /= 2) {
    plan.bytes = bytes;
    plan.accesses.clear();
    std::map<std::pair<int64_t, int64_t>, unsigned> accessAt;
    unsigned filled = 0;
    for (unsigned reg : originals) {
      AccessAddress address = addresses->registers[reg];
      int64_t low = address.addConst % bytes;
      address.addConst -= low;
      auto [place, isNew] = accessAt.try_emplace(
          {address.xorConst, address.addConst}, plan.accesses.size());
      if (isNew) {
        plan.accesses.push_back({{}, address});
        plan.accesses.back().registers.assign(bytes / elementBytes, 0);
      }
      plan.accesses[place->second].registers[low / elementBytes] = reg;
      ++filled;
    }
    // Every access is full, since no two originals share an address: its low
    // address bits have registers as their sources and hence no threads. Single
    // elements always are.
    if (filled == plan.accesses.size() * (bytes / elementBytes))
      break;
  }
  return plan;
}

/// Sectors of 32 bytes that warp 0 touches with one access.
static double sectorEfficiency(const TileLayout &tile, const GlobalPlan &plan,
                               unsigned elementBytes) {
  std::set<std::pair<Coords, int64_t>> sectors, pieces;
  int64_t pieceBytes = int64_t(plan.width) * elementBytes;
  for (unsigned lane = 0; lane < TileLayout::numLanes; ++lane) {
    unsigned reg = plan.accesses.front().registers.front();
    Coords coords = tile.coords({reg, lane, 0, 0});
    int64_t byte = coords[plan.contiguousDim] * elementBytes;
    coords[plan.contiguousDim] = 0;
    pieces.insert({coords, byte});
    for (int64_t at = byte / 32; at <= (byte + pieceBytes - 1) / 32; ++at)
      sectors.insert({coords, at});
  }
  return double(pieces.size() * pieceBytes) / (sectors.size() * 32.0);
}

Expected<GlobalPlan> mlir::attn::planGlobalAccess(const TileLayout &tile,
                                                  unsigned contiguousDim,
                                                  unsigned elementBits,
                                                  unsigned maxBytes) {
  if (contiguousDim >= tile.rank())
    return makeError("expected a dimension below {0}, got {1}", tile.rank(),
                     contiguousDim);
  if (elementBits < 8 || !llvm::isPowerOf2_32(elementBits) ||
      !llvm::isPowerOf2_32(maxBytes) || maxBytes > 32 ||
      maxBytes * 8 < elementBits)
    return makeError("expected elements of at least 8 bits in an access of up "
                     "to 32 bytes, got {0} bits in {1} bytes",
                     elementBits, maxBytes);
  if (!tile.isDisjoint())
    return makeError("expected a tile whose coordinate bits have one source");
  GlobalPlan plan;
  plan.contiguousDim = contiguousDim;
  plan.laneBroadcastMask = tile.laneBroadcastMask();
  plan.warpBroadcastMask = tile.warpBroadcastMask();
  plan.blockBroadcastMask = tile.blockBroadcastMask();
  for (unsigned dim = 0; dim < tile.rank(); ++dim) {
    plan.laneBases.push_back(tile.laneBases(dim));
    plan.warpBases.push_back(tile.warpBases(dim));
    plan.blockBases.push_back(tile.blockBases(dim));
  }

  std::map<Coords, unsigned> first;
  SmallVector<unsigned> originals;
  for (unsigned reg = 0; reg < tile.numRegisters(); ++reg) {
    auto [place, isNew] = first.try_emplace(tile.registerCoords(reg), reg);
    if (isNew)
      originals.push_back(reg);
    else
      plan.copies.push_back({reg, place->second});
  }
  // Bits have one source each, so that registers which fill a run are the only
  // ones in it. A width of one element always serves.
  for (unsigned width = maxBytes * 8 / elementBits; width >= 1; width /= 2) {
    plan.width = width;
    plan.accesses.clear();
    std::map<Coords, unsigned> accessAt;
    for (unsigned reg : originals) {
      Coords coords = tile.registerCoords(reg);
      unsigned low = coords[contiguousDim] % width;
      coords[contiguousDim] -= low;
      auto [place, isNew] = accessAt.try_emplace(coords, plan.accesses.size());
      if (isNew) {
        plan.accesses.push_back({{}, coords});
        plan.accesses.back().registers.assign(width, 0);
      }
      plan.accesses[place->second].registers[low] = reg;
    }
    if (originals.size() == plan.accesses.size() * width)
      break;
  }
  plan.sectorEfficiency = sectorEfficiency(tile, plan, elementBits / 8);
  return plan;
}
