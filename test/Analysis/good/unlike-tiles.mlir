// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' --remarks-filter='attn.*' -o /dev/null 2>&1 | FileCheck %s

// The same tiles, computed in another way: all CTAs are run, and one that does
// all tiles.

// CHECK: remark: [Passed] proved {{.*}} Function=unlike_tiles

gpu.module @kernels {
  gpu.func @unlike_tiles(%p: !llvm.ptr<1>) kernel attributes {attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["4", "1", "1"], block = [256, 1, 1],
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
      %c1 = arith.constant 1 : i32
      %last = arith.subi %c9, %c1 : i32
      scf.for %i = %block to %last step %grid : i32 {
        attn.named_barrier %id {threads = 256}
      }
    }
    gpu.return
  }
}
