// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s

// A warpgroup passes its turn on twice without taking it.

// CHECK: error: arrival in the wrong generation: the arrival of warp 6 at named barrier 2 is not ordered after its previous generation: it may count there
// CHECK: note: an arrival of that generation, by warp 6

gpu.module @kernels {
  gpu.func @named() kernel {
    %c0 = arith.constant 0 : i32
    %id = arith.constant 1 : i32
    %x = attn.alloc {name = "x", offset = 0} : !attn.buffer<4xi32, #attn.rows, shared>
    attn.warp_specialize
    partition "both" warps 8 registers 24 {
      attn.elect {
        attn.scalar_store %c0, %x[%c0] : !attn.buffer<4xi32, #attn.rows, shared>
      }
      attn.turn.start 2
      attn.turn.pass 2
      attn.turn.pass 2
      attn.named_barrier %id {threads = 256}
      %v = attn.scalar_load %x[%c0] : !attn.buffer<4xi32, #attn.rows, shared>
    }
    gpu.return
  }
}
