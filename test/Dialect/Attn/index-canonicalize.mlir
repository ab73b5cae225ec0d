// RUN: attn-opt %s -canonicalize | FileCheck %s

// Row 128 of a causal tile of 128 rows: keys 0 to 255, of which the first 129 need
// no test.
// CHECK-LABEL: func @blocks
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK-DAG: %[[TWO:.*]] = arith.constant 2 : i32
// CHECK-DAG: %[[FOUR:.*]] = arith.constant 4 : i32
// CHECK: return %[[ZERO]], %[[TWO]], %[[FOUR]], %[[ZERO]]
func.func @blocks() -> (i32, i32, i32, i32) {
  %row = arith.constant 128 : i32
  %length = arith.constant 4096 : i32
  %begin, %full_begin, %full_end, %end, %upper = attn.key_blocks %row queries %length keys %length mask <kind = causal> rows 128 block 64
  return %begin, %full_end, %end, %upper : i32, i32, i32, i32
}

// The same where a mask of its own leaves keys 70 to 199, and all of 128 to 199.
// CHECK-LABEL: func @range
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : i32
// CHECK-DAG: %[[TWO:.*]] = arith.constant 2 : i32
// CHECK-DAG: %[[FOUR:.*]] = arith.constant 4 : i32
// CHECK: return %[[ONE]], %[[TWO]], %[[TWO]], %[[FOUR]]
func.func @range() -> (i32, i32, i32, i32) {
  %row = arith.constant 128 : i32
  %length = arith.constant 4096 : i32
  %from = arith.constant 70 : i32
  %to = arith.constant 200 : i32
  %begin, %full_begin, %full_end, %end, %upper = attn.key_blocks %row queries %length keys %length range %from, %to, %row, %to mask <kind = causal> rows 128 block 64
  return %begin, %full_begin, %full_end, %end : i32, i32, i32, i32
}

// CHECK-LABEL: func @offset
// CHECK: %[[SUM:.*]] = arith.constant 264 : i64
// CHECK: return %[[SUM]]
func.func @offset() -> i64 {
  %c2 = arith.constant 2 : i32
  %c1 = arith.constant 1 : i32
  %o = attn.element_offset [%c2, %c1] strides [100, 0] first 64
  return %o : i64
}
