// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-lower-tiles))' | FileCheck %s

gpu.module @kernels {
  gpu.func @row_maxima(%p: !llvm.ptr<1>, %offset: i64, %n: i32, %row: i32) kernel
      attributes {attn.warps = array<i64: 1, 1>} {
    %g = attn.global_view %p[%offset] rows %n stride %offset {alignment = 16 : i64} : !attn.global<?x8xf32>
    %t = attn.global_load %g[%row] : !attn.global<?x8xf32> -> tensor<16x8xf32, #attn.mma<warps = [1, 1]>>
    %m = attn.reduce max %t : tensor<16x8xf32, #attn.mma<warps = [1, 1]>> -> tensor<16xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [1, 1]>>>
    gpu.return
  }
}

// CHECK: %[[THREAD:.*]] = nvvm.read.ptx.sreg.tid.x : i32
// CHECK: scf.if {{.*}} -> (vector<2xf32>)
// CHECK:   llvm.load {{.*}} {alignment = 8 : i64} : !llvm.ptr<1> -> vector<2xf32>
// CHECK: arith.maxnumf
// CHECK: nvvm.shfl.sync bfly
// CHECK: arith.maxnumf
// CHECK: gpu.return
