// RUN: attn-opt %s -attn-expand=chip=sm_90a -split-input-file | FileCheck %s

// Pages by TMA: the map has a dimension that says where a page's rows end, so that
// those behind the length are outside of it. The table is read in front of the wait
// for the first page, and at the last key's entry for pages behind it. In blocks that a
// sequence ends in, and those with a page that the pool does not have, boxes without a row
// are of a map that does not begin in front of the pool. Other blocks are copied by a map
// of whole pages, which lacks the dimension. Keys are loaded a block in front of values.

// CHECK-LABEL: func.func @pages
// CHECK: attn.encode_tensor_map bounded %{{.*}} : memref<9x2x32x64xf16> -> <1x1x1x32x64xf16, swizzle = 128>
// CHECK: attn.encode_tensor_map %{{.*}} : memref<9x2x8x4x64xf16> -> <1x1x8x4x64xf16, swizzle = 128>
// CHECK: attn.encode_tensor_map %{{.*}} : memref<9x2x32x64xf16> -> <1x1x32x64xf16, swizzle = 128>
// CHECK: gpu.func @attn_fwd
// CHECK-SAME: kind = "tensor_map", rank = 5 : i64, swizzle = "128B", tensor = "k", view = "bounded"
// CHECK: partition "producer"
// CHECK: %[[AHEAD:.*]] = arith.minsi %[[TRIPS:.*]], %c1_i32
// CHECK: %[[BOTH:.*]] = arith.subi %[[TRIPS]], %[[AHEAD]]
// CHECK: scf.for %{{.*}} to %[[AHEAD]]
// CHECK: %[[KEY:.*]] = arith.muli %{{.*}}, %c64_i32
// CHECK: %[[LAST:.*]] = arith.subi %[[LENGTH:.*]], %c1_i32
// CHECK: %[[PAGE:.*]] = arith.divui %[[KEY]], %c32_i32
// CHECK: %[[LAST_PAGE:.*]] = arith.divui %[[LAST]], %c32_i32
// CHECK: %[[ENTRY:.*]] = arith.minsi %[[PAGE]], %[[LAST_PAGE]]
// CHECK: %[[ID:.*]] = llvm.load
// CHECK: attn.channel.acquire
// CHECK: %[[NEXT:.*]] = llvm.load
// CHECK: %[[HIGHEST:.*]] = arith.maxui %[[ID]], %[[NEXT]]
// CHECK: %[[BLOCK_END:.*]] = arith.addi %[[KEY]], %c64_i32
// CHECK: %[[ENDS:.*]] = arith.cmpi sgt, %[[BLOCK_END]], %[[LENGTH]]
// CHECK: %[[WRONG:.*]] = arith.cmpi uge, %[[HIGHEST]], %c9_i32
// CHECK: %[[EITHER:.*]] = arith.ori %[[ENDS]], %[[WRONG]]
// CHECK: scf.if %[[EITHER]] {
// CHECK: %[[ROW:.*]] = arith.remui %[[KEY]], %c32_i32
// CHECK: %[[FIRST:.*]] = arith.subi %[[KEY]], %[[ROW]]
// CHECK: %[[LEFT:.*]] = arith.subi %[[LENGTH]], %[[FIRST]]
// CHECK: %[[END:.*]] = arith.minsi %[[LEFT]], %c32_i32
// CHECK: %[[SHIFT:.*]] = arith.subi %c32_i32{{.*}}, %[[END]]
// CHECK: %[[PLACE:.*]] = arith.addi %[[SHIFT]], %[[ROW]]
// CHECK: %[[BEHIND:.*]] = arith.cmpi sge, %[[PLACE]], %c32_i32
// CHECK: %[[ABSENT:.*]] = arith.cmpi uge, %[[ID]], %c9_i32
// CHECK: %[[OUTSIDE:.*]] = arith.ori %[[BEHIND]], %[[ABSENT]]
// CHECK: attn.tma.load %{{.*}}[%[[ID]], %[[END]], %[[HEAD:.*]], %[[PLACE]], %{{.*}}, %[[NEXT]], %{{.*}}, %[[HEAD]], %{{.*}}], %{{.*}} spare %{{.*}}[%[[OUTSIDE]], %{{.*}}] : !attn.tensor_map<1x1x8x4x64xf16, swizzle = 128> {stacked = 2 : i64}
// CHECK: } else {
// CHECK: %[[OWN_ROW:.*]] = arith.remui %[[KEY]], %c32_i32
// CHECK: attn.tma.load %{{.*}}[%[[ID]], %[[HEAD]], %[[OWN_ROW]], %{{.*}}, %[[NEXT]], %[[HEAD]], %{{.*}}, %{{.*}}], %{{.*}} token %{{[^ ]*}} {stacked = 2 : i64} : <1x1x32x64xf16, swizzle = 128>
// CHECK: scf.for %[[TRIP:.*]] = %{{.*}} to %[[BOTH]]
// CHECK: %[[KEYS_TRIP:.*]] = arith.addi %[[TRIP]], %[[AHEAD]]
// CHECK: arith.subi %[[LAST_BLOCK:.*]], %[[KEYS_TRIP]]
// CHECK: attn.channel.acquire %k_channel
// CHECK: arith.subi %[[LAST_BLOCK]], %[[TRIP]]
// CHECK: attn.channel.acquire %v_channel
// CHECK: scf.for %{{.*}} = %[[BOTH]] to %[[TRIPS]]
// CHECK: attn.channel.acquire %v_channel
!kv = memref<9x2x32x64xf16>
func.func @pages(%q: memref<2x4x70x64xf16>, %k: !kv, %v: !kv, %o: memref<2x4x70x64xf16>, %t: memref<2x4xi32>, %n: memref<2xi32>) {
  attn.attention ins(%q, %k, %v : memref<2x4x70x64xf16>, !kv, !kv)
                 outs(%o : memref<2x4x70x64xf16>) pages(%t : memref<2x4xi32>) kv_lengths(%n : memref<2xi32>)
                 {page_size = 32 : i64, plan = #attn.ws_wgmma<block_n = 64>}
  return
}

// -----

// Batches that end before k does: one box, whose batch is that of the tile.

// CHECK-LABEL: func.func @lengths
// CHECK: attn.encode_tensor_map bounded %{{.*}} : memref<2x4x200x64xf16> -> <1x1x1x64x64xf16, swizzle = 128>
// CHECK: partition "producer"
// CHECK: %[[KEYS:.*]] = arith.minsi %{{.*}}, %c200_i32
// CHECK: %[[SHIFT:.*]] = arith.subi %c200_i32{{.*}}, %[[KEYS]]
// CHECK: %[[PLACE:.*]] = arith.addi %[[SHIFT]], %{{.*}}
// CHECK: attn.tma.load %{{.*}}[%{{.*}}, %[[KEYS]], %{{.*}}, %[[PLACE]], %{{.*}}]
// CHECK-NOT: {{stacked|spare}}
func.func @lengths(%q: memref<2x4x70x64xf16>, %k: memref<2x4x200x64xf16>, %o: memref<2x4x70x64xf16>, %n: memref<2xi32>) {
  attn.attention ins(%q, %k, %k : memref<2x4x70x64xf16>, memref<2x4x200x64xf16>, memref<2x4x200x64xf16>)
                 outs(%o : memref<2x4x70x64xf16>) kv_lengths(%n : memref<2xi32>)
                 {plan = #attn.ws_wgmma<block_n = 64>}
  return
}
