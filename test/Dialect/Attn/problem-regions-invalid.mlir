// RUN: attn-opt %s -split-input-file -verify-diagnostics

// What attn.attention requires of score_mod and mask_mod. Functions are named
// after the constraint in docs/spec.md.

func.func @attention_c27(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf16>,
    %v: memref<2x2x200x64xf16>,
    %o: memref<2x8x300x64xf16>) {
  // expected-error @below {{expected 'score_mod' to take (f32, i32, i32, i32, i32), got ('f32', 'i32')}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x200x64xf16>, memref<2x2x200x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
    score_mod {
  ^bb0(%score: f32, %b: i32):
    attn.yield %score : f32
  }
  return
}

// -----

func.func @attention_c27_yield(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf16>,
    %v: memref<2x2x200x64xf16>,
    %o: memref<2x8x300x64xf16>) {
  // expected-error @below {{expected 'score_mod' to yield 'f32', got ('i32')}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x200x64xf16>, memref<2x2x200x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
    score_mod {
  ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    // expected-note @below {{it is yielded here}}
    attn.yield %i : i32
  }
  return
}

// -----

func.func @attention_c27_end(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf16>,
    %v: memref<2x2x200x64xf16>,
    %o: memref<2x8x300x64xf16>) {
  // expected-error @below {{expected 'score_mod' to end with 'attn.yield'}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x200x64xf16>, memref<2x2x200x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
    score_mod {
  ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    llvm.unreachable
  }
  return
}

// -----

func.func @attention_c28(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf16>,
    %v: memref<2x2x200x64xf16>,
    %o: memref<2x8x300x64xf16>) {
  // expected-error @below {{expected 'mask_mod' to yield 'i1', got ('f32')}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x200x64xf16>, memref<2x2x200x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
    mask_mod {
  ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    // expected-note @below {{it is yielded here}}
    attn.yield %score : f32
  }
  return
}

// -----

func.func @attention_c32(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf16>,
    %v: memref<2x2x200x64xf16>,
    %o: memref<2x8x300x64xf16>,
    %log: memref<1xf32>) {
  // expected-error @below {{expected operations without effects other than reads in 'score_mod', got 'memref.store'}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x200x64xf16>, memref<2x2x200x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
    score_mod {
  ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %zero = arith.constant 0 : index
    // expected-note @below {{the operation is here}}
    memref.store %score, %log[%zero] : memref<1xf32>
    attn.yield %score : f32
  }
  return
}
