// RUN: attn-opt %s -split-input-file -verify-diagnostics

// What the loop over key blocks refuses.

func.func @f(%g: !attn.global<?x64xf16>, %ring: !attn.buffer<2x32x64xf16, #attn.auto, shared>, %n: i32, %x: f32) {
  // expected-error @below {{expected a positive block, got 0}}
  %r = attn.kv_loop %n, %n, %n, %n block 0 stages 2 iter_args(%x : f32) {
  ^bb0(%key: i32, %acc: f32):
    attn.yield %acc : f32
  }
  return
}

// -----

func.func @f(%n: i32, %x: f32) {
  // expected-error @below {{expected qk_ahead with pv_behind}}
  %r = attn.kv_loop %n, %n, %n, %n block 32 stages 1 pv_behind iter_args(%x : f32) {
  ^bb0(%key: i32, %acc: f32):
    attn.yield %acc : f32
  }
  return
}

// -----

func.func @f(%g: !attn.global<?x64xf16>, %ring: !attn.buffer<2x32x64xf16, #attn.auto, shared>, %n: i32, %x: f32) {
  // expected-error @below {{expected at least 1 stage, got 0}}
  %r = attn.kv_loop %n, %n, %n, %n block 32 stages 0 iter_args(%x : f32) {
  ^bb0(%key: i32, %acc: f32):
    attn.yield %acc : f32
  }
  return
}

// -----

func.func @f(%g: !attn.global<?x64xf16>, %ring: !attn.buffer<2x32x64xf16, #attn.auto, shared>, %n: i32, %x: f32) {
  // expected-error @below {{expected region arguments ('i32', 'f32'), got ('i32', 'i32')}}
  %r = attn.kv_loop %n, %n, %n, %n block 32 stages 2 iter_args(%x : f32) {
  ^bb0(%key: i32, %acc: i32):
    attn.yield %x : f32
  }
  return
}

// -----

func.func @f(%g: !attn.global<?x64xf16>, %ring: !attn.buffer<2x32x64xf16, #attn.auto, shared>, %n: i32, %x: f32) {
  %r = attn.kv_loop %n, %n, %n, %n block 32 stages 2 iter_args(%x : f32) {
  ^bb0(%key: i32, %acc: f32):
    // expected-error @below {{expected the carried types ('f32'), got ('i32')}}
    attn.yield %key : i32
  }
  return
}

// -----

func.func @f(%g: !attn.global<?x64xf16>, %ring: !attn.buffer<32x64xf16, #attn.auto, shared>, %n: i32, %x: f32) {
  %r = attn.kv_loop %n, %n, %n, %n block 32 stages 2 iter_args(%x : f32) {
  ^bb0(%key: i32, %acc: f32):
    // expected-error @below {{expected a ring (a buffer of rank 3), got '!attn.buffer<32x64xf16, #attn.auto, shared>'}}
    %k = attn.stage %g[%key], %ring : !attn.global<?x64xf16>, !attn.buffer<32x64xf16, #attn.auto, shared> -> !attn.buffer<32x64xf16, #attn.auto, shared>
    attn.yield %acc : f32
  }
  return
}

// -----

func.func @f(%g: !attn.global<?x64xf16>, %ring: !attn.buffer<3x32x64xf16, #attn.auto, shared>, %n: i32, %x: f32) {
  // expected-note @below {{the number of stages is given here}}
  %r = attn.kv_loop %n, %n, %n, %n block 32 stages 2 iter_args(%x : f32) {
  ^bb0(%key: i32, %acc: f32):
    // expected-error @below {{expected a ring of 2 slots, got 3}}
    %k = attn.stage %g[%key], %ring : !attn.global<?x64xf16>, !attn.buffer<3x32x64xf16, #attn.auto, shared> -> !attn.buffer<32x64xf16, #attn.auto, shared>
    attn.yield %acc : f32
  }
  return
}

// -----

func.func @f(%g: !attn.global<?x64xf16>, %ring: !attn.buffer<2x32x64xf16, #attn.auto, shared>, %n: i32, %x: f32) {
  %r = attn.kv_loop %n, %n, %n, %n block 32 stages 2 iter_args(%x : f32) {
  ^bb0(%key: i32, %acc: f32):
    // expected-error @below {{expected the slot type '!attn.buffer<32x64xf16, #attn.auto, shared>', got '!attn.buffer<32x32xf16, #attn.auto, shared>'}}
    %k = attn.stage %g[%key], %ring : !attn.global<?x64xf16>, !attn.buffer<2x32x64xf16, #attn.auto, shared> -> !attn.buffer<32x32xf16, #attn.auto, shared>
    attn.yield %acc : f32
  }
  return
}

// -----

func.func @f(%g: !attn.global<?x64xbf16>, %ring: !attn.buffer<2x32x64xf16, #attn.auto, shared>, %n: i32, %x: f32) {
  %r = attn.kv_loop %n, %n, %n, %n block 32 stages 2 iter_args(%x : f32) {
  ^bb0(%key: i32, %acc: f32):
    // expected-error @below {{expected the element type 'bf16' of the view, got 'f16'}}
    %k = attn.stage %g[%key], %ring : !attn.global<?x64xbf16>, !attn.buffer<2x32x64xf16, #attn.auto, shared> -> !attn.buffer<32x64xf16, #attn.auto, shared>
    attn.yield %acc : f32
  }
  return
}

// -----

func.func @f(%g: !attn.global<?x128xf16>, %ring: !attn.buffer<2x32x64xf16, #attn.auto, shared>, %n: i32, %x: f32) {
  %r = attn.kv_loop %n, %n, %n, %n block 32 stages 2 iter_args(%x : f32) {
  ^bb0(%key: i32, %acc: f32):
    // expected-error @below {{expected at least 128 columns, got 64}}
    %k = attn.stage %g[%key], %ring : !attn.global<?x128xf16>, !attn.buffer<2x32x64xf16, #attn.auto, shared> -> !attn.buffer<32x64xf16, #attn.auto, shared>
    attn.yield %acc : f32
  }
  return
}

// -----

func.func @tiles(%n: i32, %x: f32) {
  // expected-error @below {{expected region arguments ('i32', 'f32'), got ('f32')}}
  %r = attn.tile_loop %n scheduler strided iter_args(%x : f32) {
  ^bb0(%acc: f32):
    attn.yield %acc : f32
  }
  return
}

// -----

func.func @tiles(%n: i32, %x: f32) {
  %r = attn.tile_loop %n scheduler strided iter_args(%x : f32) {
  ^bb0(%tile: i32, %acc: f32):
    // expected-error @below {{expected the carried types ('f32'), got ('i32')}}
    attn.yield %tile : i32
  }
  return
}

// -----

func.func @f(%n: i32, %x: f32) {
  // expected-error @below {{expected no qk_ahead with above_wait}}
  %r = attn.kv_loop %n, %n, %n, %n block 32 stages 1 qk_ahead above_wait iter_args(%x : f32) {
  ^bb0(%key: i32, %acc: f32):
    attn.yield %acc : f32
  }
  return
}

// -----

func.func @f(%n: i32, %x: f32) {
  // expected-error @below {{expected qk_ahead with turns}}
  %r = attn.kv_loop %n, %n, %n, %n block 32 stages 1 turns 1 iter_args(%x : f32) {
  ^bb0(%key: i32, %acc: f32):
    attn.yield %acc : f32
  }
  return
}

// -----

func.func @dealt(%n: i32) {
  // expected-error @below {{expected a counter with the scheduler 'dynamic', got none}}
  attn.tile_loop %n scheduler dynamic {
  ^bb0(%tile: i32):
    attn.yield
  }
  return
}

// -----

func.func @dealt(%n: i32, %p: !llvm.ptr<1>, %c: !attn.channel<2>, %b: !attn.buffer<2xi32, #attn.auto, shared>) {
  // expected-error @below {{expected no counter with the scheduler 'snake', got one}}
  attn.tile_loop %n scheduler snake counter %p channel %c ring %b : !llvm.ptr<1>, !attn.channel<2>, !attn.buffer<2xi32, #attn.auto, shared> {
  ^bb0(%tile: i32):
    attn.yield
  }
  return
}

// -----

func.func @dealt(%n: i32, %p: !llvm.ptr<1>, %c: !attn.channel<2>, %b: !attn.buffer<3xi32, #attn.auto, shared>) {
  // expected-error @below {{expected a ring of 2 i32, one for each slot of the channel, got '!attn.buffer<3xi32, #attn.auto, shared>'}}
  attn.tile_loop %n scheduler dynamic counter %p channel %c ring %b : !llvm.ptr<1>, !attn.channel<2>, !attn.buffer<3xi32, #attn.auto, shared> {
  ^bb0(%tile: i32):
    attn.yield
  }
  return
}

// -----

func.func @f(%n: i32, %x: f32) {
  // expected-error @below {{expected first with second}}
  %r = attn.kv_loop %n, %n, %n, %n block 32 stages 1 qk_ahead second interior iter_args(%x : f32) {
  ^bb0(%key: i32, %acc: f32):
    attn.yield %acc : f32
  }
  return
}

// -----

func.func @f(%n: i32, %x: f32) {
  // expected-error @below {{expected qk_ahead with first}}
  %r = attn.kv_loop %n, %n, %n, %n block 32 stages 1 first [16] iter_args(%x : f32) {
  ^bb0(%key: i32, %acc: f32):
    attn.yield %acc : f32
  }
  return
}

// -----

func.func @f(%n: i32, %x: f32) {
  // expected-error @below {{expected multiples of 16 from 0 to the block's 32 keys in first, got 48}}
  %r = attn.kv_loop %n, %n, %n, %n block 32 stages 1 qk_ahead first [16, 48] iter_args(%x : f32) {
  ^bb0(%key: i32, %acc: f32):
    attn.yield %acc : f32
  }
  return
}

// -----

func.func @f(%n: i32, %x: f32) {
  // expected-error @below {{expected a warpgroup with keys in first, got none}}
  %r = attn.kv_loop %n, %n, %n, %n block 32 stages 1 qk_ahead first [0, 0] iter_args(%x : f32) {
  ^bb0(%key: i32, %acc: f32):
    attn.yield %acc : f32
  }
  return
}

// -----

func.func @f(%n: i32, %x: f32) {
  // expected-error @below {{expected qk_ahead and no pv_behind with rescore}}
  %r = attn.kv_loop %n, %n, %n, %n block 32 stages 1 qk_ahead pv_behind rescore iter_args(%x : f32) {
  ^bb0(%key: i32, %acc: f32):
    attn.yield %acc : f32
  }
  return
}

// -----

func.func @issue(%kv: !attn.channel<3>, %c: !attn.cursor, %n: i32) {
  // expected-error @below {{expected at least one statement, got none}}
  %r = attn.issue_loop as "mma" trips(%n) slots ["k" = 0] of %kv from %c : !attn.channel<3>
  return
}

// -----

func.func @issue(%kv: !attn.channel<3>, %c: !attn.cursor, %h: !attn.token, %n: i32) {
  // expected-error @below {{expected a token, a slot and a statement of the loop for what is held}}
  %r:2 = attn.issue_loop as "mma" trips(%n) slots ["k" = 0] of %kv from %c holding "k" behind "pv" = %h : !attn.channel<3>
  statement "qk" of 0 skew 0 uses ["k"] {
  ^bb0(%i: i32, %k: i32, %t: !attn.token):
  }
  return
}

// -----

func.func @issue(%kv: !attn.channel<3>, %c: !attn.cursor, %h: !attn.token, %n: i32) {
  // expected-error @below {{expected all statements to run in the same steps where a slot is held, got other steps of "qk"}}
  %r:2 = attn.issue_loop as "mma" trips(%n) slots ["k" = 0] of %kv from %c holding "k" behind "pv" = %h : !attn.channel<3>
  statement "pv" of 0 skew 0 uses [] {
  ^bb0(%i: i32):
  }
  statement "qk" of 0 skew 1 uses ["k"] {
  ^bb0(%i: i32, %k: i32, %t: !attn.token):
  }
  return
}

// -----

func.func @issue(%kv: !attn.channel<3>, %c: !attn.cursor, %h: !attn.token, %n: i32) {
  // expected-error @below {{expected statement "qk", which uses the slot that is held, to stand behind "pv"}}
  %r:2 = attn.issue_loop as "mma" trips(%n) slots ["k" = 0] of %kv from %c holding "k" behind "pv" = %h : !attn.channel<3>
  statement "qk" of 0 skew 0 uses ["k"] {
  ^bb0(%i: i32, %k: i32, %t: !attn.token):
  }
  statement "pv" of 0 skew 0 uses [] {
  ^bb0(%i: i32):
  }
  return
}

// -----

func.func @issue(%kv: !attn.channel<3>, %c: !attn.cursor, %h: !attn.token, %n: i32) {
  // expected-error @below {{expected a statement to use the slot "v" that is held}}
  %r:2 = attn.issue_loop as "mma" trips(%n) slots ["k" = 0, "v" = 0] of %kv from %c holding "v" behind "pv" = %h : !attn.channel<3>
  statement "pv" of 0 skew 0 uses [] {
  ^bb0(%i: i32):
  }
  statement "qk" of 0 skew 0 uses ["k"] {
  ^bb0(%i: i32, %k: i32, %t: !attn.token):
  }
  return
}

// -----

func.func @issue(%kv: !attn.channel<3>, %c: !attn.cursor, %h: !attn.token, %n: i32) {
  // expected-error @below {{expected cursors and behind them the token of what is held, got result 1 of type '!attn.cursor'}}
  "attn.issue_loop"(%n, %kv, %c, %h) <{role = "mma", slots = ["k"], slot_channels = array<i64: 0>, names = ["pv", "qk"], counts = array<i64: 0, 0>, skews = array<i64: 0, 0>, uses = [[], ["k"]], holding = "k", behind = "pv", operandSegmentSizes = array<i32: 1, 0, 0, 0, 1, 1, 1>}> ({
  ^bb0(%i: i32):
    attn.yield
  }, {
  ^bb0(%i: i32, %k: i32, %t: !attn.token):
    attn.yield
  }) : (i32, !attn.channel<3>, !attn.cursor, !attn.token) -> (!attn.cursor, !attn.cursor)
  return
}

// -----

func.func @issue(%kv: !attn.channel<3>, %c: !attn.cursor, %n: i32) {
  // expected-error @below {{expected slot "k" to be of one of 1 channels, got 1}}
  %r = attn.issue_loop as "mma" trips(%n) slots ["k" = 1] of %kv from %c : !attn.channel<3>
  statement "qk" of 0 skew 0 uses ["k"] {
  ^bb0(%i: i32, %k: i32, %t: !attn.token):
  }
  return
}

// -----

func.func @issue(%kv: !attn.channel<3>, %c: !attn.cursor, %n: i32) {
  // expected-error @below {{expected statement "qk" to be of one of 1 trips, got 1}}
  %r = attn.issue_loop as "mma" trips(%n) slots ["k" = 0] of %kv from %c : !attn.channel<3>
  statement "qk" of 1 skew 0 uses ["k"] {
  ^bb0(%i: i32, %k: i32, %t: !attn.token):
  }
  return
}

// -----

func.func @issue(%kv: !attn.channel<3>, %c: !attn.cursor, %n: i32) {
  // expected-error @below {{expected a skew of statement "qk" of at least 0, got -1}}
  %r = attn.issue_loop as "mma" trips(%n) slots ["k" = 0] of %kv from %c : !attn.channel<3>
  statement "qk" of 0 skew -1 uses ["k"] {
  ^bb0(%i: i32, %k: i32, %t: !attn.token):
  }
  return
}

// -----

func.func @issue(%kv: !attn.channel<3>, %c: !attn.cursor, %n: i32) {
  // expected-error @below {{expected statement "qk" to use slots of the loop, got ["v"]}}
  %r = attn.issue_loop as "mma" trips(%n) slots ["k" = 0] of %kv from %c : !attn.channel<3>
  statement "qk" of 0 skew 0 uses ["v"] {
  ^bb0(%i: i32, %k: i32, %t: !attn.token):
  }
  return
}

// -----

func.func @issue(%kv: !attn.channel<3>, %c: !attn.cursor, %n: i32) {
  // expected-error @below {{expected arguments ('i32', 'i32', '!attn.token') of statement "qk", got ('i32')}}
  %r = attn.issue_loop as "mma" trips(%n) slots ["k" = 0] of %kv from %c : !attn.channel<3>
  statement "qk" of 0 skew 0 uses ["k"] {
  ^bb0(%i: i32):
  }
  return
}

// -----

func.func @issue(%kv: !attn.channel<3>, %c: !attn.cursor, %n: i32) {
  %r = attn.issue_loop as "mma" trips(%n) slots ["k" = 0] of %kv from %c : !attn.channel<3>
  statement "qk" of 0 skew 0 uses ["k"] {
  ^bb0(%i: i32, %k: i32, %t: !attn.token):
    // expected-error @below {{expected no values in a statement}}
    attn.yield %i : i32
  }
  return
}

// -----

func.func @issue(%kv: !attn.channel<3>, %c: !attn.cursor, %n: i32) {
  // expected-error @below {{expected a cursor and a result for each of 1 channels, got 0 and 0}}
  "attn.issue_loop"(%n, %kv) <{role = "mma", slots = ["k"], slot_channels = array<i64: 0>, names = ["qk"], counts = array<i64: 0>, skews = array<i64: 0>, uses = [["k"]], operandSegmentSizes = array<i32: 1, 0, 0, 0, 1, 0, 0>}> ({
  ^bb0(%i: i32, %k: i32, %t: !attn.token):
    "attn.yield"() : () -> ()
  }) : (i32, !attn.channel<3>) -> ()
  return
}

// -----

func.func @issue(%kv: !attn.channel<3>, %c: !attn.cursor, %n: i32) {
  // expected-error @below {{expected a channel for each of 1 slots, got 0}}
  %r = "attn.issue_loop"(%n, %kv, %c) <{role = "mma", slots = ["k"], slot_channels = array<i64>, names = ["qk"], counts = array<i64: 0>, skews = array<i64: 0>, uses = [["k"]], operandSegmentSizes = array<i32: 1, 0, 0, 0, 1, 1, 0>}> ({
  ^bb0(%i: i32, %k: i32, %t: !attn.token):
    "attn.yield"() : () -> ()
  }) : (i32, !attn.channel<3>, !attn.cursor) -> !attn.cursor
  return
}

// -----

func.func @issue(%kv: !attn.channel<3>, %c: !attn.cursor, %n: i32) {
  // expected-error @below {{expected names, counts, skews and uses of 1 statements, got 0}}
  %r = "attn.issue_loop"(%n, %kv, %c) <{role = "mma", slots = ["k"], slot_channels = array<i64: 0>, names = ["qk"], counts = array<i64>, skews = array<i64: 0>, uses = [["k"]], operandSegmentSizes = array<i32: 1, 0, 0, 0, 1, 1, 0>}> ({
  ^bb0(%i: i32, %k: i32, %t: !attn.token):
    "attn.yield"() : () -> ()
  }) : (i32, !attn.channel<3>, !attn.cursor) -> !attn.cursor
  return
}

// -----

func.func @issue(%kv: !attn.channel<3>, %c: !attn.cursor, %n: i32) {
  // expected-error @below {{expected parts of 1 statements, got 0}}
  %r = "attn.issue_loop"(%n, %kv, %c) <{role = "mma", slots = ["k"], slot_channels = array<i64: 0>, names = ["qk"], counts = array<i64: 0>, skews = array<i64: 0>, uses = [["k"]], parts = [], operandSegmentSizes = array<i32: 1, 0, 0, 0, 1, 1, 0>}> ({
  ^bb0(%i: i32, %k: i32, %k_token: !attn.token):
    attn.yield
  }) : (i32, !attn.channel<3>, !attn.cursor) -> !attn.cursor
  return
}

// -----

func.func @issue(%kv: !attn.channel<3>, %c: !attn.cursor, %n: i32) {
  // expected-error @below {{expected statement "qk" to use parts of 1 slots, got 2}}
  %r = "attn.issue_loop"(%n, %kv, %c) <{role = "mma", slots = ["k"], slot_channels = array<i64: 0>, names = ["qk"], counts = array<i64: 0>, skews = array<i64: 0>, uses = [["k"]], parts = [["", ""]], operandSegmentSizes = array<i32: 1, 0, 0, 0, 1, 1, 0>}> ({
  ^bb0(%i: i32, %k: i32, %k_token: !attn.token):
    attn.yield
  }) : (i32, !attn.channel<3>, !attn.cursor) -> !attn.cursor
  return
}

// -----

func.func @issue(%kv: !attn.channel<3>, %q: !attn.channel<2>, %c: !attn.cursor, %d: !attn.cursor, %n: i32, %m: i32) {
  // expected-error @below {{expected a skew of statement "pv" of at most 1 where the last iteration is left, got 2}}
  %r:2 = attn.issue_loop as "mma" trips(%n) left(%m) slots ["v" = 0, "k" = 0, "q" = 1] of %kv, %q from %c, %d : !attn.channel<3>, !attn.channel<2>
  statement "pv" of 0 skew 2 uses ["v"] {
  ^bb0(%i: i32, %v: i32, %u: !attn.token):
  }
  statement "qk" of 0 skew 0 uses ["k"] {
  ^bb0(%i: i32, %k: i32, %t: !attn.token):
  }
  return
}

// -----

func.func @issue(%kv: !attn.channel<3>, %q: !attn.channel<2>, %c: !attn.cursor, %d: !attn.cursor, %n: i32, %m: i32) {
  // expected-error @below {{expected trips of the loop before for each of 2, and none that rise, got 1}}
  %r:2 = attn.issue_loop as "mma" trips(%n, %n) left(%m) slots ["v" = 0, "k" = 0, "q" = 1] of %kv, %q from %c, %d : !attn.channel<3>, !attn.channel<2>
  statement "pv" of 0 skew 1 uses ["v"] {
  ^bb0(%i: i32, %v: i32, %u: !attn.token):
  }
  statement "qk" of 0 skew 0 uses ["k"] {
  ^bb0(%i: i32, %k: i32, %t: !attn.token):
  }
  return
}

// -----

func.func @issue(%kv: !attn.channel<3>, %q: !attn.channel<2>, %c: !attn.cursor, %d: !attn.cursor, %n: i32, %m: i32) {
  // expected-error @below {{expected trips of the loop before for each of 1, and none that rise, got 1}}
  %r:2 = attn.issue_loop as "mma" trips(%n) left(%m) rising slots ["v" = 0, "k" = 0, "q" = 1] of %kv, %q from %c, %d : !attn.channel<3>, !attn.channel<2>
  statement "pv" of 0 skew 1 uses ["v"] {
  ^bb0(%i: i32, %v: i32, %u: !attn.token):
  }
  statement "qk" of 0 skew 0 uses ["k"] {
  ^bb0(%i: i32, %k: i32, %t: !attn.token):
  }
  return
}

// -----

func.func @issue(%kv: !attn.channel<3>, %q: !attn.channel<2>, %c: !attn.cursor, %d: !attn.cursor, %n: i32, %m: i32) {
  // expected-error @below {{expected trips of the loop before where statements have values or end slots}}
  %r:2 = attn.issue_loop as "mma" trips(%n) slots ["v" = 0, "k" = 0, "q" = 1] of %kv, %q from %c, %d : !attn.channel<3>, !attn.channel<2>
  statement "pv" of 0 skew 1 uses ["v"] ends ["q"] {
  ^bb0(%i: i32, %v: i32, %u: !attn.token):
  }
  statement "qk" of 0 skew 0 uses ["k"] {
  ^bb0(%i: i32, %k: i32, %t: !attn.token):
  }
  return
}

// -----

func.func @issue(%kv: !attn.channel<3>, %q: !attn.channel<2>, %c: !attn.cursor, %d: !attn.cursor, %n: i32, %m: i32) {
  // expected-error @below {{expected statement "pv" to have skew 1 and to end slots of the loop that none uses, got ["k"]}}
  %r:2 = attn.issue_loop as "mma" trips(%n) left(%m) slots ["v" = 0, "k" = 0, "q" = 1] of %kv, %q from %c, %d : !attn.channel<3>, !attn.channel<2>
  statement "pv" of 0 skew 1 uses ["v"] ends ["k"] {
  ^bb0(%i: i32, %v: i32, %u: !attn.token):
  }
  statement "qk" of 0 skew 0 uses ["k"] {
  ^bb0(%i: i32, %k: i32, %t: !attn.token):
  }
  return
}

// -----

func.func @issue(%kv: !attn.channel<3>, %q: !attn.channel<2>, %c: !attn.cursor, %d: !attn.cursor, %n: i32, %m: i32) {
  // expected-error @below {{expected statement "qk" to have skew 1 and to end slots of the loop that none uses, got ["q"]}}
  %r:2 = attn.issue_loop as "mma" trips(%n) left(%m) slots ["v" = 0, "k" = 0, "q" = 1] of %kv, %q from %c, %d : !attn.channel<3>, !attn.channel<2>
  statement "pv" of 0 skew 1 uses ["v"] {
  ^bb0(%i: i32, %v: i32, %u: !attn.token):
  }
  statement "qk" of 0 skew 0 uses ["k"] ends ["q"] {
  ^bb0(%i: i32, %k: i32, %t: !attn.token):
  }
  return
}

// -----

func.func @issue(%kv: !attn.channel<3>, %q: !attn.channel<2>, %c: !attn.cursor, %d: !attn.cursor, %n: i32, %m: i32) {
  // expected-error @below {{expected no token, a slot and a statement of the loop for what is held}}
  %r:2 = attn.issue_loop as "mma" trips(%n) left(%m) slots ["v" = 0, "k" = 0, "q" = 1] of %kv, %q from %c, %d holding "k" behind "none" : !attn.channel<3>, !attn.channel<2>
  statement "pv" of 0 skew 1 uses ["v"] {
  ^bb0(%i: i32, %v: i32, %u: !attn.token):
  }
  statement "qk" of 0 skew 0 uses ["k"] {
  ^bb0(%i: i32, %k: i32, %t: !attn.token):
  }
  return
}

// -----

func.func @issue(%kv: !attn.channel<3>, %q: !attn.channel<2>, %c: !attn.cursor, %d: !attn.cursor, %n: i32, %m: i32) {
  // expected-error @below {{expected one number of trips and that of the loop before where slots span iterations}}
  %r:2 = attn.issue_loop as "mma" trips(%n) slots ["v" = 0, "k" = 0, "q" = 1] of %kv, %q from %c, %d spanning "q" from "qk" to "qk" : !attn.channel<3>, !attn.channel<2>
  statement "pv" of 0 skew 1 uses ["v"] {
  ^bb0(%i: i32, %v: i32, %u: !attn.token):
  }
  statement "qk" of 0 skew 0 uses ["k"] {
  ^bb0(%i: i32, %k: i32, %t: !attn.token):
  }
  return
}

// -----

func.func @issue(%kv: !attn.channel<3>, %q: !attn.channel<2>, %c: !attn.cursor, %d: !attn.cursor, %n: i32, %m: i32) {
  // expected-error @below {{expected a slot that no statement uses, from one statement of skew 0 to the same or a later one, got "q" from "pv" to "qk"}}
  %r:2 = attn.issue_loop as "mma" trips(%n) left(%m) slots ["v" = 0, "k" = 0, "q" = 1] of %kv, %q from %c, %d spanning "q" from "pv" to "qk" : !attn.channel<3>, !attn.channel<2>
  statement "pv" of 0 skew 1 uses ["v"] {
  ^bb0(%i: i32, %v: i32, %u: !attn.token):
  }
  statement "qk" of 0 skew 0 uses ["k"] {
  ^bb0(%i: i32, %k: i32, %t: !attn.token):
  }
  return
}

// -----

func.func @issue(%kv: !attn.channel<3>, %q: !attn.channel<2>, %c: !attn.cursor, %d: !attn.cursor, %n: i32, %m: i32) {
  // expected-error @below {{expected a slot that no statement uses, from one statement of skew 0 to the same or a later one, got "k" from "qk" to "qk"}}
  %r:2 = attn.issue_loop as "mma" trips(%n) left(%m) slots ["v" = 0, "k" = 0, "q" = 1] of %kv, %q from %c, %d spanning "k" from "qk" to "qk" : !attn.channel<3>, !attn.channel<2>
  statement "pv" of 0 skew 1 uses ["v"] {
  ^bb0(%i: i32, %v: i32, %u: !attn.token):
  }
  statement "qk" of 0 skew 0 uses ["k"] {
  ^bb0(%i: i32, %k: i32, %t: !attn.token):
  }
  return
}

// -----

func.func @issue(%kv: !attn.channel<3>, %c: !attn.cursor, %n: i32, %m: i32) {
  // expected-error @below {{expected statement "pv", which uses the slot that is held, to run in each step that begins an iteration}}
  %r = attn.issue_loop as "mma" trips(%n) left(%m) slots ["v" = 0, "k" = 0] of %kv from %c holding "v" behind "qk" : !attn.channel<3>
  statement "qk" of 0 skew 0 uses ["k"] {
  ^bb0(%i: i32, %k: i32, %t: !attn.token):
  }
  statement "pv" of 0 skew 1 uses ["v"] {
  ^bb0(%i: i32, %v: i32, %t: !attn.token):
  }
  return
}

// -----

func.func @issue(%kv: !attn.channel<3>, %c: !attn.cursor, %n: i32, %m: i32) {
  // expected-error @below {{expected two statements for each of 1 slots that span iterations}}
  "attn.issue_loop"(%n, %m, %kv, %c) <{role = "mma", slots = ["k", "q"], slot_channels = array<i64: 0, 0>, names = ["qk"], counts = array<i64: 0>, skews = array<i64: 0>, uses = [["k"]], spanning = ["q"], operandSegmentSizes = array<i32: 1, 1, 0, 0, 1, 1, 0>}> ({
  ^bb0(%i: i32, %k: i32, %t: !attn.token):
    attn.yield
  }) : (i32, i32, !attn.channel<3>, !attn.cursor) -> !attn.cursor
  return
}

// -----

func.func @issue(%kv: !attn.channel<3>, %c: !attn.cursor, %n: i32, %m: i32) {
  // expected-error @below {{expected values of the same types of this loop and of the one before}}
  "attn.issue_loop"(%n, %m, %n, %kv, %c) <{role = "mma", slots = ["k"], slot_channels = array<i64: 0>, names = ["qk"], counts = array<i64: 0>, skews = array<i64: 0>, uses = [["k"]], operandSegmentSizes = array<i32: 1, 1, 1, 0, 1, 1, 0>}> ({
  ^bb0(%i: i32, %k: i32, %t: !attn.token, %x: i32):
    attn.yield
  }) : (i32, i32, i32, !attn.channel<3>, !attn.cursor) -> !attn.cursor
  return
}

// -----

func.func @issue(%kv: !attn.channel<3>, %c: !attn.cursor, %n: i32, %m: i32) {
  // expected-error @below {{expected slots that end for 1 statements, got 2}}
  "attn.issue_loop"(%n, %m, %kv, %c) <{role = "mma", slots = ["k"], slot_channels = array<i64: 0>, names = ["qk"], counts = array<i64: 0>, skews = array<i64: 0>, uses = [["k"]], ends = [[], []], operandSegmentSizes = array<i32: 1, 1, 0, 0, 1, 1, 0>}> ({
  ^bb0(%i: i32, %k: i32, %t: !attn.token):
    attn.yield
  }) : (i32, i32, !attn.channel<3>, !attn.cursor) -> !attn.cursor
  return
}
