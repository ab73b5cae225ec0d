// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-infer-layouts))' | FileCheck %s

gpu.module @kernels {
  gpu.func @scores(%row: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %q = attn.alloc {name = "q"} : !attn.buffer<64x64xf16, #attn.auto, shared>
    %k = attn.alloc {name = "k"} : !attn.buffer<32x64xf16, #attn.auto, shared>
    %kt = attn.transpose %k : !attn.buffer<32x64xf16, #attn.auto, shared> -> !attn.buffer<64x32xf16, #attn.auto, shared>
    %zero = arith.constant dense<0.0> : tensor<64x32xf32, #attn.auto>
    %s = attn.mma %q, %kt, %zero : !attn.buffer<64x64xf16, #attn.auto, shared>, !attn.buffer<64x32xf16, #attn.auto, shared>, tensor<64x32xf32, #attn.auto>
    %m = attn.reduce max %s : tensor<64x32xf32, #attn.auto> -> tensor<64xf32, #attn.auto>
    gpu.return
  }
}

// CHECK: attn.alloc {name = "q"} : <64x64xf16, #attn.swizzled<span = 128>, shared>
// CHECK: attn.alloc {name = "k"} : <32x64xf16, #attn.swizzled<span = 128>, shared>
// CHECK: attn.transpose {{.*}} -> <64x32xf16, #attn.transposed<#attn.swizzled<span = 128>>, shared>
// CHECK: arith.constant dense<0.000000e+00> : tensor<64x32xf32, #attn.mma<warps = [4, 1]>>
// CHECK: attn.reduce max {{.*}} -> tensor<64xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [4, 1]>>>
