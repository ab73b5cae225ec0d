// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -mlir-print-op-generic | attn-opt | FileCheck %s
// RUN: attn-opt %s -emit-bytecode | attn-opt | FileCheck %s

// Loops over blocks of keys and over tiles. The forms are those that the
// printer writes: attributes that have their default are not there.

!ring = !attn.buffer<2x32x64xf16, #attn.auto, shared>
!slot = !attn.buffer<32x64xf16, #attn.auto, shared>

// CHECK-LABEL: func.func @blocks(
// CHECK-SAME: %[[G:.*]]: !attn.global<?x64xf16>, %[[RING:.*]]: !attn.buffer<2x32x64xf16, #attn.auto, shared>, %[[A:.*]]: i32, %[[B:.*]]: i32, %[[C:.*]]: i32, %[[D:.*]]: i32
func.func @blocks(%g: !attn.global<?x64xf16>, %ring: !ring, %a: i32, %b: i32, %c: i32, %d: i32) {
  // CHECK: attn.kv_loop %[[A]], %[[B]], %[[C]], %[[D]] block 32 stages 2 {
  attn.kv_loop %a, %b, %c, %d block 32 stages 2 {
  // CHECK: ^bb0(%[[KEY:.*]]: i32):
  ^bb0(%key: i32):
    // CHECK: %[[SLOT:.*]] = attn.stage %[[G]][%[[KEY]]], %[[RING]] : <?x64xf16>, <2x32x64xf16, #attn.auto, shared> -> <32x64xf16, #attn.auto, shared>
    %slot = attn.stage %g[%key], %ring : !attn.global<?x64xf16>, !ring -> !slot
  }
  return
}

// CHECK-LABEL: func.func @carried(
// CHECK-SAME: %[[A:.*]]: i32, %[[B:.*]]: i32, %[[C:.*]]: i32, %[[D:.*]]: i32, %[[X:.*]]: f32, %[[Y:.*]]: i32
func.func @carried(%a: i32, %b: i32, %c: i32, %d: i32, %x: f32, %y: i32) {
  // CHECK: %[[R:.*]]:2 = attn.kv_loop %[[A]], %[[B]], %[[C]], %[[D]] block 32 stages 1 iter_args(%[[X]], %[[Y]] : f32, i32) {
  %r:2 = attn.kv_loop %a, %b, %c, %d block 32 stages 1 iter_args(%x, %y : f32, i32) {
  // CHECK: ^bb0(%[[KEY:.*]]: i32, %[[U:.*]]: f32, %[[V:.*]]: i32):
  ^bb0(%key: i32, %u: f32, %v: i32):
    // CHECK: attn.yield %[[U]], %[[V]] : f32, i32
    attn.yield %u, %v : f32, i32
  }
  return
}

// CHECK-LABEL: func.func @schedules(
// CHECK-SAME: %[[A:.*]]: i32, %[[B:.*]]: i32, %[[C:.*]]: i32, %[[D:.*]]: i32
func.func @schedules(%a: i32, %b: i32, %c: i32, %d: i32) {
  // CHECK: attn.kv_loop %[[A]], %[[B]], %[[C]], %[[D]] block 64 stages 1 qk_ahead pv_behind {
  attn.kv_loop %a, %b, %c, %d block 64 stages 1 qk_ahead pv_behind {
  // CHECK: ^bb0(%[[KEY:.*]]: i32):
  ^bb0(%key: i32):
  }
  // CHECK: attn.kv_loop %[[A]], %[[B]], %[[C]], %[[D]] block 64 stages 1 qk_ahead rescore turns 3 {
  attn.kv_loop %a, %b, %c, %d block 64 stages 1 qk_ahead rescore turns 3 {
  // CHECK: ^bb0(%[[KEY:.*]]: i32):
  ^bb0(%key: i32):
  }
  // CHECK: attn.kv_loop %[[A:.*]], %[[B:.*]], %[[C:.*]], %[[D:.*]] block 64 stages 1 qk_ahead first [16, 64] second interior attributes {attn.note = "kept"} {
  attn.kv_loop %a, %b, %c, %d block 64 stages 1 qk_ahead first [16, 64] second interior attributes {attn.note = "kept"} {
  // CHECK: ^bb0(%[[KEY:.*]]: i32):
  ^bb0(%key: i32):
  }
  return
}

// CHECK-LABEL: func.func @tiles(
// CHECK-SAME: %[[COUNT:.*]]: i32, %[[X:.*]]: f32, %[[COUNTER:.*]]: !llvm.ptr<1>, %[[CHANNEL:.*]]: !attn.channel<2>, %[[INDICES:.*]]: !attn.buffer<2xi32, #attn.rows, shared>
func.func @tiles(%count: i32, %x: f32, %counter: !llvm.ptr<1>, %channel: !attn.channel<2>, %indices: !attn.buffer<2xi32, #attn.rows, shared>, %responses: !attn.buffer<2xi128, #attn.rows, shared>) {
  // CHECK: attn.tile_loop %[[COUNT]] scheduler single {
  attn.tile_loop %count scheduler single {
  // CHECK: ^bb0(%[[TILE:.*]]: i32):
  ^bb0(%tile: i32):
  }
  // CHECK: attn.tile_loop %[[COUNT]] scheduler strided {
  attn.tile_loop %count scheduler strided {
  // CHECK: ^bb0(%[[TILE:.*]]: i32):
  ^bb0(%tile: i32):
  }
  // CHECK: %[[R:.*]] = attn.tile_loop %[[COUNT]] scheduler snake iter_args(%[[X]] : f32) {
  %r = attn.tile_loop %count scheduler snake iter_args(%x : f32) {
  // CHECK: ^bb0(%[[TILE:.*]]: i32, %[[CARRIED:.*]]: f32):
  ^bb0(%tile: i32, %carried: f32):
    // CHECK: attn.yield %[[CARRIED]] : f32
    attn.yield %carried : f32
  }
  // CHECK: %[[S:.*]] = attn.tile_loop %[[COUNT]] scheduler dynamic counter %[[COUNTER]] channel %[[CHANNEL]] ring %[[INDICES]] : !llvm.ptr<1>, !attn.channel<2>, !attn.buffer<2xi32, #attn.rows, shared> iter_args(%[[X]] : f32) {
  %s = attn.tile_loop %count scheduler dynamic counter %counter channel %channel ring %indices : !llvm.ptr<1>, !attn.channel<2>, !attn.buffer<2xi32, #attn.rows, shared> iter_args(%x : f32) {
  // CHECK: ^bb0(%[[TILE:.*]]: i32, %[[CARRIED:.*]]: f32):
  ^bb0(%tile: i32, %carried: f32):
    // CHECK: attn.yield %[[CARRIED]] : f32
    attn.yield %carried : f32
  }
  // CHECK: attn.tile_loop %[[COUNT]] scheduler clc channel %[[CHANNEL]] ring %{{.*}} : !attn.channel<2>, !attn.buffer<2xi128, #attn.rows, shared> {
  attn.tile_loop %count scheduler clc channel %channel ring %responses : !attn.channel<2>, !attn.buffer<2xi128, #attn.rows, shared> {
  // CHECK: ^bb0(%[[TILE:.*]]: i32):
  ^bb0(%tile: i32):
  }
  return
}
