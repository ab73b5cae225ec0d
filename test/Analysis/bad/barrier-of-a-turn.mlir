// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s

// The barrier of a turn is used once more behind the turns, of which one is left over.

// CHECK: error: arrival in the wrong generation: the arrival of warp {{[0-7]}} at named barrier 1 is not ordered after its previous generation: it may count there

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
      attn.named_barrier %c1 {threads = 256}
    }
    gpu.return
  }
}
