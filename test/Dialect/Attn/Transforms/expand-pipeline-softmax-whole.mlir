// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-expand-pipeline))' | FileCheck %s

// Each new maximum is rounded up where it is made, on the rare paths of policies that have these,
// and never one that stays. The largest exponents of parts of rows are followed beside, whatever
// m does.

!s = tensor<64x32xf32, #attn.auto>
!m = tensor<64xf32, #attn.auto>
!l = tensor<64x4xf32, #attn.partial<parent = #attn.auto>>
!o = tensor<64x64xf32, #attn.auto>

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @exact
  // CHECK: %[[MAX:.*]] = arith.maxnumf
  // CHECK: %[[BOUND:.*]] = arith.maxnumf %[[MAX]],
  // CHECK: %[[M:.*]] = math.ceil %[[BOUND]]
  // CHECK-NOT: math.ceil
  // CHECK: arith.addf %[[M]], %[[M]]
  gpu.func @exact(%x: f32, %m: !m, %l: !l) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = tensor.splat %x : !s
    %p, %m1, %l1, %f = attn.online_softmax %s, %m, %l scale %x policy<exact, whole> : !s, !m, !l
    %use = arith.addf %m1, %m1 : !m
    gpu.return
  }

  // The first block of all has no other step.
  // CHECK-LABEL: gpu.func @first
  // CHECK-NOT: attn.rare
  // CHECK: %[[M:.*]] = math.ceil
  // CHECK: arith.addf %[[M]], %[[M]]
  gpu.func @first(%x: f32, %m: !m) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = tensor.splat %x : !s
    %l = arith.constant dense<0.0> : !l
    %p, %m1, %l1, %f = attn.online_softmax %s, %m, %l scale %x policy<threshold, whole> : !s, !m, !l
    %use = arith.addf %m1, %m1 : !m
    gpu.return
  }

  // The vote is on the maximum as it is.
  // CHECK-LABEL: gpu.func @threshold
  // CHECK-NOT: math.ceil
  // CHECK: attn.rare any
  // CHECK: math.ceil
  // CHECK: attn.yield
  // CHECK-NOT: math.ceil
  // CHECK: gpu.return
  gpu.func @threshold(%x: f32, %m: !m, %l: !l) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = tensor.splat %x : !s
    %p, %m1, %l1, %f = attn.online_softmax %s, %m, %l scale %x policy<threshold, whole> : !s, !m, !l
    gpu.return
  }

  // CHECK-LABEL: gpu.func @lagged
  // CHECK-SAME: %[[MOST0:[^ ]*]]: tensor<64x4xf32, #attn.partial<parent = #attn.auto>>) kernel
  // CHECK: %[[OWN:.*]] = attn.reduce max %{{.*}} partial : tensor<64x32xf32, #attn.auto> -> tensor<64x4xf32
  // CHECK: %[[SCALED:.*]] = arith.mulf %[[OWN]],
  // CHECK: %[[MOST:.*]] = arith.maxnumf %[[MOST0]], %[[SCALED]]
  // CHECK-NOT: math.ceil
  // CHECK: attn.rare any
  // CHECK: math.ceil
  // CHECK: attn.yield
  // CHECK-NOT: math.ceil
  // CHECK: arith.addf %[[MOST]], %[[MOST]]
  gpu.func @lagged(%x: f32, %m: !m, %l: !l, %most: !l) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = tensor.splat %x : !s
    %p, %m1, %l1, %f, %most1 = attn.online_softmax %s, %m, %l largest %most : !l scale %x policy<lagged, whole> : !s, !m, !l
    %use = arith.addf %most1, %most1 : !l
    gpu.return
  }

  // CHECK-LABEL: gpu.func @optimistic
  // CHECK-SAME: %[[MOST0:[^ ]*]]: tensor<64x4xf32, #attn.partial<parent = #attn.auto>>) kernel
  // CHECK: attn.reduce max
  // CHECK: %[[MOST:.*]] = arith.maxnumf %[[MOST0]],
  // CHECK-NOT: math.ceil
  // CHECK: attn.rare any
  // CHECK: math.ceil
  // CHECK: attn.yield
  // CHECK-NOT: math.ceil
  // CHECK: arith.addf %[[MOST]], %[[MOST]]
  gpu.func @optimistic(%x: f32, %m: !m, %l: !l, %o: !o, %most: !l) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = tensor.splat %x : !s
    %p, %m1, %l1, %o1, %most1 = attn.online_softmax %s, %m, %l, %o largest %most : !l scale %x policy<optimistic, whole> : !s, !m, !l, !o
    %use = arith.addf %most1, %most1 : !l
    gpu.return
  }
}
