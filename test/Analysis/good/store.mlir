// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers{require-proof}))' -o /dev/null --remarks-filter='attn.check.*' 2>&1 | FileCheck %s

// A buffer is stored by TMA, and written anew when it has been read.

// CHECK: synchronisation is proved for all tiles

gpu.module @kernels {
  gpu.func @store(%map: !attn.tensor_map<1x1x64x64xf16, swizzle = 128>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c3 = arith.constant 3 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
    %o = attn.alloc {name = "o", offset = 0} : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    scf.for %i = %c0 to %c3 step %c1 : i32 {
      attn.local_store %zero, %o : tensor<64x64xf16, #attn.mma<warps = [4, 1]>>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
      attn.fence.proxy_async
      gpu.barrier
      attn.elect {
        attn.tma.store %o, %map[%c0, %c0, %i, %c0] : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>, !attn.tensor_map<1x1x64x64xf16, swizzle = 128>
        attn.tma.commit
        attn.tma.wait {pending = 0, read}
      }
      gpu.barrier
    }
    gpu.return
  }
}
