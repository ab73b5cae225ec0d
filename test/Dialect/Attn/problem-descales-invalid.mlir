// RUN: attn-opt %s -split-input-file -verify-diagnostics

// What attn.attention requires of the descales of 8-bit operands. Functions are
// named after the constraint in docs/spec.md.

func.func @attention_c33_type(
    %q: memref<2x8x300x64xf8E4M3FN>,
    %k: memref<2x2x200x64xf8E4M3FN>,
    %o: memref<2x8x300x64xbf16>,
    %a: memref<2x8xf16>, %b: memref<2x2xf32>, %c: memref<2x2xf32>) {
  // expected-error @below {{expected 'q_descale' of type f32, got 'f16'}}
  attn.attention ins(%q, %k, %k : memref<2x8x300x64xf8E4M3FN>, memref<2x2x200x64xf8E4M3FN>, memref<2x2x200x64xf8E4M3FN>)
    outs(%o : memref<2x8x300x64xbf16>)
    descales(%a, %b, %c : memref<2x8xf16>, memref<2x2xf32>, memref<2x2xf32>)
  return
}

// -----

func.func @attention_c33_rank(
    %q: memref<2x8x300x64xf8E4M3FN>,
    %k: memref<2x2x200x64xf8E4M3FN>,
    %o: memref<2x8x300x64xbf16>,
    %a: memref<8xf32>, %b: memref<2x2xf32>, %c: memref<2x2xf32>) {
  // expected-error @below {{expected 'q_descale' of rank 2, got 'memref<8xf32>'}}
  attn.attention ins(%q, %k, %k : memref<2x8x300x64xf8E4M3FN>, memref<2x2x200x64xf8E4M3FN>, memref<2x2x200x64xf8E4M3FN>)
    outs(%o : memref<2x8x300x64xbf16>)
    descales(%a, %b, %c : memref<8xf32>, memref<2x2xf32>, memref<2x2xf32>)
  return
}

// -----

func.func @attention_c33_all(%q: memref<2x8x300x64xf8E4M3FN>, %k: memref<2x2x200x64xf8E4M3FN>, %o: memref<2x8x300x64xbf16>, %a: memref<2x8xf32>) {
  // expected-error @below {{expected all three descales or none, got 1}}
  "attn.attention"(%q, %k, %k, %o, %a) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>}> ({}, {})
    : (memref<2x8x300x64xf8E4M3FN>, memref<2x2x200x64xf8E4M3FN>, memref<2x2x200x64xf8E4M3FN>, memref<2x8x300x64xbf16>, memref<2x8xf32>) -> ()
  return
}

// -----

func.func @attention_c33_both(%q: memref<2x8x300x64xf16>, %k: memref<2x2x200x64xf8E4M3FN>, %o: memref<2x8x300x64xbf16>, %a: memref<2x2xf32>) {
  // expected-error @below {{expected both descales or none, got 1}}
  "attn.attention"(%q, %k, %k, %o, %a) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>}> ({}, {})
    : (memref<2x8x300x64xf16>, memref<2x2x200x64xf8E4M3FN>, memref<2x2x200x64xf8E4M3FN>, memref<2x8x300x64xbf16>, memref<2x2xf32>) -> ()
  return
}

// -----

func.func @attention_c33_wide(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf8E4M3FN>,
    %o: memref<2x8x300x64xf16>,
    %a: memref<2x8xf32>, %b: memref<2x2xf32>) {
  // expected-error @below {{expected no 'q_descale' beside a 'q' of type 'f16'}}
  attn.attention ins(%q, %k, %k : memref<2x8x300x64xf16>, memref<2x2x200x64xf8E4M3FN>, memref<2x2x200x64xf8E4M3FN>)
    outs(%o : memref<2x8x300x64xf16>)
    descales(%a, %b, %b : memref<2x8xf32>, memref<2x2xf32>, memref<2x2xf32>)
  return
}

// -----

func.func @attention_c33_syntax(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf8E4M3FN>,
    %o: memref<2x8x300x64xf16>,
    %b: memref<2x2xf32>) {
  attn.attention ins(%q, %k, %k : memref<2x8x300x64xf16>, memref<2x2x200x64xf8E4M3FN>, memref<2x2x200x64xf8E4M3FN>)
    outs(%o : memref<2x8x300x64xf16>)
    // expected-error @below {{expected descales of k and v, or of q, k and v, with as many types, got 1 and 1}}
    descales(%b : memref<2x2xf32>)
  return
}

// -----

func.func @attention_c34(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf16>,
    %o: memref<2x8x300x64xf16>,
    %a: memref<2x8xf32>, %b: memref<2x2xf32>, %c: memref<2x2xf32>) {
  // expected-error @below {{expected descales only with 8-bit keys, got 'f16'}}
  attn.attention ins(%q, %k, %k : memref<2x8x300x64xf16>, memref<2x2x200x64xf16>, memref<2x2x200x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
    descales(%a, %b, %c : memref<2x8xf32>, memref<2x2xf32>, memref<2x2xf32>)
  return
}

// -----

func.func @attention_c35_heads(
    // expected-note @below {{dimension 1 of 'q' is 8}}
    %q: memref<2x8x300x64xf8E4M3FN>,
    %k: memref<2x2x200x64xf8E4M3FN>,
    %o: memref<2x8x300x64xbf16>,
    %a: memref<2x2xf32>, %b: memref<2x2xf32>, %c: memref<2x2xf32>) {
  // expected-error @below {{expected dimension 1 of 'q_descale' (query heads) to be 8, got 2}}
  attn.attention ins(%q, %k, %k : memref<2x8x300x64xf8E4M3FN>, memref<2x2x200x64xf8E4M3FN>, memref<2x2x200x64xf8E4M3FN>)
    outs(%o : memref<2x8x300x64xbf16>)
    descales(%a, %b, %c : memref<2x2xf32>, memref<2x2xf32>, memref<2x2xf32>)
  return
}

// -----

func.func @attention_c35_batch(
    // expected-note @below {{dimension 0 of 'q' is 2}}
    %q: memref<2x8x300x64xf8E4M3FN>,
    %k: memref<2x2x200x64xf8E4M3FN>,
    %o: memref<2x8x300x64xbf16>,
    %a: memref<2x8xf32>, %b: memref<3x2xf32>, %c: memref<2x2xf32>) {
  // expected-error @below {{expected dimension 0 of 'k_descale' (batch) to be 2, got 3}}
  attn.attention ins(%q, %k, %k : memref<2x8x300x64xf8E4M3FN>, memref<2x2x200x64xf8E4M3FN>, memref<2x2x200x64xf8E4M3FN>)
    outs(%o : memref<2x8x300x64xbf16>)
    descales(%a, %b, %c : memref<2x8xf32>, memref<3x2xf32>, memref<2x2xf32>)
  return
}

// -----

func.func @attention_c35_sequences(
    %q: memref<1x8x300x64xf8E4M3FN>,
    %k: memref<1x2x200x64xf8E4M3FN>,
    %o: memref<1x8x300x64xbf16>,
    %a: memref<2x8xf32>, %b: memref<2x2xf32>, %c: memref<2x2xf32>,
    %l: memref<4xi32>) {
  // expected-error @below {{expected descales of 3 sequences, got 2}}
  attn.attention ins(%q, %k, %k : memref<1x8x300x64xf8E4M3FN>, memref<1x2x200x64xf8E4M3FN>, memref<1x2x200x64xf8E4M3FN>)
    outs(%o : memref<1x8x300x64xbf16>)
    cu_seqlens(%l, %l : memref<4xi32>, memref<4xi32>)
    descales(%a, %b, %c : memref<2x8xf32>, memref<2x2xf32>, memref<2x2xf32>) {max_seqlen_q = 300 : i64}
  return
}
