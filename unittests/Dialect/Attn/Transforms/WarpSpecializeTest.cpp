//===- WarpSpecializeTest.cpp - Rings between partitions, executed --------===//

#include "KernelRunner.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace mlir::attn;
using namespace mlir::attn::testing;

namespace {

constexpr int64_t kDepth = 2;

/// C (128 x 64) = A B over blocks of 64 of the contraction: a producer fills a
/// ring of two slots of A and B, two warpgroups consume it. They wait for each
/// product, or keep one in flight.
std::string ringKernel(bool inFlight, bool warpAlone) {
  // One block's product in flight: a slot is released one block later.
  std::string consumer = inFlight ? R"(
      %a0 = attn.slot %a[%zero] : !a_ring -> !a
      %b0 = attn.slot %b[%zero] : !b_ring -> !b
      attn.mbarrier.wait %full[%zero] parity %zero : !attn.mbarriers<2>
      %first = attn.wgmma %a0, %b0 : !a, !b -> !attn.inflight<128x64xf32>
      %last, %slot, %phase = scf.for %j = %one to %blocks step %one
          iter_args(%acc = %first, %i = %one, %p = %zero) -> (!attn.inflight<128x64xf32>, i32, i32) : i32 {
        %aj = attn.slot %a[%i] : !a_ring -> !a
        %bj = attn.slot %b[%i] : !b_ring -> !b
        attn.mbarrier.wait %full[%i] parity %p : !attn.mbarriers<2>
        %next = attn.wgmma %aj, %bj acc %acc : !attn.inflight<128x64xf32> : !a, !b -> !attn.inflight<128x64xf32>
        attn.wgmma.wait {pending = 1}
        %before = arith.subi %one, %i : i32
        attn.mbarrier.arrive %empty[%before] : !attn.mbarriers<2>
        %wraps = arith.cmpi eq, %i, %one : i32
        %flip = arith.extui %wraps : i1 to i32
        %phase_next = arith.xori %p, %flip : i32
        scf.yield %next, %before, %phase_next : !attn.inflight<128x64xf32>, i32, i32
      }
      %c = attn.wgmma.wait %last {pending = 0} : !attn.inflight<128x64xf32> -> tensor<128x64xf32, #attn.auto>
)"
                                  : R"(
      %none = arith.constant dense<0.0> : tensor<128x64xf32, #attn.auto>
      %c, %slot, %phase = scf.for %j = %zero to %blocks step %one
          iter_args(%acc = %none, %i = %zero, %p = %zero) -> (tensor<128x64xf32, #attn.auto>, i32, i32) : i32 {
        %aj = attn.slot %a[%i] : !a_ring -> !a
        %bj = attn.slot %b[%i] : !b_ring -> !b
        attn.mbarrier.wait %full[%i] parity %p : !attn.mbarriers<2>
        %next = attn.wgmma %aj, %bj acc %acc : tensor<128x64xf32, #attn.auto> : !a, !b -> !attn.inflight<128x64xf32>
        %sum = attn.wgmma.wait %next {pending = 0} : !attn.inflight<128x64xf32> -> tensor<128x64xf32, #attn.auto>
        attn.mbarrier.arrive %empty[%i] : !attn.mbarriers<2>
        %wraps = arith.cmpi eq, %i, %one : i32
        %flip = arith.extui %wraps : i1 to i32
        %phase_next = arith.xori %p, %flip : i32
        %slot_next = arith.subi %one, %i : i32
        scf.yield %sum, %slot_next, %phase_next : tensor<128x64xf32, #attn.auto>, i32, i32
      }
)";
  std::string consumers = R"(
    partition "consumer" warps 8 tiles [8, 1] registers 240 {)" +
                          consumer + R"(
      %id = arith.constant 1 : i32
      attn.named_barrier %id {threads = 256}
      %offset = arith.constant 0 : i64
      %rows = arith.constant 128 : i32
      %stride = arith.constant 64 : i64
      %view = attn.global_view %out[%offset] rows %rows stride %stride : !attn.global<?x64xf32>
      attn.global_store %c, %view[%zero] : tensor<128x64xf32, #attn.auto>, !attn.global<?x64xf32>
    }
)";
  std::string producer = R"({
      attn.elect {
        %slot, %phase = scf.for %j = %zero to %blocks step %one
            iter_args(%i = %zero, %p = %one) -> (i32, i32) : i32 {
          attn.mbarrier.wait %empty[%i] parity %p : !attn.mbarriers<2>
          %aj = attn.slot %a[%i] : !a_ring -> !a
          %bj = attn.slot %b[%i] : !b_ring -> !b
          %k = arith.muli %j, %width : i32
          attn.mbarrier.expect_tx %full[%i] {bytes = 24576} : !attn.mbarriers<2>
          attn.tma.load %amap[%zero, %k], %aj barrier %full[%i] : !attn.mbarriers<2> : !a_map, !a
          attn.tma.load %bmap[%k, %zero], %bj barrier %full[%i] : !attn.mbarriers<2> : !b_map, !b
          %wraps = arith.cmpi eq, %i, %one : i32
          %flip = arith.extui %wraps : i1 to i32
          %phase_next = arith.xori %p, %flip : i32
          %slot_next = arith.subi %one, %i : i32
          scf.yield %slot_next, %phase_next : i32, i32
        }
      }
    }
)";
  // A warp alone loads in front of the consumers, whose first warp is then no
  // multiple of their number, or a warpgroup does behind them.
  std::string partitions =
      warpAlone
          ? "partition \"load\" warps 1 registers 24 " + producer +
                "partition \"idle\" warps 3 registers 24 {\n}\n" + consumers
          : consumers + "partition \"producer\" warps 4 registers 24 " +
                producer;
  return R"(
!a_map = !attn.tensor_map<128x64xbf16, swizzle = 128>
!b_map = !attn.tensor_map<64x64xbf16, swizzle = 128>
!a = !attn.buffer<128x64xbf16, #attn.swizzled<span = 128>, shared>
!b = !attn.buffer<64x64xbf16, #attn.swizzled<span = 128>, shared>
!a_ring = !attn.buffer<2x128x64xbf16, #attn.swizzled<span = 128>, shared>
!b_ring = !attn.buffer<2x64x64xbf16, #attn.swizzled<span = 128>, shared>
gpu.module @kernels [#attn.target<chip = "sm_90a">] {
  gpu.func @ring(%amap: !a_map, %bmap: !b_map, %out: !llvm.ptr<1>, %blocks: i32) kernel
      attributes {known_block_size = array<i32: 384, 1, 1>, nvvm.minctasm = 1 : i32} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %width = arith.constant 64 : i32
    %a = attn.alloc {offset = 0 : i64} : !a_ring
    %b = attn.alloc {offset = 32768 : i64} : !b_ring
    %full = attn.mbarrier.alloc {offset = 49152 : i64} : !attn.mbarriers<2>
    %empty = attn.mbarrier.alloc {offset = 49168 : i64} : !attn.mbarriers<2>
    attn.elect {
      attn.mbarrier.init %full {count = 1} : !attn.mbarriers<2>
      attn.mbarrier.init %empty {count = 8} : !attn.mbarriers<2>
      attn.mbarrier.fence_init
    }
    gpu.barrier
    attn.warp_specialize
)" + partitions +
         R"(
    gpu.return
  }
})";
}

void runRing(bool inFlight, bool warpAlone) {
  KernelRunner kernel(ringKernel(inFlight, warpAlone));
  if (!kernel)
    return;
  // ptxas honours setmaxnreg only beside these.
  EXPECT_NE(kernel.ptx.find(".reqntid 384"), std::string::npos);
  EXPECT_NE(kernel.ptx.find(".minnctapersm 1"), std::string::npos);
  EXPECT_NE(kernel.ptx.find("setmaxnreg.inc.sync.aligned.u32 \t240"),
            std::string::npos);
  EXPECT_NE(kernel.ptx.find("setmaxnreg.dec.sync.aligned.u32 \t24"),
            std::string::npos);
  for (int32_t blocks : {1, 2, 3, 7}) {
    int64_t k = blocks * kBlock;
    HostTensor a = HostTensor::random(DType::BF16, {kM, k});
    HostTensor b = HostTensor::random(DType::BF16, {k, kN});
    HostTensor out = HostTensor::output(DType::F32, {kM, kN});
    kernel.clear();
    kernel.passMap(a, {kM, kBlock}, 128);
    kernel.passMap(b, {kBlock, kN}, 128);
    kernel.pass(out);
    kernel.pass(blocks);
    kernel.run(384, 49152 + 8 * 2 * kDepth);
    for (int64_t i = 0; i < kM; ++i)
      for (int64_t j = 0; j < kN; ++j) {
        double expected = 0, scale = 0;
        for (int64_t l = 0; l < k; ++l) {
          double product = a.at(i * k + l) * b.at(l * kN + j);
          expected += product;
          scale += std::abs(product);
        }
        ASSERT_NEAR(out.at(i * kN + j), expected, 1e-5 * scale)
            << blocks << " blocks, element " << i << ", " << j;
      }
  }
}

TEST(WarpSpecialize, Ring) { runRing(/*inFlight=*/false, /*warpAlone=*/false); }

TEST(WarpSpecialize, RingWithProductsInFlight) {
  runRing(/*inFlight=*/true, /*warpAlone=*/false);
}

TEST(WarpSpecialize, RingOfAWarpAlone) {
  runRing(/*inFlight=*/true, /*warpAlone=*/true);
}

} // namespace
