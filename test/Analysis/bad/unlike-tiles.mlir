// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s

// One partition walks a tile more than the other one, in one of the CTAs.

// CHECK: error: deadlock: 'b' waits for phase 2 of named barrier 1, which lacks 4 of 8 arrivals
// CHECK: note: CTA 0 walks 2 tiles in this loop, from block to 8 by grid: 0, 4
// CHECK: note: CTA 0 walks 3 tiles in this loop, from block to 9 by grid: 0, 4, 8

gpu.module @kernels {
  gpu.func @unlike_tiles(%p: !llvm.ptr<1>) kernel attributes {known_block_size = array<i32: 256, 1, 1>, attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["4", "1", "1"], block = [256, 1, 1],
      tensors = [{access = "read", dtype = "f32", name = "x", shape = array<i64: 4>, strides = array<i64: 1>}], args = [{kind = "pointer", tensor = "x"}]>} {
    %c8 = arith.constant 8 : i32
    %c9 = arith.constant 9 : i32
    %id = arith.constant 1 : i32
    attn.warp_specialize
    partition "a" warps 4 registers 24 {
      %x = gpu.block_id x
      %block = arith.index_cast %x : index to i32
      %g = gpu.grid_dim x
      %grid = arith.index_cast %g : index to i32
      scf.for %i = %block to %c8 step %grid : i32 {
        attn.named_barrier %id {threads = 256}
      }
    }
    partition "b" warps 4 registers 24 {
      %x = gpu.block_id x
      %block = arith.index_cast %x : index to i32
      %g = gpu.grid_dim x
      %grid = arith.index_cast %g : index to i32
      scf.for %i = %block to %c9 step %grid : i32 {
        attn.named_barrier %id {threads = 256}
      }
    }
    gpu.return
  }
}
