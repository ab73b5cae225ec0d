// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s

// What two partitions do in a tile depends on its number, cut to 8 and to 16 bits: they differ in tile 261.

// CHECK: error: deadlock: 'b' waits for phase 0 of named barrier 1, which lacks 4 of 8 arrivals

gpu.module @kernels {
  gpu.func @other_width_in_tile(%p: !llvm.ptr<1>) kernel attributes {known_block_size = array<i32: 256, 1, 1>, attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["1", "1", "1"], block = [256, 1, 1],
        tensors = [{access = "read", dtype = "f32", name = "x", shape = array<i64: 4>, strides = array<i64: 1>}], args = [{kind = "pointer", tensor = "x"}]>} {
    %c1 = arith.constant 1 : i32
    %c5 = arith.constant 5 : i32
    attn.warp_specialize
    partition "a" warps 4 registers 24 {
      %bx = gpu.block_id x
      %b = arith.index_cast %bx : index to i32
      %gx = gpu.grid_dim x
      %g = arith.index_cast %gx : index to i32
      %k = arith.constant 300 : i32
      scf.for %i = %b to %k step %g : i32 {
        %t8 = arith.trunci %i : i32 to i8
        %u8 = arith.extui %t8 : i8 to i32
        %is = arith.cmpi ne, %u8, %c5 : i32
        scf.if %is {
          attn.named_barrier %c1 {threads = 256}
        }
      }
    }
    partition "b" warps 4 registers 24 {
      %bx = gpu.block_id x
      %b = arith.index_cast %bx : index to i32
      %gx = gpu.grid_dim x
      %g = arith.index_cast %gx : index to i32
      %k = arith.constant 300 : i32
      scf.for %i = %b to %k step %g : i32 {
        %t8 = arith.trunci %i : i32 to i16
        %u8 = arith.extui %t8 : i16 to i32
        %is = arith.cmpi ne, %u8, %c5 : i32
        scf.if %is {
          attn.named_barrier %c1 {threads = 256}
        }
      }
    }
    gpu.return
  }
}
