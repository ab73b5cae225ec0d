// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -mlir-print-op-generic | attn-opt | FileCheck %s
// RUN: attn-opt %s -emit-bytecode | attn-opt | FileCheck %s

// Masks and functions of elements.

!s = tensor<64x32xf32, #attn.auto>

// CHECK-LABEL: func.func @masks(
// CHECK-SAME: %[[S:.*]]: tensor<64x32xf32, #attn.auto>, %[[I:.*]]: i32, %[[J:.*]]: i32, %[[LIMIT:.*]]: i32, %[[LOWER:.*]]: i32, %[[UPPER:.*]]: i32
func.func @masks(%s: !s, %i: i32, %j: i32, %limit: i32, %lower: i32, %upper: i32) {
  // CHECK: %[[KEYS:.*]] = attn.apply_mask %[[S]][%[[I]], %[[J]]] limit %[[LIMIT]] : tensor<64x32xf32, #attn.auto>
  %keys = attn.apply_mask %s[%i, %j] limit %limit : !s
  // CHECK: %[[LEFT:.*]] = attn.apply_mask %[[S]][%[[I]], %[[J]]] lower %[[LOWER]] : tensor<64x32xf32, #attn.auto>
  %left = attn.apply_mask %s[%i, %j] lower %lower : !s
  // CHECK: %[[RIGHT:.*]] = attn.apply_mask %[[S]][%[[I]], %[[J]]] upper %[[UPPER]] : tensor<64x32xf32, #attn.auto>
  %right = attn.apply_mask %s[%i, %j] upper %upper : !s
  // CHECK: %[[ALL:.*]] = attn.apply_mask %[[S]][%[[I]], %[[J]]] limit %[[LIMIT]] lower %[[LOWER]] upper %[[UPPER]] {quads} : tensor<64x32xf32, #attn.auto>
  %all = attn.apply_mask %s[%i, %j] limit %limit lower %lower upper %upper {quads} : !s
  return
}

// CHECK-LABEL: func.func @row_keys(
// CHECK-SAME: %[[S:.*]]: tensor<64x32xf32, #attn.auto>, %[[I:.*]]: i32, %[[J:.*]]: i32, %[[ONE:.*]]: i1
func.func @row_keys(%s: !s, %i: i32, %j: i32, %one: i1) {
  // CHECK: %[[FROM:.*]], %[[TO:.*]], %[[EXACT:.*]] = attn.row_keys of %[[I]] same %[[ONE]] from %[[I]] to %[[J]] : tensor<64xi32, #attn.auto>, tensor<64xi32, #attn.auto> {
  %from, %to, %exact = attn.row_keys of %i same %one from %i to %j : tensor<64xi32, #attn.auto>, tensor<64xi32, #attn.auto> {
  // CHECK: ^bb0(%[[R:.*]]: i32):
  ^bb0(%r: i32):
    // CHECK: attn.yield %[[R]], %[[J]], %[[R]], %[[J]] : i32, i32, i32, i32
    attn.yield %r, %j, %r, %j : i32, i32, i32, i32
  }
  // CHECK: attn.map_elements %[[S]][%[[I]], %[[J]]] unless %[[EXACT]] {hides} : tensor<64x32xf32, #attn.auto> {
  %rest = attn.map_elements %s[%i, %j] unless %exact {hides} : !s {
  ^bb0(%x: f32, %q: i32, %k: i32):
    attn.yield %x : f32
  }
  // CHECK: attn.apply_mask %[[S]][%[[I]], %[[J]]] upper %[[J]] rows %[[FROM]] : tensor<64xi32, #attn.auto> to %[[TO]] : tensor<64xi32, #attn.auto> : tensor<64x32xf32, #attn.auto>
  %own = attn.apply_mask %s[%i, %j] upper %j rows %from : tensor<64xi32, #attn.auto> to %to : tensor<64xi32, #attn.auto> : !s
  // CHECK: attn.apply_mask %[[S]][%[[I]], %[[J]]] rows %[[FROM]] : tensor<64xi32, #attn.auto> : tensor<64x32xf32, #attn.auto>
  %behind = attn.apply_mask %s[%i, %j] rows %from : tensor<64xi32, #attn.auto> : !s
  return
}

// CHECK-LABEL: func.func @elements(
// CHECK-SAME: %[[S:.*]]: tensor<64x32xf32, #attn.auto>, %[[I:.*]]: i32, %[[J:.*]]: i32
func.func @elements(%s: !s, %i: i32, %j: i32) {
  // CHECK: %[[R:.*]] = attn.map_elements %[[S]][%[[I]], %[[J]]] : tensor<64x32xf32, #attn.auto> {
  %r = attn.map_elements %s[%i, %j] : !s {
  // CHECK: ^bb0(%[[X:.*]]: f32, %[[Q:.*]]: i32, %[[K:.*]]: i32):
  ^bb0(%x: f32, %q: i32, %k: i32):
    // CHECK: attn.yield %[[X]] : f32
    attn.yield %x : f32
  }
  // CHECK: %[[QUADS:.*]] = attn.map_elements %[[S]][%[[I]], %[[J]]] {quads} : tensor<64x32xf32, #attn.auto> {
  %quads = attn.map_elements %s[%i, %j] {quads} : !s {
  // CHECK: ^bb0(%[[X:.*]]: f32, %[[Q:.*]]: i32, %[[K:.*]]: i32):
  ^bb0(%x: f32, %q: i32, %k: i32):
    // CHECK: attn.yield %[[X]] : f32
    attn.yield %x : f32
  }
  // CHECK: attn.map_elements %[[S]][%[[I]], %[[J]]] {hides} : tensor<64x32xf32, #attn.auto> {
  %hidden = attn.map_elements %s[%i, %j] {hides} : !s {
  ^bb0(%x: f32, %q: i32, %k: i32):
    attn.yield %x : f32
  }
  return
}
