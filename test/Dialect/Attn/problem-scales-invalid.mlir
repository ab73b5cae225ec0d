// RUN: attn-opt %s -split-input-file -verify-diagnostics

// What attn.attention requires of scales of rows, and of rotated columns apart.
// Functions are named after the constraint in docs/spec.md.

func.func @attention_c42_group(
    %q: memref<2x8x1x128xf16>, %k: memref<2x2x300x128xf8E4M3FN>,
    %s: memref<2x2x300x1xf32>) {
  // expected-error @below {{expected both 'scales' and 'scale_group' or neither, got one}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x128xf16>, memref<2x2x300x128xf8E4M3FN>, memref<2x2x300x128xf8E4M3FN>)
    outs(%q : memref<2x8x1x128xf16>)
    scales(%s, %s : memref<2x2x300x1xf32>, memref<2x2x300x1xf32>)
  return
}

// -----

func.func @attention_c42_bits(
    %q: memref<2x8x1x128xf16>, %k: memref<2x2x300x128xf16>,
    %s: memref<2x2x300x1xf32>) {
  // expected-error @below {{expected scales of rows only with 8-bit keys beside 16-bit queries, got 'k' of type 'f16' beside 'q' of type 'f16'}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x128xf16>, memref<2x2x300x128xf16>, memref<2x2x300x128xf16>)
    outs(%q : memref<2x8x1x128xf16>)
    scales(%s, %s : memref<2x2x300x1xf32>, memref<2x2x300x1xf32>) {scale_group = 128}
  return
}

// -----

func.func @attention_c42_values(
    %q: memref<2x8x1x128xf16>, %k: memref<2x2x300x128xf8E4M3FN>,
    %s: memref<2x2x300x1xf32>) {
  // expected-error @below {{expected scales of both keys and values, got those of keys alone}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x128xf16>, memref<2x2x300x128xf8E4M3FN>, memref<2x2x300x128xf8E4M3FN>)
    outs(%q : memref<2x8x1x128xf16>)
    scales(%s : memref<2x2x300x1xf32>) {scale_group = 128}
  return
}

// -----

func.func @attention_c42_latent(
    %q: memref<2x8x1x192xf16>, %o: memref<2x8x1x128xf16>, %k: memref<2x1x300x128xf8E4M3FN>,
    %r: memref<2x1x300x64xf16>, %s: memref<2x1x300x1xf32>) {
  // expected-error @below {{expected scales of the keys alone with 'rope_dim', got those of values}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x192xf16>, memref<2x1x300x128xf8E4M3FN>, memref<2x1x300x128xf8E4M3FN>)
    outs(%o : memref<2x8x1x128xf16>) rope(%r : memref<2x1x300x64xf16>)
    scales(%s, %s : memref<2x1x300x1xf32>, memref<2x1x300x1xf32>) {scale_group = 128, rope_dim = 64}
  return
}

// -----

func.func @attention_c42_type(
    %q: memref<2x8x1x128xf16>, %k: memref<2x2x300x128xf8E4M3FN>,
    %s: memref<2x2x300x1xf16>) {
  // expected-error @below {{expected 'k_scales' of type f32, got 'f16'}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x128xf16>, memref<2x2x300x128xf8E4M3FN>, memref<2x2x300x128xf8E4M3FN>)
    outs(%q : memref<2x8x1x128xf16>)
    scales(%s, %s : memref<2x2x300x1xf16>, memref<2x2x300x1xf16>) {scale_group = 128}
  return
}

// -----

func.func @attention_c43_divides(
    %q: memref<2x8x1x128xf16>, %k: memref<2x2x300x128xf8E4M3FN>,
    %s: memref<2x2x300x1xf32>) {
  // expected-error @below {{expected 'scale_group' to divide the 128 columns of 'k', got 96}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x128xf16>, memref<2x2x300x128xf8E4M3FN>, memref<2x2x300x128xf8E4M3FN>)
    outs(%q : memref<2x8x1x128xf16>)
    scales(%s, %s : memref<2x2x300x1xf32>, memref<2x2x300x1xf32>) {scale_group = 96}
  return
}

// -----

func.func @attention_c43_columns(
    %q: memref<2x8x1x128xf16>, %k: memref<2x2x300x128xf8E4M3FN>,
    %s: memref<2x2x300x1xf32>) {
  // expected-error @below {{expected 2 columns of 'k_scales', one for each 64 of 'k', got 1}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x128xf16>, memref<2x2x300x128xf8E4M3FN>, memref<2x2x300x128xf8E4M3FN>)
    outs(%q : memref<2x8x1x128xf16>)
    scales(%s, %s : memref<2x2x300x1xf32>, memref<2x2x300x1xf32>) {scale_group = 64}
  return
}

// -----

func.func @attention_c43_rows(
    // expected-note @below {{dimension 2 of 'k' is 300}}
    %q: memref<2x8x1x128xf16>, %k: memref<2x2x300x128xf8E4M3FN>,
    %s: memref<2x2x299x1xf32>) {
  // expected-error @below {{expected dimension 2 of 'k_scales' (row) to be 300, got 299}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x128xf16>, memref<2x2x300x128xf8E4M3FN>, memref<2x2x300x128xf8E4M3FN>)
    outs(%q : memref<2x8x1x128xf16>)
    scales(%s, %s : memref<2x2x299x1xf32>, memref<2x2x299x1xf32>) {scale_group = 128}
  return
}

// -----

func.func @attention_c44_dim(
    %q: memref<2x8x1x128xf16>, %r: memref<2x8x1x64xf16>) {
  // expected-error @below {{expected 'rope' only with 'rope_dim' above 0}}
  attn.attention ins(%q, %q, %q : memref<2x8x1x128xf16>, memref<2x8x1x128xf16>, memref<2x8x1x128xf16>)
    outs(%q : memref<2x8x1x128xf16>) rope(%r : memref<2x8x1x64xf16>)
  return
}

// -----

func.func @attention_c44_type(
    %q: memref<2x8x1x192xf16>, %o: memref<2x8x1x128xf16>, %k: memref<2x1x300x128xf16>,
    %r: memref<2x1x300x64xbf16>) {
  // expected-error @below {{expected 'k_rope' of the type of 'q', 'f16', got 'bf16'}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x192xf16>, memref<2x1x300x128xf16>, memref<2x1x300x128xf16>)
    outs(%o : memref<2x8x1x128xf16>) rope(%r : memref<2x1x300x64xbf16>) {rope_dim = 64}
  return
}

// -----

func.func @attention_c44_columns(
    %q: memref<2x8x1x192xf16>, %o: memref<2x8x1x128xf16>, %k: memref<2x1x300x128xf16>,
    %r: memref<2x1x300x32xf16>) {
  // expected-error @below {{expected 'k_rope' of 'rope_dim' = 64 columns, got 32}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x192xf16>, memref<2x1x300x128xf16>, memref<2x1x300x128xf16>)
    outs(%o : memref<2x8x1x128xf16>) rope(%r : memref<2x1x300x32xf16>) {rope_dim = 64}
  return
}

// -----

func.func @attention_c44_keys(
    %q: memref<2x8x1x192xf16>, %o: memref<2x8x1x128xf16>, %k: memref<2x1x300x192xf16>,
    %v: memref<2x1x300x128xf16>, %r: memref<2x1x300x64xf16>) {
  // expected-error @below {{expected 'k' without the columns of 'k_rope', 128, got 192}}
  attn.attention ins(%q, %k, %v : memref<2x8x1x192xf16>, memref<2x1x300x192xf16>, memref<2x1x300x128xf16>)
    outs(%o : memref<2x8x1x128xf16>) rope(%r : memref<2x1x300x64xf16>) {rope_dim = 64}
  return
}
