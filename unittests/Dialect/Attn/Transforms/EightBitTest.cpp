//===- EightBitTest.cpp - Tiles of 8-bit floats, executed -----------------===//

#include "KernelRunner.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace mlir::attn;
using namespace mlir::attn::testing;

namespace {

class EightBitTest : public ::testing::TestWithParam<DType> {};

/// f32 to 8 bits, through shared memory, and back, with a constant tile beside.
/// Values out of range become the largest finite ones.
TEST_P(EightBitTest, RoundTrip) {
  DType dtype = GetParam();
  std::string text = llvm::formatv(R"(
!wide = tensor<64x64xf32, #attn.mma<warps = [4, 1]>>
!narrow = tensor<64x64x{0}, #attn.mma<warps = [4, 1]>>
!buffer = !attn.buffer<64x64x{0}, #attn.swizzled<span = 64>, shared>
gpu.module @kernels [#attn.target<chip = "sm_90a">] {{
  gpu.func @convert(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>, %ones: !llvm.ptr<1>, %rows: i32) kernel
      attributes {{attn.warps = array<i64: 4, 1>, known_block_size = array<i32: 128, 1, 1>} {{
    %zero = arith.constant 0 : i32
    %offset = arith.constant 0 : i64
    %stride = arith.constant 64 : i64
    %source = attn.global_view %in[%offset] rows %rows stride %stride : !attn.global<?x64xf32>
    %dest = attn.global_view %out[%offset] rows %rows stride %stride : !attn.global<?x64xf32>
    %half = attn.global_view %ones[%offset] rows %rows stride %stride : !attn.global<?x64x{0}>
    %wide = attn.global_load %source[%zero] : !attn.global<?x64xf32> -> !wide
    %narrow = arith.truncf %wide : !wide to !narrow
    %buffer = attn.alloc {{offset = 0 : i64} : !buffer
    attn.local_store %narrow, %buffer : !narrow, !buffer
    gpu.barrier
    %again = attn.local_load %buffer : !buffer -> !narrow
    %result = arith.extf %again : !narrow to !wide
    attn.global_store %result, %dest[%zero] : !wide, !attn.global<?x64xf32>
    %one = arith.constant dense<-1.5> : !narrow
    attn.global_store %one, %half[%zero] : !narrow, !attn.global<?x64x{0}>
    gpu.return
  }
})",
                                   stringifyDType(dtype));
  KernelRunner kernel(text);
  if (!kernel)
    return;
  HostTensor in = HostTensor::random(DType::F32, {64, 64});
  double largest = dtype == DType::F8E4M3FN ? 448 : 57344;
  encodeElement(DType::F32, -1e6, in.bytes.data());
  HostTensor out = HostTensor::output(DType::F32, {64, 64});
  HostTensor ones = HostTensor::output(dtype, {64, 64});
  kernel.pass(in);
  kernel.pass(out);
  kernel.pass(ones);
  kernel.pass(64);
  kernel.run(128, 4096);
  EXPECT_EQ(out.at(0), -largest);
  for (int64_t i = 1; i < 64 * 64; ++i) {
    uint8_t narrow;
    encodeElement(dtype, in.at(i), &narrow);
    ASSERT_EQ(out.at(i), decodeElement(dtype, &narrow)) << i;
    ASSERT_EQ(ones.at(i), -1.5) << i;
  }
}

/// A product of an accumulator that becomes 8 bits and a buffer whose columns
/// are contiguous. Each grid of warps has rows and columns for all of it.
TEST_P(EightBitTest, InterleavedProduct) {
  DType dtype = GetParam();
  for (auto [warpsM, warpsN, columns] :
       {std::tuple(4, 1, 32), std::tuple(2, 1, 96), std::tuple(1, 2, 64)}) {
    constexpr int64_t rows = 64, keys = 96;
    std::string text = llvm::formatv(
        R"(
!rows = tensor<64x96xf32, #attn.mma<warps = [{1}, 1], copies = {2}>>
!p = tensor<64x96x{0}, #attn.operand<index = 0, parent = #attn.mma<warps = [{1}, 1], copies = {2}>>>
!v = tensor<96x{3}x{0}, #attn.auto>
!o = tensor<64x{3}xf32, #attn.mma<warps = [{1}, {2}], column_quads = true>>
!buffer = !attn.buffer<96x{3}x{0}, #attn.auto, shared>
gpu.module @kernels [#attn.target<chip = "sm_90a">] {{
  gpu.func @product(%in: !llvm.ptr<1>, %vs: !llvm.ptr<1>, %out: !llvm.ptr<1>) kernel
      attributes {{attn.warps = array<i64: {1}, {2}>, known_block_size = array<i32: {4}, 1, 1>} {{
    %zero = arith.constant 0 : i32
    %offset = arith.constant 0 : i64
    %rows = arith.constant 64 : i32
    %keys = arith.constant 96 : i32
    %strideP = arith.constant 96 : i64
    %strideV = arith.constant {3} : i64
    %source = attn.global_view %in[%offset] rows %rows stride %strideP : !attn.global<?x96xf32>
    %values = attn.global_view %vs[%offset] rows %keys stride %strideV {{alignment = 16 : i64} : !attn.global<?x{3}x{0}>
    %dest = attn.global_view %out[%offset] rows %rows stride %strideV : !attn.global<?x{3}xf32>
    %buffer = attn.alloc {{name = "v"} : !buffer
    attn.cp_async %values[%zero], %buffer : !attn.global<?x{3}x{0}>, !buffer
    attn.cp_async.commit
    attn.cp_async.wait {{pending = 0}
    gpu.barrier
    %wide = attn.global_load %source[%zero] : !attn.global<?x96xf32> -> !rows
    %p = attn.narrow_operand %wide : !rows -> !p
    %none = arith.constant dense<0.0> : !o
    %sum = attn.mma %p, %buffer, %none {{interleaved} : !p, !buffer, !o
    attn.global_store %sum, %dest[%zero] : !o, !attn.global<?x{3}xf32>
    gpu.return
  }
})",
        stringifyDType(dtype), warpsM, warpsN, columns, 32 * warpsM * warpsN);
    KernelRunner kernel(text);
    if (!kernel)
      return;
    HostTensor in = HostTensor::random(DType::F32, {rows, keys});
    HostTensor values = HostTensor::random(dtype, {keys, columns});
    HostTensor out = HostTensor::output(DType::F32, {rows, columns});
    kernel.pass(in);
    kernel.pass(values);
    kernel.pass(out);
    kernel.run(32 * warpsM * warpsN);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        double expected = 0, scale = 0;
        for (int64_t k = 0; k < keys; ++k) {
          uint8_t narrow;
          encodeElement(dtype, in.at(i * keys + k), &narrow);
          double product =
              decodeElement(dtype, &narrow) * values.at(k * columns + j);
          expected += product;
          scale += std::abs(product);
        }
        ASSERT_NEAR(out.at(i * columns + j), expected, scale * 1e-5)
            << "element " << i << ", " << j;
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, EightBitTest,
                         ::testing::Values(DType::F8E4M3FN, DType::F8E5M2),
                         [](const ::testing::TestParamInfo<DType> &info) {
                           return stringifyDType(info.param).str();
                         });

} // namespace
