// RUN: attn-opt %s | FileCheck %s

// CHECK-LABEL: func @place
// CHECK: attn.tile_place %{{.*}} of %{{.*}} heads %{{.*}} of %{{.*}} rows 128 longest_first group 8 alternating
// CHECK: attn.tile_place %{{.*}} rows 64 row_major runs 4
func.func @place(%tile: i32, %tiles: i32, %heads: i32, %all: i32) -> (i32, i32) {
  %batch, %head, %row = attn.tile_place %tile of %tiles heads %heads of %all rows 128 longest_first group 8 alternating
  %b, %h, %r, %run = attn.tile_place %tile of %tiles heads %heads of %all rows 64 row_major runs 4
  return %row, %run : i32, i32
}

// CHECK-LABEL: func @blocks
// CHECK: attn.key_blocks %{{.*}} queries %{{.*}} keys %{{.*}} mask <kind = causal> rows 128 block 64
// CHECK: attn.key_blocks %{{.*}} mask <kind = window, align = bottom_right, left = 512, right = 0> rows 128 block 64 group 4
// CHECK: attn.key_blocks %{{.*}} keys %{{.*}} range %{{.*}}, %{{.*}} mask <kind = none> rows 128 block 64
// CHECK: attn.key_blocks %{{.*}} keys %{{.*}} range %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} mask <kind = none> rows 128 block 64
func.func @blocks(%row: i32, %queries: i32, %keys: i32) -> (i32, i32) {
  %begin, %full_begin, %full_end, %end, %upper = attn.key_blocks %row queries %queries keys %keys mask <kind = causal> rows 128 block 64
  %b, %fb, %fe, %e, %lower, %up = attn.key_blocks %row queries %queries keys %keys mask <kind = window, align = bottom_right, left = 512, right = 0> rows 128 block 64 group 4
  %from:4 = attn.key_blocks %row queries %queries keys %keys range %row, %keys mask <kind = none> rows 128 block 64
  %whole:4 = attn.key_blocks %row queries %queries keys %keys range %row, %keys, %row, %keys mask <kind = none> rows 128 block 64
  return %end, %lower : i32, i32
}

// CHECK-LABEL: func @offset
// CHECK: attn.element_offset[%{{.*}}, %{{.*}}] strides [524288, 8388608] first 64
func.func @offset(%head: i32, %batch: i32) -> i64 {
  %o = attn.element_offset [%head, %batch] strides [524288, 8388608] first 64
  return %o : i64
}

// CHECK-LABEL: func @pointers
// CHECK: %[[P:.*]]:2 = attn.device_pointers %{{.*}}, %{{.*}} : memref<1x4x128x64xf16>, memref<1x4x128xf32>
func.func @pointers(%q: memref<1x4x128x64xf16>, %lse: memref<1x4x128xf32>) -> !llvm.ptr<1> {
  %0:2 = attn.device_pointers %q, %lse : memref<1x4x128x64xf16>, memref<1x4x128xf32>
  return %0#1 : !llvm.ptr<1>
}
