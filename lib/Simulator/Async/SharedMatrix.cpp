//===- SharedMatrix.cpp - Products' operands in shared memory -------------===//

#include "SharedMatrix.h"
#include "../Numerics/MatrixMath.h"

using namespace mlir::attn::sim;

bool mlir::attn::sim::readMatrix(const Cta &cta, const MatrixDescriptor &d,
                                 Type type, bool mnMajor, unsigned firstRow,
                                 unsigned rows, unsigned k, MatrixTile &tile,
                                 bool dense) {
  unsigned bytes = std::max(1u, bitWidth(type) / 8);
  unsigned bits = packedBits(type), perChunk = dense ? 32 : 16 / bytes;
  tile.rows = rows;
  tile.k = k;
  tile.values.assign(size_t(rows) * k, 0);
  tile.undefined.assign(rows, 0);
  // Sixteen bytes along the major dimension are contiguous in every layout.
  unsigned outer = mnMajor ? k : rows, inner = mnMajor ? rows : k;
  for (unsigned o = 0; o < outer; ++o)
    for (unsigned i = 0; i < inner; i += perChunk) {
      uint32_t address = mnMajor ? d.mnMajor((firstRow + i) * bytes, o)
                                 : d.kMajor(firstRow + o, i / perChunk * 16);
      unsigned n = std::min(perChunk, inner - i);
      uint32_t offset = address - SharedBase;
      if (address < SharedBase || offset + n * bits / 8 > cta.shared.size())
        return false;
      float values[32];
      decodeElements(type, cta.shared.data() + offset, n, values);
      const uint8_t *valid = cta.sharedValid.data() + offset;
      for (unsigned e = 0; e < n; ++e) {
        unsigned row = mnMajor ? i + e : o;
        tile.values[size_t(row) * k + (mnMajor ? o : i + e)] = values[e];
        for (unsigned b = e * bits / 8; b < (e * bits + bits + 7) / 8; ++b)
          if (!valid[b])
            tile.undefined[row] = tile.anyUndefined = true;
      }
    }
  return true;
}
