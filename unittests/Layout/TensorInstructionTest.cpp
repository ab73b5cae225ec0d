//===- TensorInstructionTest.cpp - Shapes of tcgen05.mma ------------------===//

#include "attn/Layout/TensorInstruction.h"
#include "LayoutTesting.h"

using namespace mlir::attn;
using namespace mlir::attn::testing;

TEST(TensorInstruction, Recorded) {
  // FlashAttention-4's kernel for one CTA of sm_100a: bf16, M = N = 128, K and
  // V.
  TensorInstruction product =
      unwrap(chooseTensorInstruction(128, 128, 128, 16));
  EXPECT_EQ(product.k, 16);
  EXPECT_EQ(
      product.encode(TensorOperand::BF16, false, TensorOperand::BF16, false),
      0x8200490u);
  EXPECT_EQ(
      product.encode(TensorOperand::BF16, false, TensorOperand::BF16, true),
      0x8210490u);
  EXPECT_EQ(product.encode(TensorOperand::F16, true, TensorOperand::F16, false),
            0x8208010u);
}

/// PTX ISA, instruction descriptor of kind::f8f6f4: e4m3 is 0 and e5m2 is 1 in
/// bits 7 to 9 for A and 10 to 12 for B; f32 is 1 in bits 4 and 5; bit 16 is an
/// MN-major B; N / 8 starts at bit 17, M / 16 at bit 24.
TEST(TensorInstruction, NarrowOperands) {
  constexpr TensorOperand e4m3 = TensorOperand::E4M3,
                          e5m2 = TensorOperand::E5M2;
  TensorInstruction product = unwrap(chooseTensorInstruction(128, 128, 64, 8));
  EXPECT_EQ(product.k, 32);
  EXPECT_EQ(product.n, 128);
  EXPECT_EQ(product.encode(e4m3, false, e4m3, false), 0x8200010u);
  EXPECT_EQ(product.encode(e5m2, false, e4m3, false), 0x8200090u);
  EXPECT_EQ(product.encode(e4m3, false, e5m2, false), 0x8200410u);
  EXPECT_EQ(product.encode(e5m2, false, e5m2, true), 0x8210490u);
  EXPECT_EQ(getTensorKind(e4m3), "f8f6f4");
  EXPECT_EQ(getTensorKind(e5m2), "f8f6f4");
  EXPECT_EQ(getTensorKind(TensorOperand::BF16), "f16");
  expectError(chooseTensorInstruction(128, 64, 48, 8),
              "expected K in steps of 32 for M = 128, got 48; the nearest are "
              "32 and 64");
  // An MN-major B has N in steps of 16 with M = 64 as well.
  EXPECT_EQ(unwrap(chooseTensorInstruction(64, 24, 32, 8)).n, 24);
  expectError(chooseTensorInstruction(64, 24, 32, 8, 32),
              "expected N in steps of 16 for M = 64, got 24; the nearest are "
              "16 and 32");
}

/// PTX ISA, matrix shapes of kind::f16 with cta_group::1.
TEST(TensorInstruction, ShapesAreLegalAndCoverN) {
  for (int64_t m : {64, 128})
    for (int64_t n = 1; n <= 512; ++n) {
      auto product = chooseTensorInstruction(m, n, 64, 16);
      int64_t step = m == 64 ? 8 : 16;
      ASSERT_EQ(bool(product), n % step == 0) << m << " x " << n;
      if (!product) {
        llvm::consumeError(product.takeError());
        continue;
      }
      EXPECT_EQ(product->m, m);
      EXPECT_LE(product->n, 256);
      EXPECT_EQ(product->n % step, 0);
      EXPECT_EQ(n % product->n, 0);
      // No larger one divides n.
      for (int64_t more = product->n + step; more <= 256; more += step)
        EXPECT_NE(n % more, 0) << m << " x " << n;
    }
}

TEST(TensorInstruction, PiecesOfWholeSpans) {
  EXPECT_EQ(unwrap(chooseTensorInstruction(64, 320, 64, 16)).n, 160);
  EXPECT_EQ(unwrap(chooseTensorInstruction(64, 320, 64, 16, 64)).n, 64);
  EXPECT_EQ(unwrap(chooseTensorInstruction(128, 512, 64, 16, 64)).n, 256);
  // One piece starts where B does.
  EXPECT_EQ(unwrap(chooseTensorInstruction(128, 80, 64, 16, 64)).n, 80);
  expectError(chooseTensorInstruction(128, 272, 64, 16, 64),
              "expected 272 columns to be pieces of whole spans of 64 in steps "
              "of 16, got none");
}

TEST(TensorInstruction, NearestShapes) {
  expectError(chooseTensorInstruction(96, 64, 64, 16),
              "expected M = 64 or M = 128, got 96; the nearest are 64 and 128");
  expectError(chooseTensorInstruction(256, 64, 64, 16),
              "expected M = 64 or M = 128, got 256; the nearest is 128");
  expectError(chooseTensorInstruction(32, 64, 64, 16),
              "expected M = 64 or M = 128, got 32; the nearest is 64");
  expectError(chooseTensorInstruction(128, 8, 64, 16),
              "expected N in steps of 16 for M = 128, got 8; the nearest is "
              "16");
  expectError(chooseTensorInstruction(64, 44, 64, 16),
              "expected N in steps of 8 for M = 64, got 44; the nearest are 40 "
              "and 48");
  expectError(chooseTensorInstruction(128, 64, 24, 16),
              "expected K in steps of 16 for M = 128, got 24; the nearest are "
              "16 and 32");
}

TEST(TensorInstruction, OfBothCtasOfAPair) {
  TensorInstruction product = unwrap(choosePairInstruction(128, 128, 64, 16));
  EXPECT_EQ(product.m, 256);
  EXPECT_EQ(product.n, 128);
  EXPECT_EQ(product.k, 16);
  // PTX ISA, "Instruction descriptor": M / 16 from bit 24, N / 8 from bit 17.
  EXPECT_EQ(
      product.encode(TensorOperand::F16, false, TensorOperand::F16, false),
      16u << 24 | 16u << 17 | 1u << 4);
  EXPECT_EQ(unwrap(choosePairInstruction(128, 32, 64, 8)).k, 32);
  EXPECT_EQ(unwrap(choosePairInstruction(128, 256, 64, 8, 128)).n, 256);
  EXPECT_EQ(unwrap(choosePairInstruction(64, 256, 64, 16)).m, 128);
  expectError(choosePairInstruction(32, 128, 64, 16),
              "expected 64 or 128 rows in each CTA of a pair, got 32");
  expectError(choosePairInstruction(128, 24, 64, 16),
              "expected N in steps of 16 for M = 256, got 24; the nearest are "
              "16 and 32");
  expectError(choosePairInstruction(128, 48, 64, 8, 64),
              "expected N in steps of 32 for M = 256, got 48; the nearest are "
              "32 and 64");
  expectError(choosePairInstruction(128, 128, 24, 16),
              "expected K in steps of 16 for M = 256, got 24; the nearest are "
              "16 and 32");
  expectError(choosePairInstruction(128, 512, 64, 16),
              "expected at most 256 columns in a product of a pair, got 512");
}
