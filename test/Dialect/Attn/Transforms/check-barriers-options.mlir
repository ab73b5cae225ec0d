// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers{profile=gpu}))' 2>&1 | FileCheck %s --check-prefix=PROFILE
// PROFILE: error: expected profile isa or hw, got 'gpu'

// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers{limit=20}))' -o %t.mlir 2>&1 | FileCheck %s --check-prefix=LIMIT
// RUN: FileCheck %s --check-prefix=BOUNDED --input-file=%t.mlir
// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers{limit=20 require-proof}))' -o /dev/null 2>&1 | FileCheck %s --check-prefix=PROOF
// LIMIT: warning: checked up to 0 tiles, not proved: the limit of 20 steps
// BOUNDED: attn.proof = {assumptions = [], profile = "isa", reason = "the limit of 20 steps", tiles = 0 : i64, verdict = "bounded"}
// PROOF: error: checked up to 0 tiles, not proved: the limit of 20 steps

// A read and an asynchronous overwrite without a fence are wrong by the manual, and right on
// hardware.
// RUN: attn-opt %S/../../../Analysis/bad/proxy-fence-dropped.mlir --pass-pipeline='builtin.module(gpu.module(attn-check-barriers{profile=hw require-proof}))' -o /dev/null

gpu.module @kernels {
  gpu.func @rounds() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c100 = arith.constant 100 : i32
    scf.for %i = %c0 to %c100 step %c1 : i32 {
      gpu.barrier
    }
    gpu.return
  }
}
