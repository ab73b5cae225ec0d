// RUN: attn-opt %s -split-input-file -verify-diagnostics

// What attn.attention requires of scales of the output, and of rotated columns of
// queries apart. Functions are named after the constraint in docs/spec.md.

func.func @attention_c45_group(
    %q: memref<2x8x1x128xf16>, %k: memref<2x2x300x128xf16>, %o: memref<2x8x1x128xf8E4M3FN>, %s: memref<2x8x1x1xf32>) {
  // expected-error @below {{expected both 'out_scales' and 'out_group' or neither, got one}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x128xf16>, memref<2x2x300x128xf16>, memref<2x2x300x128xf16>)
    outs(%o : memref<2x8x1x128xf8E4M3FN>) out_scales(%s : memref<2x8x1x1xf32>) {out_scale = 2.0 : f32}
  return
}

// -----

func.func @attention_c45_bits(
    %q: memref<2x8x1x128xf16>, %k: memref<2x2x300x128xf16>, %o: memref<2x8x1x128xf16>, %s: memref<2x8x1x1xf32>) {
  // expected-error @below {{expected 'out_scales' only with an 8-bit output, got an output of type 'f16'}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x128xf16>, memref<2x2x300x128xf16>, memref<2x2x300x128xf16>)
    outs(%o : memref<2x8x1x128xf16>) out_scales(%s : memref<2x8x1x1xf32>) {out_group = 128}
  return
}

// -----

func.func @attention_c45_both(
    %q: memref<2x8x1x128xf16>, %k: memref<2x2x300x128xf16>, %o: memref<2x8x1x128xf8E4M3FN>, %s: memref<2x8x1x1xf32>) {
  // expected-error @below {{expected 'out_scale' or 'out_scales', got both}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x128xf16>, memref<2x2x300x128xf16>, memref<2x2x300x128xf16>)
    outs(%o : memref<2x8x1x128xf8E4M3FN>) out_scales(%s : memref<2x8x1x1xf32>) {out_group = 128, out_scale = 2.0 : f32}
  return
}

// -----

func.func @attention_c45_type(
    %q: memref<2x8x1x128xf16>, %k: memref<2x2x300x128xf16>, %o: memref<2x8x1x128xf8E4M3FN>, %s: memref<2x8x1x1xf16>) {
  // expected-error @below {{expected 'o_scales' of type f32 or f8E8M0FNU, got 'f16'}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x128xf16>, memref<2x2x300x128xf16>, memref<2x2x300x128xf16>)
    outs(%o : memref<2x8x1x128xf8E4M3FN>) out_scales(%s : memref<2x8x1x1xf16>) {out_group = 128}
  return
}

// -----

func.func @attention_c45_type_of_floats(
    %q: memref<2x8x70x64xf16>, %k: memref<2x2x300x64xf16>, %o: memref<2x8x70x64xf8E4M3FN>, %s: memref<2x8x70x2xf8E4M3FN>) {
  // expected-error @below {{expected 'o_scales' of type f32 or f8E8M0FNU, got 'f8E4M3FN'}}
  attn.attention ins(%q, %k, %k : memref<2x8x70x64xf16>, memref<2x2x300x64xf16>, memref<2x2x300x64xf16>)
    outs(%o : memref<2x8x70x64xf8E4M3FN>) out_scales(%s : memref<2x8x70x2xf8E4M3FN>) {out_group = 32}
  return
}

// -----

func.func @attention_c46_bits_in_tiles(
    %q: memref<2x8x70x64xf16>, %k: memref<2x2x300x64xf16>, %o: memref<2x8x70x64xf8E4M3FN>, %s: memref<256x16xf32>) {
  // expected-error @below {{expected 'o_scales' of 8 bits in tiles, got 'f32'}}
  attn.attention ins(%q, %k, %k : memref<2x8x70x64xf16>, memref<2x2x300x64xf16>, memref<2x2x300x64xf16>)
    outs(%o : memref<2x8x70x64xf8E4M3FN>) out_scales(%s : memref<256x16xf32>) {out_group = 32}
  return
}

// -----

func.func @attention_c46_rows_in_tiles(
    %q: memref<2x8x70x64xf16>, %k: memref<2x2x300x64xf16>, %o: memref<2x8x70x64xf8E4M3FN>, %s: memref<140x16xf8E8M0FNU>) {
  // expected-error @below {{expected 'o_scales' padded to tiles of 128 x 4, 256 rows, got 140}}
  attn.attention ins(%q, %k, %k : memref<2x8x70x64xf16>, memref<2x2x300x64xf16>, memref<2x2x300x64xf16>)
    outs(%o : memref<2x8x70x64xf8E4M3FN>) out_scales(%s : memref<140x16xf8E8M0FNU>) {out_group = 32}
  return
}

// -----

func.func @attention_c46_columns_in_tiles(
    %q: memref<2x8x70x64xf16>, %k: memref<2x2x300x64xf16>, %o: memref<2x8x70x64xf8E4M3FN>, %s: memref<256x12xf8E8M0FNU>) {
  // expected-error @below {{expected 'o_scales' padded to tiles of 128 x 4, 16 columns, got 12}}
  attn.attention ins(%q, %k, %k : memref<2x8x70x64xf16>, memref<2x2x300x64xf16>, memref<2x2x300x64xf16>)
    outs(%o : memref<2x8x70x64xf8E4M3FN>) out_scales(%s : memref<256x12xf8E8M0FNU>) {out_group = 32}
  return
}

// -----

func.func @attention_c46_gaps_in_tiles(
    %q: memref<2x8x70x64xf16>, %k: memref<2x2x300x64xf16>, %o: memref<2x8x70x64xf8E4M3FN>, %s: memref<256x16xf8E8M0FNU, strided<[32, 1]>>) {
  // expected-error @below {{expected rows of 'o_scales' without gaps in tiles, 16 elements apart, got 32}}
  attn.attention ins(%q, %k, %k : memref<2x8x70x64xf16>, memref<2x2x300x64xf16>, memref<2x2x300x64xf16>)
    outs(%o : memref<2x8x70x64xf8E4M3FN>) out_scales(%s : memref<256x16xf8E8M0FNU, strided<[32, 1]>>) {out_group = 32}
  return
}

// -----

func.func @attention_c53_rows_in_tiles(
    %q: memref<2x8x70x64xf16>, %k: memref<2x2x300x64xf16>, %o: memref<2x8x70x32xi8>, %s: memref<140x32xf8E4M3FN>) {
  // expected-error @below {{expected 'o_scales' padded to tiles of 128 x 4, 256 rows, got 140}}
  attn.attention ins(%q, %k, %k : memref<2x8x70x64xf16>, memref<2x2x300x64xf16>, memref<2x2x300x64xf16>)
    outs(%o : memref<2x8x70x32xi8>) out_scales(%s : memref<140x32xf8E4M3FN>) {out_group = 16}
  return
}

// -----

func.func @attention_c46_divides(
    %q: memref<2x8x1x128xf16>, %k: memref<2x2x300x128xf16>, %o: memref<2x8x1x128xf8E4M3FN>, %s: memref<2x8x1x1xf32>) {
  // expected-error @below {{expected 'out_group' to divide the 128 columns of 'o', got 96}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x128xf16>, memref<2x2x300x128xf16>, memref<2x2x300x128xf16>)
    outs(%o : memref<2x8x1x128xf8E4M3FN>) out_scales(%s : memref<2x8x1x1xf32>) {out_group = 96}
  return
}

// -----

func.func @attention_c46_columns(
    %q: memref<2x8x1x128xf16>, %k: memref<2x2x300x128xf16>, %o: memref<2x8x1x128xf8E4M3FN>, %s: memref<2x8x1x1xf32>) {
  // expected-error @below {{expected 2 columns of 'o_scales', one for each 64 of 'o', got 1}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x128xf16>, memref<2x2x300x128xf16>, memref<2x2x300x128xf16>)
    outs(%o : memref<2x8x1x128xf8E4M3FN>) out_scales(%s : memref<2x8x1x1xf32>) {out_group = 64}
  return
}

// -----

func.func @attention_c46_heads(
    // expected-note @below {{dimension 1 of 'o' is 8}}
    %q: memref<2x8x1x128xf16>, %k: memref<2x2x300x128xf16>, %o: memref<2x8x1x128xf8E4M3FN>, %s: memref<2x4x1x1xf32>) {
  // expected-error @below {{expected dimension 1 of 'o_scales' (query heads) to be 8, got 4}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x128xf16>, memref<2x2x300x128xf16>, memref<2x2x300x128xf16>)
    outs(%o : memref<2x8x1x128xf8E4M3FN>) out_scales(%s : memref<2x4x1x1xf32>) {out_group = 128}
  return
}

// -----

func.func @attention_c48_partial(
    %q: memref<2x8x1x128xf16>, %k: memref<2x2x300x128xf16>, %o: memref<3x2x8x1x128xf32>, %lse: memref<3x2x8x1xf32>,
    %s: memref<3x2x8x1x1xf32>) {
  // expected-error @below {{expected 'out_scales' exactly with partial results of type f16, got them and partial results of type 'f32'}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x128xf16>, memref<2x2x300x128xf16>, memref<2x2x300x128xf16>)
    outs(%o, %lse : memref<3x2x8x1x128xf32>, memref<3x2x8x1xf32>) out_scales(%s : memref<3x2x8x1x1xf32>)
    {out_group = 128, kv_splits = 3}
  return
}

// -----

func.func @attention_c48_group(
    %q: memref<2x8x1x128xf16>, %k: memref<2x2x300x128xf16>, %o: memref<3x2x8x1x128xf16>, %lse: memref<3x2x8x1xf32>,
    %s: memref<3x2x8x1x1xf32>) {
  // expected-error @below {{expected no 'out_group' with partial results}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x128xf16>, memref<2x2x300x128xf16>, memref<2x2x300x128xf16>)
    outs(%o, %lse : memref<3x2x8x1x128xf16>, memref<3x2x8x1xf32>) out_scales(%s : memref<3x2x8x1x1xf32>)
    {out_group = 128, kv_splits = 3}
  return
}

// -----

func.func @attention_c48_type(
    %q: memref<2x8x1x128xf16>, %k: memref<2x2x300x128xf16>, %o: memref<3x2x8x1x128xf16>, %lse: memref<3x2x8x1xf32>,
    %s: memref<3x2x8x1x1xf16>) {
  // expected-error @below {{expected 'o_scales' of type f32, got 'f16'}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x128xf16>, memref<2x2x300x128xf16>, memref<2x2x300x128xf16>)
    outs(%o, %lse : memref<3x2x8x1x128xf16>, memref<3x2x8x1xf32>) out_scales(%s : memref<3x2x8x1x1xf16>)
    {kv_splits = 3}
  return
}

// -----

func.func @attention_c48_extents(
    // expected-note @below {{dimension 2 of 'o' is 8}}
    %q: memref<2x8x1x128xf16>, %k: memref<2x2x300x128xf16>, %o: memref<3x2x8x1x128xf16>, %lse: memref<3x2x8x1xf32>,
    %s: memref<3x2x4x1x1xf32>) {
  // expected-error @below {{expected dimension 2 of 'o_scales' (query heads) to be 8, got 4}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x128xf16>, memref<2x2x300x128xf16>, memref<2x2x300x128xf16>)
    outs(%o, %lse : memref<3x2x8x1x128xf16>, memref<3x2x8x1xf32>) out_scales(%s : memref<3x2x4x1x1xf32>)
    {kv_splits = 3}
  return
}

// -----

func.func @attention_c48_groups(
    %q: memref<2x8x1x128xf16>, %k: memref<2x2x300x128xf16>, %o: memref<3x2x8x1x128xf16>, %lse: memref<3x2x8x1xf32>,
    %s: memref<3x2x8x1x3xf32>) {
  // expected-error @below {{expected a number of groups in 'o_scales' that divides the 128 columns of 'o', got 3}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x128xf16>, memref<2x2x300x128xf16>, memref<2x2x300x128xf16>)
    outs(%o, %lse : memref<3x2x8x1x128xf16>, memref<3x2x8x1xf32>) out_scales(%s : memref<3x2x8x1x3xf32>)
    {kv_splits = 3}
  return
}

// -----

func.func @attention_c47_type(
    %q: memref<2x8x1x128xf16>, %o: memref<2x8x1x128xf16>, %k: memref<2x1x300x128xf16>, %r: memref<2x1x300x64xf16>, %s: memref<2x8x1x64xbf16>) {
  // expected-error @below {{expected 'q_rope' of the type of 'q', 'f16', got 'bf16'}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x128xf16>, memref<2x1x300x128xf16>, memref<2x1x300x128xf16>)
    outs(%o : memref<2x8x1x128xf16>) rope(%r, %s : memref<2x1x300x64xf16>, memref<2x8x1x64xbf16>) {rope_dim = 64}
  return
}

// -----

func.func @attention_c47_columns(
    %q: memref<2x8x1x128xf16>, %o: memref<2x8x1x128xf16>, %k: memref<2x1x300x128xf16>, %r: memref<2x1x300x64xf16>, %s: memref<2x8x1x32xf16>) {
  // expected-error @below {{expected 'q_rope' of 'rope_dim' = 64 columns, got 32}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x128xf16>, memref<2x1x300x128xf16>, memref<2x1x300x128xf16>)
    outs(%o : memref<2x8x1x128xf16>) rope(%r, %s : memref<2x1x300x64xf16>, memref<2x8x1x32xf16>) {rope_dim = 64}
  return
}

// -----

func.func @attention_c47_queries(
    %q: memref<2x8x1x192xf16>, %o: memref<2x8x1x128xf16>, %k: memref<2x1x300x128xf16>, %r: memref<2x1x300x64xf16>, %s: memref<2x8x1x64xf16>) {
  // expected-error @below {{expected the value dimension to be the head dimension less 'rope_dim', 192, got 128}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x192xf16>, memref<2x1x300x128xf16>, memref<2x1x300x128xf16>)
    outs(%o : memref<2x8x1x128xf16>) rope(%r, %s : memref<2x1x300x64xf16>, memref<2x8x1x64xf16>) {rope_dim = 64}
  return
}

// -----

func.func @attention_c47_alone(%q: memref<2x8x1x128xf16>, %k: memref<2x1x300x128xf16>, %s: memref<2x8x1x64xf16>) {
  // expected-error @below {{expected 'q_rope' only with 'k_rope'}}
  "attn.attention"(%q, %k, %k, %q, %s) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0>}> ({}, {})
    : (memref<2x8x1x128xf16>, memref<2x1x300x128xf16>, memref<2x1x300x128xf16>, memref<2x8x1x128xf16>, memref<2x8x1x64xf16>) -> ()
  return
}
