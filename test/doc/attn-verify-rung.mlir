// RUN: not attn-opt %s --attn-verify-rung 2>&1 | FileCheck %s

gpu.module @kernels [#attn.target<chip = "sm_80">] attributes {attn.rung = "barrier"} {
  gpu.func @kernel() kernel attributes {attn.warps = array<i64: 4, 1>, attn.shared_bytes = 1024 : i64} {
    %b = attn.alloc {offset = 0 : i64} : <32x16xf16, #attn.rows, shared>
    gpu.return
  }
}

// CHECK: error: expected rung 'tile' or one before it, got 'barrier'; attn-compile goes on from there
