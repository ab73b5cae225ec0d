// RUN: attn-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(gpu.module(attn-instrument))'
// RUN: not attn-opt %s --split-input-file --pass-pipeline='builtin.module(gpu.module(attn-instrument{timeout-us=-1}))' 2>&1 | FileCheck %s --check-prefix=TIME
// TIME: error: attn-instrument: expected timeout-us from 0 to 1000000000, got -1
// RUN: not attn-opt %s --split-input-file --pass-pipeline='builtin.module(gpu.module(attn-instrument{delay-ns=1000001}))' 2>&1 | FileCheck %s --check-prefix=DELAY
// DELAY: error: attn-instrument: expected delay-ns from 0 to 1000000, got 1000001
// RUN: not attn-opt %s --split-input-file --pass-pipeline='builtin.module(gpu.module(attn-instrument{chip=sm_1}))' 2>&1 | FileCheck %s --check-prefix=CHIP
// CHIP: error: {{.*}}sm_1

// expected-warning@+1 {{attn-instrument: nothing to check as it runs: no kernel has mbarriers}}
gpu.module @plain {
  gpu.func @none() kernel {
    gpu.return
  }
}

// -----

// expected-error@+1 {{attn-instrument: the kernels are instrumented already}}
gpu.module @twice {
  llvm.mlir.global external @attn_reports() {addr_space = 1 : i32} : !llvm.array<8 x i32>
  gpu.func @one() kernel attributes {attn.shared_bytes = 16 : i64} {
    %b = attn.mbarrier.alloc {name = "b", offset = 0} : !attn.mbarriers<2>
    gpu.return
  }
}

// -----

gpu.module @early {
  // expected-error@+1 {{expected 'attn.shared_bytes' on a kernel to instrument; attn-allocate-shared sets it}}
  gpu.func @one() kernel {
    %b = attn.mbarrier.alloc {name = "b"} : !attn.mbarriers<2>
    gpu.return
  }
}

// -----

gpu.module @elsewhere {
  gpu.func @one(%c: !attn.mbarriers<2>) kernel attributes {attn.warps = array<i64: 1, 1>, attn.shared_bytes = 16 : i64} {
    %0 = arith.constant 0 : i32
    %b = attn.mbarrier.alloc {name = "b", offset = 0} : !attn.mbarriers<2>
    // expected-error@+1 {{cannot be checked as it runs: expected barriers of an 'attn.mbarrier.alloc' of the kernel}}
    attn.mbarrier.wait %c[%0] parity %0 : !attn.mbarriers<2>
    gpu.return
  }
}

// -----

gpu.module @full {
  // expected-error@+1 {{shared memory does not fit with the words of attn-instrument: expected at most 232448 bytes on sm_90a, got 232464 (kernel 232440 + words 24)}}
  gpu.func @one() kernel attributes {attn.warps = array<i64: 1, 1>, attn.shared_bytes = 232440 : i64} {
    %b = attn.mbarrier.alloc {name = "b", offset = 0} : !attn.mbarriers<2>
    gpu.return
  }
}

// -----

gpu.module @unknown_warps {
  // expected-error@+1 {{expected the attribute 'attn.warps' on a kernel in tile IR}}
  gpu.func @one() kernel attributes {attn.shared_bytes = 16 : i64} {
    %0 = arith.constant 0 : i32
    %b = attn.mbarrier.alloc {name = "b", offset = 0} : !attn.mbarriers<2>
    attn.mbarrier.wait %b[%0] parity %0 : !attn.mbarriers<2>
    gpu.return
  }
}

// -----

gpu.module @no_offset {
  gpu.func @one() kernel attributes {attn.warps = array<i64: 1, 1>, attn.shared_bytes = 16 : i64} {
    // expected-error@+1 {{cannot be checked as it runs: expected an offset; attn-allocate-shared sets it}}
    %b = attn.mbarrier.alloc {name = "b"} : !attn.mbarriers<2>
    gpu.return
  }
}

// -----

gpu.module @teams {
  // expected-error@+1 {{cannot be checked as it runs: expected a kernel of one team, got 2}}
  gpu.func @one() kernel attributes {attn.warps = array<i64: 1, 1>, attn.teams = 2 : i64, attn.shared_bytes = 32 : i64} {
    %b = attn.mbarrier.alloc {name = "b", offset = 0} : !attn.mbarriers<2>
    gpu.return
  }
}
