// RUN: attn-opt %s -split-input-file -verify-diagnostics

// Lists of blocks that attn.attention refuses. Functions are named after the
// constraint in docs/spec.md.

func.func @attention_c54(
    %q: memref<1x8x256x64xf16>,
    %k: memref<1x2x512x64xf16>,
    %o: memref<1x8x256x64xf16>,
    %c: memref<1x8x2x2xi32>,
    %x: memref<1x8x2x4xi32>) {
  // expected-error @below {{expected all of 'block_counts', 'block_indices', 'block_rows' and 'block_keys' or none, got some}}
  attn.attention ins(%q, %k, %k : memref<1x8x256x64xf16>, memref<1x2x512x64xf16>, memref<1x2x512x64xf16>)
    outs(%o : memref<1x8x256x64xf16>)
    blocks(%c, %x : memref<1x8x2x2xi32>, memref<1x8x2x4xi32>)
    {block_rows = 128 : i64}
  return
}

// -----

func.func @attention_c54_operands(
    %q: memref<1x8x256x64xf16>,
    %k: memref<1x2x512x64xf16>,
    %o: memref<1x8x256x64xf16>,
    %c: memref<1x8x2x2xi32>,
    %x: memref<1x8x2x4xi32>) {
  // expected-error @below {{expected all of 'block_counts', 'block_indices', 'block_rows' and 'block_keys' or none, got some}}
  attn.attention ins(%q, %k, %k : memref<1x8x256x64xf16>, memref<1x2x512x64xf16>, memref<1x2x512x64xf16>)
    outs(%o : memref<1x8x256x64xf16>)
    {block_rows = 128 : i64, block_keys = 128 : i64}
  return
}

// -----

func.func @attention_c54_type(
    %q: memref<1x8x256x64xf16>,
    %k: memref<1x2x512x64xf16>,
    %o: memref<1x8x256x64xf16>,
    %c: memref<1x8x2x2xi32>,
    %x: memref<1x8x2x4xi64>) {
  // expected-error @below {{expected 'block_indices' of type i32, got 'i64'}}
  attn.attention ins(%q, %k, %k : memref<1x8x256x64xf16>, memref<1x2x512x64xf16>, memref<1x2x512x64xf16>)
    outs(%o : memref<1x8x256x64xf16>)
    blocks(%c, %x : memref<1x8x2x2xi32>, memref<1x8x2x4xi64>)
    {block_rows = 128 : i64, block_keys = 128 : i64}
  return
}

// -----

func.func @attention_c54_rank(
    %q: memref<1x8x256x64xf16>,
    %k: memref<1x2x512x64xf16>,
    %o: memref<1x8x256x64xf16>,
    %c: memref<1x8x2xi32>,
    %x: memref<1x8x2x4xi32>) {
  // expected-error @below {{expected 'block_counts' of rank 4, got 'memref<1x8x2xi32>'}}
  attn.attention ins(%q, %k, %k : memref<1x8x256x64xf16>, memref<1x2x512x64xf16>, memref<1x2x512x64xf16>)
    outs(%o : memref<1x8x256x64xf16>)
    blocks(%c, %x : memref<1x8x2xi32>, memref<1x8x2x4xi32>)
    {block_rows = 128 : i64, block_keys = 128 : i64}
  return
}

// -----

func.func @attention_c54_size(
    %q: memref<1x8x256x64xf16>,
    %k: memref<1x2x512x64xf16>,
    %o: memref<1x8x256x64xf16>,
    %c: memref<1x8x2x2xi32>,
    %x: memref<1x8x2x4xi32>) {
  // expected-error @below {{expected 'block_rows' in [1, 2^31), got 0}}
  attn.attention ins(%q, %k, %k : memref<1x8x256x64xf16>, memref<1x2x512x64xf16>, memref<1x2x512x64xf16>)
    outs(%o : memref<1x8x256x64xf16>)
    blocks(%c, %x : memref<1x8x2x2xi32>, memref<1x8x2x4xi32>)
    {block_rows = 0 : i64, block_keys = 128 : i64}
  return
}

// -----

func.func @attention_c55_keys(
    %q: memref<1x8x256x64xf16>,
    %k: memref<1x2x500x64xf16>,
    %o: memref<1x8x256x64xf16>,
    %c: memref<1x8x2x2xi32>,
    %x: memref<1x8x2x4xi32>) {
  // expected-error @below {{expected keys in whole blocks of 'block_keys' = 128, got 500}}
  attn.attention ins(%q, %k, %k : memref<1x8x256x64xf16>, memref<1x2x500x64xf16>, memref<1x2x500x64xf16>)
    outs(%o : memref<1x8x256x64xf16>)
    blocks(%c, %x : memref<1x8x2x2xi32>, memref<1x8x2x4xi32>)
    {block_rows = 128 : i64, block_keys = 128 : i64}
  return
}

// -----

func.func @attention_c55_heads(
    %q: memref<1x8x256x64xf16>,
    %k: memref<1x2x512x64xf16>,
    %o: memref<1x8x256x64xf16>,
    %c: memref<1x1x2x2xi32>,
    %x: memref<1x8x2x4xi32>) {
  // expected-error @below {{expected dimension 1 of 'block_counts' to be 8, got 1}}
  attn.attention ins(%q, %k, %k : memref<1x8x256x64xf16>, memref<1x2x512x64xf16>, memref<1x2x512x64xf16>)
    outs(%o : memref<1x8x256x64xf16>)
    blocks(%c, %x : memref<1x1x2x2xi32>, memref<1x8x2x4xi32>)
    {block_rows = 128 : i64, block_keys = 128 : i64}
  return
}

// -----

func.func @attention_c55_lists(
    %q: memref<1x8x256x64xf16>,
    %k: memref<1x2x512x64xf16>,
    %o: memref<1x8x256x64xf16>,
    %c: memref<1x8x2x2xi32>,
    %x: memref<1x8x4x4xi32>) {
  // expected-error @below {{expected dimension 2 of 'block_indices' to be 2, got 4}}
  attn.attention ins(%q, %k, %k : memref<1x8x256x64xf16>, memref<1x2x512x64xf16>, memref<1x2x512x64xf16>)
    outs(%o : memref<1x8x256x64xf16>)
    blocks(%c, %x : memref<1x8x2x2xi32>, memref<1x8x4x4xi32>)
    {block_rows = 128 : i64, block_keys = 128 : i64}
  return
}

// -----

func.func @attention_c55_counts(
    %q: memref<1x8x256x64xf16>,
    %k: memref<1x2x512x64xf16>,
    %o: memref<1x8x256x64xf16>,
    %c: memref<1x8x2x3xi32>,
    %x: memref<1x8x2x4xi32>) {
  // expected-error @below {{expected two numbers in 'block_counts' for each list, got 3}}
  attn.attention ins(%q, %k, %k : memref<1x8x256x64xf16>, memref<1x2x512x64xf16>, memref<1x2x512x64xf16>)
    outs(%o : memref<1x8x256x64xf16>)
    blocks(%c, %x : memref<1x8x2x3xi32>, memref<1x8x2x4xi32>)
    {block_rows = 128 : i64, block_keys = 128 : i64}
  return
}

// -----

func.func @attention_c56_mask(
    %q: memref<1x8x256x64xf16>,
    %k: memref<1x2x512x64xf16>,
    %o: memref<1x8x256x64xf16>,
    %c: memref<1x8x2x2xi32>,
    %x: memref<1x8x2x4xi32>) {
  // expected-error @below {{expected no mask with lists of blocks, whose 'mask_mod' says what they leave, got 'causal'}}
  attn.attention ins(%q, %k, %k : memref<1x8x256x64xf16>, memref<1x2x512x64xf16>, memref<1x2x512x64xf16>)
    outs(%o : memref<1x8x256x64xf16>)
    blocks(%c, %x : memref<1x8x2x2xi32>, memref<1x8x2x4xi32>)
    {block_rows = 128 : i64, block_keys = 128 : i64, mask = #attn.mask<kind = causal>}
  return
}

// -----

func.func @attention_c56_lengths(
    %q: memref<1x8x256x64xf16>,
    %k: memref<1x2x512x64xf16>,
    %o: memref<1x8x256x64xf16>,
    %c: memref<1x8x2x2xi32>,
    %x: memref<1x8x2x4xi32>,
    %n: memref<1xi32>) {
  // expected-error @below {{expected no lists of blocks beside 'kv_lengths'}}
  attn.attention ins(%q, %k, %k : memref<1x8x256x64xf16>, memref<1x2x512x64xf16>, memref<1x2x512x64xf16>)
    outs(%o : memref<1x8x256x64xf16>)
    kv_lengths(%n : memref<1xi32>)
    blocks(%c, %x : memref<1x8x2x2xi32>, memref<1x8x2x4xi32>)
    {block_rows = 128 : i64, block_keys = 128 : i64}
  return
}

// -----

func.func @attention_c56_range(
    %q: memref<1x8x256x64xf16>,
    %k: memref<1x2x512x64xf16>,
    %o: memref<1x8x256x64xf16>,
    %c: memref<1x8x2x2xi32>,
    %x: memref<1x8x2x4xi32>) {
  // expected-error @below {{expected no lists of blocks beside 'key_range'}}
  attn.attention ins(%q, %k, %k : memref<1x8x256x64xf16>, memref<1x2x512x64xf16>, memref<1x2x512x64xf16>)
    outs(%o : memref<1x8x256x64xf16>)
    blocks(%c, %x : memref<1x8x2x2xi32>, memref<1x8x2x4xi32>) mask_mod {
  ^bb0(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %keep = arith.cmpi ne, %i, %j : i32
    attn.yield %keep : i1
  } key_range {
  ^bb0(%b: i32, %h0: i32, %h1: i32, %i0: i32, %i1: i32):
    attn.yield %i0, %i1 : i32, i32
  }
    {block_rows = 128 : i64, block_keys = 128 : i64}
  return
}
