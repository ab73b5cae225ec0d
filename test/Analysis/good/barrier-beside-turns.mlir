// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers{require-proof}))' -o /dev/null --remarks-filter='attn.check.*' 2>&1 | FileCheck %s

// Two warpgroups have barriers 1 and 2 for their turns, and then meet at 3.

// CHECK: synchronisation is proved for all tiles

gpu.module @kernels {
  gpu.func @turns(%n: i32) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c3 = arith.constant 3 : i32
    attn.warp_specialize
    partition "a" warps 8 registers 24 {
      attn.turn.start 1
      scf.for %i = %c0 to %n step %c1 : i32 {
        attn.turn.take 1
        attn.turn.pass 1
      }
      attn.named_barrier %c3 {threads = 256}
    }
    gpu.return
  }
}
