//===- MatrixMath.cpp - Operands of matrix products, and their sums -------===//

#include "../Numerics/FloatFormat.h"
#include "MatrixDescriptor.h"

using namespace mlir::attn::sim;

float mlir::attn::sim::decodeMatrixElement(Type type, uint32_t bits) {
  switch (type) {
  case Type::F16:
    return halfToFloat(bits);
  case Type::BF16:
    return bfloatToFloat(bits);
  case Type::TF32:
    return bitCast<float>(bits & 0xffffe000);
  case Type::U8:
    return float(uint8_t(bits));
  case Type::S8:
    return float(int8_t(bits));
  default:
    return float(decodeFloat(bits, formatOf(type)));
  }
}

namespace {

/// Bits of an element in memory, without the padding behind sixteen of them.
unsigned packedBits(Type type) {
  switch (type) {
  case Type::E2M1:
    return 4;
  case Type::E2M3:
  case Type::E3M2:
    return 6;
  default:
    return bitWidth(type);
  }
}

/// Decodes `n` elements of a type.
void decodeElements(Type type, const uint8_t *data, unsigned n, float *to) {
  switch (packedBits(type)) {
  case 4:
    for (unsigned i = 0; i < n; ++i)
      to[i] = decodeMatrixElement(type, data[i / 2] >> (4 * (i % 2)) & 15);
    return;
  case 6:
    for (unsigned i = 0; i < n; ++i) {
      uint16_t bits;
      std::memcpy(&bits, data + 6 * i / 8, 2);
      to[i] = decodeMatrixElement(type, bits >> (6 * i % 8) & 63);
    }
    return;
  case 16:
    for (unsigned i = 0; i < n; ++i) {
      uint16_t bits;
      std::memcpy(&bits, data + 2 * i, 2);
      to[i] = type == Type::BF16 ? bfloatToFloat(bits) : halfToFloat(bits);
    }
    return;
  case 32:
    for (unsigned i = 0; i < n; ++i) {
      uint32_t bits;
      std::memcpy(&bits, data + 4 * i, 4);
      to[i] = decodeMatrixElement(type, bits);
    }
    return;
  default:
    for (unsigned i = 0; i < n; ++i)
      to[i] = decodeMatrixElement(type, data[i]);
  }
}

} // namespace

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

template <unsigned Width>
static inline void addProductsBy(float *row, const float *a, const float *b,
                                 unsigned n, unsigned k) {
  // A strip of the row stays in registers over all of k.
  unsigned j = 0;
  for (; j + Width <= n; j += Width) {
    float sum[Width];
    for (unsigned e = 0; e < Width; ++e)
      sum[e] = row[j + e];
    for (unsigned i = 0; i < k; ++i)
      for (unsigned e = 0; e < Width; ++e)
        sum[e] += a[i] * b[size_t(i) * n + j + e];
    for (unsigned e = 0; e < Width; ++e)
      row[j + e] = sum[e];
  }
  for (; j < n; ++j)
    for (unsigned i = 0; i < k; ++i)
      row[j] += a[i] * b[size_t(i) * n + j];
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void
addProductsWide(float *row, const float *a, const float *b, unsigned n,
                unsigned k) {
  addProductsBy<64>(row, a, b, n, k);
}
#endif

void mlir::attn::sim::addProducts(float *row, const float *a, const float *b,
                                  unsigned n, unsigned k) {
#if defined(__x86_64__)
  static const bool wide = __builtin_cpu_supports("avx2");
  if (wide)
    return addProductsWide(row, a, b, n, k);
#endif
  addProductsBy<16>(row, a, b, n, k);
}
