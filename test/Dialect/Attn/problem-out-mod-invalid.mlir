// RUN: attn-opt %s -split-input-file -verify-diagnostics

// What is required of what changes results, and of results of 4 bits. Functions are named
// after the constraint in docs/spec.md.

func.func @attention_c51_arguments(%q: memref<1x2x8x64xf16>, %o: memref<1x2x8x64xf16>) {
  // expected-error @below {{expected 'out_mod' to take (f32, i32, i32, i32, i32), got ('f32', 'i32', 'i32', 'i32', 'i32', 'i32')}}
  attn.attention ins(%q, %q, %q : memref<1x2x8x64xf16>, memref<1x2x8x64xf16>, memref<1x2x8x64xf16>)
    outs(%o : memref<1x2x8x64xf16>) out_mod {
    ^bb0(%r: f32, %b: i32, %h: i32, %i: i32, %c: i32, %j: i32):
      attn.yield %r : f32
    }
  return
}

// -----

func.func @attention_c51_type(%q: memref<1x2x8x64xf16>, %o: memref<1x2x8x64xf16>) {
  // expected-error @below {{expected 'out_mod' to yield 'f32', got ('f16')}}
  attn.attention ins(%q, %q, %q : memref<1x2x8x64xf16>, memref<1x2x8x64xf16>, memref<1x2x8x64xf16>)
    outs(%o : memref<1x2x8x64xf16>) out_mod {
    ^bb0(%r: f32, %b: i32, %h: i32, %i: i32, %c: i32):
      %x = arith.truncf %r : f32 to f16
      // expected-note @below {{it is yielded here}}
      attn.yield %x : f16
    }
  return
}

// -----

func.func @attention_c51_store(%q: memref<1x2x8x64xf16>, %o: memref<1x2x8x64xf16>, %t: memref<2xf32>) {
  // expected-error @below {{expected operations without effects other than reads in 'out_mod', got 'memref.store'}}
  attn.attention ins(%q, %q, %q : memref<1x2x8x64xf16>, memref<1x2x8x64xf16>, memref<1x2x8x64xf16>)
    outs(%o : memref<1x2x8x64xf16>) out_mod {
    ^bb0(%r: f32, %b: i32, %h: i32, %i: i32, %c: i32):
      %n = arith.index_cast %h : i32 to index
      // expected-note @below {{the operation is here}}
      memref.store %r, %t[%n] : memref<2xf32>
      attn.yield %r : f32
    }
  return
}

// -----

func.func @attention_c51_region(%q: memref<1x2x8x64xf16>, %o: memref<1x2x8x64xf16>) {
  // expected-error @below {{expected operations without effects and regions, and 'memref.load' of what is outside, in 'out_mod', got 'scf.if'}}
  attn.attention ins(%q, %q, %q : memref<1x2x8x64xf16>, memref<1x2x8x64xf16>, memref<1x2x8x64xf16>)
    outs(%o : memref<1x2x8x64xf16>) out_mod {
    ^bb0(%r: f32, %b: i32, %h: i32, %i: i32, %c: i32):
      %z = arith.constant 0 : i32
      %p = arith.cmpi eq, %c, %z : i32
      // expected-note @below {{the operation is here}}
      %x = scf.if %p -> f32 {
        scf.yield %r : f32
      } else {
        %y = arith.negf %r : f32
        scf.yield %y : f32
      }
      attn.yield %x : f32
    }
  return
}

// -----

func.func @attention_c51_output(%q: memref<1x2x8x64xf16>, %o: memref<1x2x8x64xf16>) {
  // expected-error @below {{expected 'out_mod' to read no output of the op, got 'memref.load' of one}}
  attn.attention ins(%q, %q, %q : memref<1x2x8x64xf16>, memref<1x2x8x64xf16>, memref<1x2x8x64xf16>)
    outs(%o : memref<1x2x8x64xf16>) out_mod {
    ^bb0(%r: f32, %b: i32, %h: i32, %i: i32, %c: i32):
      %z = arith.constant 0 : index
      // expected-note @below {{the operation is here}}
      %x = memref.load %o[%z, %z, %z, %z] : memref<1x2x8x64xf16>
      %y = arith.extf %x : f16 to f32
      attn.yield %y : f32
    }
  return
}

// -----

func.func @attention_c52(%q: memref<1x2x8x64xf16>, %po: memref<2x1x2x8x64xf32>, %pl: memref<2x1x2x8xf32>) {
  // expected-error @below {{expected no 'out_mod' with partial results, which 'attn.combine' takes in its place}}
  attn.attention ins(%q, %q, %q : memref<1x2x8x64xf16>, memref<1x2x8x64xf16>, memref<1x2x8x64xf16>)
    outs(%po, %pl : memref<2x1x2x8x64xf32>, memref<2x1x2x8xf32>) out_mod {
    ^bb0(%r: f32, %b: i32, %h: i32, %i: i32, %c: i32):
      attn.yield %r : f32
    } {kv_splits = 2 : i64}
  return
}

// -----

func.func @combine_c13(%po: memref<2x1x2x8x64xf32>, %pl: memref<2x1x2x8xf32>, %o: memref<1x2x8x64xf16>) {
  // expected-error @below {{expected 'out_mod' to yield 'f32', got ('i32')}}
  attn.combine ins(%po, %pl : memref<2x1x2x8x64xf32>, memref<2x1x2x8xf32>) outs(%o : memref<1x2x8x64xf16>)
    out_mod {
    ^bb0(%r: f32, %b: i32, %h: i32, %i: i32, %c: i32):
      // expected-note @below {{it is yielded here}}
      attn.yield %b : i32
    }
  return
}

// -----

func.func @attention_c53_none(%q: memref<1x2x8x64xf16>, %o: memref<1x2x8x32xi8>, %s: memref<1x2x8x4xf8E4M3FN>) {
  // expected-error @below {{expected 'out_scales' and 'out_group' = 16 with an output of type i8, pairs of f4E2M1FN, got no scales}}
  attn.attention ins(%q, %q, %q : memref<1x2x8x64xf16>, memref<1x2x8x64xf16>, memref<1x2x8x64xf16>)
    outs(%o : memref<1x2x8x32xi8>)
  return
}

// -----

func.func @attention_c53_group(%q: memref<1x2x8x64xf16>, %o: memref<1x2x8x32xi8>, %s: memref<1x2x8x2xf8E4M3FN>) {
  // expected-error @below {{expected 'out_scales' and 'out_group' = 16 with an output of type i8, pairs of f4E2M1FN, got groups of 32}}
  attn.attention ins(%q, %q, %q : memref<1x2x8x64xf16>, memref<1x2x8x64xf16>, memref<1x2x8x64xf16>)
    outs(%o : memref<1x2x8x32xi8>) out_scales(%s : memref<1x2x8x2xf8E4M3FN>) {out_group = 32 : i64}
  return
}

// -----

func.func @attention_c53_columns(%q: memref<1x2x8x72xf16>, %o: memref<1x2x8x36xi8>, %s: memref<1x2x8x4xf8E4M3FN>) {
  // expected-error @below {{expected a value dimension that is a multiple of 16 with an output of f4E2M1FN, got 72}}
  attn.attention ins(%q, %q, %q : memref<1x2x8x72xf16>, memref<1x2x8x72xf16>, memref<1x2x8x72xf16>)
    outs(%o : memref<1x2x8x36xi8>) out_scales(%s : memref<1x2x8x4xf8E4M3FN>) {out_group = 16 : i64}
  return
}

// -----

func.func @attention_c53_bytes(%q: memref<1x2x8x64xf16>, %o: memref<1x2x8x64xi8>, %s: memref<1x2x8x4xf8E4M3FN>) {
  // expected-error @below {{expected 'o' to have a byte for each two of 64 columns, got 64}}
  attn.attention ins(%q, %q, %q : memref<1x2x8x64xf16>, memref<1x2x8x64xf16>, memref<1x2x8x64xf16>)
    outs(%o : memref<1x2x8x64xi8>) out_scales(%s : memref<1x2x8x4xf8E4M3FN>) {out_group = 16 : i64}
  return
}

// -----

func.func @attention_c53_type(%q: memref<1x2x8x64xf16>, %o: memref<1x2x8x32xi8>, %s: memref<1x2x8x4xf32>) {
  // expected-error @below {{expected 'o_scales' of type f8E4M3FN beside an output of f4E2M1FN, got 'f32'}}
  attn.attention ins(%q, %q, %q : memref<1x2x8x64xf16>, memref<1x2x8x64xf16>, memref<1x2x8x64xf16>)
    outs(%o : memref<1x2x8x32xi8>) out_scales(%s : memref<1x2x8x4xf32>) {out_group = 16 : i64}
  return
}

// -----

func.func @attention_c53_scales(%q: memref<1x2x8x64xf16>, %o: memref<1x2x8x32xi8>, %s: memref<1x2x8x8xf8E4M3FN>) {
  // expected-error @below {{expected 4 columns of 'o_scales', one for each 16 of 'o', got 8}}
  attn.attention ins(%q, %q, %q : memref<1x2x8x64xf16>, memref<1x2x8x64xf16>, memref<1x2x8x64xf16>)
    outs(%o : memref<1x2x8x32xi8>) out_scales(%s : memref<1x2x8x8xf8E4M3FN>) {out_group = 16 : i64}
  return
}

// -----

func.func @combine_c13_twice(%po: memref<2x1x2x8x64xf32>, %pl: memref<2x1x2x8xf32>, %o: memref<1x2x8x64xf16>) {
  // expected-error @below {{expected at most one 'out_mod', got 2}}
  attn.combine ins(%po, %pl : memref<2x1x2x8x64xf32>, memref<2x1x2x8xf32>) outs(%o : memref<1x2x8x64xf16>)
    out_mod {
    ^bb0(%r: f32, %b: i32, %h: i32, %i: i32, %c: i32):
      attn.yield %r : f32
    }, {
    ^bb0(%r: f32, %b: i32, %h: i32, %i: i32, %c: i32):
      attn.yield %r : f32
    }
  return
}
