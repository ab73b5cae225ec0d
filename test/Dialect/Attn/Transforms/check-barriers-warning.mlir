// A kernel that cannot be checked goes on with a warning, and not where a proof is asked for.
// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o %t.mlir 2>&1 | FileCheck %s
// RUN: FileCheck %s --check-prefix=KEPT --input-file=%t.mlir
// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers{require-proof}))' -o /dev/null 2>&1 | FileCheck %s --check-prefix=PROOF
// CHECK: warning: the synchronisation of 'bound' cannot be checked: the upper bound does not follow from constants, sizes, the place of the warp and loop counters
// KEPT: gpu.func @bound
// KEPT-SAME: attn.proof = {reason = "the upper bound does not follow from constants, sizes, the place of the warp and loop counters", verdict = "unchecked"}
// PROOF: error: the synchronisation of 'bound' cannot be checked: the upper bound does not follow from constants, sizes, the place of the warp and loop counters

gpu.module @kernels {
  gpu.func @bound(%n: i32) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %lane = gpu.lane_id
    %id = arith.index_cast %lane : index to i32
    %end = arith.addi %n, %id : i32
    scf.for %i = %c0 to %end step %c1 : i32 {
      gpu.barrier
    }
    gpu.return
  }
}
