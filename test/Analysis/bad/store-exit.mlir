// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s

// The CTA exits while a store may read its memory.

// CHECK: error: exit in flight: warp 0 exits while this access to 'o' may be in flight
// CHECK: note: it starts here; an attn.tma.wait has to cover its group

gpu.module @kernels {
  gpu.func @store(%map: !attn.tensor_map<1x1x64x64xf16, swizzle = 128>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c3 = arith.constant 3 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
    %o = attn.alloc {name = "o", offset = 0} : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    scf.for %i = %c0 to %c1 step %c1 : i32 {
      attn.local_store %zero, %o : tensor<64x64xf16, #attn.mma<warps = [4, 1]>>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
      attn.fence.proxy_async
      gpu.barrier
      attn.elect {
        attn.tma.store %o, %map[%c0, %c0, %i, %c0] : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>, !attn.tensor_map<1x1x64x64xf16, swizzle = 128>
        attn.tma.commit
      }
      gpu.barrier
    }
    gpu.return
  }
}
