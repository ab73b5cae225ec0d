// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s

// The first result is taken while its group may be in flight.

// CHECK: error: result in flight: warp 3 takes a product that is not complete: of the 2 youngest groups, which may be in flight, it is number 2

gpu.module @kernels {
  gpu.func @products() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %q = attn.alloc {name = "q", offset = 0} : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    %k = attn.alloc {name = "k", offset = 8192} : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    %zero = arith.constant dense<0.0> : tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
    attn.local_store %zero, %q : tensor<64x64xf16, #attn.mma<warps = [4, 1]>>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    attn.local_store %zero, %k : tensor<64x64xf16, #attn.mma<warps = [4, 1]>>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    attn.fence.proxy_async
    gpu.barrier
    %s0 = attn.wgmma %q, %k : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.inflight<64x64xf32>
    %s1 = attn.wgmma %q, %k : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.inflight<64x64xf32>
    %t0 = attn.wgmma.wait %s0 {pending = 2} : !attn.inflight<64x64xf32> -> tensor<64x64xf32, #attn.mma<warps = [4, 1]>>
    %t1 = attn.wgmma.wait %s1 {pending = 0} : !attn.inflight<64x64xf32> -> tensor<64x64xf32, #attn.mma<warps = [4, 1]>>
    gpu.return
  }
}
