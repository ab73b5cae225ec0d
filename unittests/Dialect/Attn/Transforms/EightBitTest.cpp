//===- EightBitTest.cpp - Tiles of 8-bit floats, executed -----------------===//

#include "KernelRunner.h"
#include "llvm/Support/FormatVariadic.h"

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

INSTANTIATE_TEST_SUITE_P(Types, EightBitTest,
                         ::testing::Values(DType::F8E4M3FN, DType::F8E5M2),
                         [](const ::testing::TestParamInfo<DType> &info) {
                           return stringifyDType(info.param).str();
                         });

} // namespace
