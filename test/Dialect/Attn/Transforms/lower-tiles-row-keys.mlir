// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-lower-tiles,canonicalize,cse))' | FileCheck %s

#acc = #attn.mma<warps = [4, 1]>
#rows = #attn.slice<dim = 1, parent = #acc>

gpu.module @kernels {
  // A thread asks the region for its two rows, unless all rows keep the same keys, and
  // the warp tells each other whether the keys are exact. Bounds of rows join those of
  // the mask; elements are asked for only where keys are not exact.
  // CHECK-LABEL: gpu.func @rows(
  // CHECK-SAME: %[[X:[^:]*]]: f32, %[[OUT:[^:]*]]: !llvm.ptr<1>, %[[ROW:[^:]*]]: i32, %[[COLUMN:[^:]*]]: i32, %[[SAME:[^:]*]]: i1, %[[BEGIN:[^:]*]]: i32, %[[END:[^:]*]]: i32
  gpu.func @rows(%x: f32, %out: !llvm.ptr<1>, %row: i32, %column: i32, %same: i1, %begin: i32, %end: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %t = tensor.splat %x : tensor<64x8xf32, #acc>
    // CHECK: %[[KEYS:.*]]:5 = scf.if %[[SAME]]
    // CHECK: scf.yield %[[BEGIN]], %[[BEGIN]], %[[END]], %[[END]], %true
    // CHECK: } else {
    // CHECK-COUNT-2: arith.divui
    // CHECK-NOT: arith.divui
    // CHECK: %[[ALL:.*]] = nvvm.vote.sync all
    // CHECK: scf.yield %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[ALL]]
    %from, %to, %exact = attn.row_keys of %row same %same from %begin to %end : tensor<64xi32, #rows>, tensor<64xi32, #rows> {
    ^bb0(%r: i32):
      %size = arith.constant 48 : i32
      %n = arith.divui %r, %size : i32
      %b = arith.muli %n, %size : i32
      %e = arith.addi %b, %size : i32
      attn.yield %b, %e, %b, %begin : i32, i32, i32, i32
    }
    // CHECK: scf.if %[[KEYS]]#4
    // CHECK: } else {
    // CHECK-COUNT-2: arith.remui
    %asked = attn.map_elements %t[%row, %column] unless %exact {hides} : tensor<64x8xf32, #acc> {
    ^bb0(%e: f32, %i: i32, %j: i32):
      %three = arith.constant 3 : i32
      %rest = arith.remui %j, %three : i32
      %keep = arith.cmpi eq, %rest, %i : i32
      %none = arith.constant 0xFF800000 : f32
      %y = arith.select %keep, %e, %none : f32
      attn.yield %y : f32
    }
    // CHECK: arith.subi %[[KEYS]]#2
    // CHECK: arith.minsi
    // CHECK: arith.subi %[[KEYS]]#0
    // CHECK: arith.subi %[[KEYS]]#3
    // CHECK: arith.subi %[[KEYS]]#1
    %masked = attn.apply_mask %asked[%row, %column] limit %end rows %from : tensor<64xi32, #rows> to %to : tensor<64xi32, #rows> : tensor<64x8xf32, #acc>
    %most = attn.reduce max %masked : tensor<64x8xf32, #acc> -> tensor<64xf32, #rows>
    %zero = arith.constant 0 : i64
    %g = attn.global_view %out[%zero] rows %end stride %zero : !attn.global<?xf32>
    attn.global_store %most, %g[%row] : tensor<64xf32, #rows>, !attn.global<?xf32>
    gpu.return
  }
}
