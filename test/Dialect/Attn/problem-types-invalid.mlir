// RUN: attn-opt %s -split-input-file -verify-diagnostics

// What attn.attention requires of the types, places and strides of its
// operands, and of its results. Functions are named after the constraint in
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

func.func @attention_c4_backwards(
    %q: memref<2x8x300x64xf16, strided<[153600, 19200, -64, 1]>>,
    %k: memref<2x2x200x64xf16>, %o: memref<2x8x300x64xf16>) {
  // expected-error @below {{expected no negative stride of 'q', got -64}}
  attn.attention ins(%q, %k, %k : memref<2x8x300x64xf16, strided<[153600, 19200, -64, 1]>>, memref<2x2x200x64xf16>, memref<2x2x200x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
  return
}

// -----

func.func @attention_c4_elements(
    %q: memref<1x9223372036854775807x?x64xf16>, %lengths: memref<3xi32>) {
  // expected-error @below {{expected at most 2^48 elements in 'q', got 'memref<1x9223372036854775807x?x64xf16>'}}
  attn.attention ins(%q, %q, %q : memref<1x9223372036854775807x?x64xf16>, memref<1x9223372036854775807x?x64xf16>, memref<1x9223372036854775807x?x64xf16>)
    outs(%q : memref<1x9223372036854775807x?x64xf16>)
    cu_seqlens(%lengths, %lengths : memref<3xi32>, memref<3xi32>) {max_seqlen_q = 70 : i64}
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
  // expected-error @below {{expected 'k' of the type of 'q', 'f16', or of 8 bits, got 'bf16'}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x200x64xbf16>, memref<2x2x200x64xbf16>)
    outs(%o : memref<2x8x300x64xf16>)
  return
}

// -----

func.func @attention_c5_narrow_queries(
    // expected-note @below {{'q' stands here}}
    %q: memref<2x8x300x64xf8E4M3FN>,
    %k: memref<2x2x200x64xf16>,
    %o: memref<2x8x300x64xf16>) {
  // expected-error @below {{expected 'k' of the type of 'q', 'f8E4M3FN', got 'f16'}}
  attn.attention ins(%q, %k, %k : memref<2x8x300x64xf8E4M3FN>, memref<2x2x200x64xf16>, memref<2x2x200x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
  return
}

// -----

func.func @attention_c5_values(
    %q: memref<2x8x300x64xf16>,
    // expected-note @below {{'k' stands here}}
    %k: memref<2x2x200x64xf8E4M3FN>,
    %v: memref<2x2x200x64xf8E5M2>,
    %o: memref<2x8x300x64xf16>) {
  // expected-error @below {{expected 'v' of the type of 'k', 'f8E4M3FN', got 'f8E5M2'}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x200x64xf8E4M3FN>, memref<2x2x200x64xf8E5M2>)
    outs(%o : memref<2x8x300x64xf16>)
  return
}

// -----

func.func @attention_c6(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x200x64xf16>,
    %v: memref<2x2x200x64xf16>,
    %o: memref<2x8x300x64xf64>) {
  // expected-error @below {{expected 'o' of type f16, bf16, f32, f8E4M3FN, f8E5M2 or, for pairs of f4E2M1FN, i8, got 'f64'}}
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

!far = memref<2x8x16x64xf16, strided<[8192, 1024, 1, 4611686018427387920]>>
func.func @attention_c4_far(%q: memref<2x8x16x64xf16>, %v: !far) {
  // expected-error @below {{expected at most 2^48 elements from the first to the last of 'v', got 'memref<2x8x16x64xf16, strided<[8192, 1024, 1, 4611686018427387920]>>'}}
  attn.attention ins(%q, %q, %v : memref<2x8x16x64xf16>, memref<2x8x16x64xf16>, !far)
                 outs(%q : memref<2x8x16x64xf16>)
  return
}
