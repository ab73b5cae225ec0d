//===- MatrixDescriptorTest.cpp - Descriptors against the ISA's strides ---===//

#include "attn/Layout/MatrixDescriptor.h"
#include "LayoutTesting.h"

using namespace mlir::attn;
using namespace mlir::attn::testing;

/// Fields of a descriptor (PTX ISA, "Matrix Descriptor Format").
struct Fields {
  uint64_t start, leading, stride;
  unsigned span;

  explicit Fields(uint64_t d)
      : start((d & 0x3fff) << 4), leading((d >> 16 & 0x3fff) << 4),
        stride((d >> 32 & 0x3fff) << 4) {
    const unsigned spans[] = {0, 128, 64, 32};
    span = spans[d >> 62];
    EXPECT_EQ(d >> 49 & 7, 0u) << "base offset";
  }
  uint64_t swizzle(uint64_t address) const {
    return address ^ (address >> 3 & (span - 16));
  }
  /// The byte at row `mn` and byte `k` of an operand that is contiguous along
  /// K, and the reverse (canonical layouts with swizzle).
  uint64_t kMajor(int64_t mn, int64_t k) const {
    return swizzle(start + mn / 8 * stride + mn % 8 * span + k);
  }
  uint64_t mnMajor(int64_t mnByte, int64_t k) const {
    return swizzle(start + mnByte / span * leading + k / 8 * stride +
                   k % 8 * span + mnByte % span);
  }
};

TEST(MatrixDescriptor, Recorded) {
  // FlashAttention-4's kernel for sm_90a: K (128 x 128) as N x K, V (128 x 128)
  // as K x N.
  SharedLayout tile = unwrap(SharedLayout::swizzled(128, 128, 16, 128));
  EXPECT_EQ(unwrap(describeMatrix(tile)).encode(0x8400),
            0x4000004000010000u | 0x840);
  MatrixDescriptor v = unwrap(describeMatrix(tile.transposed()));
  EXPECT_TRUE(v.mnMajor);
  EXPECT_EQ(v.encode(0x8400), 0x4000004004000000u | 0x840);
  // Bits of the CTA's rank in its cluster do not count.
  EXPECT_EQ(v.encode(0x3008400), v.encode(0x8400));
}

TEST(MatrixDescriptor, ReachesEveryElement) {
  for (unsigned bits : {8, 16})
    for (unsigned span : {32, 64, 128})
      for (int64_t spans : {1, 2, 3, 5})
        for (int64_t rows : {16, 64, 80, 96, 176, 256}) {
          int64_t bytes = bits / 8, cols = spans * span / bytes;
          SharedLayout tile =
              unwrap(SharedLayout::swizzled(rows, cols, bits, span));
          int64_t step = MatrixDescriptor::kStepBytes / bytes;
          const uint32_t base = 0x400 * 5;
          // Rows x K: each step starts at the offset of its first element.
          MatrixDescriptor k = unwrap(describeMatrix(tile));
          ASSERT_FALSE(k.mnMajor);
          for (int64_t first = 0; first < cols; first += step) {
            Fields fields(k.encode(base + tile.offset({0, first})));
            for (int64_t row = 0; row < rows; ++row)
              for (int64_t i = 0; i < step; ++i)
                ASSERT_EQ(fields.kMajor(row, i * bytes) - base,
                          static_cast<uint64_t>(tile.offset({row, first + i})))
                    << tile.str() << " row " << row << " k " << first + i;
          }
          // The same memory as K x rows.
          MatrixDescriptor mn = unwrap(
              describeMatrix(tile.transposed(), MatrixInstruction::Tcgen05));
          ASSERT_TRUE(mn.mnMajor);
          for (int64_t first = 0; first + step <= rows; first += step) {
            Fields fields(mn.encode(base + tile.offset({first, 0})));
            for (int64_t i = 0; i < step; ++i)
              for (int64_t col = 0; col < cols; ++col)
                ASSERT_EQ(fields.mnMajor(col * bytes, i) - base,
                          static_cast<uint64_t>(tile.offset({first + i, col})))
                    << tile.str() << " col " << col << " k " << first + i;
          }
        }
}

TEST(MatrixDescriptor, Refuses) {
  auto message = [](const SharedLayout &layout) {
    llvm::Expected<MatrixDescriptor> result = describeMatrix(layout);
    return result ? std::string() : llvm::toString(result.takeError());
  };
  EXPECT_EQ(message(unwrap(SharedLayout::linear(64, 16))),
            "expected a matrix of rank 2, got rank 1");
  EXPECT_EQ(message(unwrap(SharedLayout::swizzled(64, 40, 16, 0))),
            "expected a swizzle of 32, 64 or 128 bytes for a matrix "
            "descriptor, got none");
  EXPECT_EQ(
      message(unwrap(SharedLayout::swizzled(64, 128, 8, 128)).transposed()),
      "expected elements of 16 bits in a matrix that is not contiguous along "
      "the contraction, got 8 bits");
  expectError(
      describeMatrix(
          unwrap(SharedLayout::swizzled(64, 32, 32, 128)).transposed(),
          MatrixInstruction::Tcgen05),
      "expected elements of 8 or 16 bits in a matrix that is not contiguous "
      "along the contraction, got 32 bits");
  EXPECT_EQ(
      message(unwrap(SharedLayout::swizzled(4096, 128, 16, 128)).transposed()),
      "expected strides of at most 262128 bytes in a matrix descriptor, got "
      "524288 and 1024");
}
