// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s

// Warps come to one barrier with different counts.

// CHECK: error: wrong count: warp 4 comes to named barrier 1 with 384 threads, others with 256
// CHECK: note: one of the others

gpu.module @kernels {
  gpu.func @named() kernel {
    %c0 = arith.constant 0 : i32
    %id = arith.constant 1 : i32
    %x = attn.alloc {name = "x", offset = 0} : !attn.buffer<4xi32, #attn.rows, shared>
    attn.warp_specialize
    partition "a" warps 4 registers 24 {
      attn.elect {
        attn.scalar_store %c0, %x[%c0] : !attn.buffer<4xi32, #attn.rows, shared>
      }
      attn.named_barrier %id {threads = 256}
    }
    partition "b" warps 4 registers 24 {
      attn.named_barrier %id {threads = 384}
      %v = attn.scalar_load %x[%c0] : !attn.buffer<4xi32, #attn.rows, shared>
    }
    gpu.return
  }
}
