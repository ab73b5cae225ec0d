// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-lower-tiles,canonicalize,cse))' | FileCheck %s

// Loads that ask for no element are in front of what the elements wait for, but
// behind branches and the values that they need.

#acc = #attn.mma<warps = [4, 1]>

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @early
  // CHECK: scf.if
  // CHECK: arith.muli
  // CHECK-COUNT-2: llvm.load
  // CHECK: nvvm.shfl
  // CHECK-NOT: llvm.load
  // CHECK: llvm.nvvm.ex2.approx.ftz.f32
  // CHECK: gpu.return
  gpu.func @early(%x: f32, %row: i32, %column: i32, %p: !llvm.ptr<1>, %some: i1) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %t = tensor.splat %x : tensor<64x8xf32, #acc>
    scf.if %some {
      llvm.store %x, %p : f32, !llvm.ptr<1>
    }
    %first = arith.muli %row, %column : i32
    %m = attn.reduce max %t : tensor<64x8xf32, #acc> -> tensor<64xf32, #attn.slice<dim = 1, parent = #acc>>
    %s = attn.broadcast %m : tensor<64xf32, #attn.slice<dim = 1, parent = #acc>> -> tensor<64x8xf32, #acc>
    %r = attn.map_elements %s[%row, %first] {attn.early_loads} : tensor<64x8xf32, #acc> {
    ^bb0(%e: f32, %i: i32, %j: i32):
      %a = llvm.getelementptr %p[%j] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      %g = llvm.load %a : !llvm.ptr<1> -> f32
      %y = arith.mulf %e, %g : f32
      attn.yield %y : f32
    }
    %e = attn.exp2 %r : tensor<64x8xf32, #acc>
    gpu.return
  }

  // What asks for the element stays behind it.
  // CHECK-LABEL: gpu.func @late
  // CHECK: nvvm.shfl
  // CHECK: llvm.load
  gpu.func @late(%x: f32, %row: i32, %column: i32, %p: !llvm.ptr<1>) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %t = tensor.splat %x : tensor<64x8xf32, #acc>
    %m = attn.reduce max %t : tensor<64x8xf32, #acc> -> tensor<64xf32, #attn.slice<dim = 1, parent = #acc>>
    %s = attn.broadcast %m : tensor<64xf32, #attn.slice<dim = 1, parent = #acc>> -> tensor<64x8xf32, #acc>
    %r = attn.map_elements %s[%row, %column] {attn.early_loads} : tensor<64x8xf32, #acc> {
    ^bb0(%e: f32, %i: i32, %j: i32):
      %k = arith.fptosi %e : f32 to i32
      %a = llvm.getelementptr %p[%k] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      %g = llvm.load %a : !llvm.ptr<1> -> f32
      attn.yield %g : f32
    }
    %e = attn.exp2 %r : tensor<64x8xf32, #acc>
    gpu.return
  }
}
