// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-expand-pipeline))' | FileCheck %s

// The largest probability of a row joins its sum as it is rounded: 2^16 + 1 keeps the 8 digits of
// bf16 of 24, 2^13 + 1 the 11 of f16.

!s = tensor<64x32xf32, #attn.auto>
!m = tensor<64xf32, #attn.auto>
!l = tensor<64x1xf32, #attn.partial<parent = #attn.auto>>

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @threshold
  // CHECK: arith.subf %[[LARGEST:[^ ]*]],
  // CHECK: %[[STATE:.*]]:3 = attn.rare any
  // CHECK: attn.reduce add
  // CHECK: %[[L:.*]] = arith.addf
  // CHECK: %[[X:.*]] = arith.subf %[[LARGEST]], %[[STATE]]#0
  // CHECK: %[[P:.*]] = attn.exp2 %[[X]]
  // CHECK: %[[C:.*]] = arith.constant dense<6.553700e+04>
  // CHECK: %[[SCALED:.*]] = arith.mulf %[[P]], %[[C]]
  // CHECK: %[[MORE:.*]] = arith.subf %[[SCALED]], %[[P]]
  // CHECK: %[[ROUNDED:.*]] = arith.subf %[[SCALED]], %[[MORE]]
  // CHECK: %[[CHANGE:.*]] = arith.subf %[[ROUNDED]], %[[P]]
  // CHECK: %[[SPREAD:.*]] = attn.broadcast %[[CHANGE]]
  // CHECK: arith.addf %[[L]], %[[SPREAD]]
  gpu.func @threshold(%x: f32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = tensor.splat %x : !s
    %m = tensor.splat %x : !m
    %l = tensor.splat %x : !l
    %p, %m1, %l1, %f = attn.online_softmax %s, %m, %l scale %x {rounded = bf16, policy = #attn<softmax_policy threshold>} : !s, !m, !l
    %use = arith.addf %l1, %l1 : !l
    gpu.return
  }

  // CHECK-LABEL: gpu.func @lagged
  // CHECK: %[[STATE:.*]]:4 = attn.rare any
  // CHECK: arith.constant dense<8.193000e+03>
  // CHECK: arith.addf %[[STATE]]#2,
  gpu.func @lagged(%x: f32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = tensor.splat %x : !s
    %m = tensor.splat %x : !m
    %l = tensor.splat %x : !l
    %p, %m1, %l1, %f = attn.online_softmax %s, %m, %l scale %x {rounded = f16, policy = #attn<softmax_policy lagged>} : !s, !m, !l
    %use = arith.addf %l1, %l1 : !l
    gpu.return
  }

  // What rounding adds is apart: sums stay as they are, both are rescaled together, and where
  // nothing was before there is nothing to add.
  // CHECK-LABEL: gpu.func @apart
  // CHECK-SAME: %{{.*}}, %[[L0:.*]]: tensor<64x1xf32, {{.*}}, %[[E0:.*]]: tensor<64x1xf32
  // CHECK: %[[STATE:.*]]:4 = attn.rare any %{{.*}} default(%{{.*}}, %[[L0]], %{{.*}}, %[[E0]] :
  // CHECK: %[[F:.*]] = attn.exp2
  // CHECK: %[[SPREAD:.*]] = attn.broadcast %[[F]]
  // CHECK: %[[L:.*]] = arith.mulf %[[L0]], %[[SPREAD]]
  // CHECK: %[[E:.*]] = arith.mulf %[[E0]], %[[SPREAD]]
  // CHECK: attn.yield %{{.*}}, %[[L]], %[[F]], %[[E]]
  // CHECK: %[[SUM:.*]] = attn.reduce add
  // CHECK: %[[L1:.*]] = arith.addf %[[STATE]]#1, %[[SUM]]
  // CHECK: %[[CHANGE:.*]] = attn.broadcast
  // CHECK: %[[E1:.*]] = arith.addf %[[STATE]]#3, %[[CHANGE]]
  // CHECK: arith.addf %[[L1]], %[[E1]]
  gpu.func @apart(%x: f32, %l: !l, %e: !l) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = tensor.splat %x : !s
    %m = tensor.splat %x : !m
    %p, %m1, %l1, %f, %e1 = attn.online_softmax %s, %m, %l rounding %e scale %x {rounded = bf16, policy = #attn<softmax_policy threshold>} : !s, !m, !l
    %use = arith.addf %l1, %e1 : !l
    gpu.return
  }

  // CHECK-LABEL: gpu.func @apart_lagged
  // CHECK-SAME: %{{.*}}, %[[L0:.*]]: tensor<64x1xf32, {{.*}}, %[[E0:.*]]: tensor<64x1xf32
  // CHECK: %[[STATE:.*]]:5 = attn.rare any
  // CHECK-SAME: %[[E0]]
  // CHECK: attn.yield
  // CHECK: %[[E1:.*]] = arith.addf %[[STATE]]#4,
  // CHECK: arith.addf %[[STATE]]#2, %[[E1]]
  gpu.func @apart_lagged(%x: f32, %l: !l, %e: !l) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = tensor.splat %x : !s
    %m = tensor.splat %x : !m
    %p, %m1, %l1, %f, %e1 = attn.online_softmax %s, %m, %l rounding %e scale %x {rounded = f16, policy = #attn<softmax_policy lagged>} : !s, !m, !l
    %use = arith.addf %l1, %e1 : !l
    gpu.return
  }

  // CHECK-LABEL: gpu.func @apart_first
  // CHECK-NOT: attn.rare
  // CHECK: %[[SUM:.*]] = attn.reduce add
  // CHECK: %[[NONE:.*]] = arith.constant dense<0.000000e+00> : tensor<64x1xf32
  // CHECK: arith.addf %[[SUM]], %[[NONE]]
  gpu.func @apart_first(%x: f32, %e: !l) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = tensor.splat %x : !s
    %m = tensor.splat %x : !m
    %l = arith.constant dense<0.0> : !l
    %p, %m1, %l1, %f, %e1 = attn.online_softmax %s, %m, %l rounding %e scale %x {rounded = f16, policy = #attn<softmax_policy threshold>} : !s, !m, !l
    %use = arith.addf %l1, %e1 : !l
    gpu.return
  }

  // Its largest one is 1.
  // CHECK-LABEL: gpu.func @exact
  // CHECK-NOT: dense<8.193000e+03>
  gpu.func @exact(%x: f32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = tensor.splat %x : !s
    %m = tensor.splat %x : !m
    %l = tensor.splat %x : !l
    %p, %m1, %l1, %f = attn.online_softmax %s, %m, %l scale %x {rounded = f16} : !s, !m, !l
    %use = arith.addf %l1, %l1 : !l
    gpu.return
  }
}
