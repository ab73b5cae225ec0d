// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s

// One thread of a warp writes what all of them read.

// CHECK: error: race: read by warp 0 of 'x' is not ordered after write by warp 0: the threads of the warp have not waited for each other since
// CHECK: note: the write

gpu.module @kernels {
  gpu.func @word() kernel {
    %c0 = arith.constant 0 : i32
    %x = attn.alloc {name = "x", offset = 0} : !attn.buffer<4xi32, #attn.rows, shared>
    attn.warp_specialize
    partition "deal" warps 1 registers 24 {
      attn.elect {
        attn.scalar_store %c0, %x[%c0] : !attn.buffer<4xi32, #attn.rows, shared>
      }
      %v = attn.scalar_load %x[%c0] : !attn.buffer<4xi32, #attn.rows, shared>
    }
    partition "idle" warps 3 registers 24 {
    }
    gpu.return
  }
}
