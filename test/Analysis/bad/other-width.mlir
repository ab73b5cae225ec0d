// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s

// The last tiles of two partitions are computed alike but for the width of one cast: 44 and 300 of them.

// CHECK: error: deadlock: 'b' waits for phase 44 of named barrier 1, which lacks 4 of 8 arrivals from 'a', which exited

gpu.module @kernels {
  gpu.func @other_width(%p: !llvm.ptr<1>) kernel attributes {known_block_size = array<i32: 256, 1, 1>, attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["1", "1", "1"], block = [256, 1, 1],
        tensors = [{access = "read", dtype = "f32", name = "x", shape = array<i64: 4>, strides = array<i64: 1>}], args = [{kind = "pointer", tensor = "x"}]>} {
    %c1 = arith.constant 1 : i32
    attn.warp_specialize
    partition "a" warps 4 registers 24 {
      %bx = gpu.block_id x
      %b = arith.index_cast %bx : index to i32
      %gx = gpu.grid_dim x
      %g = arith.index_cast %gx : index to i32
      %k = arith.constant 300 : i32
      %t = arith.trunci %k : i32 to i8
      %u = arith.extsi %t : i8 to i32
      scf.for %i = %b to %u step %g : i32 {
        attn.named_barrier %c1 {threads = 256}
      }
    }
    partition "b" warps 4 registers 24 {
      %bx = gpu.block_id x
      %b = arith.index_cast %bx : index to i32
      %gx = gpu.grid_dim x
      %g = arith.index_cast %gx : index to i32
      %k = arith.constant 300 : i32
      %t = arith.trunci %k : i32 to i16
      %u = arith.extsi %t : i16 to i32
      scf.for %i = %b to %u step %g : i32 {
        attn.named_barrier %c1 {threads = 256}
      }
    }
    gpu.return
  }
}
