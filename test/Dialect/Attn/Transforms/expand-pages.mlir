// RUN: attn-opt %s -attn-expand=chip=sm_80 -attn-expand-arithmetic -split-input-file | FileCheck %s

// Lengths are clamped to what k, or the sequence's row of the table, holds.

// CHECK-LABEL: gpu.func @attn_fwd
// CHECK: %[[LENGTH:.*]] = llvm.load
// CHECK: %[[POSITIVE:.*]] = arith.maxsi %[[LENGTH]], %c0_i32
// CHECK: %[[KEYS:.*]] = arith.minsi %[[POSITIVE]], %c90_i32
// CHECK: attn.global_view %{{.*}} rows %[[KEYS]]
// CHECK: attn.apply_mask %{{.*}} limit %[[KEYS]]
func.func @lengths(%q: memref<2x4x1x64xf16>, %k: memref<2x4x90x64xf16>, %o: memref<2x4x1x64xf16>, %n: memref<2xi32>) {
  attn.attention ins(%q, %k, %k : memref<2x4x1x64xf16>, memref<2x4x90x64xf16>, memref<2x4x90x64xf16>)
                 outs(%o : memref<2x4x1x64xf16>) kv_lengths(%n : memref<2xi32>) {plan = #attn.split_q<>}
  return
}

// -----

// Rows of pages: the sequence's row of the table, the pages of the pool, and the
// strides of the pool, which may be any.

// CHECK-LABEL: gpu.func @attn_fwd
// CHECK: %[[FIRST:.*]] = arith.muli %{{.*}}, %c6_i64
// CHECK: %[[HOLDS:.*]] = arith.muli %c6_i32, %c16_i32
// CHECK: %[[KEYS:.*]] = arith.minsi %{{.*}}, %[[HOLDS]]
// CHECK: attn.paged_view %{{.*}} rows %[[KEYS]] stride %c256_i64{{.*}} table %{{.*}}[%[[FIRST]]] pages %c9_i32{{.*}} distance %c8192_i64{{.*}} {alignment = 16 : i64, page = 16 : i64}
!kv = memref<9x4x16x64xf16, strided<[8192, 64, 256, 1]>>
func.func @pages(%q: memref<2x4x1x64xf16>, %k: !kv, %v: !kv, %o: memref<2x4x1x64xf16>, %t: memref<2x6xi32>, %n: memref<2xi32>) {
  attn.attention ins(%q, %k, %v : memref<2x4x1x64xf16>, !kv, !kv)
                 outs(%o : memref<2x4x1x64xf16>) pages(%t : memref<2x6xi32>) kv_lengths(%n : memref<2xi32>)
                 {page_size = 16 : i64, plan = #attn.split_q<>}
  return
}

// -----

// A list of pages: its counts are cut to the list, whose extent is a parameter.

// CHECK-LABEL: gpu.func @attn_fwd
// CHECK-SAME: {dim = 0 : i64, kind = "size", tensor = "page_table", type = "i32"}
// CHECK: %[[BEGIN:.*]] = arith.minsi %{{.*}}, %[[ALL:.*]] : i32
// CHECK: arith.maxsi %{{.*}}, %[[BEGIN]]
// CHECK: %[[END:.*]] = arith.minsi %{{.*}}, %[[ALL]] : i32
// CHECK: %[[FIRST:.*]] = arith.extui %[[BEGIN]]
// CHECK: arith.subi %[[END]], %[[BEGIN]]
// CHECK: attn.paged_view {{.*}} table %{{.*}}[%[[FIRST]]]
!kv = memref<9x4x16x64xf16>
func.func @list(%q: memref<2x4x1x64xf16>, %k: !kv, %o: memref<2x4x1x64xf16>, %t: memref<?xi32>, %c: memref<3xi32>) {
  attn.attention ins(%q, %k, %k : memref<2x4x1x64xf16>, !kv, !kv)
                 outs(%o : memref<2x4x1x64xf16>) pages(%t, %c : memref<?xi32>, memref<3xi32>)
                 {page_size = 16 : i64, plan = #attn.split_q<>}
  return
}

// -----

// Heads of a group are rows: the grid counts key heads, views have groups, and
// masks see queries.

// CHECK-LABEL: func.func @packed
// CHECK: gpu.func @attn_fwd
// CHECK: attn.global_view %{{.*}} rows %[[ROWS:.*]] stride %c64_i64{{.*}} members %c320_i64{{.*}} {alignment = 16 : i64, group = 3 : i64}
// CHECK: arith.divui %{{.*}}, %c3_i32
// CHECK: attn.apply_mask {{.*}} {group = 3 : i64}
// CHECK: attn.global_load
func.func @packed(%q: memref<2x6x5x64xf16>, %k: memref<2x2x90x64xf16>, %o: memref<2x6x5x64xf16>, %s: memref<6xf32>) {
  attn.attention ins(%q, %k, %k : memref<2x6x5x64xf16>, memref<2x2x90x64xf16>, memref<2x2x90x64xf16>)
                 outs(%o : memref<2x6x5x64xf16>) sinks(%s : memref<6xf32>)
                 {mask = #attn.mask<kind = causal>, plan = #attn.split_q<block_m = 16, warps = 1, pack_heads = true>}
  return
}
