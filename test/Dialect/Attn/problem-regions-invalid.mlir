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

// -----

func.func @attention_c49(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf16>,
    %v: memref<2x2x200x64xf16>,
    %o: memref<2x8x300x64xf16>) {
  // expected-error @below {{expected 'key_range' to take (i32, i32, i32, i32, i32), got ('i32', 'i32')}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x200x64xf16>, memref<2x2x200x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
    mask_mod {
  ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %keep = arith.cmpi sle, %j, %i : i32
    attn.yield %keep : i1
  }
    key_range {
  ^bb0(%b: i32, %h: i32):
    attn.yield %b, %h : i32, i32
  }
  return
}


// -----

func.func @attention_c49_yield(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf16>,
    %v: memref<2x2x200x64xf16>,
    %o: memref<2x8x300x64xf16>) {
  // expected-error @below {{expected 'key_range' to yield two or four i32, got ('i32', 'i32', 'i32')}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x200x64xf16>, memref<2x2x200x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
    mask_mod {
  ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %keep = arith.cmpi sle, %j, %i : i32
    attn.yield %keep : i1
  }
    key_range {
  ^bb0(%b: i32, %h0: i32, %h1: i32, %i0: i32, %i1: i32):
    // expected-note @below {{it is yielded here}}
    attn.yield %b, %i0, %i1 : i32, i32, i32
  }
  return
}


// -----

func.func @attention_c49_end(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf16>,
    %v: memref<2x2x200x64xf16>,
    %o: memref<2x8x300x64xf16>) {
  // expected-error @below {{expected 'key_range' to end with 'attn.yield'}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x200x64xf16>, memref<2x2x200x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
    mask_mod {
  ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %keep = arith.cmpi sle, %j, %i : i32
    attn.yield %keep : i1
  }
    key_range {
  ^bb0(%b: i32, %h0: i32, %h1: i32, %i0: i32, %i1: i32):
    llvm.unreachable
  }
  return
}


// -----

func.func @attention_c49_operations(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf16>,
    %v: memref<2x2x200x64xf16>,
    %o: memref<2x8x300x64xf16>,
    %lengths: memref<2xi32>) {
  // expected-error @below {{expected operations without effects and regions, and 'memref.load' and 'attn.find_key' of what is outside, in 'key_range', got 'memref.store'}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x200x64xf16>, memref<2x2x200x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
    mask_mod {
  ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %keep = arith.cmpi sle, %j, %i : i32
    attn.yield %keep : i1
  }
    key_range {
  ^bb0(%b: i32, %h0: i32, %h1: i32, %i0: i32, %i1: i32):
    %zero = arith.constant 0 : index
    // expected-note @below {{the operation is here}}
    memref.store %b, %lengths[%zero] : memref<2xi32>
    attn.yield %b, %i0 : i32, i32
  }
  return
}


// -----

func.func @attention_c50(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf16>,
    %v: memref<2x2x200x64xf16>,
    %o: memref<2x8x300x64xf16>) {
  // expected-error @below {{expected 'mask_mod' beside 'key_range', got none}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x200x64xf16>, memref<2x2x200x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
    key_range {
  ^bb0(%b: i32, %h0: i32, %h1: i32, %i0: i32, %i1: i32):
    attn.yield %i0, %i1 : i32, i32
  }
  return
}


// -----

func.func @attention_c50_twice(%q: memref<2x8x300x64xf16>, %o: memref<2x8x300x64xf16>) {
  // expected-error @below {{expected at most one 'key_range' and one 'out_mod', got 3 regions}}
  "attn.attention"(%q, %q, %q, %o) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>}> ({
  }, {
  }, {
  }, {
  }, {
  }) : (memref<2x8x300x64xf16>, memref<2x8x300x64xf16>, memref<2x8x300x64xf16>, memref<2x8x300x64xf16>) -> ()
  return
}
