// RUN: attn-opt %s -split-input-file -verify-diagnostics

// One case for each message of the verifier, named after the constraint in
// docs/spec.md.

func.func @attention_c1(
    %q: memref<8x300x64xf16>,
    %k: memref<2x2x200x64xf16>,
    %v: memref<2x2x200x64xf16>,
    %o: memref<2x8x300x64xf16>) {
  // expected-error @below {{expected 'q' of rank 4, got 'memref<8x300x64xf16>'}}
  attn.attention ins(%q, %k, %v : memref<8x300x64xf16>, memref<2x2x200x64xf16>, memref<2x2x200x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
  return
}

// -----

func.func @attention_c1_lse(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf16>,
    %v: memref<2x2x200x64xf16>,
    %o: memref<2x8x300x64xf16>,
    %lse: memref<2x8x300x1xf32>) {
  // expected-error @below {{expected 'lse' of rank 3, got 'memref<2x8x300x1xf32>'}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x200x64xf16>, memref<2x2x200x64xf16>)
    outs(%o, %lse : memref<2x8x300x64xf16>, memref<2x8x300x1xf32>)
  return
}

// -----

func.func @attention_c1_split(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf16>,
    %v: memref<2x2x200x64xf16>,
    %o: memref<2x8x300x64xf32>,
    %lse: memref<2x2x8x300xf32>) {
  // expected-error @below {{expected 'o' of rank 5, got 'memref<2x8x300x64xf32>'}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x200x64xf16>, memref<2x2x200x64xf16>)
    outs(%o, %lse : memref<2x8x300x64xf32>, memref<2x2x8x300xf32>)
    {kv_splits = 2 : i64}
  return
}

// -----

func.func @attention_c2(
    // expected-note @below {{'q' has type 'memref<2x8x300x64xf16>'}}
    %q: memref<2x8x300x64xf16>,
    %k: tensor<2x2x200x64xf16>,
    %v: tensor<2x2x200x64xf16>,
    %o: memref<2x8x300x64xf16>) {
  // expected-error @below {{expected only tensors or only memrefs, got 'k' of type 'tensor<2x2x200x64xf16>'}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, tensor<2x2x200x64xf16>, tensor<2x2x200x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
  return
}

// -----

func.func @attention_c3(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf16, 3 : i64>,
    %v: memref<2x2x200x64xf16, 3 : i64>,
    %o: memref<2x8x300x64xf16>) {
  // expected-error @below {{expected 'k' in global memory, got memory space 3 : i64}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x200x64xf16, 3 : i64>, memref<2x2x200x64xf16, 3 : i64>)
    outs(%o : memref<2x8x300x64xf16>)
  return
}

// -----

func.func @attention_c3_encoding(
    %q: tensor<2x8x300x64xf16>,
    %k: tensor<2x8x300x64xf16>,
    %v: tensor<2x8x300x64xf16, #attn.auto>,
    %o: tensor<2x8x300x64xf16>) {
  // expected-error @below {{expected a tensor without encoding for 'v', got #attn.auto}}
  %r = attn.attention ins(%q, %k, %v : tensor<2x8x300x64xf16>, tensor<2x8x300x64xf16>, tensor<2x8x300x64xf16, #attn.auto>)
    outs(%o : tensor<2x8x300x64xf16>)
    -> tensor<2x8x300x64xf16>
  return
}

// -----

func.func @attention_c4(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf16, strided<[51200, 25600, 128, 2]>>,
    %v: memref<2x2x200x64xf16, strided<[51200, 25600, 128, 2]>>,
    %o: memref<2x8x300x64xf16>) {
  // expected-error @below {{expected innermost stride 1 for 'k', got 2}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x200x64xf16, strided<[51200, 25600, 128, 2]>>, memref<2x2x200x64xf16, strided<[51200, 25600, 128, 2]>>)
    outs(%o : memref<2x8x300x64xf16>)
  return
}

// -----

func.func @attention_c4_values(
    %q: memref<2x8x304x64xf8E4M3FN>,
    %v: memref<2x2x208x64xf8E4M3FN, strided<[1, 128, 256, 2]>>,
    %o: memref<2x8x304x64xbf16>) {
  // expected-error @below {{expected innermost stride 1 for 'v', got 2}}
  attn.attention ins(%q, %q, %v : memref<2x8x304x64xf8E4M3FN>, memref<2x8x304x64xf8E4M3FN>, memref<2x2x208x64xf8E4M3FN, strided<[1, 128, 256, 2]>>)
    outs(%o : memref<2x8x304x64xbf16>)
  return
}

// -----

// Only v may have its rows contiguous.
func.func @attention_c4_keys(
    %q: memref<2x8x304x64xf8E4M3FN>,
    %k: memref<2x2x208x64xf8E4M3FN, strided<[26624, 13312, 1, 208]>>,
    %o: memref<2x8x304x64xbf16>) {
  // expected-error @below {{expected innermost stride 1 for 'k', got 208}}
  attn.attention ins(%q, %k, %k : memref<2x8x304x64xf8E4M3FN>, memref<2x2x208x64xf8E4M3FN, strided<[26624, 13312, 1, 208]>>, memref<2x2x208x64xf8E4M3FN, strided<[26624, 13312, 1, 208]>>)
    outs(%o : memref<2x8x304x64xbf16>)
  return
}

// -----

func.func @attention_c4_latent(
    %q: memref<2x8x1x576xbf16>, %k: memref<2x1x208x576xbf16>,
    %v: memref<2x1x208x512xbf16, strided<[106496, 106496, 1, 208]>>,
    %o: memref<2x8x1x512xbf16>) {
  // expected-error @below {{expected innermost stride 1 for 'v', got 208}}
  attn.attention ins(%q, %k, %v : memref<2x8x1x576xbf16>, memref<2x1x208x576xbf16>, memref<2x1x208x512xbf16, strided<[106496, 106496, 1, 208]>>)
    outs(%o : memref<2x8x1x512xbf16>) {rope_dim = 64 : i64}
  return
}

// -----

func.func @attention_c4_dynamic(
    %q: memref<2x8x300x64xf16, strided<[?, ?, ?, ?]>>,
    %k: memref<2x2x200x64xf16>,
    %v: memref<2x2x200x64xf16>,
    %o: memref<2x8x300x64xf16>) {
  // expected-error @below {{expected innermost stride 1 for 'q', got dynamic}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16, strided<[?, ?, ?, ?]>>, memref<2x2x200x64xf16>, memref<2x2x200x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
  return
}

// -----

func.func @attention_c4_map(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf16>,
    %v: memref<2x2x200x64xf16, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2 floordiv 2, d3)>>,
    %o: memref<2x8x300x64xf16>) {
  // expected-error @below {{expected 'v' to have strides, got 'memref<2x2x200x64xf16, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2 floordiv 2, d3)>>'}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x200x64xf16>, memref<2x2x200x64xf16, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2 floordiv 2, d3)>>)
    outs(%o : memref<2x8x300x64xf16>)
  return
}

// -----

func.func @attention_c5(
    %q: memref<2x8x300x64xf32>,
    %k: memref<2x2x200x64xf16>,
    %v: memref<2x2x200x64xf16>,
    %o: memref<2x8x300x64xf32>) {
  // expected-error @below {{expected 'q' of type f16, bf16, f8E4M3FN or f8E5M2, got 'f32'}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf32>, memref<2x2x200x64xf16>, memref<2x2x200x64xf16>)
    outs(%o : memref<2x8x300x64xf32>)
  return
}

// -----

func.func @attention_c5_mixed(
    // expected-note @below {{'q' stands here}}
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xbf16>,
    %v: memref<2x2x200x64xbf16>,
    %o: memref<2x8x300x64xf16>) {
  // expected-error @below {{expected 'k' of the type of 'q', 'f16', got 'bf16'}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x200x64xbf16>, memref<2x2x200x64xbf16>)
    outs(%o : memref<2x8x300x64xf16>)
  return
}

// -----

func.func @attention_c6(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf16>,
    %v: memref<2x2x200x64xf16>,
    %o: memref<2x8x300x64xf64>) {
  // expected-error @below {{expected 'o' of type f16, bf16, f32, f8E4M3FN or f8E5M2, got 'f64'}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x200x64xf16>, memref<2x2x200x64xf16>)
    outs(%o : memref<2x8x300x64xf64>)
  return
}

// -----

func.func @attention_c7(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf16>,
    %v: memref<2x2x200x64xf16>,
    %o: memref<2x8x300x64xf16>,
    %lse: memref<2x8x300xf16>) {
  // expected-error @below {{expected 'lse' of type f32, got 'f16'}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x200x64xf16>, memref<2x2x200x64xf16>)
    outs(%o, %lse : memref<2x8x300x64xf16>, memref<2x8x300xf16>)
  return
}

// -----

func.func @attention_c7_sinks(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf16>,
    %v: memref<2x2x200x64xf16>,
    %o: memref<2x8x300x64xf16>,
    %sinks: memref<8xf16>) {
  // expected-error @below {{expected 'sinks' of type f32, got 'f16'}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x200x64xf16>, memref<2x2x200x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
    sinks(%sinks : memref<8xf16>)
  return
}

// -----

func.func @attention_c8(
    %q: memref<2x8x300x?xf16>,
    %k: memref<2x2x200x64xf16>,
    %v: memref<2x2x200x64xf16>,
    %o: memref<2x8x300x64xf16>) {
  // expected-error @below {{expected a head dimension that is static and at least 1 in 'q', got dynamic}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x?xf16>, memref<2x2x200x64xf16>, memref<2x2x200x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
  return
}

// -----

func.func @attention_c8_zero(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf16>,
    %v: memref<2x2x200x0xf16>,
    %o: memref<2x8x300x64xf16>) {
  // expected-error @below {{expected a head dimension that is static and at least 1 in 'v', got 0}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x200x64xf16>, memref<2x2x200x0xf16>)
    outs(%o : memref<2x8x300x64xf16>)
  return
}

// -----

func.func @attention_c9(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x3x200x64xf16>,
    %v: memref<2x3x200x64xf16>,
    %o: memref<2x8x300x64xf16>) {
  // expected-error @below {{expected the number of query heads to be a multiple of the number of key heads, got 8 and 3}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x3x200x64xf16>, memref<2x3x200x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
  return
}

// -----

func.func @attention_c9_zero(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x0x200x64xf16>,
    %v: memref<2x0x200x64xf16>,
    %o: memref<2x8x300x64xf16>) {
  // expected-error @below {{expected at least one head, got 8 query heads and 0 key heads}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x0x200x64xf16>, memref<2x0x200x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
  return
}

// -----

func.func @attention_c10(
    // expected-note @below {{dimension 0 of 'q' is 2}}
    %q: memref<2x8x300x64xf16>,
    %k: memref<3x2x200x64xf16>,
    %v: memref<3x2x200x64xf16>,
    %o: memref<2x8x300x64xf16>) {
  // expected-error @below {{expected dimension 0 of 'k' (batch) to be 2, got 3}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<3x2x200x64xf16>, memref<3x2x200x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
  return
}

// -----

func.func @attention_c10_pages(
    %q: memref<2x8x300x64xf16>,
    // expected-note @below {{dimension 0 of 'k' is 50}}
    %k: memref<50x2x16x64xf16>,
    %v: memref<51x2x16x64xf16>,
    %o: memref<2x8x300x64xf16>,
    %table: memref<2x16xi32>) {
  // expected-error @below {{expected dimension 0 of 'v' (pages) to be 50, got 51}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<50x2x16x64xf16>, memref<51x2x16x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
    pages(%table : memref<2x16xi32>)
    {page_size = 16 : i64}
  return
}

// -----

func.func @attention_c11(
    // expected-note @below {{dimension 1 of 'q' is 8}}
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf16>,
    %v: memref<2x2x200x64xf16>,
    %o: memref<2x4x300x64xf16>) {
  // expected-error @below {{expected dimension 1 of 'o' (query heads) to be 8, got 4}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x200x64xf16>, memref<2x2x200x64xf16>)
    outs(%o : memref<2x4x300x64xf16>)
  return
}

// -----

func.func @attention_c11_sinks(
    // expected-note @below {{dimension 1 of 'q' is 8}}
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf16>,
    %v: memref<2x2x200x64xf16>,
    %o: memref<2x8x300x64xf16>,
    %sinks: memref<2xf32>) {
  // expected-error @below {{expected dimension 0 of 'sinks' (query heads) to be 8, got 2}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x200x64xf16>, memref<2x2x200x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
    sinks(%sinks : memref<2xf32>)
  return
}

// -----

func.func @attention_c12(
    %q: memref<2x8x300x64xf16>,
    // expected-note @below {{dimension 1 of 'k' is 2}}
    %k: memref<2x2x200x64xf16>,
    %v: memref<2x4x200x64xf16>,
    %o: memref<2x8x300x64xf16>) {
  // expected-error @below {{expected dimension 1 of 'v' (key heads) to be 2, got 4}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x200x64xf16>, memref<2x4x200x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
  return
}

// -----

func.func @attention_c13(
    // expected-note @below {{dimension 2 of 'q' is 300}}
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf16>,
    %v: memref<2x2x200x64xf16>,
    %o: memref<2x8x300x64xf16>,
    %lse: memref<2x8x200xf32>) {
  // expected-error @below {{expected dimension 2 of 'lse' (queries) to be 300, got 200}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x200x64xf16>, memref<2x2x200x64xf16>)
    outs(%o, %lse : memref<2x8x300x64xf16>, memref<2x8x200xf32>)
  return
}

// -----

func.func @attention_c14(
    %q: memref<2x8x300x64xf16>,
    // expected-note @below {{dimension 2 of 'k' is 200}}
    %k: memref<2x2x200x64xf16>,
    %v: memref<2x2x201x64xf16>,
    %o: memref<2x8x300x64xf16>) {
  // expected-error @below {{expected dimension 2 of 'v' (keys) to be 200, got 201}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x200x64xf16>, memref<2x2x201x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
  return
}

// -----

func.func @attention_c15(
    // expected-note @below {{dimension 3 of 'q' is 64}}
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x128xf16>,
    %v: memref<2x2x200x128xf16>,
    %o: memref<2x8x300x64xf16>) {
  // expected-error @below {{expected dimension 3 of 'k' (head dimension) to be 64, got 128}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x200x128xf16>, memref<2x2x200x128xf16>)
    outs(%o : memref<2x8x300x64xf16>)
  return
}

// -----

func.func @attention_c16(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf16>,
    // expected-note @below {{dimension 3 of 'v' is 64}}
    %v: memref<2x2x200x64xf16>,
    %o: memref<2x8x300x32xf16>) {
  // expected-error @below {{expected dimension 3 of 'o' (value dimension) to be 64, got 32}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x200x64xf16>, memref<2x2x200x64xf16>)
    outs(%o : memref<2x8x300x32xf16>)
  return
}

// -----

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

func.func @attention_c19(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf16>,
    %v: memref<2x2x200x64xf16>,
    %o: memref<2x8x300x64xf16>,
    %sinks: memref<2x8xf32>) {
  // expected-error @below {{expected 'sinks' of rank 1, got 'memref<2x8xf32>'}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x200x64xf16>, memref<2x2x200x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
    sinks(%sinks : memref<2x8xf32>)
  return
}

// -----

func.func @attention_c20(%q: memref<1x8x82x64xf16>, %lengths: memref<4xi32>) {
  // expected-error @below {{expected both 'cu_seqlens_q' and 'cu_seqlens_k' or neither, got one}}
  "attn.attention"(%q, %q, %q, %q, %lengths) ({}, {}) {
    operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0>, max_seqlen_q = 64 : i64
  } : (memref<1x8x82x64xf16>, memref<1x8x82x64xf16>, memref<1x8x82x64xf16>, memref<1x8x82x64xf16>, memref<4xi32>) -> ()
  return
}

// -----

func.func @attention_c21(
    %q: memref<1x8x82x64xf16>,
    %k: memref<1x8x82x64xf16>,
    %v: memref<1x8x82x64xf16>,
    %o: memref<1x8x82x64xf16>,
    %a: memref<4xi64>,
    %b: memref<4xi64>) {
  // expected-error @below {{expected 'cu_seqlens_q' of type i32, got 'i64'}}
  attn.attention ins(%q, %k, %v : memref<1x8x82x64xf16>, memref<1x8x82x64xf16>, memref<1x8x82x64xf16>)
    outs(%o : memref<1x8x82x64xf16>)
    cu_seqlens(%a, %b : memref<4xi64>, memref<4xi64>)
    {max_seqlen_q = 64 : i64}
  return
}

// -----

func.func @attention_c21_length(
    %q: memref<1x8x82x64xf16>,
    %k: memref<1x8x82x64xf16>,
    %v: memref<1x8x82x64xf16>,
    %o: memref<1x8x82x64xf16>,
    // expected-note @below {{dimension 0 of 'cu_seqlens_q' is 4}}
    %a: memref<4xi32>,
    %b: memref<5xi32>) {
  // expected-error @below {{expected dimension 0 of 'cu_seqlens_k' (batch + 1) to be 4, got 5}}
  attn.attention ins(%q, %k, %v : memref<1x8x82x64xf16>, memref<1x8x82x64xf16>, memref<1x8x82x64xf16>)
    outs(%o : memref<1x8x82x64xf16>)
    cu_seqlens(%a, %b : memref<4xi32>, memref<5xi32>)
    {max_seqlen_q = 64 : i64}
  return
}

// -----

func.func @attention_c21_short(
    %q: memref<1x8x82x64xf16>,
    %k: memref<1x8x82x64xf16>,
    %v: memref<1x8x82x64xf16>,
    %o: memref<1x8x82x64xf16>,
    %a: memref<1xi32>,
    %b: memref<1xi32>) {
  // expected-error @below {{expected at least two elements in 'cu_seqlens_q', got 1}}
  attn.attention ins(%q, %k, %v : memref<1x8x82x64xf16>, memref<1x8x82x64xf16>, memref<1x8x82x64xf16>)
    outs(%o : memref<1x8x82x64xf16>)
    cu_seqlens(%a, %b : memref<1xi32>, memref<1xi32>)
    {max_seqlen_q = 64 : i64}
  return
}

// -----

func.func @attention_c21_rank(
    %q: memref<1x8x82x64xf16>,
    %k: memref<1x8x82x64xf16>,
    %v: memref<1x8x82x64xf16>,
    %o: memref<1x8x82x64xf16>,
    %a: memref<4xi32>,
    %b: memref<1x4xi32>) {
  // expected-error @below {{expected 'cu_seqlens_k' of rank 1, got 'memref<1x4xi32>'}}
  attn.attention ins(%q, %k, %v : memref<1x8x82x64xf16>, memref<1x8x82x64xf16>, memref<1x8x82x64xf16>)
    outs(%o : memref<1x8x82x64xf16>)
    cu_seqlens(%a, %b : memref<4xi32>, memref<1x4xi32>)
    {max_seqlen_q = 64 : i64}
  return
}

// -----

func.func @attention_c22(
    %q: memref<2x8x82x64xf16>,
    %k: memref<2x8x82x64xf16>,
    %v: memref<2x8x82x64xf16>,
    %o: memref<2x8x82x64xf16>,
    %a: memref<4xi32>,
    %b: memref<4xi32>) {
  // expected-error @below {{expected batch 1 with cu_seqlens, since the sequences are packed, got 2}}
  attn.attention ins(%q, %k, %v : memref<2x8x82x64xf16>, memref<2x8x82x64xf16>, memref<2x8x82x64xf16>)
    outs(%o : memref<2x8x82x64xf16>)
    cu_seqlens(%a, %b : memref<4xi32>, memref<4xi32>)
    {max_seqlen_q = 64 : i64}
  return
}

// -----

func.func @attention_c22_missing(
    %q: memref<1x8x82x64xf16>,
    %k: memref<1x8x82x64xf16>,
    %v: memref<1x8x82x64xf16>,
    %o: memref<1x8x82x64xf16>,
    %a: memref<4xi32>,
    %b: memref<4xi32>) {
  // expected-error @below {{expected 'max_seqlen_q' with cu_seqlens, got none}}
  attn.attention ins(%q, %k, %v : memref<1x8x82x64xf16>, memref<1x8x82x64xf16>, memref<1x8x82x64xf16>)
    outs(%o : memref<1x8x82x64xf16>)
    cu_seqlens(%a, %b : memref<4xi32>, memref<4xi32>)
  return
}

// -----

func.func @attention_c22_negative(
    %q: memref<1x8x82x64xf16>,
    %k: memref<1x8x82x64xf16>,
    %v: memref<1x8x82x64xf16>,
    %o: memref<1x8x82x64xf16>,
    %a: memref<4xi32>,
    %b: memref<4xi32>) {
  // expected-error @below {{expected 'max_seqlen_q' in [0, 2^31), got -1}}
  attn.attention ins(%q, %k, %v : memref<1x8x82x64xf16>, memref<1x8x82x64xf16>, memref<1x8x82x64xf16>)
    outs(%o : memref<1x8x82x64xf16>)
    cu_seqlens(%a, %b : memref<4xi32>, memref<4xi32>)
    {max_seqlen_q = -1 : i64}
  return
}

// -----

func.func @attention_c22_alone(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf16>,
    %v: memref<2x2x200x64xf16>,
    %o: memref<2x8x300x64xf16>) {
  // expected-error @below {{expected 'max_seqlen_q' only with cu_seqlens}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x200x64xf16>, memref<2x2x200x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
    {max_seqlen_q = 64 : i64}
  return
}

// -----

func.func @attention_c23(
    %q: memref<2x8x300x64xf16>,
    %k: memref<50x2x16x64xf16>,
    %v: memref<50x2x16x64xf16>,
    %o: memref<2x8x300x64xf16>,
    %table: memref<2x16xi32>) {
  // expected-error @below {{expected both a page table and 'page_size' or neither, got one}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<50x2x16x64xf16>, memref<50x2x16x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
    pages(%table : memref<2x16xi32>)
  return
}

// -----

func.func @attention_c23_power(
    %q: memref<2x8x300x64xf16>,
    %k: memref<50x2x24x64xf16>,
    %v: memref<50x2x24x64xf16>,
    %o: memref<2x8x300x64xf16>,
    %table: memref<2x16xi32>) {
  // expected-error @below {{expected 'page_size' to be a power of two below 2^31, got 24}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<50x2x24x64xf16>, memref<50x2x24x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
    pages(%table : memref<2x16xi32>)
    {page_size = 24 : i64}
  return
}

// -----

func.func @attention_c23_keys(
    %q: memref<2x8x300x64xf16>,
    %k: memref<50x2x16x64xf16>,
    %v: memref<50x2x16x64xf16>,
    %o: memref<2x8x300x64xf16>,
    %table: memref<2x16xi32>) {
  // expected-error @below {{expected dimension 2 of 'k' to be the page size 32, got 16}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<50x2x16x64xf16>, memref<50x2x16x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
    pages(%table : memref<2x16xi32>)
    {page_size = 32 : i64}
  return
}

// -----

func.func @attention_c23_batch(
    %q: memref<2x8x300x64xf16>,
    %k: memref<50x2x16x64xf16>,
    %v: memref<50x2x16x64xf16>,
    %o: memref<2x8x300x64xf16>,
    %table: memref<3x16xi32>) {
  // expected-error @below {{expected one row of the page table for each batch, got 3 rows and 2 batches}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<50x2x16x64xf16>, memref<50x2x16x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
    pages(%table : memref<3x16xi32>)
    {page_size = 16 : i64}
  return
}

// -----

func.func @attention_c23_type(
    %q: memref<2x8x300x64xf16>,
    %k: memref<50x2x16x64xf16>,
    %v: memref<50x2x16x64xf16>,
    %o: memref<2x8x300x64xf16>,
    %table: memref<2x16xi64>) {
  // expected-error @below {{expected 'page_table' of type i32, got 'i64'}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<50x2x16x64xf16>, memref<50x2x16x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
    pages(%table : memref<2x16xi64>)
    {page_size = 16 : i64}
  return
}

// -----

func.func @attention_c23_rank(
    %q: memref<2x8x300x64xf16>,
    %k: memref<50x2x16x64xf16>,
    %v: memref<50x2x16x64xf16>,
    %o: memref<2x8x300x64xf16>,
    %table: memref<16xi32>) {
  // expected-error @below {{expected 'page_table' of rank 2, got 'memref<16xi32>'}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<50x2x16x64xf16>, memref<50x2x16x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
    pages(%table : memref<16xi32>)
    {page_size = 16 : i64}
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
    %o: memref<4x2x8x300x64xf16>,
    %lse: memref<4x2x8x300xf32>) {
  // expected-error @below {{expected partial results of type f32, got 'f16'}}
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
  // expected-error @below {{expected 'rope_dim' in [1, 63], got 64}}
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

func.func @attention_c29(
    %q: tensor<2x8x300x64xf16>,
    %k: tensor<2x2x200x64xf16>,
    %v: tensor<2x2x200x64xf16>,
    %o: tensor<2x8x300x64xf16>) {
  // expected-error @below {{expected 1 results, one for each output tensor, got 0}}
  attn.attention ins(%q, %k, %v : tensor<2x8x300x64xf16>, tensor<2x2x200x64xf16>, tensor<2x2x200x64xf16>)
    outs(%o : tensor<2x8x300x64xf16>)
  return
}

// -----

func.func @attention_c29_memref(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf16>,
    %v: memref<2x2x200x64xf16>,
    %o: memref<2x8x300x64xf16>) {
  // expected-error @below {{expected 0 results, one for each output tensor, got 1}}
  %r = attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x200x64xf16>, memref<2x2x200x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
    -> tensor<2x8x300x64xf16>
  return
}

// -----

func.func @attention_c29_type(
    %q: tensor<2x8x300x64xf16>,
    %k: tensor<2x2x200x64xf16>,
    %v: tensor<2x2x200x64xf16>,
    // expected-note @below {{'o' stands here}}
    %o: tensor<2x8x300x64xf16>) {
  // expected-error @below {{expected the result for 'o' to be of its type, 'tensor<2x8x300x64xf16>', got 'tensor<2x8x?x64xf16>'}}
  %r = attn.attention ins(%q, %k, %v : tensor<2x8x300x64xf16>, tensor<2x2x200x64xf16>, tensor<2x2x200x64xf16>)
    outs(%o : tensor<2x8x300x64xf16>)
    -> tensor<2x8x?x64xf16>
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

func.func @attention_c31(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x2147483648x64xf16>,
    %v: memref<2x2x2147483648x64xf16>,
    %o: memref<2x8x300x64xf16>) {
  // expected-error @below {{expected dimension 2 of 'k' to be below 2^31, got 2147483648}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x2147483648x64xf16>, memref<2x2x2147483648x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
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
  "attn.attention"(%q, %k, %k, %o, %a) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0, 0, 0, 0, 1, 0, 0>}> ({}, {})
    : (memref<2x8x300x64xf8E4M3FN>, memref<2x2x200x64xf8E4M3FN>, memref<2x2x200x64xf8E4M3FN>, memref<2x8x300x64xbf16>, memref<2x8xf32>) -> ()
  return
}

// -----

func.func @attention_c34(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf16>,
    %o: memref<2x8x300x64xf16>,
    %a: memref<2x8xf32>, %b: memref<2x2xf32>, %c: memref<2x2xf32>) {
  // expected-error @below {{expected descales only with 8-bit operands, got 'f16'}}
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
