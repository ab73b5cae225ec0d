//===- MatrixMath.cpp - Elements and sums of matrix products --------------===//

#include "MatrixMath.h"
#include "FloatFormat.h"
#include <cstring>

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

unsigned mlir::attn::sim::packedBits(Type type) {
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

void mlir::attn::sim::decodeElements(Type type, const uint8_t *data, unsigned n,
                                     float *to) {
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
