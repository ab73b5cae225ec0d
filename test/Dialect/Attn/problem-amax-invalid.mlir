// RUN: attn-opt %s --split-input-file --verify-diagnostics

// The number that the largest result joins (attention_c61, combine_c14).

func.func @attention_c61(%q: memref<1x2x3x64xf16>, %o: memref<1x2x3x64xf16>, %a: memref<2xf32>) {
  // expected-error @below {{expected one number in 'amax', got 2}}
  attn.attention ins(%q, %q, %q : memref<1x2x3x64xf16>, memref<1x2x3x64xf16>, memref<1x2x3x64xf16>)
    outs(%o : memref<1x2x3x64xf16>) amax(%a : memref<2xf32>)
  return
}

// -----

func.func @attention_c61_type(%q: memref<1x2x3x64xf16>, %o: memref<1x2x3x64xf16>, %a: memref<1xf16>) {
  // expected-error @below {{expected 'amax' of type f32, got 'f16'}}
  attn.attention ins(%q, %q, %q : memref<1x2x3x64xf16>, memref<1x2x3x64xf16>, memref<1x2x3x64xf16>)
    outs(%o : memref<1x2x3x64xf16>) amax(%a : memref<1xf16>)
  return
}

// -----

func.func @attention_c61_partial(%q: memref<1x2x3x64xf16>, %o: memref<2x1x2x3x64xf32>, %l: memref<2x1x2x3xf32>, %a: memref<1xf32>) {
  // expected-error @below {{expected no 'amax' with partial results: it stands beside the attn.combine of them}}
  attn.attention ins(%q, %q, %q : memref<1x2x3x64xf16>, memref<1x2x3x64xf16>, memref<1x2x3x64xf16>)
    outs(%o, %l : memref<2x1x2x3x64xf32>, memref<2x1x2x3xf32>) amax(%a : memref<1xf32>) {kv_splits = 2 : i64}
  return
}

// -----

func.func @attention_c61_states(%q: memref<1x2x3x64xf16>, %o: memref<1x2x3x64xf32>, %l: memref<1x2x3x2xf32>, %a: memref<1xf32>) {
  // expected-error @below {{expected no 'amax' with 'row_state', whose rows are not divided}}
  attn.attention ins(%q, %q, %q : memref<1x2x3x64xf16>, memref<1x2x3x64xf16>, memref<1x2x3x64xf16>)
    outs(%o, %l : memref<1x2x3x64xf32>, memref<1x2x3x2xf32>) amax(%a : memref<1xf32>) {row_state}
  return
}

// -----

func.func @combine_c14(%po: memref<2x1x2x8x64xf32>, %pl: memref<2x1x2x8xf32>, %o: memref<1x2x8x64xf16>, %a: memref<3xf32>) {
  // expected-error @below {{expected one number in 'amax', got 3}}
  attn.combine ins(%po, %pl : memref<2x1x2x8x64xf32>, memref<2x1x2x8xf32>)
    outs(%o, %a : memref<1x2x8x64xf16>, memref<3xf32>) {amax}
  return
}

// -----

func.func @combine_c10_amax(%po: memref<2x1x2x8x64xf32>, %pl: memref<2x1x2x8xf32>, %o: memref<1x2x8x64xf16>) {
  // expected-error @below {{expected o and the number of amax as outputs, and lse between them where it is wanted, got 1}}
  attn.combine ins(%po, %pl : memref<2x1x2x8x64xf32>, memref<2x1x2x8xf32>)
    outs(%o : memref<1x2x8x64xf16>) {amax}
  return
}

// -----

func.func @largest_of_halves(%t: tensor<64x128xf16, #attn.auto>, %g: !attn.global<?x128xf16>, %row: i32, %a: !llvm.ptr<1>) {
  // expected-error @below {{expected a tile of f32, got 'tensor<64x128xf16, #attn.auto>'}}
  attn.global_max %t, %g[%row] to %a : tensor<64x128xf16, #attn.auto>, !attn.global<?x128xf16>
  return
}

// -----

func.func @largest_of_few(%t: tensor<64x64xf32, #attn.auto>, %g: !attn.global<?x128xf16>, %row: i32, %a: !llvm.ptr<1>) {
  // expected-error @below {{expected at least 128 columns, got 64}}
  attn.global_max %t, %g[%row] to %a : tensor<64x64xf32, #attn.auto>, !attn.global<?x128xf16>
  return
}

// -----

func.func @largest_of_odd_pairs(%t: tensor<128x63xf32, #attn.auto>, %g: !attn.global<?x31xi8>, %row: i32, %a: !llvm.ptr<1>) {
  // expected-error @below {{expected an even number of columns beside pairs, got 63}}
  attn.global_max %t, %g[%row] to %a : tensor<128x63xf32, #attn.auto>, !attn.global<?x31xi8>
  return
}
