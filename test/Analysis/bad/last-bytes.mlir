// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s

// The last four bytes of a buffer are those of another one.

// CHECK: error: race: write by warp 7 of 'k', whose bytes are also those of 'x' is not ordered after write by warp 0
// CHECK: note: the write

gpu.module @kernels {
  gpu.func @overlay() kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c3 = arith.constant 3 : i32
    %k = attn.alloc {name = "k", offset = 0} : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    %x = attn.alloc {name = "x", offset = 8176} : !attn.buffer<4xi32, #attn.rows, shared>
    attn.warp_specialize
    partition "a" warps 4 registers 24 {
      attn.elect {
        attn.scalar_store %c1, %x[%c3] : !attn.buffer<4xi32, #attn.rows, shared>
      }
    }
    partition "b" warps 4 tiles [4, 1] registers 128 {
      %v = arith.constant dense<2.0> : tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
      attn.local_store %v, %k : tensor<64x64xf16, #attn.mma<warps = [4, 1]>>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    }
    gpu.return
  }
}
