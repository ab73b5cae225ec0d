//===- SharedMatrix.cpp - Products' operands in shared memory -------------===//

#include "SharedMatrix.h"
#include "../Numerics/MatrixMath.h"
#include <cstring>

using namespace mlir::attn::sim;

/// Whether all of sixteen bytes were written.
static bool areWritten(const uint8_t *valid) {
  uint64_t halves[2];
  std::memcpy(halves, valid, 16);
  return (halves[0] & halves[1]) == 0x0101010101010101;
}

bool mlir::attn::sim::readMatrix(const Cta &cta, const MatrixDescriptor &d,
                                 Type type, bool mnMajor, unsigned firstRow,
                                 unsigned rows, unsigned k, MatrixTile &tile,
                                 TileOrder order, bool dense) {
  unsigned bytes = std::max(1u, bitWidth(type) / 8);
  unsigned bits = packedBits(type), perChunk = dense ? 32 : 16 / bytes;
  tile.rows = rows;
  tile.k = k;
  tile.values.resize(size_t(rows) * k);
  tile.undefined.assign(rows, 0);
  // Sixteen bytes along the major dimension are contiguous in every layout.
  unsigned outer = mnMajor ? k : rows, inner = mnMajor ? rows : k;
  bool sameOrder = mnMajor == (order == TileOrder::ByK);
  for (unsigned o = 0; o < outer; ++o)
    for (unsigned i = 0; i < inner; i += perChunk) {
      uint32_t address = mnMajor ? d.mnMajor((firstRow + i) * bytes, o)
                                 : d.kMajor(firstRow + o, i / perChunk * 16);
      unsigned n = std::min(perChunk, inner - i);
      uint32_t offset = address - SharedBase;
      if (address < SharedBase || offset + n * bits / 8 > cta.shared.size())
        return false;
      const uint8_t *data = cta.shared.data() + offset;
      if (sameOrder) {
        decodeElements(type, data, n, &tile.values[size_t(o) * inner + i]);
      } else {
        float values[32];
        decodeElements(type, data, n, values);
        for (unsigned e = 0; e < n; ++e)
          tile.values[size_t(i + e) * outer + o] = values[e];
      }
      const uint8_t *valid = cta.sharedValid.data() + offset;
      if (n * bits == 128 && areWritten(valid))
        continue;
      for (unsigned e = 0; e < n; ++e)
        for (unsigned b = e * bits / 8; b < (e * bits + bits + 7) / 8; ++b)
          if (!valid[b])
            tile.undefined[mnMajor ? i + e : o] = tile.anyUndefined = true;
    }
  return true;
}
