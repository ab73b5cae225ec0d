// RUN: attn-opt %s --split-input-file --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -verify-diagnostics -o /dev/null

// Numbers of tiles may be less than 0. In those the other partition does not come.

gpu.module @kernels [#attn.target<chip = "sm_90a">] attributes {attn.rung = "barrier"} {
  gpu.func @negative_tiles_open(%n: i32) kernel attributes {nvvm.minctasm = 1 : i32, known_block_size = array<i32: 256, 1, 1>, attn.shared_bytes = 65536 : i64,
      attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["1", "1", "1"], block = [256, 1, 1],
        tensors = [{access = "read", dtype = "f32", name = "x", shape = array<i64: -1>, strides = array<i64: 1>}], args = [{dim = 0 : i64, kind = "size", tensor = "x", type = "i32"}]>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c3 = arith.constant 3 : i32
    attn.warp_specialize
    partition "a" warps 4 registers 24 {
      %bx = gpu.block_id x
      %b = arith.index_cast %bx : index to i32
      %gx = gpu.grid_dim x
      %g = arith.index_cast %gx : index to i32
      %f = arith.subi %b, %c3 : i32
      scf.for %i = %f to %n step %g : i32 {
        // expected-warning @below {{cannot be checked: with unknown trip counts it is not shown to be right (deadlock)}}
        attn.named_barrier %c1 {threads = 256}
      }
    }
    partition "b" warps 4 registers 24 {
      %bx = gpu.block_id x
      %b = arith.index_cast %bx : index to i32
      %gx = gpu.grid_dim x
      %g = arith.index_cast %gx : index to i32
      %f = arith.subi %b, %c3 : i32
      scf.for %i = %f to %n step %g : i32 {
        %is = arith.cmpi sge, %i, %c0 : i32
        scf.if %is {
          attn.named_barrier %c1 {threads = 256}
        }
      }
    }
    gpu.return
  }
}
