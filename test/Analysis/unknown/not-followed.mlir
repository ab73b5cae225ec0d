// RUN: attn-opt %s --split-input-file --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -verify-diagnostics -o /dev/null

// What is computed by ops that are not followed is the same in both partitions, which the check does not see. It is no
// error: with the numbers that it found nothing is wrong.

gpu.module @kernels [#attn.target<chip = "sm_90a">] attributes {attn.rung = "barrier"} {
  gpu.func @shift_left_good(%n: i32) kernel attributes {nvvm.minctasm = 1 : i32, known_block_size = array<i32: 256, 1, 1>, attn.shared_bytes = 65536 : i64,
      attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["2", "1", "1"], block = [256, 1, 1],
        tensors = [{access = "read", dtype = "f32", name = "x", shape = array<i64: -1>, strides = array<i64: 1>}], args = [{dim = 0 : i64, kind = "size", tensor = "x", type = "i32"}]>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    attn.warp_specialize
    partition "a" warps 4 registers 24 {
      %m = arith.shli %n, %c1 : i32
      scf.for %i = %c0 to %m step %c1 : i32 {
        attn.named_barrier %c1 {threads = 256}
      }
    }
    partition "b" warps 4 registers 24 {
      %m = arith.muli %n, %c2 : i32
      scf.for %i = %c0 to %m step %c1 : i32 {
        // expected-warning @below {{cannot be checked: with unknown trip counts it is not shown to be right (deadlock)}}
        attn.named_barrier %c1 {threads = 256}
      }
    }
    gpu.return
  }
}

// -----

gpu.module @kernels [#attn.target<chip = "sm_90a">] attributes {attn.rung = "barrier"} {
  gpu.func @trunc_good(%n: i32) kernel attributes {nvvm.minctasm = 1 : i32, known_block_size = array<i32: 256, 1, 1>, attn.shared_bytes = 65536 : i64,
      attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["2", "1", "1"], block = [256, 1, 1],
        tensors = [{access = "read", dtype = "f32", name = "x", shape = array<i64: -1>, strides = array<i64: 1>}], args = [{dim = 0 : i64, kind = "size", tensor = "x", type = "i32"}]>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    attn.warp_specialize
    partition "a" warps 4 registers 24 {
      %w = arith.extsi %n : i32 to i64
      %m = arith.trunci %w : i64 to i32
      scf.for %i = %c0 to %m step %c1 : i32 {
        attn.named_barrier %c1 {threads = 256}
      }
    }
    partition "b" warps 4 registers 24 {
      %m = arith.addi %n, %c0 : i32
      scf.for %i = %c0 to %m step %c1 : i32 {
        // expected-warning @below {{cannot be checked: with unknown trip counts it is not shown to be right (deadlock)}}
        attn.named_barrier %c1 {threads = 256}
      }
    }
    gpu.return
  }
}

// -----

gpu.module @kernels [#attn.target<chip = "sm_90a">] attributes {attn.rung = "barrier"} {
  gpu.func @neg_good(%n: i32) kernel attributes {nvvm.minctasm = 1 : i32, known_block_size = array<i32: 256, 1, 1>, attn.shared_bytes = 65536 : i64,
      attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["2", "1", "1"], block = [256, 1, 1],
        tensors = [{access = "read", dtype = "f32", name = "x", shape = array<i64: -1>, strides = array<i64: 1>}], args = [{dim = 0 : i64, kind = "size", tensor = "x", type = "i32"}]>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c5 = arith.constant 5 : i32
    attn.warp_specialize
    partition "a" warps 4 registers 24 {
      %d = arith.subi %n, %c5 : i32
      %m = arith.divsi %d, %c2 : i32
      scf.for %i = %c0 to %m step %c1 : i32 {
        attn.named_barrier %c1 {threads = 256}
      }
    }
    partition "b" warps 4 registers 24 {
      %d = arith.subi %n, %c5 : i32
      %m = arith.shrsi %d, %c1 : i32
      scf.for %i = %c0 to %m step %c1 : i32 {
        // expected-warning @below {{cannot be checked: with unknown trip counts it is not shown to be right (deadlock)}}
        attn.named_barrier %c1 {threads = 256}
      }
    }
    gpu.return
  }
}

// -----

gpu.module @kernels [#attn.target<chip = "sm_90a">] attributes {attn.rung = "barrier"} {
  gpu.func @mul_order_good(%n: i32) kernel attributes {nvvm.minctasm = 1 : i32, known_block_size = array<i32: 256, 1, 1>, attn.shared_bytes = 65536 : i64,
      attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["2", "1", "1"], block = [256, 1, 1],
        tensors = [{access = "read", dtype = "f32", name = "x", shape = array<i64: -1>, strides = array<i64: 1>}], args = [{dim = 0 : i64, kind = "size", tensor = "x", type = "i32"}]>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    attn.warp_specialize
    partition "a" warps 4 registers 24 {
      %q = arith.addi %n, %c1 : i32
      %m = arith.muli %n, %q : i32
      scf.for %i = %c0 to %m step %c1 : i32 {
        attn.named_barrier %c1 {threads = 256}
      }
    }
    partition "b" warps 4 registers 24 {
      %q = arith.addi %n, %c1 : i32
      %m = arith.muli %q, %n : i32
      scf.for %i = %c0 to %m step %c1 : i32 {
        // expected-warning @below {{cannot be checked: with unknown trip counts it is not shown to be right (deadlock)}}
        attn.named_barrier %c1 {threads = 256}
      }
    }
    gpu.return
  }
}
