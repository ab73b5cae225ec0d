// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-verify-arch))' 2>&1 | FileCheck %s

gpu.module @kernels [#attn.target<chip = "sm_80">] {
  gpu.func @kernel(%a: tensor<64x32xf8E4M3FN, #attn.auto>, %b: tensor<32x16xf8E4M3FN, #attn.auto>,
                   %c: tensor<64x16xf32, #attn.auto>) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = attn.mma %a, %b, %c : tensor<64x32xf8E4M3FN, #attn.auto>, tensor<32x16xf8E4M3FN, #attn.auto>, tensor<64x16xf32, #attn.auto>
    gpu.return
  }
}

// CHECK: error: 'attn.mma' op needs sm_89 or later, got sm_80
// CHECK: note: the target of the kernels here is #attn.target<chip = "sm_80">
