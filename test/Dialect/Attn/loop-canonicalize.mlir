// RUN: attn-opt %s -canonicalize | FileCheck %s

// Loops that are known not to run.

// CHECK-LABEL: func.func @no_blocks(
// CHECK-SAME: %[[X:.*]]: f32
// CHECK-NEXT: return %[[X]], %[[X]]
func.func @no_blocks(%x: f32, %n: i32) -> (f32, f32) {
  %two = arith.constant 2 : i32
  %three = arith.constant 3 : i32
  %a = attn.kv_loop %three, %three, %two, %two block 32 stages 1 iter_args(%x : f32) {
  ^bb0(%key: i32, %acc: f32):
    %next = arith.addf %acc, %acc : f32
    attn.yield %next : f32
  }
  %b = attn.kv_loop %n, %n, %n, %n block 32 stages 1 iter_args(%x : f32) {
  ^bb0(%key: i32, %acc: f32):
    %next = arith.addf %acc, %acc : f32
    attn.yield %next : f32
  }
  return %a, %b : f32, f32
}

// CHECK-LABEL: func.func @some_blocks(
// CHECK-COUNT-2: attn.kv_loop
func.func @some_blocks(%x: f32, %n: i32) -> (f32, f32) {
  %two = arith.constant 2 : i32
  %three = arith.constant 3 : i32
  %a = attn.kv_loop %two, %two, %three, %three block 32 stages 1 iter_args(%x : f32) {
  ^bb0(%key: i32, %acc: f32):
    %next = arith.addf %acc, %acc : f32
    attn.yield %next : f32
  }
  %b = attn.kv_loop %two, %two, %n, %n block 32 stages 1 iter_args(%x : f32) {
  ^bb0(%key: i32, %acc: f32):
    %next = arith.addf %acc, %acc : f32
    attn.yield %next : f32
  }
  return %a, %b : f32, f32
}

// CHECK-LABEL: func.func @no_tiles(
// CHECK-SAME: %[[X:.*]]: f32
// CHECK-NEXT: return %[[X]]
func.func @no_tiles(%x: f32) -> f32 {
  %zero = arith.constant 0 : i32
  %r = attn.tile_loop %zero scheduler snake iter_args(%x : f32) {
  ^bb0(%tile: i32, %acc: f32):
    %next = arith.addf %acc, %acc : f32
    attn.yield %next : f32
  }
  return %r : f32
}

// A dynamic loop is a role of its channel, and one with a tile runs.
// CHECK-LABEL: func.func @some_tiles(
// CHECK-COUNT-2: attn.tile_loop
func.func @some_tiles(%x: f32, %counter: !llvm.ptr<1>, %channel: !attn.channel<2>, %ring: !attn.buffer<2xi32, #attn.rows, shared>) -> (f32, f32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %a = attn.tile_loop %zero scheduler dynamic counter %counter channel %channel ring %ring : !llvm.ptr<1>, !attn.channel<2>, !attn.buffer<2xi32, #attn.rows, shared> iter_args(%x : f32) {
  ^bb0(%tile: i32, %acc: f32):
    %next = arith.addf %acc, %acc : f32
    attn.yield %next : f32
  }
  %b = attn.tile_loop %one scheduler single iter_args(%x : f32) {
  ^bb0(%tile: i32, %acc: f32):
    %next = arith.addf %acc, %acc : f32
    attn.yield %next : f32
  }
  return %a, %b : f32, f32
}
