// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s

// An odd number of trips: those of two barriers are one more.

// CHECK: error: deadlock: 'a' waits for phase 1 of named barrier 1, which lacks 4 of 8 arrivals from 'b', which exited
// CHECK: note: where argument 0 is 1

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
      scf.for %i = %c0 to %n step %c1 : i32 {
        attn.named_barrier %c1 {threads = 256}
      }
    }
    gpu.return
  }
}
