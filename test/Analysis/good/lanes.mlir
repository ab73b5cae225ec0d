// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers{require-proof}))' -o /dev/null --remarks-filter='attn.check.*' 2>&1 | FileCheck %s

// One thread of a warp writes what all of them read behind a barrier of the warp.

// CHECK: synchronisation is proved for all tiles

gpu.module @kernels {
  gpu.func @word() kernel {
    %c0 = arith.constant 0 : i32
    %lanes = arith.constant -1 : i32
    %x = attn.alloc {name = "x", offset = 0} : !attn.buffer<4xi32, #attn.rows, shared>
    attn.warp_specialize
    partition "deal" warps 1 registers 24 {
      attn.elect {
        attn.scalar_store %c0, %x[%c0] : !attn.buffer<4xi32, #attn.rows, shared>
      }
      nvvm.bar.warp.sync %lanes : i32
      %v = attn.scalar_load %x[%c0] : !attn.buffer<4xi32, #attn.rows, shared>
    }
    partition "idle" warps 3 registers 24 {
    }
    gpu.return
  }
}
