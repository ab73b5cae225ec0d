// RUN: attn-opt %s --attn-read-masks | FileCheck %s

// Each query sees the keys of its chunk of 256, up to its own place, and of a
// sequence those that exist.
func.func @chunks(%q: memref<2x8x4096x128xbf16>, %k: memref<2x8x4096x128xbf16>, %v: memref<2x8x4096x128xbf16>,
                  %o: memref<2x8x4096x128xbf16>, %lengths: memref<2xi32>) {
  attn.attention ins(%q, %k, %v : memref<2x8x4096x128xbf16>, memref<2x8x4096x128xbf16>, memref<2x8x4096x128xbf16>)
                 outs(%o : memref<2x8x4096x128xbf16>) mask_mod {
  ^bb0(%score: f32, %b: i32, %h: i32, %query: i32, %key: i32):
    %causal = arith.cmpi sle, %key, %query : i32
    %eight = arith.constant 8 : i32
    %of_query = arith.shrsi %query, %eight : i32
    %of_key = arith.shrsi %key, %eight : i32
    %same = arith.cmpi eq, %of_query, %of_key : i32
    %sequence = arith.index_cast %b : i32 to index
    %length = memref.load %lengths[%sequence] : memref<2xi32>
    %exists = arith.cmpi slt, %key, %length : i32
    %seen = arith.andi %causal, %same : i1
    %kept = arith.andi %seen, %exists : i1
    attn.yield %kept : i1
  }
  return
}

// CHECK: mask_mod {
// CHECK-NOT: sle
// CHECK: key_range {
// CHECK-NEXT: ^bb0(%[[B:.*]]: i32, %{{.*}}: i32, %{{.*}}: i32, %[[FIRST:.*]]: i32, %[[LAST:.*]]: i32):
// CHECK: arith.shrsi %[[LAST]]
// CHECK: memref.load
// CHECK: attn.yield {{.*}} : i32, i32, i32, i32
// CHECK: {mask = #attn.mask<kind = causal>}
