// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s

// A barrier of five warps, of which four come.

// CHECK: error: deadlock: 'both' waits for phase 0 of named barrier 1, which lacks 1 of 5 arrivals

gpu.module @kernels {
  gpu.func @named() kernel {
    %c0 = arith.constant 0 : i32
    %id = arith.constant 1 : i32
    %x = attn.alloc {name = "x", offset = 0} : !attn.buffer<4xi32, #attn.rows, shared>
    attn.warp_specialize
    partition "both" warps 4 registers 24 {
      attn.elect {
        attn.scalar_store %c0, %x[%c0] : !attn.buffer<4xi32, #attn.rows, shared>
      }
      attn.named_barrier %id {threads = 160}
      %v = attn.scalar_load %x[%c0] : !attn.buffer<4xi32, #attn.rows, shared>
    }
    gpu.return
  }
}
