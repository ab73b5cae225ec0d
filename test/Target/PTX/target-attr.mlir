// RUN: attn-opt %s | attn-opt | FileCheck %s

// CHECK: gpu.module @default [#attn.target<chip = "sm_90a">]
gpu.module @default [#attn.target<chip = "sm_90a">] {
}

// CHECK: gpu.module @version [#attn.target<chip = "sm_103a", ptx = 90>]
gpu.module @version [#attn.target<chip = "sm_103a", ptx = 90>] {
}
