// RUN: attn-opt %s | FileCheck %s
// RUN: attn-opt %s --mlir-print-op-generic | attn-opt | FileCheck %s

// CHECK-LABEL: func.func @doubled
// CHECK: attn.attention
// CHECK-NOT: key_range
// CHECK-SAME: out_mod {
// CHECK-NEXT: ^bb0(%[[R:.*]]: f32, %[[B:.*]]: i32, %[[H:.*]]: i32, %[[Q:.*]]: i32, %[[C:.*]]: i32):
// CHECK: attn.yield %{{.*}} : f32
func.func @doubled(%q: memref<1x2x8x64xf16>, %o: memref<1x2x8x64xf16>) {
  attn.attention ins(%q, %q, %q : memref<1x2x8x64xf16>, memref<1x2x8x64xf16>, memref<1x2x8x64xf16>)
    outs(%o : memref<1x2x8x64xf16>) out_mod {
    ^bb0(%r: f32, %b: i32, %h: i32, %i: i32, %c: i32):
      %s = arith.addf %r, %r : f32
      attn.yield %s : f32
    }
  return
}

// CHECK-LABEL: func.func @all_regions
// CHECK: score_mod {
// CHECK: } mask_mod {
// CHECK: } key_range {
// CHECK: } out_mod {
// CHECK: memref.load %{{.*}}[%{{.*}}, %{{.*}}]
func.func @all_regions(%q: memref<1x2x8x64xf16>, %o: memref<1x2x8x64xf16>, %gate: memref<2x64xf32>) {
  attn.attention ins(%q, %q, %q : memref<1x2x8x64xf16>, memref<1x2x8x64xf16>, memref<1x2x8x64xf16>)
    outs(%o : memref<1x2x8x64xf16>) score_mod {
    ^bb0(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32):
      attn.yield %s : f32
    } mask_mod {
    ^bb0(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32):
      %m = arith.cmpi sle, %j, %i : i32
      attn.yield %m : i1
    } key_range {
    ^bb0(%b: i32, %h0: i32, %h1: i32, %i0: i32, %i1: i32):
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %end = arith.addi %i1, %one : i32
      attn.yield %zero, %end : i32, i32
    } out_mod {
    ^bb0(%r: f32, %b: i32, %h: i32, %i: i32, %c: i32):
      %hi = arith.index_cast %h : i32 to index
      %ci = arith.index_cast %c : i32 to index
      %g = memref.load %gate[%hi, %ci] : memref<2x64xf32>
      %s = arith.mulf %r, %g : f32
      attn.yield %s : f32
    }
  return
}

// CHECK-LABEL: func.func @merged
// CHECK: attn.combine ins(%{{.*}}) outs(%{{.*}}) out_mod {
func.func @merged(%po: memref<2x1x2x8x64xf32>, %pl: memref<2x1x2x8xf32>, %o: memref<1x2x8x64xf16>) {
  attn.combine ins(%po, %pl : memref<2x1x2x8x64xf32>, memref<2x1x2x8xf32>) outs(%o : memref<1x2x8x64xf16>)
    out_mod {
    ^bb0(%r: f32, %b: i32, %h: i32, %i: i32, %c: i32):
      %s = arith.negf %r : f32
      attn.yield %s : f32
    }
  return
}

// CHECK-LABEL: func.func @pairs
// CHECK: out_scales(%{{.*}} : memref<1x2x8x4xf8E4M3FN>) {out_group = 16 : i64, out_scale = 2.000000e+00 : f32}
func.func @pairs(%q: memref<1x2x8x64xf16>, %o: memref<1x2x8x32xi8>, %s: memref<1x2x8x4xf8E4M3FN>) {
  attn.attention ins(%q, %q, %q : memref<1x2x8x64xf16>, memref<1x2x8x64xf16>, memref<1x2x8x64xf16>)
    outs(%o : memref<1x2x8x32xi8>) out_scales(%s : memref<1x2x8x4xf8E4M3FN>) {out_group = 16 : i64, out_scale = 2.0 : f32}
  return
}
