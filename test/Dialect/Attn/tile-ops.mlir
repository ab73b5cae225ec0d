// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -mlir-print-op-generic | attn-opt | FileCheck %s
// RUN: attn-opt %s -emit-bytecode | attn-opt | FileCheck %s

// Register tiles. The forms are those that the printer writes: attributes
// that have their default are not there.

!s = tensor<64x32xf32, #attn.auto>
!m = tensor<64xf32, #attn.auto>
!l = tensor<64x4xf32, #attn.partial<parent = #attn.auto>>
!o = tensor<64x64xf32, #attn.auto>

// CHECK-LABEL: func.func @rows(
// CHECK-SAME: %[[S:.*]]: tensor<64x32xf32, #attn.auto>
func.func @rows(%s: !s) {
  // CHECK: %[[M:.*]] = attn.reduce max %[[S]] : tensor<64x32xf32, #attn.auto> -> tensor<64xf32, #attn.auto>
  %m = attn.reduce max %s : !s -> !m
  // CHECK: attn.reduce maximum %[[S]] : tensor<64x32xf32, #attn.auto> -> tensor<64xf32, #attn.auto>
  %n = attn.reduce maximum %s : !s -> !m
  // CHECK: %[[L:.*]] = attn.reduce add %[[S]] partial : tensor<64x32xf32, #attn.auto> -> tensor<64x4xf32, #attn.partial<parent = #attn.auto>>
  %l = attn.reduce add %s partial : !s -> !l
  // CHECK: attn.column %[[L]] {column = 2 : i64} : tensor<64x4xf32, #attn.partial<parent = #attn.auto>> -> tensor<64xf32, #attn.auto>
  %third = attn.column %l {column = 2} : !l -> !m
  // CHECK: %[[B:.*]] = attn.broadcast %[[M]] : tensor<64xf32, #attn.auto> -> tensor<64x32xf32, #attn.auto>
  %b = attn.broadcast %m : !m -> !s
  // CHECK: attn.broadcast %{{.*}} {columns} : tensor<32xf32, #attn.auto> -> tensor<64x32xf32, #attn.auto>
  %c = arith.constant dense<1.0> : tensor<32xf32, #attn.auto>
  %d = attn.broadcast %c {columns} : tensor<32xf32, #attn.auto> -> !s
  return
}

// CHECK-LABEL: func.func @layouts(
// CHECK-SAME: %[[S:.*]]: tensor<64x32xf16, #attn.mma<warps = [4, 1]>>
func.func @layouts(%s: tensor<64x32xf16, #attn.mma<warps = [4, 1]>>) {
  // CHECK: attn.slice %[[S]] {column = 8 : i64} : tensor<64x32xf16, #attn.mma<warps = [4, 1]>> -> tensor<64x16xf16, #attn.mma<warps = [4, 1]>>
  %part = attn.slice %s {column = 8} : tensor<64x32xf16, #attn.mma<warps = [4, 1]>> -> tensor<64x16xf16, #attn.mma<warps = [4, 1]>>
  // CHECK: %[[P:.*]] = attn.convert_layout %[[S]] : tensor<64x32xf16, #attn.mma<warps = [4, 1]>> -> tensor<64x32xf16, #attn.operand<index = 0, parent = #attn.mma<warps = [4, 1]>>>
  %p = attn.convert_layout %s : tensor<64x32xf16, #attn.mma<warps = [4, 1]>> -> tensor<64x32xf16, #attn.operand<index = 0, parent = #attn.mma<warps = [4, 1]>>>
  return
}

// CHECK-LABEL: func.func @powers(
// CHECK-SAME: %[[S:.*]]: tensor<64x32xf32, #attn.auto>, %[[X:.*]]: f32
func.func @powers(%s: !s, %x: f32) {
  // No element by a polynomial is the default, which is left out.
  // CHECK: %[[E:.*]] = attn.exp2 %[[S]] : tensor<64x32xf32, #attn.auto>
  %e = attn.exp2 %s {polynomial = 0 : i64} : !s
  // CHECK: %[[P:.*]] = attn.exp2 %[[S]] {polynomial = 4 : i64} : tensor<64x32xf32, #attn.auto>
  %p = attn.exp2 %s {polynomial = 4 : i64} : !s
  // CHECK: attn.exp2 %[[S]] {bounded, polynomial = 4 : i64} : tensor<64x32xf32, #attn.auto>
  %bounded = attn.exp2 %s {polynomial = 4 : i64, bounded} : !s
  // CHECK: attn.exp2 %[[S]] {column = 16 : i64, polynomial = 7 : i64} : tensor<64x32xf32, #attn.auto>
  %slice = attn.exp2 %s {polynomial = 7 : i64, column = 16 : i64} : !s
  // CHECK: %[[SCALAR:.*]] = attn.exp2 %[[X]] : f32
  %scalar = attn.exp2 %x : f32
  return
}

// CHECK-LABEL: func.func @softmax(
// CHECK-SAME: %[[S:.*]]: tensor<64x32xf32, #attn.auto>, %[[M:.*]]: tensor<64xf32, #attn.auto>, %[[L:.*]]: tensor<64x4xf32, #attn.partial<parent = #attn.auto>>, %[[O:.*]]: tensor<64x64xf32, #attn.auto>, %[[C:.*]]: f32
func.func @softmax(%s: !s, %m: !m, %l: !l, %o: !o, %c: f32) {
  // All defaults are left out.
  // CHECK: %[[P:.*]], %[[M1:.*]], %[[L1:.*]], %[[O1:.*]] = attn.online_softmax %[[S]], %[[M]], %[[L]], %[[O]] scale %[[C]] : tensor<64x32xf32, #attn.auto>, tensor<64xf32, #attn.auto>, tensor<64x4xf32, #attn.partial<parent = #attn.auto>>, tensor<64x64xf32, #attn.auto>
  %p, %m1, %l1, %o1 = attn.online_softmax %s, %m, %l, %o scale %c  : !s, !m, !l, !o
  // CHECK: %[[P2:.*]], %[[M2:.*]], %[[L2:.*]], %[[O2:.*]] = attn.online_softmax %[[S]], %[[M1]], %[[L1]], %[[O1]] scale %[[C]] policy<threshold, growth = 4> {finite} : tensor<64x32xf32, #attn.auto>, tensor<64xf32, #attn.auto>, tensor<64x4xf32, #attn.partial<parent = #attn.auto>>, tensor<64x64xf32, #attn.auto>
  %p2, %m2, %l2, %o2 = attn.online_softmax %s, %m1, %l1, %o1 scale %c policy<threshold, growth = 4> {finite} : !s, !m, !l, !o
  // CHECK: %[[P3:.*]], %[[M3:.*]], %[[L3:.*]], %[[O3:.*]] = attn.online_softmax %[[S]], %[[M2]], %[[L2]], %[[O2]] scale %[[C]] policy<optimistic, offset = 6, limit = 8> : tensor<64x32xf32, #attn.auto>, tensor<64xf32, #attn.auto>, tensor<64x4xf32, #attn.partial<parent = #attn.auto>>, tensor<64x64xf32, #attn.auto>
  %p3, %m3, %l3, %o3 = attn.online_softmax %s, %m2, %l2, %o2 scale %c policy<optimistic, offset = 6, limit = 8> : !s, !m, !l, !o
  // Without an accumulator the factor is a result.
  // CHECK: %{{.*}}, %{{.*}}, %{{.*}}, %[[F:.*]] = attn.online_softmax %[[S]], %[[M]], %[[L]] scale %[[C]] policy<lagged, polynomial = 4> : tensor<64x32xf32, #attn.auto>, tensor<64xf32, #attn.auto>, tensor<64x4xf32, #attn.partial<parent = #attn.auto>>{{$}}
  %p4, %m4, %l4, %f = attn.online_softmax %s, %m, %l scale %c policy<lagged, polynomial = 4> : !s, !m, !l
  // CHECK: %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[MOST:.*]] = attn.online_softmax %[[S]], %[[M]], %[[L]] largest %[[M]] : tensor<64xf32, #attn.auto> scale %[[C]] : tensor<64x32xf32, #attn.auto>, tensor<64xf32, #attn.auto>, tensor<64x4xf32, #attn.partial<parent = #attn.auto>>{{$}}
  %p6, %m6, %l6, %f6, %most = attn.online_softmax %s, %m, %l largest %m : !m scale %c : !s, !m, !l
  // CHECK: %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[PARTS:.*]] = attn.online_softmax %[[S]], %[[M]], %[[L]], %[[O]] largest %[[L]] : tensor<64x4xf32, #attn.partial<parent = #attn.auto>> scale %[[C]] policy<optimistic, whole> : tensor<64x32xf32, #attn.auto>, tensor<64xf32, #attn.auto>, tensor<64x4xf32, #attn.partial<parent = #attn.auto>>, tensor<64x64xf32, #attn.auto>{{$}}
  %p7, %m7, %l7, %o7, %parts = attn.online_softmax %s, %m, %l, %o largest %l : !l scale %c policy<optimistic, whole> : !s, !m, !l, !o
  // CHECK: attn.online_softmax %[[S]], %[[M]], %[[L]] largest %[[M]] : tensor<64xf32, #attn.auto> keys %[[C]] scale %[[C]] policy<threshold, offset = 8, growth = 5.000000e-01, slack = 2> :
  %p8, %m8, %l8, %f8, %most8 = attn.online_softmax %s, %m, %l largest %m : !m keys %c scale %c policy<threshold, offset = 8, growth = 0.5, slack = 2> : !s, !m, !l
  // CHECK: arith.negf %[[MOST]]
  %more = arith.negf %most : !m
  // CHECK: arith.negf %[[F]] : tensor<64xf32, #attn.auto>
  %use = arith.negf %f : !m
  return
}

// CHECK-LABEL: func.func @rare(
// CHECK-SAME: %[[X:.*]]: tensor<64x32xf32, #attn.auto>, %[[Y:.*]]: tensor<64xf32, #attn.auto>, %[[BIG:.*]]: tensor<64x32xi1, #attn.auto>
func.func @rare(%x: !s, %y: !m, %big: tensor<64x32xi1, #attn.auto>) {
  // CHECK: %[[R:.*]] = attn.rare any %[[BIG]] default(%[[X]] : tensor<64x32xf32, #attn.auto>) : tensor<64x32xi1, #attn.auto> {
  %r = attn.rare any %big default(%x : !s) : tensor<64x32xi1, #attn.auto> {
    %z = arith.mulf %x, %x : !s
    // CHECK: attn.yield %{{.*}} : tensor<64x32xf32, #attn.auto>
    attn.yield %z : !s
  }
  // CHECK: %[[BOTH:.*]]:2 = attn.rare any %[[BIG]] default(%[[X]], %[[Y]] : tensor<64x32xf32, #attn.auto>, tensor<64xf32, #attn.auto>) {barrier = 3 : i64, each_warpgroup, leave_loop} : tensor<64x32xi1, #attn.auto> {
  %both:2 = attn.rare any %big default(%x, %y : !s, !m) {barrier = 3 : i64, each_warpgroup, leave_loop} : tensor<64x32xi1, #attn.auto> {
    // CHECK: attn.yield %[[X]], %[[Y]] : tensor<64x32xf32, #attn.auto>, tensor<64xf32, #attn.auto>
    attn.yield %x, %y : !s, !m
  }
  return
}

// CHECK-LABEL: func @softmax_end
// CHECK: %[[SUMS:.*]] = attn.softmax_sums %{{.*}}, %[[M:.*]] limit 0x4D800000 : tensor<64x4xf32, #attn.partial<parent = #attn.auto>>, tensor<64xf32, #attn.auto>
// CHECK: attn.softmax_inverse %[[SUMS]] : tensor<64xf32, #attn.auto>
// CHECK: attn.softmax_lse %[[M]], %[[SUMS]] : tensor<64xf32, #attn.auto>
func.func @softmax_end(%l: tensor<64x4xf32, #attn.partial<parent = #attn.auto>>, %m: tensor<64xf32, #attn.auto>) -> (tensor<64xf32, #attn.auto>, tensor<64xf32, #attn.auto>) {
  %sums = attn.softmax_sums %l, %m limit 2.68435456e+08 : tensor<64x4xf32, #attn.partial<parent = #attn.auto>>, tensor<64xf32, #attn.auto>
  %inverse = attn.softmax_inverse %sums : tensor<64xf32, #attn.auto>
  %lse = attn.softmax_lse %m, %sums : tensor<64xf32, #attn.auto>
  return %inverse, %lse : tensor<64xf32, #attn.auto>, tensor<64xf32, #attn.auto>
}
