// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s

// The least number has no positive one: its absolute value is the number itself.

// CHECK: error: deadlock: 'a' waits for phase 0 of named barrier 1, which lacks 4 of 8 arrivals

gpu.module @kernels {
  gpu.func @least() kernel {
    %c0 = arith.constant 0 : i32
    %id = arith.constant 1 : i32
    %least = arith.constant -2147483648 : i32
    attn.warp_specialize
    partition "a" warps 4 registers 128 {
      %size = math.absi %least : i32
      %is_negative = arith.cmpi sle, %size, %c0 : i32
      scf.if %is_negative {
        attn.named_barrier %id {threads = 256}
      }
    }
    partition "b" warps 4 registers 128 {
    }
    gpu.return
  }
}
