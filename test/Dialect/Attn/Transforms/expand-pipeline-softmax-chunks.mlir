// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-expand-pipeline))' | FileCheck %s

// With a chunk each warp masks those columns of which one of its rows lacks a key, and
// computes those of which one has a key: the others' probabilities are zeros.

!s = tensor<128x64xf32, #attn.auto>
!m = tensor<128xf32, #attn.auto>
!l = tensor<128x1xf32, #attn.partial<parent = #attn.auto>>

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @causal(
  // CHECK-SAME: %[[X:.*]]: f32, %[[ROW:.*]]: i32, %[[KEY:.*]]: i32, %[[KEYS:.*]]: i32, %[[UPPER:.*]]: i32)
  // CHECK-DAG: %[[S:.*]] = tensor.splat %[[X]] : tensor<128x64xf32
  // CHECK-DAG: %[[M:.*]] = tensor.splat %[[X]] : tensor<128xf32
  // CHECK: %[[S0:.*]] = attn.slice %[[S]] {column = 0 : i64}
  // CHECK: %[[CUT:.*]] = attn.kept_rows %[[M]][%[[ROW]], %[[KEY]]] keys 32 limit %[[KEYS]] upper %[[UPPER]] {lacking}
  // CHECK: %[[X0:.*]] = attn.rare any %[[CUT]] default(%[[S0]] :
  // CHECK:   %[[KEPT:.*]] = attn.kept_rows %[[M]][%[[ROW]], %[[KEY]]] keys 32 limit %[[KEYS]] upper %[[UPPER]] :
  // CHECK:   %[[NONE:.*]] = arith.constant dense<0xFF800000> : tensor<128x32xf32
  // CHECK:   attn.rare any %[[KEPT]] default(%[[NONE]] :
  // CHECK:     attn.apply_mask %[[S0]][%[[ROW]], %[[KEY]]] limit %[[KEYS]] upper %[[UPPER]]
  // CHECK: attn.slice %[[S]] {column = 32 : i64}
  // CHECK: %[[KEY1:.*]] = arith.addi %[[KEY]], %c32
  // CHECK: attn.kept_rows %[[M]][%[[ROW]], %[[KEY1]]] keys 32
  // CHECK: %[[MASKED:.*]] = attn.concat %[[X0]], %{{.*}} -> tensor<128x64xf32
  // CHECK: attn.reduce maximum %[[MASKED]]
  // The first 48 columns are a chunk and a half.
  // CHECK: attn.slice %[[MASKED]] {column = 0 : i64} : {{.*}} -> tensor<128x32xf32
  // CHECK: %[[SOME:.*]] = attn.kept_rows %[[M]][%[[ROW]], %[[KEY]]] keys 32
  // CHECK: %[[ZERO:.*]] = arith.constant dense<0.0{{.*}}> : tensor<128x32xf32
  // CHECK: attn.rare any %[[SOME]] default(%[[ZERO]] :
  // CHECK:   attn.exp2 %{{.*}} {bounded, polynomial = 7 : i64} : tensor<128x32xf32
  // CHECK: attn.slice %[[MASKED]] {column = 32 : i64} : {{.*}} -> tensor<128x16xf32
  // CHECK:   attn.exp2 %{{.*}} {bounded, column = 32 : i64, polynomial = 7 : i64} : tensor<128x16xf32
  // CHECK: attn.concat {{.*}} -> tensor<128x48xf32
  // CHECK: attn.slice %[[MASKED]] {column = 48 : i64} : {{.*}} -> tensor<128x16xf32
  // CHECK:   attn.exp2 %{{.*}} {bounded, polynomial = 7 : i64} : tensor<128x16xf32
  gpu.func @causal(%x: f32, %row: i32, %key: i32, %keys: i32, %upper: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = tensor.splat %x : !s
    %m = tensor.splat %x : !m
    %l = tensor.splat %x : !l
    %masked = attn.apply_mask %s[%row, %key] limit %keys upper %upper : !s
    %p, %m1, %l1, %f = attn.online_softmax %masked, %m, %l scale %x policy<exact, polynomial = 7> {chunk = 32} : !s, !m, !l
    %a = attn.slice %p {column = 0} : !s -> tensor<128x48xf32, #attn.auto>
    %use = arith.addf %a, %a : tensor<128x48xf32, #attn.auto>
    %b = attn.slice %p {column = 48} : !s -> tensor<128x16xf32, #attn.auto>
    %last = arith.addf %b, %b : tensor<128x16xf32, #attn.auto>
    gpu.return
  }

  // Scores without a mask are computed as a whole, and so are masked ones that somebody
  // else needs.
  // CHECK-LABEL: gpu.func @whole(
  // CHECK-NOT: attn.kept_rows
  // CHECK: gpu.return
  gpu.func @whole(%x: f32, %row: i32, %key: i32, %keys: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = tensor.splat %x : !s
    %m = tensor.splat %x : !m
    %l = tensor.splat %x : !l
    %p, %m1, %l1, %f = attn.online_softmax %s, %m, %l scale %x {chunk = 32} : !s, !m, !l
    %masked = attn.apply_mask %p[%row, %key] limit %keys : !s
    %q, %m2, %l2, %g = attn.online_softmax %masked, %m1, %l1 scale %x {chunk = 32} : !s, !m, !l
    %use = arith.addf %masked, %q : !s
    gpu.return
  }
}
