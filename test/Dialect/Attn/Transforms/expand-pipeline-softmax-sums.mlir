// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-expand-pipeline))' | FileCheck %s

// Sums that others add up are not made here, and l stays as it is.

!s = tensor<64x32xf32, #attn.auto>
!m = tensor<64xf32, #attn.auto>
!l = tensor<64x4xf32, #attn.partial<parent = #attn.auto>>

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @exact
  // CHECK: %[[L:.*]] = tensor.splat %{{.*}} : tensor<64x4xf32
  // CHECK: attn.exp2
  // CHECK-NOT: attn.reduce add
  // CHECK: arith.addf %[[L]], %[[L]]
  gpu.func @exact(%x: f32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = tensor.splat %x : !s
    %m = tensor.splat %x : !m
    %l = tensor.splat %x : !l
    %p, %m1, %l1, %f = attn.online_softmax %s, %m, %l scale %x {sums_elsewhere} : !s, !m, !l
    %use = arith.addf %l1, %l1 : !l
    gpu.return
  }

  // CHECK-LABEL: gpu.func @threshold
  // CHECK: %[[L:.*]] = tensor.splat %{{.*}} : tensor<64x4xf32
  // CHECK: attn.rare any %{{.*}} default(%{{.*}}, %[[L]], %{{.*}} :
  // CHECK: attn.yield %{{.*}}, %[[L]], %{{.*}} :
  // CHECK-NOT: attn.reduce add
  // CHECK: gpu.return
  gpu.func @threshold(%x: f32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = tensor.splat %x : !s
    %m = tensor.splat %x : !m
    %l = tensor.splat %x : !l
    %p, %m1, %l1, %f = attn.online_softmax %s, %m, %l scale %x policy<threshold> {sums_elsewhere} : !s, !m, !l
    gpu.return
  }

  // CHECK-LABEL: gpu.func @lagged
  // CHECK-NOT: attn.reduce add
  // CHECK: gpu.return
  gpu.func @lagged(%x: f32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = tensor.splat %x : !s
    %m = tensor.splat %x : !m
    %l = tensor.splat %x : !l
    %p, %m1, %l1, %f = attn.online_softmax %s, %m, %l scale %x policy<lagged> {sums_elsewhere} : !s, !m, !l
    gpu.return
  }

  // The vote needs them, l does not.
  // CHECK-LABEL: gpu.func @optimistic
  // CHECK: %[[L:.*]] = tensor.splat %{{.*}} : tensor<64x4xf32
  // CHECK: attn.reduce add {{.*}} partial
  // CHECK-NOT: attn.reduce add
  // CHECK: attn.rare any %{{.*}} default(%{{.*}}, %{{.*}}, %[[L]], %{{.*}} :
  // CHECK-NOT: attn.reduce add
  // CHECK: gpu.return
  gpu.func @optimistic(%x: f32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = tensor.splat %x : !s
    %m = tensor.splat %x : !m
    %l = tensor.splat %x : !l
    %p, %m1, %l1, %f = attn.online_softmax %s, %m, %l scale %x policy<optimistic> {sums_elsewhere} : !s, !m, !l
    gpu.return
  }

  // No maximum so far says that the block is the first one: l does not.
  // CHECK-LABEL: gpu.func @first
  // CHECK: attn.rare
  // CHECK: attn.exp2
  // CHECK-NOT: attn.rare
  // CHECK: gpu.return
  gpu.func @first(%x: f32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = tensor.splat %x : !s
    %m = tensor.splat %x : !m
    %l = arith.constant dense<0.0> : !l
    %p, %m1, %l1, %f = attn.online_softmax %s, %m, %l scale %x policy<threshold> {sums_elsewhere} : !s, !m, !l
    %none = arith.constant dense<0xFF800000> : !m
    %p2, %m2, %l2, %f2 = attn.online_softmax %s, %none, %l1 scale %x policy<threshold> {sums_elsewhere} : !s, !m, !l
    gpu.return
  }
}
