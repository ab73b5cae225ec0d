// RUN: attn-opt %s -canonicalize | FileCheck %s

// What constants, repetition and known conditions leave of ops on tiles.

!s = tensor<64x32xf32, #attn.mma<warps = [4, 1]>>
!m = tensor<64xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [4, 1]>>>
!l = tensor<64x4xf32, #attn.partial<parent = #attn.mma<warps = [4, 1]>>>
!h = tensor<64x32xf16, #attn.mma<warps = [4, 1]>>
!p = tensor<64x32xf16, #attn.operand<index = 0, parent = #attn.mma<warps = [4, 1]>>>
!c = tensor<64x32xi1, #attn.mma<warps = [4, 1]>>

// CHECK-LABEL: func.func @largest_of_repeated(
// CHECK-SAME: %[[M:.*]]: tensor
// CHECK-NEXT: return %[[M]]
func.func @largest_of_repeated(%m: !m) -> !m {
  %s = attn.broadcast %m : !m -> !s
  %r = attn.reduce max %s : !s -> !m
  return %r : !m
}

// CHECK-LABEL: func.func @maximum_of_repeated(
// CHECK-SAME: %[[M:.*]]: tensor
// CHECK-NEXT: return %[[M]]
func.func @maximum_of_repeated(%m: !m) -> !m {
  %s = attn.broadcast %m : !m -> !s
  %r = attn.reduce maximum %s : !s -> !m
  return %r : !m
}

// A sum of repeated values is none of them, and parts of rows are no rows.
// CHECK-LABEL: func.func @other_reductions(
// CHECK: attn.reduce add
// CHECK: attn.reduce max
func.func @other_reductions(%m: !m) -> (!m, !l) {
  %s = attn.broadcast %m : !m -> !s
  %sum = attn.reduce add %s : !s -> !m
  %parts = attn.reduce max %s partial : !s -> !l
  return %sum, %parts : !m, !l
}

// CHECK-LABEL: func.func @constants(
// CHECK-DAG: %[[TWO:.*]] = arith.constant dense<2.000000e+00> : tensor<64xf32, #attn.slice
// CHECK-DAG: %[[PARTS:.*]] = arith.constant dense<2.000000e+00> : tensor<64x4xf32, #attn.partial
// CHECK-DAG: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<64xf32, #attn.slice
// CHECK: return %[[TWO]], %[[PARTS]], %[[ZERO]], %[[TWO]]
func.func @constants() -> (!m, !l, !m, !m) {
  %two = arith.constant dense<2.0> : !m
  %zero = arith.constant dense<0.0> : !s
  %s = attn.broadcast %two : !m -> !s
  %largest = attn.reduce max %s : !s -> !m
  %parts = attn.reduce max %s partial : !s -> !l
  %sum = attn.reduce add %zero : !s -> !m
  %column = attn.column %parts {column = 1} : !l -> !m
  return %largest, %parts, %sum, %column : !m, !l, !m, !m
}

// Sums of other numbers are not computed here: their order is the hardware's.
// CHECK-LABEL: func.func @sums(
// CHECK-COUNT-2: attn.reduce add
func.func @sums() -> (!m, !m) {
  %two = arith.constant dense<2.0> : !s
  %negative = arith.constant dense<-0.0> : !s
  %a = attn.reduce add %two : !s -> !m
  %b = attn.reduce add %negative : !s -> !m
  return %a, %b : !m, !m
}

// CHECK-LABEL: func.func @converted(
// CHECK-SAME: %[[S:.*]]: tensor
// CHECK-NEXT: return %[[S]], %[[S]]
func.func @converted(%s: !h) -> (!h, !h) {
  %all = attn.slice %s {column = 0} : !h -> !h
  %same = attn.convert_layout %all : !h -> !h
  %there = attn.convert_layout %s : !h -> !p
  %back = attn.convert_layout %there : !p -> !h
  return %same, %back : !h, !h
}

// CHECK-LABEL: func.func @masked_twice(
// CHECK: %[[R:.*]] = attn.apply_mask
// CHECK-NEXT: return %[[R]]
func.func @masked_twice(%s: !s, %i: i32, %j: i32, %n: i32) -> !s {
  %once = attn.apply_mask %s[%i, %j] limit %n : !s
  %r = attn.apply_mask %once[%i, %j] limit %n : !s
  return %r : !s
}

// Another bound, another place or another order of keys is another mask.
// CHECK-LABEL: func.func @other_masks(
// CHECK-COUNT-4: attn.apply_mask
func.func @other_masks(%s: !s, %i: i32, %j: i32, %n: i32) -> !s {
  %limit = attn.apply_mask %s[%i, %j] limit %n : !s
  %upper = attn.apply_mask %limit[%i, %j] upper %n : !s
  %place = attn.apply_mask %upper[%j, %i] upper %n : !s
  %quads = attn.apply_mask %place[%j, %i] upper %n {quads} : !s
  return %quads : !s
}

// CHECK-LABEL: func.func @elements(
// CHECK-SAME: %[[S:.*]]: tensor
// CHECK: %[[R:.*]] = attn.map_elements %[[S]]
// CHECK: return %[[S]], %[[R]]
func.func @elements(%s: !s, %i: i32, %j: i32, %y: f32) -> (!s, !s) {
  %same = attn.map_elements %s[%i, %j] : !s {
  ^bb0(%x: f32, %q: i32, %k: i32):
    attn.yield %x : f32
  }
  %other = attn.map_elements %s[%i, %j] : !s {
  ^bb0(%x: f32, %q: i32, %k: i32):
    attn.yield %y : f32
  }
  return %same, %other : !s, !s
}

// CHECK-LABEL: func.func @always(
// CHECK-SAME: %[[S:.*]]: tensor
// CHECK-NEXT: %[[R:.*]] = arith.mulf %[[S]], %[[S]]
// CHECK-NEXT: return %[[R]]
func.func @always(%s: !s) -> !s {
  %yes = arith.constant dense<true> : !c
  %r = attn.rare any %yes default(%s : !s) : !c {
    %square = arith.mulf %s, %s : !s
    attn.yield %square : !s
  }
  return %r : !s
}

// CHECK-LABEL: func.func @never(
// CHECK-SAME: %[[S:.*]]: tensor
// CHECK-NEXT: return %[[S]]
func.func @never(%s: !s) -> !s {
  %no = arith.constant dense<false> : !c
  %r = attn.rare any %no default(%s : !s) : !c {
    %square = arith.mulf %s, %s : !s
    attn.yield %square : !s
  }
  return %r : !s
}

// CHECK-LABEL: func.func @sometimes(
// CHECK: attn.rare any
func.func @sometimes(%s: !s, %c: !c) -> !s {
  %r = attn.rare any %c default(%s : !s) : !c {
    %square = arith.mulf %s, %s : !s
    attn.yield %square : !s
  }
  return %r : !s
}
