// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s

// No barrier between the write and the reads.

// CHECK: error: race: read by warp 0 of 'x' is not ordered after write by warp 0
// CHECK: note: the write

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
      %v = attn.scalar_load %x[%c0] : !attn.buffer<4xi32, #attn.rows, shared>
    }
    gpu.return
  }
}
