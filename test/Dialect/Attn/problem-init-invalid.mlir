// RUN: attn-opt %s -split-input-file -verify-diagnostics

// What attn.attention requires of a state that results go on from.
// Functions are named after the constraint in docs/spec.md.

func.func @attention_c41_type(
    %q: memref<2x8x300x64xf16>,
    %io: memref<2x8x300x64xf8E4M3FN>,
    %il: memref<2x8x300xf32>) {
  // expected-error @below {{expected 'init_o' of type f16, bf16 or f32, got 'f8E4M3FN'}}
  attn.attention ins(%q, %q, %q : memref<2x8x300x64xf16>, memref<2x8x300x64xf16>, memref<2x8x300x64xf16>)
    outs(%q : memref<2x8x300x64xf16>)
    init(%io, %il : memref<2x8x300x64xf8E4M3FN>, memref<2x8x300xf32>)
  return
}

// -----

func.func @attention_c41_lse_type(
    %q: memref<2x8x300x64xf16>,
    %io: memref<2x8x300x64xf32>,
    %il: memref<2x8x300xf16>) {
  // expected-error @below {{expected 'init_lse' of type f32, got 'f16'}}
  attn.attention ins(%q, %q, %q : memref<2x8x300x64xf16>, memref<2x8x300x64xf16>, memref<2x8x300x64xf16>)
    outs(%q : memref<2x8x300x64xf16>)
    init(%io, %il : memref<2x8x300x64xf32>, memref<2x8x300xf16>)
  return
}

// -----

func.func @attention_c41_rank(
    %q: memref<2x8x300x64xf16>,
    %io: memref<2x8x300x64xf32>,
    %il: memref<16x300xf32>) {
  // expected-error @below {{expected 'init_lse' of rank 3, got 'memref<16x300xf32>'}}
  attn.attention ins(%q, %q, %q : memref<2x8x300x64xf16>, memref<2x8x300x64xf16>, memref<2x8x300x64xf16>)
    outs(%q : memref<2x8x300x64xf16>)
    init(%io, %il : memref<2x8x300x64xf32>, memref<16x300xf32>)
  return
}

// -----

func.func @attention_c41_heads(
    // expected-note @below {{dimension 1 of 'q' is 8}}
    %q: memref<2x8x300x64xf16>,
    %io: memref<2x4x300x64xf32>,
    %il: memref<2x8x300xf32>) {
  // expected-error @below {{expected dimension 1 of 'init_o' (query heads) to be 8, got 4}}
  attn.attention ins(%q, %q, %q : memref<2x8x300x64xf16>, memref<2x8x300x64xf16>, memref<2x8x300x64xf16>)
    outs(%q : memref<2x8x300x64xf16>)
    init(%io, %il : memref<2x4x300x64xf32>, memref<2x8x300xf32>)
  return
}

// -----

func.func @attention_c41_columns(
    // expected-note @below {{dimension 3 of 'v' is 64}}
    %q: memref<2x8x300x64xf16>,
    %io: memref<2x8x300x32xf32>,
    %il: memref<2x8x300xf32>) {
  // expected-error @below {{expected dimension 3 of 'init_o' (value dimension) to be 64, got 32}}
  attn.attention ins(%q, %q, %q : memref<2x8x300x64xf16>, memref<2x8x300x64xf16>, memref<2x8x300x64xf16>)
    outs(%q : memref<2x8x300x64xf16>)
    init(%io, %il : memref<2x8x300x32xf32>, memref<2x8x300xf32>)
  return
}

// -----

func.func @attention_c41_alone(%q: memref<2x8x300x64xf16>) {
  // expected-error @below {{expected both 'init_o' and 'init_lse' or neither, got one}}
  "attn.attention"(%q, %q, %q, %q, %q) ({}, {}) {
    operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
  } : (memref<2x8x300x64xf16>, memref<2x8x300x64xf16>, memref<2x8x300x64xf16>, memref<2x8x300x64xf16>, memref<2x8x300x64xf16>) -> ()
  return
}
