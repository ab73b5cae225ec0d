// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s

// Two partitions count to one sum, in 8 bits and in 32: they are the same below 128 only.

// CHECK: warning: the synchronisation of {{.*}} cannot be checked: with unknown trip counts it is not shown to be right (deadlock)

gpu.module @kernels {
  gpu.func @narrow_sum(%n: i32) kernel attributes {known_block_size = array<i32: 256, 1, 1>, attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["2", "1", "1"], block = [256, 1, 1],
        tensors = [{access = "read", dtype = "f32", name = "x", shape = array<i64: -1>, strides = array<i64: 1>}], args = [{dim = 0 : i64, kind = "size", tensor = "x", type = "i32"}]>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    attn.warp_specialize
    partition "a" warps 4 registers 24 {
      %s = arith.trunci %n : i32 to i8
      %h = arith.constant 100 : i8
      %a = arith.addi %s, %h : i8
      %m = arith.extsi %a : i8 to i32
      scf.for %i = %c0 to %m step %c1 : i32 {
        attn.named_barrier %c1 {threads = 256}
      }
    }
    partition "b" warps 4 registers 24 {
      %s = arith.trunci %n : i32 to i8
      %h = arith.constant 100 : i32
      %a = arith.extsi %s : i8 to i32
      %m = arith.addi %a, %h : i32
      scf.for %i = %c0 to %m step %c1 : i32 {
        attn.named_barrier %c1 {threads = 256}
      }
    }
    gpu.return
  }
}
