// RUN: attn-opt %s -attn-expand=chip=sm_90a -attn-expand-arithmetic -split-input-file | FileCheck %s

// Which tile each CTA of a cluster has, and which blocks of it.

// Whole clusters of tiles: a CTA's bounds are those of its own rows.
// CHECK-LABEL: gpu.func
// CHECK: %[[RANK:.*]] = arith.index_cast %{{.*}} : index to i32
// CHECK: partition "consumer"
// CHECK: attn.tile_loop
// CHECK: %[[FIRST:.*]] = arith.muli %{{.*}}, %c256
// CHECK: %[[OFFSET:.*]] = arith.muli %[[RANK]], %c128
// CHECK: arith.addi %[[FIRST]], %[[OFFSET]]
// CHECK-NOT: arith.select
// CHECK: attn.kv_loop
func.func @whole(%q: memref<1x8x256x64xf16>, %o: memref<1x8x256x64xf16>) {
  attn.attention ins(%q, %q, %q : memref<1x8x256x64xf16>, memref<1x8x256x64xf16>, memref<1x8x256x64xf16>)
                 outs(%o : memref<1x8x256x64xf16>) {plan = #attn.ws_wgmma<cluster = 2>}
  return
}

// -----

// Three tiles for two CTAs: a tile behind the last row walks no block.
// CHECK-LABEL: gpu.func
// CHECK: partition "consumer"
// CHECK: attn.tile_loop
// CHECK: %[[QUERIES:.*]] = arith.constant 384 : i32
// CHECK: %[[ROW:.*]] = arith.addi
// CHECK: %[[END:.*]] = arith.divui
// CHECK: %[[EXISTS:.*]] = arith.cmpi slt, %[[ROW]], %[[QUERIES]] : i32
// CHECK-NEXT: %[[BEGIN:.*]] = arith.select %[[EXISTS]], %{{.*}}, %[[END]] : i32
// CHECK-NEXT: %[[FULL_END:.*]] = arith.select %[[EXISTS]], %{{.*}}, %[[END]] : i32
// CHECK-NEXT: %[[LAST:.*]] = arith.select %[[EXISTS]], %{{.*}}, %[[END]] : i32
// CHECK: attn.kv_loop %[[BEGIN]], %[[BEGIN]], %[[FULL_END]], %[[LAST]] block
func.func @odd(%q: memref<1x8x384x64xf16>, %o: memref<1x8x384x64xf16>) {
  attn.attention ins(%q, %q, %q : memref<1x8x384x64xf16>, memref<1x8x384x64xf16>, memref<1x8x384x64xf16>)
                 outs(%o : memref<1x8x384x64xf16>) {plan = #attn.ws_wgmma<cluster = 2>}
  return
}

// -----

// Longest tiles first: in odd turns the CTAs change places, the last with the
// first.
// CHECK-LABEL: gpu.func
// CHECK: %[[RANK:.*]] = arith.index_cast %{{.*}} : index to i32
// CHECK: partition "consumer"
// CHECK: attn.tile_loop
// CHECK-NEXT: ^bb0(%[[INDEX:[^:]*]]: i32
// CHECK-NEXT: %[[IS_ODD:.*]] = arith.trunci %[[INDEX]] : i32 to i1
// CHECK-NEXT: %[[LAST:.*]] = arith.constant 3 : i32
// CHECK-NEXT: %[[OTHER:.*]] = arith.subi %[[LAST]], %[[RANK]] : i32
// CHECK-NEXT: %[[PLACE:.*]] = arith.select %[[IS_ODD]], %[[OTHER]], %[[RANK]] : i32
// CHECK: arith.muli %[[PLACE]], %c128
func.func @turns(%q: memref<1x8x1024x64xf16>, %o: memref<1x8x1024x64xf16>) {
  attn.attention ins(%q, %q, %q : memref<1x8x1024x64xf16>, memref<1x8x1024x64xf16>, memref<1x8x1024x64xf16>)
                 outs(%o : memref<1x8x1024x64xf16>) {mask = #attn.mask<kind = causal>, plan = #attn.ws_wgmma<cluster = 4, order = longest_first>}
  return
}
