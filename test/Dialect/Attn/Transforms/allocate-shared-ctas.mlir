// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-allocate-shared))' | FileCheck %s

// With so much shared memory an SM holds two CTAs and no third one: 228 KB and 100 KB, of which
// each CTA takes 1 KB more.

gpu.module @hopper [#attn.target<chip = "sm_90a">] {
  // CHECK: gpu.func @two
  // CHECK-SAME: attn.shared_bytes = 76928 : i64
  gpu.func @two() kernel attributes {attn.most_ctas_per_sm = 2 : i64} {
    gpu.return
  }

  // What it has is enough.
  // CHECK: gpu.func @large
  // CHECK-SAME: attn.shared_bytes = 131072 : i64
  gpu.func @large() kernel attributes {attn.most_ctas_per_sm = 2 : i64} {
    %b = attn.alloc {name = "b"} : !attn.buffer<32768xf32, #attn.rows, shared>
    %r = attn.local_load %b : !attn.buffer<32768xf32, #attn.rows, shared> -> tensor<32768xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [4, 1]>>>
    gpu.return
  }
}

gpu.module @ada [#attn.target<chip = "sm_89">] {
  // CHECK: gpu.func @other
  // CHECK-SAME: attn.shared_bytes = 33152 : i64
  gpu.func @other() kernel attributes {attn.most_ctas_per_sm = 2 : i64} {
    gpu.return
  }
}
