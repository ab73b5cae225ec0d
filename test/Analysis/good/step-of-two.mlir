// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers{require-proof}))' -o /dev/null --remarks-filter='attn.check.*' 2>&1 | FileCheck %s

// Two barriers a trip, of half as many trips.

// CHECK: synchronisation is proved for all tiles

gpu.module @kernels {
  gpu.func @trips(%n: i32) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    attn.warp_specialize
    partition "a" warps 4 registers 24 {
      scf.for %i = %c0 to %n step %c2 : i32 {
        attn.named_barrier %c1 {threads = 256}
        attn.named_barrier %c1 {threads = 256}
      }
    }
    partition "b" warps 4 registers 24 {
      %more = arith.addi %n, %c1 : i32
      %half = arith.divui %more, %c2 : i32
      %even = arith.muli %half, %c2 : i32
      scf.for %i = %c0 to %even step %c1 : i32 {
        attn.named_barrier %c1 {threads = 256}
      }
    }
    gpu.return
  }
}
