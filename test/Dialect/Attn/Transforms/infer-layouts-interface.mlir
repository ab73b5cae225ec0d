// RUN: attn-test-opt %s --pass-pipeline='builtin.module(gpu.module(attn-infer-layouts))' | FileCheck %s

// Ops of another dialect: the pass asks interfaces.

!map = !attn.tensor_map<64x32xf16, swizzle = 64>
!auto = !attn.buffer<64x64xf16, #attn.auto, shared>
gpu.module @kernels {
  // The buffer lies as the boxes do, not with the widest swizzle.
  // CHECK-LABEL: gpu.func @layout
  // CHECK:         attn.alloc {name = "k"} : <64x64xf16, #attn.swizzled<span = 64>, shared>
  gpu.func @layout(%map: !map, %t: !attn.token) attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant 0 : i32
    %slot = attn.alloc {name = "k"} : !auto
    test_attn.bulk_fill %map[%zero, %zero], %slot token %t : !map, !auto
    gpu.return
  }
}
