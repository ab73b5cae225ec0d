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
func.func @tiles(%count: i32, %x: f32, %counter: !llvm.ptr<1>, %channel: !attn.channel<2>, %indices: !attn.buffer<2xi32, #attn.rows, shared>) {
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
  return
}

// Statements in an order.
// CHECK-LABEL: func.func @issue(
// CHECK-SAME: %[[KV:.*]]: !attn.channel<3>, %[[T:.*]]: !attn.channel<1>, %[[C:.*]]: !attn.cursor, %[[D:.*]]: !attn.cursor, %[[N:.*]]: i32
func.func @issue(%kv: !attn.channel<3>, %t: !attn.channel<1>, %c: !attn.cursor, %d: !attn.cursor, %n: i32) {
  // CHECK: attn.issue_loop as "mma" trips(%[[N]], %[[N]]) rising slots ["v" = 0, "k" = 0, "t" = 1] of %[[KV]], %[[T]] from %[[C]], %[[D]] {test.note} : !attn.channel<3>, !attn.channel<1>
  // CHECK-NEXT: statement "pv" of 1 skew 1 uses ["v", "t"] {
  // CHECK-NEXT: ^bb0(%[[I:.*]]: i32, %v_index: i32, %v_token: !attn.token, %t_index: i32, %t_token: !attn.token):
  // CHECK-NEXT:   arith.addi %[[I]], %v_index : i32
  // CHECK-NEXT: }
  // CHECK-NEXT: statement "qk" of 0 skew 0 uses ["k"] {
  // CHECK-NEXT: ^bb0(%{{.*}}: i32, %k_index: i32, %k_token: !attn.token):
  // CHECK-NEXT: }
  %r:2 = attn.issue_loop as "mma" trips(%n, %n) rising slots ["v" = 0, "k" = 0, "t" = 1] of %kv, %t from %c, %d {test.note} : !attn.channel<3>, !attn.channel<1>
  statement "pv" of 1 skew 1 uses ["v", "t"] {
  ^bb0(%i: i32, %v: i32, %v_token: !attn.token, %s: i32, %s_token: !attn.token):
    %x = arith.addi %i, %v : i32
  }
  statement "qk" of 0 skew 0 uses ["k"] {
  ^bb0(%i: i32, %k: i32, %k_token: !attn.token):
  }
  return
}

// CHECK-LABEL: @issue_held
// CHECK-SAME: %[[KV:.*]]: !attn.channel<3>, %[[C:.*]]: !attn.cursor, %[[HELD:.*]]: !attn.token, %[[N:.*]]: i32
func.func @issue_held(%kv: !attn.channel<3>, %c: !attn.cursor, %held: !attn.token, %n: i32) -> !attn.token {
  // CHECK: %[[R:.*]]:2 = attn.issue_loop as "mma" trips(%[[N]]) slots ["v" = 0, "k" = 0] of %[[KV]] from %[[C]] holding "k" behind "pv" = %[[HELD]] : !attn.channel<3>
  %r:2 = attn.issue_loop as "mma" trips(%n) slots ["v" = 0, "k" = 0] of %kv from %c holding "k" behind "pv" = %held : !attn.channel<3>
  statement "pv" of 0 skew 0 uses ["v"] {
  ^bb0(%i: i32, %v: i32, %v_token: !attn.token):
  }
  statement "qk" of 0 skew 0 uses ["k"] {
  ^bb0(%i: i32, %k: i32, %k_token: !attn.token):
  }
  // CHECK: return %[[R]]#1
  return %r#1 : !attn.token
}

// CHECK-LABEL: @issue_parts
func.func @issue_parts(%t: !attn.channel<1>, %c: !attn.cursor, %n: i32) {
  // CHECK: statement "pv" of 0 skew 1 uses ["t" part "front"] {
  // CHECK: statement "qk" of 0 skew 0 uses ["t"] {
  %r = attn.issue_loop as "mma" trips(%n) slots ["t" = 0] of %t from %c : !attn.channel<1>
  statement "pv" of 0 skew 1 uses ["t" part "front"] {
  ^bb0(%i: i32, %s: i32, %s_token: !attn.token):
  }
  statement "qk" of 0 skew 0 uses ["t"] {
  ^bb0(%i: i32, %s: i32, %s_token: !attn.token):
  }
  return
}

// CHECK-LABEL: @issue_rotated
// CHECK-SAME: %[[KV:.*]]: !attn.channel<3>, %[[O:.*]]: !attn.channel<1>, %[[Q:.*]]: !attn.channel<2>, %[[C:[^:]*]]: !attn.cursor, %[[D:[^:]*]]: !attn.cursor, %[[E:[^:]*]]: !attn.cursor, %[[N:[^:]*]]: i32, %[[M:[^:]*]]: i32, %[[X:[^:]*]]: i32, %[[Y:[^:]*]]: i32
func.func @issue_rotated(%kv: !attn.channel<3>, %o: !attn.channel<1>, %q: !attn.channel<2>, %c: !attn.cursor, %d: !attn.cursor, %e: !attn.cursor, %n: i32, %m: i32, %x: i32, %y: i32) {
  // CHECK: attn.issue_loop as "mma" trips(%[[N]]) left(%[[M]]) values(%[[X]]) left(%[[Y]]) : i32 slots ["v" = 0, "k" = 0, "o" = 1, "q" = 2] of %[[KV]], %[[O]], %[[Q]] from %[[C]], %[[D]], %[[E]] holding "k" behind "pv" spanning "q" from "qk" to "qk" : !attn.channel<3>, !attn.channel<1>, !attn.channel<2>
  // CHECK-NEXT: statement "pv" of 0 skew 1 uses ["v"] ends ["o"] {
  // CHECK-NEXT: ^bb0(%{{.*}}: i32, %v_index: i32, %v_token: !attn.token, %{{.*}}: i32):
  // CHECK: statement "qk" of 0 skew 0 uses ["k"] {
  %r:3 = attn.issue_loop as "mma" trips(%n) left(%m) values(%x) left(%y) : i32 slots ["v" = 0, "k" = 0, "o" = 1, "q" = 2] of %kv, %o, %q from %c, %d, %e holding "k" behind "pv" spanning "q" from "qk" to "qk" : !attn.channel<3>, !attn.channel<1>, !attn.channel<2>
  statement "pv" of 0 skew 1 uses ["v"] ends ["o"] {
  ^bb0(%i: i32, %v: i32, %v_token: !attn.token, %own: i32):
  }
  statement "qk" of 0 skew 0 uses ["k"] {
  ^bb0(%i: i32, %k: i32, %k_token: !attn.token, %own: i32):
  }
  return
}
