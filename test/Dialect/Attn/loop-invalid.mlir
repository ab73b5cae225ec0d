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

func.func @requested(%n: i32, %c: !attn.channel<2>, %b: !attn.buffer<2xi32, #attn.auto, shared>) {
  // expected-error @below {{expected a ring of 2 i128, one for each slot of the channel, got '!attn.buffer<2xi32, #attn.auto, shared>'}}
  attn.tile_loop %n scheduler clc channel %c ring %b : !attn.channel<2>, !attn.buffer<2xi32, #attn.auto, shared> {
  ^bb0(%tile: i32):
    attn.yield
  }
  return
}

// -----

func.func @requested(%n: i32, %p: !llvm.ptr<1>, %c: !attn.channel<2>, %b: !attn.buffer<2xi128, #attn.auto, shared>) {
  // expected-error @below {{expected no counter with the scheduler 'clc', got one}}
  attn.tile_loop %n scheduler clc counter %p channel %c ring %b : !llvm.ptr<1>, !attn.channel<2>, !attn.buffer<2xi128, #attn.auto, shared> {
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
