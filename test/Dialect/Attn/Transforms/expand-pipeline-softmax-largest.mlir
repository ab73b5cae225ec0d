// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-expand-pipeline))' | FileCheck %s

// With the largest exponent of a row the row's m stays unless that has grown, whatever path the
// warp takes, and the maximum of a block is one of the row.

!s = tensor<64x32xf32, #attn.auto>
!m = tensor<64xf32, #attn.auto>
!l = tensor<64x1xf32, #attn.partial<parent = #attn.auto>>

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @threshold
  // CHECK-SAME: %{{.*}}: f32, %[[M0:.*]]: tensor<64xf32, #attn.auto>, %[[L0:.*]]: tensor<64x1xf32, {{.*}}, %[[MOST0:.*]]: tensor<64xf32
  // CHECK: %[[SCALED:.*]] = arith.mulf
  // CHECK: %[[OR:.*]] = arith.maxnumf %[[MOST0]], %[[SCALED]]
  // CHECK: %[[MOST:.*]] = arith.maxnumf %[[OR]], %{{.*}}
  // CHECK: %[[GROWTH:.*]] = arith.subf %[[MOST]], %[[M0]]
  // CHECK: %[[GROWN:.*]] = arith.cmpf ugt, %[[GROWTH]]
  // CHECK: %[[STATE:.*]]:3 = attn.rare any %[[GROWN]] default(%[[M0]], %[[L0]],
  // CHECK: %[[M:.*]] = arith.select %[[GROWN]], %[[MOST]], %[[M0]]
  // CHECK: arith.subf %[[M0]], %[[M]]
  // CHECK: attn.yield %[[M]],
  // CHECK: arith.subf %[[MOST]], %[[STATE]]#0
  gpu.func @threshold(%x: f32, %m: !m, %l: !l, %most: !m) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = tensor.splat %x : !s
    %p, %m1, %l1, %f, %most1 = attn.online_softmax %s, %m, %l largest %most : !m scale %x policy<threshold> : !s, !m, !l
    %use = arith.subf %most1, %m1 : !m
    gpu.return
  }

  // With the number of keys a row changes that has grown beyond its type's numbers, or whose new
  // largest power is more than l / sqrt(keys). Rows that no key decides get slack.
  // CHECK-LABEL: gpu.func @decided
  // CHECK-SAME: %[[X:.*]]: f32, %[[M0:.*]]: tensor<64xf32, #attn.auto>, %[[L0:.*]]: tensor<64x1xf32, {{.*}}, %[[MOST0:.*]]: tensor<64xf32
  // CHECK: %[[OR:.*]] = arith.maxnumf %[[MOST0]],
  // CHECK: %[[MOST:.*]] = arith.maxnumf %[[OR]], %{{.*}}
  // CHECK: %[[ABOVE:.*]] = arith.subf %[[MOST]], %[[M0]]
  // CHECK: %[[POWER:.*]] = attn.exp2 %[[ABOVE]]
  // CHECK: %[[UNITS:.*]] = arith.mulf %[[POWER]], %cst{{.*}}
  // CHECK: %[[KEYS:.*]] = tensor.splat %[[X]] : tensor<64xf32
  // CHECK: %[[SUMS:.*]] = attn.reduce add %[[L0]]
  // CHECK: %[[SQUARE:.*]] = arith.mulf %[[UNITS]], %[[UNITS]]
  // CHECK: %[[LEFT:.*]] = arith.mulf %[[SQUARE]], %[[KEYS]]
  // CHECK: %[[RIGHT:.*]] = arith.mulf %[[SUMS]], %[[SUMS]]
  // CHECK: %[[DECIDED:.*]] = arith.cmpf ugt, %[[LEFT]], %[[RIGHT]]
  // CHECK: %[[NEW:.*]] = arith.cmpf ogt, %[[MOST]], %[[MOST0]]
  // CHECK: %[[BOTH:.*]] = arith.andi %[[NEW]], %[[DECIDED]]
  // CHECK: %[[GROWTH:.*]] = arith.subf %[[MOST]], %[[M0]]
  // CHECK: %[[GROWN:.*]] = arith.cmpf ugt, %[[GROWTH]]
  // CHECK: %[[CHANGES:.*]] = arith.ori %[[GROWN]], %[[BOTH]]
  // CHECK: %[[STATE:.*]]:3 = attn.rare any %[[CHANGES]] default(%[[M0]], %[[L0]],
  // CHECK: %[[HIGHER:.*]] = arith.addf %[[MOST]], %cst{{.*}}
  // CHECK: %[[M:.*]] = arith.select %[[DECIDED]], %[[MOST]], %[[HIGHER]]
  // CHECK: attn.yield %[[M]],
  // CHECK: arith.subf %[[MOST]], %[[STATE]]#0
  gpu.func @decided(%x: f32, %m: !m, %l: !l, %most: !m) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = tensor.splat %x : !s
    %p, %m1, %l1, %f, %most1 = attn.online_softmax %s, %m, %l largest %most : !m keys %x scale %x policy<threshold, offset = 8, growth = 0.5, slack = 2> : !s, !m, !l
    %use = arith.subf %most1, %m1 : !m
    gpu.return
  }

  // CHECK-LABEL: gpu.func @lagged
  // CHECK-SAME: %{{.*}}: f32, %[[M0:.*]]: tensor<64xf32, #attn.auto>, %[[L0:.*]]: tensor<64x1xf32, {{.*}}, %[[MOST0:.*]]: tensor<64xf32
  // CHECK: attn.reduce max %{{.*}} : tensor<64x32xf32, #attn.auto> -> tensor<64xf32, #attn.auto>
  // CHECK: %[[MOST:.*]] = arith.maxnumf %[[MOST0]],
  // CHECK: %[[GROWTH:.*]] = arith.subf %[[MOST]], %[[M0]]
  // CHECK: %[[GROWN:.*]] = arith.cmpf ugt, %[[GROWTH]]
  // CHECK: %[[STATE:.*]]:4 = attn.rare any %[[GROWN]]
  // CHECK: %[[BOUND:.*]] = arith.maxnumf %[[MOST]],
  // CHECK: arith.select %[[GROWN]], %[[BOUND]], %[[M0]]
  // CHECK: arith.subf %[[MOST]], %[[STATE]]#1
  gpu.func @lagged(%x: f32, %m: !m, %l: !l, %most: !m) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = tensor.splat %x : !s
    %p, %m1, %l1, %f, %most1 = attn.online_softmax %s, %m, %l largest %most : !m scale %x policy<lagged> : !s, !m, !l
    %use = arith.subf %most1, %m1 : !m
    gpu.return
  }

  // Both are the same.
  // CHECK-LABEL: gpu.func @exact
  // CHECK-NOT: arith.select
  // CHECK: arith.subf %[[M:.*]], %[[M]] :
  gpu.func @exact(%x: f32, %m: !m, %l: !l, %most: !m) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = tensor.splat %x : !s
    %p, %m1, %l1, %f, %most1 = attn.online_softmax %s, %m, %l largest %most : !m scale %x : !s, !m, !l
    %use = arith.subf %most1, %m1 : !m
    gpu.return
  }

  // CHECK-LABEL: gpu.func @first
  // CHECK-NOT: attn.rare
  // CHECK: arith.subf %[[M:.*]], %[[M]] :
  gpu.func @first(%x: f32, %m: !m, %most: !m) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = tensor.splat %x : !s
    %l = arith.constant dense<0.0> : !l
    %p, %m1, %l1, %f, %most1 = attn.online_softmax %s, %m, %l largest %most : !m scale %x policy<threshold> : !s, !m, !l
    %use = arith.subf %most1, %m1 : !m
    gpu.return
  }
}
