// RUN: attn-opt %s --attn-expand-arithmetic | FileCheck %s

func.func @end(%row: i32, %queries: i32, %keys: i32) -> i32 {
  %begin, %full_begin, %full_end, %end = attn.key_blocks %row queries %queries keys %keys mask <kind = none> rows 128 block 64
  return %end : i32
}

// CHECK: func.func @end(%{{.*}}: i32, %{{.*}}: i32, %[[KEYS:.*]]: i32)
// CHECK: %[[SUM:.*]] = arith.addi %[[KEYS]], %{{.*}} : i32
// CHECK: %[[END:.*]] = arith.divui %[[SUM]], %{{.*}} : i32
// CHECK: return %[[END]]
