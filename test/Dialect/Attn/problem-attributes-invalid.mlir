// RUN: attn-opt %s -split-input-file -verify-diagnostics

// What attn.attention requires of scale, softcap, mask, kv_splits, rope_dim and
// out_scale. Functions are named after the constraint in docs/spec.md.

func.func @attention_c17(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf16>,
    %v: memref<2x2x200x64xf16>,
    %o: memref<2x8x300x64xf16>) {
  // expected-error @below {{expected a finite 'scale' other than zero, got 0}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x200x64xf16>, memref<2x2x200x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
    {scale = 0.0 : f32}
  return
}

// -----

func.func @attention_c17_nan(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf16>,
    %v: memref<2x2x200x64xf16>,
    %o: memref<2x8x300x64xf16>) {
  // expected-error @below {{expected a finite 'scale' other than zero, got NaN}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x200x64xf16>, memref<2x2x200x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
    {scale = 0x7FC00000 : f32}
  return
}

// -----

func.func @attention_c18(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf16>,
    %v: memref<2x2x200x64xf16>,
    %o: memref<2x8x300x64xf16>) {
  // expected-error @below {{expected a finite 'softcap' above zero, got -1}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x200x64xf16>, memref<2x2x200x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
    {softcap = -1.0 : f32}
  return
}

// -----

func.func @attention_c18_infinite(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf16>,
    %v: memref<2x2x200x64xf16>,
    %o: memref<2x8x300x64xf16>) {
  // expected-error @below {{expected a finite 'softcap' above zero, got +Inf}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x200x64xf16>, memref<2x2x200x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
    {softcap = 0x7F800000 : f32}
  return
}

// -----

func.func @attention_c24(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf16>,
    %v: memref<2x2x200x64xf16>,
    %o: memref<4x2x8x300x64xf32>,
    %lse: memref<4x2x8x300xf32>) {
  // expected-error @below {{expected 'kv_splits' of at least 1, got 0}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x200x64xf16>, memref<2x2x200x64xf16>)
    outs(%o, %lse : memref<4x2x8x300x64xf32>, memref<4x2x8x300xf32>)
    {kv_splits = 0 : i64}
  return
}

// -----

func.func @attention_c24_lse(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf16>,
    %v: memref<2x2x200x64xf16>,
    %o: memref<4x2x8x300x64xf32>) {
  // expected-error @below {{expected 'lse' with 'kv_splits', since partial results are merged by it, got none}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x200x64xf16>, memref<2x2x200x64xf16>)
    outs(%o : memref<4x2x8x300x64xf32>)
    {kv_splits = 4 : i64}
  return
}

// -----

func.func @attention_c24_extent(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf16>,
    %v: memref<2x2x200x64xf16>,
    %o: memref<4x2x8x300x64xf32>,
    %lse: memref<4x2x8x300xf32>) {
  // expected-error @below {{expected dimension 0 of 'o' to be 'kv_splits' = 3, got 4}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x200x64xf16>, memref<2x2x200x64xf16>)
    outs(%o, %lse : memref<4x2x8x300x64xf32>, memref<4x2x8x300xf32>)
    {kv_splits = 3 : i64}
  return
}

// -----

func.func @attention_c24_type(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf16>,
    %v: memref<2x2x200x64xf16>,
    %o: memref<4x2x8x300x64xf64>,
    %lse: memref<4x2x8x300xf32>) {
  // expected-error @below {{expected partial results of type f32, bf16 or f16, got 'f64'}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x200x64xf16>, memref<2x2x200x64xf16>)
    outs(%o, %lse : memref<4x2x8x300x64xf64>, memref<4x2x8x300xf32>)
    {kv_splits = 4 : i64}
  return
}

// -----

func.func @attention_c48(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf16>,
    %v: memref<2x2x200x64xf16>,
    %o: memref<4x2x8x300x64xf16>,
    %lse: memref<4x2x8x300xf32>) {
  // expected-error @below {{expected 'out_scales' exactly with partial results of type f16, got none and partial results of type 'f16'}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x200x64xf16>, memref<2x2x200x64xf16>)
    outs(%o, %lse : memref<4x2x8x300x64xf16>, memref<4x2x8x300xf32>)
    {kv_splits = 4 : i64}
  return
}

// -----

func.func @attention_c25(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x1x200x64xf16>,
    %v: memref<2x1x200x64xf16>,
    %o: memref<2x8x300x64xf16>) {
  // expected-error @below {{expected 'rope_dim' in [0, 63], got 64}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x1x200x64xf16>, memref<2x1x200x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
    {rope_dim = 64 : i64}
  return
}

// -----

func.func @attention_c25_dv(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x1x200x64xf16>,
    %v: memref<2x1x200x64xf16>,
    %o: memref<2x8x300x64xf16>) {
  // expected-error @below {{expected the value dimension to be the head dimension less 'rope_dim', 48, got 64}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x1x200x64xf16>, memref<2x1x200x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
    {rope_dim = 16 : i64}
  return
}

// -----

func.func @attention_c25_heads(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf16>,
    %v: memref<2x2x200x48xf16>,
    %o: memref<2x8x300x48xf16>) {
  // expected-error @below {{expected one key head with 'rope_dim', got 2}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x200x64xf16>, memref<2x2x200x48xf16>)
    outs(%o : memref<2x8x300x48xf16>)
    {rope_dim = 16 : i64}
  return
}

// -----

func.func @attention_c26(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf16>,
    %v: memref<2x2x200x64xf16>,
    %o: memref<2x8x300x64xf8E5M2>) {
  // expected-error @below {{expected 'out_scale' with an output of type 'f8E5M2', got none}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x200x64xf16>, memref<2x2x200x64xf16>)
    outs(%o : memref<2x8x300x64xf8E5M2>)
  return
}

// -----

func.func @attention_c26_wide(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf16>,
    %v: memref<2x2x200x64xf16>,
    %o: memref<2x8x300x64xf16>) {
  // expected-error @below {{expected 'out_scale' only with an 8-bit output, got an output of type 'f16'}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x200x64xf16>, memref<2x2x200x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
    {out_scale = 2.0 : f32}
  return
}

// -----

func.func @attention_c26_sign(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf16>,
    %v: memref<2x2x200x64xf16>,
    %o: memref<2x8x300x64xf8E5M2>) {
  // expected-error @below {{expected a finite 'out_scale' above zero, got -2}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x200x64xf16>, memref<2x2x200x64xf16>)
    outs(%o : memref<2x8x300x64xf8E5M2>)
    {out_scale = -2.0 : f32}
  return
}

// -----

func.func @attention_c30(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf16>,
    %v: memref<2x2x200x64xf16>,
    %o: memref<2x8x300x64xf16>) {
  // expected-error @below {{expected window bounds below 2^31, got left = 2147483648 and right = 0}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x200x64xf16>, memref<2x2x200x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
    {mask = #attn.mask<kind = window, left = 2147483648, right = 0>}
  return
}

// -----

// expected-error @below {{expected a window with at least one bound, got none}}
func.func private @attention_c30_unbounded() attributes {m = #attn.mask<kind = window>}

// -----

// expected-error @below {{expected bounds with a window only, got left = 3 and right = -1 with causal}}
func.func private @attention_c30_causal() attributes {m = #attn.mask<kind = causal, left = 3>}

// -----

func.func @attention_c36(%q: memref<2x8x300x64xf16>, %o: memref<2x8x300x64xf16>) {
  // expected-error @below {{expected 'kernel' to be letters, digits and underscores that begin with no digit, got "8fwd"}}
  attn.attention ins(%q, %q, %q : memref<2x8x300x64xf16>, memref<2x8x300x64xf16>, memref<2x8x300x64xf16>)
                 outs(%o : memref<2x8x300x64xf16>) {kernel = "8fwd"}
  return
}

// -----

func.func @attention_c39(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf16>,
    %o: memref<3x2x8x300x64xf32>,
    %lse: memref<3x2x8x300xf32>) {
  // expected-error @below {{expected 'run_keys' of at least 1, got 0}}
  attn.attention ins(%q, %k, %k : memref<2x8x300x64xf16>, memref<2x2x200x64xf16>, memref<2x2x200x64xf16>)
    outs(%o, %lse : memref<3x2x8x300x64xf32>, memref<3x2x8x300xf32>)
    {kv_splits = 3 : i64, run_keys = 0 : i64}
  return
}

// -----

func.func @attention_c39_splits(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf16>,
    %o: memref<3x2x8x300x64xf32>,
    %lse: memref<3x2x8x300xf32>) {
  // expected-error @below {{expected 'kv_splits' of at least 4 for 200 keys in runs of 64, got 3}}
  attn.attention ins(%q, %k, %k : memref<2x8x300x64xf16>, memref<2x2x200x64xf16>, memref<2x2x200x64xf16>)
    outs(%o, %lse : memref<3x2x8x300x64xf32>, memref<3x2x8x300xf32>)
    {kv_splits = 3 : i64, run_keys = 64 : i64}
  return
}

// -----

func.func @attention_c39_pages(
    %q: memref<2x8x1x64xf16>,
    %k: memref<50x2x16x64xf16>,
    %o: memref<3x2x8x1x64xf32>,
    %lse: memref<3x2x8x1xf32>,
    %t: memref<2x13xi32>) {
  // expected-error @below {{expected 'kv_splits' of at least 4 for 208 keys in runs of 64, got 3}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x64xf16>, memref<50x2x16x64xf16>, memref<50x2x16x64xf16>)
    outs(%o, %lse : memref<3x2x8x1x64xf32>, memref<3x2x8x1xf32>)
    pages(%t : memref<2x13xi32>)
    {kv_splits = 3 : i64, page_size = 16 : i64, run_keys = 64 : i64}
  return
}

// -----

func.func @attention_c39_alone(%q: memref<2x8x300x64xf16>, %k: memref<2x2x200x64xf16>) {
  // expected-error @below {{expected 'kv_splits' beside 'run_keys', which says how many runs there are, got none}}
  attn.attention ins(%q, %k, %k : memref<2x8x300x64xf16>, memref<2x2x200x64xf16>, memref<2x2x200x64xf16>)
    outs(%q : memref<2x8x300x64xf16>)
    {run_keys = 64 : i64}
  return
}

// -----

func.func @least_rope_dim(
    %q: memref<2x8x300x64xf16>, %k: memref<2x1x200x64xf16>, %v: memref<2x1x200x64xf16>,
    %o: memref<2x8x300x64xf16>) {
  // expected-error @below {{expected 'rope_dim' in [0, 63], got -9223372036854775808}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x1x200x64xf16>, memref<2x1x200x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
    {rope_dim = 9223372036854775808 : i64}
  return
}
