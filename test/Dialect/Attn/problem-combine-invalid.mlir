// RUN: attn-opt %s -split-input-file -verify-diagnostics

// One case for each message of the verifier, named after the constraint in
// docs/spec.md.

func.func @combine_c1(
    %partial_o: memref<2x8x300x64xf32>,
    %partial_lse: memref<4x2x8x300xf32>,
    %o: memref<2x8x300x64xf16>,
    %lse: memref<2x8x300xf32>) {
  // expected-error @below {{expected 'partial_o' of rank 5, got 'memref<2x8x300x64xf32>'}}
  attn.combine ins(%partial_o, %partial_lse : memref<2x8x300x64xf32>, memref<4x2x8x300xf32>)
    outs(%o, %lse : memref<2x8x300x64xf16>, memref<2x8x300xf32>)
  return
}

// -----

func.func @combine_c2(
    // expected-note @below {{'partial_o' has type 'memref<4x2x8x300x64xf32>'}}
    %partial_o: memref<4x2x8x300x64xf32>,
    %partial_lse: memref<4x2x8x300xf32>,
    %o: tensor<2x8x300x64xf16>,
    %lse: memref<2x8x300xf32>) {
  // expected-error @below {{expected only tensors or only memrefs, got 'o' of type 'tensor<2x8x300x64xf16>'}}
  attn.combine ins(%partial_o, %partial_lse : memref<4x2x8x300x64xf32>, memref<4x2x8x300xf32>)
    outs(%o, %lse : tensor<2x8x300x64xf16>, memref<2x8x300xf32>)
  return
}

// -----

func.func @combine_c2_stride(
    %partial_o: memref<4x2x8x300x64xf32>,
    %partial_lse: memref<4x2x8x300xf32>,
    %o: memref<2x8x300x64xf16, strided<[307200, 38400, 128, 2]>>,
    %lse: memref<2x8x300xf32>) {
  // expected-error @below {{expected innermost stride 1 for 'o', got 2}}
  attn.combine ins(%partial_o, %partial_lse : memref<4x2x8x300x64xf32>, memref<4x2x8x300xf32>)
    outs(%o, %lse : memref<2x8x300x64xf16, strided<[307200, 38400, 128, 2]>>, memref<2x8x300xf32>)
  return
}

// -----

func.func @combine_c3_partial_o(
    %partial_o: memref<4x2x8x300x64xf64>,
    %partial_lse: memref<4x2x8x300xf32>,
    %o: memref<2x8x300x64xf16>,
    %lse: memref<2x8x300xf32>) {
  // expected-error @below {{expected 'partial_o' of type f32, bf16 or f16, got 'f64'}}
  attn.combine ins(%partial_o, %partial_lse : memref<4x2x8x300x64xf64>, memref<4x2x8x300xf32>)
    outs(%o, %lse : memref<2x8x300x64xf16>, memref<2x8x300xf32>)
  return
}

// -----

func.func @combine_c12(
    %partial_o: memref<4x2x8x300x64xf16>,
    %partial_lse: memref<4x2x8x300xf32>,
    %o: memref<2x8x300x64xf16>) {
  attn.combine ins(%partial_o, %partial_lse : memref<4x2x8x300x64xf16>, memref<4x2x8x300xf32>)
    // expected-error @below {{expected 'scales' exactly beside partial results of type f16, got none beside 'memref<4x2x8x300x64xf16>'}}
    outs(%o : memref<2x8x300x64xf16>)
  return
}

// -----

func.func @combine_c12_superfluous(
    %partial_o: memref<4x2x8x300x64xf32>,
    %partial_lse: memref<4x2x8x300xf32>,
    %o: memref<2x8x300x64xf16>) {
  attn.combine ins(%partial_o, %partial_lse : memref<4x2x8x300x64xf32>, memref<4x2x8x300xf32>)
    // expected-error @below {{expected 'scales' exactly beside partial results of type f16, got them beside 'memref<4x2x8x300x64xf32>'}}
    scales(%partial_lse : memref<4x2x8x300xf32>) outs(%o : memref<2x8x300x64xf16>)
  return
}

// -----

func.func @combine_c12_generic(
    %partial_o: memref<4x2x8x300x64xf16>,
    %partial_lse: memref<4x2x8x300xf32>) {
  // expected-error @below {{expected 'scales' beside 'partial_o' of type f16}}
  "attn.combine"(%partial_o, %partial_lse) : (memref<4x2x8x300x64xf16>, memref<4x2x8x300xf32>) -> ()
  return
}

// -----

func.func @combine_c12_type(
    %partial_o: memref<4x2x8x300x64xf16>,
    %partial_lse: memref<4x2x8x300xf32>,
    %scales: memref<4x2x8x300x1xf16>,
    %o: memref<2x8x300x64xf16>) {
  // expected-error @below {{expected 'partial_scales' of type f32, got 'f16'}}
  attn.combine ins(%partial_o, %partial_lse : memref<4x2x8x300x64xf16>, memref<4x2x8x300xf32>)
    scales(%scales : memref<4x2x8x300x1xf16>) outs(%o : memref<2x8x300x64xf16>)
  return
}

// -----

func.func @combine_c12_extents(
    // expected-note @below {{dimension 0 of 'partial_o' is 4}}
    %partial_o: memref<4x2x8x300x64xf16>,
    %partial_lse: memref<4x2x8x300xf32>,
    %scales: memref<3x2x8x300x1xf32>,
    %o: memref<2x8x300x64xf16>) {
  // expected-error @below {{expected dimension 0 of 'partial_scales' (partial results) to be 4, got 3}}
  attn.combine ins(%partial_o, %partial_lse : memref<4x2x8x300x64xf16>, memref<4x2x8x300xf32>)
    scales(%scales : memref<3x2x8x300x1xf32>) outs(%o : memref<2x8x300x64xf16>)
  return
}

// -----

func.func @combine_c12_groups(
    %partial_o: memref<4x2x8x300x64xf16>,
    %partial_lse: memref<4x2x8x300xf32>,
    %scales: memref<4x2x8x300x?xf32>,
    %o: memref<2x8x300x64xf16>) {
  // expected-error @below {{expected a number of groups in 'partial_scales' that divides the 64 columns of 'partial_o', got dynamic}}
  attn.combine ins(%partial_o, %partial_lse : memref<4x2x8x300x64xf16>, memref<4x2x8x300xf32>)
    scales(%scales : memref<4x2x8x300x?xf32>) outs(%o : memref<2x8x300x64xf16>)
  return
}

// -----

func.func @combine_c3(
    %partial_o: memref<4x2x8x300x64xf32>,
    %partial_lse: memref<4x2x8x300xf16>,
    %o: memref<2x8x300x64xf16>,
    %lse: memref<2x8x300xf32>) {
  // expected-error @below {{expected 'partial_lse' of type f32, got 'f16'}}
  attn.combine ins(%partial_o, %partial_lse : memref<4x2x8x300x64xf32>, memref<4x2x8x300xf16>)
    outs(%o, %lse : memref<2x8x300x64xf16>, memref<2x8x300xf32>)
  return
}

// -----

func.func @combine_c4(
    %partial_o: memref<4x2x8x300x64xf32>,
    %partial_lse: memref<4x2x8x300xf32>,
    %o: memref<2x8x300x64xf64>,
    %lse: memref<2x8x300xf32>) {
  // expected-error @below {{expected 'o' of type f16, bf16, f32, f8E4M3FN, f8E5M2 or, for pairs of f4E2M1FN, i8, got 'f64'}}
  attn.combine ins(%partial_o, %partial_lse : memref<4x2x8x300x64xf32>, memref<4x2x8x300xf32>)
    outs(%o, %lse : memref<2x8x300x64xf64>, memref<2x8x300xf32>)
  return
}

// -----

func.func @combine_c9(
    %partial_o: memref<4x2x8x300x64xf32>,
    %partial_lse: memref<4x2x8x300xf32>,
    %o: memref<2x8x300x64xf8E5M2>) {
  // expected-error @below {{expected 'out_scale' or 'out_group' exactly with an output of 8 bits, got none and an output of type 'f8E5M2'}}
  attn.combine ins(%partial_o, %partial_lse : memref<4x2x8x300x64xf32>, memref<4x2x8x300xf32>)
    outs(%o : memref<2x8x300x64xf8E5M2>)
  return
}

// -----

func.func @combine_c9_sign(
    %partial_o: memref<4x2x8x300x64xf32>,
    %partial_lse: memref<4x2x8x300xf32>,
    %o: memref<2x8x300x64xf8E5M2>) {
  // expected-error @below {{expected a finite 'out_scale' above zero, got -2}}
  attn.combine ins(%partial_o, %partial_lse : memref<4x2x8x300x64xf32>, memref<4x2x8x300xf32>)
    outs(%o : memref<2x8x300x64xf8E5M2>) {out_scale = -2.0 : f32}
  return
}

// -----

func.func @combine_c5(
    %partial_o: memref<4x2x8x300x?xf32>,
    %partial_lse: memref<4x2x8x300xf32>,
    %o: memref<2x8x300x64xf16>,
    %lse: memref<2x8x300xf32>) {
  // expected-error @below {{expected a value dimension that is static and at least 1 in 'partial_o', got dynamic}}
  attn.combine ins(%partial_o, %partial_lse : memref<4x2x8x300x?xf32>, memref<4x2x8x300xf32>)
    outs(%o, %lse : memref<2x8x300x64xf16>, memref<2x8x300xf32>)
  return
}

// -----

func.func @combine_c5_none(
    %partial_o: memref<0x2x8x300x64xf32>,
    %partial_lse: memref<0x2x8x300xf32>,
    %o: memref<2x8x300x64xf16>,
    %lse: memref<2x8x300xf32>) {
  // expected-error @below {{expected at least one partial result, got none}}
  attn.combine ins(%partial_o, %partial_lse : memref<0x2x8x300x64xf32>, memref<0x2x8x300xf32>)
    outs(%o, %lse : memref<2x8x300x64xf16>, memref<2x8x300xf32>)
  return
}

// -----

func.func @combine_c6(
    // expected-note @below {{dimension 0 of 'partial_o' is 4}}
    %partial_o: memref<4x2x8x300x64xf32>,
    %partial_lse: memref<3x2x8x300xf32>,
    %o: memref<2x8x300x64xf16>,
    %lse: memref<2x8x300xf32>) {
  // expected-error @below {{expected dimension 0 of 'partial_lse' (partial results) to be 4, got 3}}
  attn.combine ins(%partial_o, %partial_lse : memref<4x2x8x300x64xf32>, memref<3x2x8x300xf32>)
    outs(%o, %lse : memref<2x8x300x64xf16>, memref<2x8x300xf32>)
  return
}

// -----

func.func @combine_c6_queries(
    // expected-note @below {{dimension 3 of 'partial_o' is 300}}
    %partial_o: memref<4x2x8x300x64xf32>,
    %partial_lse: memref<4x2x8x300xf32>,
    %o: memref<2x8x200x64xf16>,
    %lse: memref<2x8x300xf32>) {
  // expected-error @below {{expected dimension 2 of 'o' (queries) to be 300, got 200}}
  attn.combine ins(%partial_o, %partial_lse : memref<4x2x8x300x64xf32>, memref<4x2x8x300xf32>)
    outs(%o, %lse : memref<2x8x200x64xf16>, memref<2x8x300xf32>)
  return
}

// -----

func.func @combine_c6_value(
    // expected-note @below {{dimension 4 of 'partial_o' is 64}}
    %partial_o: memref<4x2x8x300x64xf32>,
    %partial_lse: memref<4x2x8x300xf32>,
    %o: memref<2x8x300x32xf16>,
    %lse: memref<2x8x300xf32>) {
  // expected-error @below {{expected dimension 3 of 'o' (value dimension) to be 64, got 32}}
  attn.combine ins(%partial_o, %partial_lse : memref<4x2x8x300x64xf32>, memref<4x2x8x300xf32>)
    outs(%o, %lse : memref<2x8x300x32xf16>, memref<2x8x300xf32>)
  return
}

// -----

func.func @combine_c7(
    %partial_o: memref<4x2x8x300x64xf32>,
    %partial_lse: memref<4x2x8x300xf32>,
    %o: memref<2x8x300x64xf16>,
    %lse: memref<2x8x300xf32>) {
  // expected-error @below {{expected 0 results, one for each output tensor, got 1}}
  %r = attn.combine ins(%partial_o, %partial_lse : memref<4x2x8x300x64xf32>, memref<4x2x8x300xf32>)
    outs(%o, %lse : memref<2x8x300x64xf16>, memref<2x8x300xf32>) -> tensor<2x8x300x64xf16>
  return
}

// -----

func.func @combine_c8(%partial_o: memref<4x2x8x300x64xf32>, %partial_lse: memref<4x2x8x300xf32>, %o: memref<2x8x300x64xf16>) {
  // expected-error @below {{expected 'kernel' to be letters, digits and underscores that begin with no digit, got "a-b"}}
  attn.combine ins(%partial_o, %partial_lse : memref<4x2x8x300x64xf32>, memref<4x2x8x300xf32>)
               outs(%o : memref<2x8x300x64xf16>) {kernel = "a-b"}
  return
}

// -----

func.func @combine_c9_both(
    %partial_o: memref<4x2x8x300x64xf32>,
    %partial_lse: memref<4x2x8x300xf32>,
    %o: memref<2x8x300x64xf8E5M2>,
    %scales: memref<2x8x300x2xf32>) {
  // expected-error @below {{expected 'out_scale' or 'out_group', got both}}
  attn.combine ins(%partial_o, %partial_lse : memref<4x2x8x300x64xf32>, memref<4x2x8x300xf32>)
    outs(%o, %scales : memref<2x8x300x64xf8E5M2>, memref<2x8x300x2xf32>) {out_group = 32 : i64, out_scale = 2.0 : f32}
  return
}

// -----

func.func @combine_c10(
    %partial_o: memref<4x2x8x300x64xf32>,
    %partial_lse: memref<4x2x8x300xf32>,
    %o: memref<2x8x300x64xf16>,
    %lse: memref<2x8x300xf32>) {
  // expected-error @below {{expected o as outputs, and lse behind it where it is wanted, got 3}}
  attn.combine ins(%partial_o, %partial_lse : memref<4x2x8x300x64xf32>, memref<4x2x8x300xf32>)
    outs(%o, %lse, %lse : memref<2x8x300x64xf16>, memref<2x8x300xf32>, memref<2x8x300xf32>)
  return
}

// -----

func.func @combine_c10_scales(
    %partial_o: memref<4x2x8x300x64xf32>,
    %partial_lse: memref<4x2x8x300xf32>,
    %o: memref<2x8x300x64xf8E5M2>) {
  // expected-error @below {{expected o and o_scales as outputs, and lse between them where it is wanted, got 1}}
  attn.combine ins(%partial_o, %partial_lse : memref<4x2x8x300x64xf32>, memref<4x2x8x300xf32>)
    outs(%o : memref<2x8x300x64xf8E5M2>) {out_group = 32 : i64}
  return
}

// -----

func.func @combine_c11(
    %partial_o: memref<4x2x8x300x64xf32>,
    %partial_lse: memref<4x2x8x300xf32>,
    %o: memref<2x8x300x64xf8E5M2>,
    %scales: memref<2x8x300x2xf32>) {
  // expected-error @below {{expected 'out_group' to divide the 64 columns of 'o', got 48}}
  attn.combine ins(%partial_o, %partial_lse : memref<4x2x8x300x64xf32>, memref<4x2x8x300xf32>)
    outs(%o, %scales : memref<2x8x300x64xf8E5M2>, memref<2x8x300x2xf32>) {out_group = 48 : i64}
  return
}

// -----

func.func @combine_c11_columns(
    %partial_o: memref<4x2x8x300x64xf32>,
    %partial_lse: memref<4x2x8x300xf32>,
    %o: memref<2x8x300x64xf8E5M2>,
    %scales: memref<2x8x300x2xf32>) {
  // expected-error @below {{expected 4 columns of 'o_scales', one for each 16 of 'o', got 2}}
  attn.combine ins(%partial_o, %partial_lse : memref<4x2x8x300x64xf32>, memref<4x2x8x300xf32>)
    outs(%o, %scales : memref<2x8x300x64xf8E5M2>, memref<2x8x300x2xf32>) {out_group = 16 : i64}
  return
}

// -----

func.func @combine_c11_pairs(
    %partial_o: memref<4x2x8x300x64xf32>,
    %partial_lse: memref<4x2x8x300xf32>,
    %o: memref<2x8x300x32xi8>,
    %scales: memref<2x8x300x2xf8E4M3FN>) {
  // expected-error @below {{expected 'out_scales' and 'out_group' = 16 with an output of type i8, pairs of f4E2M1FN, got groups of 32}}
  attn.combine ins(%partial_o, %partial_lse : memref<4x2x8x300x64xf32>, memref<4x2x8x300xf32>)
    outs(%o, %scales : memref<2x8x300x32xi8>, memref<2x8x300x2xf8E4M3FN>) {out_group = 32 : i64}
  return
}

// -----

func.func @combine_c11_bytes(
    %partial_o: memref<4x2x8x300x64xf32>,
    %partial_lse: memref<4x2x8x300xf32>,
    %o: memref<2x8x300x64xi8>,
    %scales: memref<2x8x300x4xf8E4M3FN>) {
  // expected-error @below {{expected 'o' to have a byte for each two of 64 columns, got 64}}
  attn.combine ins(%partial_o, %partial_lse : memref<4x2x8x300x64xf32>, memref<4x2x8x300xf32>)
    outs(%o, %scales : memref<2x8x300x64xi8>, memref<2x8x300x4xf8E4M3FN>) {out_group = 16 : i64}
  return
}

// -----

func.func @combine_c4_scales(
    %partial_o: memref<4x2x8x300x64xf32>,
    %partial_lse: memref<4x2x8x300xf32>,
    %o: memref<2x8x300x64xf8E5M2>,
    %scales: memref<2x8x300x4xf8E4M3FN>) {
  // expected-error @below {{expected 'o_scales' of type f32 or f8E8M0FNU, got 'f8E4M3FN'}}
  attn.combine ins(%partial_o, %partial_lse : memref<4x2x8x300x64xf32>, memref<4x2x8x300xf32>)
    outs(%o, %scales : memref<2x8x300x64xf8E5M2>, memref<2x8x300x4xf8E4M3FN>) {out_group = 16 : i64}
  return
}

// -----

func.func @combine_c9_pairs(
    %partial_o: memref<4x2x8x300x64xf32>,
    %partial_lse: memref<4x2x8x300xf32>,
    %o: memref<2x8x300x32xi8>) {
  // expected-error @below {{expected 'out_scales' and 'out_group' = 16 with an output of type i8, pairs of f4E2M1FN, got no scales}}
  attn.combine ins(%partial_o, %partial_lse : memref<4x2x8x300x64xf32>, memref<4x2x8x300xf32>)
    outs(%o : memref<2x8x300x32xi8>) {out_scale = 2.0 : f32}
  return
}

// -----

func.func @combine_c11_rows_in_tiles(
    %po: memref<2x1x2x140x64xf32>, %pl: memref<2x1x2x140xf32>, %o: memref<1x2x140x32xi8>, %s: memref<140x8xf8E4M3FN>) {
  // expected-error @below {{expected 'o_scales' padded to tiles of 128 x 4, 256 rows, got 140}}
  attn.combine ins(%po, %pl : memref<2x1x2x140x64xf32>, memref<2x1x2x140xf32>)
    outs(%o, %s : memref<1x2x140x32xi8>, memref<140x8xf8E4M3FN>) {out_group = 16}
  return
}
