// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-expand-pipeline,canonicalize,cse))' | FileCheck %s

// A mask of elements stays where blocks need a test, on the right and on the left,
// though no bound is on the left; a map that hides nothing stays everywhere.

// CHECK-LABEL: gpu.func @hides
// CHECK: scf.for
// CHECK: attn.map_elements {{.*}}: tensor
// CHECK: attn.map_elements {{.*}}{hides}
// CHECK: attn.apply_mask {{.*}} limit
// CHECK: {attn.phase = #attn<kv_phase right>}
// CHECK: scf.for
// CHECK: attn.map_elements {{.*}}: tensor
// CHECK-NOT: {hides}
// CHECK-NOT: attn.apply_mask
// CHECK: {attn.phase = #attn<kv_phase interior>}
// CHECK: scf.for
// CHECK: attn.map_elements {{.*}}: tensor
// CHECK: attn.map_elements {{.*}}{hides}
// CHECK-NOT: attn.apply_mask
// CHECK: {attn.phase = #attn<kv_phase left>}
!tile = tensor<64x32xf32, #attn.auto>
!rows = tensor<64xf32, #attn.auto>
!sums = tensor<64x4xf32, #attn.partial<parent = #attn.auto>>
!o = tensor<64x64xf32, #attn.auto>
gpu.module @kernels {
  gpu.func @hides(%gk: !attn.global<?x64xf16>, %gv: !attn.global<?x64xf16>, %begin: i32, %full_begin: i32, %full_end: i32, %end: i32, %nk: i32, %scale: f32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %r0 = arith.constant 0 : i32
    %q = attn.alloc {name = "q"} : !attn.buffer<64x64xf16, #attn.auto, shared>
    %k = attn.alloc {name = "k"} : !attn.buffer<2x32x64xf16, #attn.auto, shared>
    %v = attn.alloc {name = "v"} : !attn.buffer<2x32x64xf16, #attn.auto, shared>
    %m0 = arith.constant dense<0xFF800000> : !rows
    %l0 = arith.constant dense<0.0> : !sums
    %s0 = arith.constant dense<0.0> : !tile
    %o0 = arith.constant dense<0.0> : !o
    %m, %l, %o = attn.kv_loop %begin, %full_begin, %full_end, %end block 32 stages 2 iter_args(%m0, %l0, %o0 : !rows, !sums, !o) {
    ^bb0(%key: i32, %mi: !rows, %li: !sums, %oi: !o):
      %kb = attn.stage %gk[%key], %k : !attn.global<?x64xf16>, !attn.buffer<2x32x64xf16, #attn.auto, shared> -> !attn.buffer<32x64xf16, #attn.auto, shared>
      %vb = attn.stage %gv[%key], %v : !attn.global<?x64xf16>, !attn.buffer<2x32x64xf16, #attn.auto, shared> -> !attn.buffer<32x64xf16, #attn.auto, shared>
      %kt = attn.transpose %kb : !attn.buffer<32x64xf16, #attn.auto, shared> -> !attn.buffer<64x32xf16, #attn.auto, shared>
      %s = attn.mma %q, %kt, %s0 : !attn.buffer<64x64xf16, #attn.auto, shared>, !attn.buffer<64x32xf16, #attn.auto, shared>, !tile
      %scored = attn.map_elements %s[%r0, %key] : !tile {
      ^bb0(%x: f32, %i: i32, %j: i32):
        %y = arith.mulf %x, %scale : f32
        attn.yield %y : f32
      }
      %hidden = attn.map_elements %scored[%r0, %key] {hides} : !tile {
      ^bb0(%x: f32, %i: i32, %j: i32):
        %none = arith.constant 0xFF800000 : f32
        %keep = arith.cmpi ne, %i, %j : i32
        %y = arith.select %keep, %x, %none : f32
        attn.yield %y : f32
      }
      %sm = attn.apply_mask %hidden[%r0, %key] limit %nk : !tile
      %p, %m1, %l1, %o1 = attn.online_softmax %sm, %mi, %li, %oi scale %scale : !tile, !rows, !sums, !o
      %ph = arith.truncf %p : !tile to tensor<64x32xf16, #attn.auto>
      %o2 = attn.mma %ph, %vb, %o1 : tensor<64x32xf16, #attn.auto>, !attn.buffer<32x64xf16, #attn.auto, shared>, !o
      attn.yield %m1, %l1, %o2 : !rows, !sums, !o
    }
    %keep = attn.reduce max %o : !o -> !rows
    %dest = attn.alloc {name = "dest"} : !attn.buffer<64xf32, #attn.auto, shared>
    attn.local_store %keep, %dest : !rows, !attn.buffer<64xf32, #attn.auto, shared>
    gpu.return
  }

  // Keys of rows are bounds on both sides: on the left the ends of the rows' keys need no
  // test.
  // CHECK-LABEL: gpu.func @rows
  // CHECK: %[[FROM:.*]], %[[TO:.*]], %{{.*}} = attn.row_keys
  // CHECK: scf.for
  // CHECK: attn.apply_mask {{.*}} rows %[[FROM]] : tensor<64xi32, #attn.auto> to %[[TO]] :
  // CHECK: {attn.phase = #attn<kv_phase right>}
  // CHECK: scf.for
  // CHECK-NOT: attn.apply_mask
  // CHECK: {attn.phase = #attn<kv_phase interior>}
  // CHECK: scf.for
  // CHECK: attn.apply_mask {{.*}} rows %[[FROM]] : tensor<64xi32, #attn.auto> : tensor<64x32xf32
  // CHECK: {attn.phase = #attn<kv_phase left>}
  gpu.func @rows(%gk: !attn.global<?x64xf16>, %begin: i32, %full_begin: i32, %full_end: i32, %end: i32, %scale: f32, %same: i1) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %r0 = arith.constant 0 : i32
    %q = attn.alloc {name = "q"} : !attn.buffer<64x64xf16, #attn.auto, shared>
    %k = attn.alloc {name = "k"} : !attn.buffer<2x32x64xf16, #attn.auto, shared>
    %m0 = arith.constant dense<0xFF800000> : !rows
    %s0 = arith.constant dense<0.0> : !tile
    %from, %to, %exact = attn.row_keys of %r0 same %same from %begin to %end : tensor<64xi32, #attn.auto>, tensor<64xi32, #attn.auto> {
    ^bb0(%r: i32):
      attn.yield %r, %end, %r, %end : i32, i32, i32, i32
    }
    %m = attn.kv_loop %begin, %full_begin, %full_end, %end block 32 stages 2 iter_args(%m0 : !rows) {
    ^bb0(%key: i32, %mi: !rows):
      %kb = attn.stage %gk[%key], %k : !attn.global<?x64xf16>, !attn.buffer<2x32x64xf16, #attn.auto, shared> -> !attn.buffer<32x64xf16, #attn.auto, shared>
      %kt = attn.transpose %kb : !attn.buffer<32x64xf16, #attn.auto, shared> -> !attn.buffer<64x32xf16, #attn.auto, shared>
      %s = attn.mma %q, %kt, %s0 : !attn.buffer<64x64xf16, #attn.auto, shared>, !attn.buffer<64x32xf16, #attn.auto, shared>, !tile
      %sm = attn.apply_mask %s[%r0, %key] rows %from : tensor<64xi32, #attn.auto> to %to : tensor<64xi32, #attn.auto> : !tile
      %most = attn.reduce max %sm : !tile -> !rows
      %m1 = arith.maxnumf %mi, %most : !rows
      attn.yield %m1 : !rows
    }
    %dest = attn.alloc {name = "dest"} : !attn.buffer<64xf32, #attn.auto, shared>
    attn.local_store %m, %dest : !rows, !attn.buffer<64xf32, #attn.auto, shared>
    gpu.return
  }
}
