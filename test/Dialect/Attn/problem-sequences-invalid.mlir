// RUN: attn-opt %s -split-input-file -verify-diagnostics

// What attn.attention requires of packed sequences and of pages. Functions are
// named after the constraint in docs/spec.md.

func.func @attention_c20(%q: memref<1x8x82x64xf16>, %lengths: memref<4xi32>) {
  // expected-error @below {{expected both 'cu_seqlens_q' and 'cu_seqlens_k' or neither, or 'cu_seqlens_q' beside pages and 'kv_lengths', got one}}
  "attn.attention"(%q, %q, %q, %q, %lengths) ({}, {}) {
    operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, max_seqlen_q = 64 : i64
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

func.func @attention_c23_size(
    %q: memref<2x8x300x64xf16>,
    %k: memref<50x2x0x64xf16>,
    %v: memref<50x2x0x64xf16>,
    %o: memref<2x8x300x64xf16>,
    %table: memref<2x16xi32>) {
  // expected-error @below {{expected 'page_size' in [1, 2^31), got 0}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<50x2x0x64xf16>, memref<50x2x0x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
    pages(%table : memref<2x16xi32>)
    {page_size = 0 : i64}
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

func.func @attention_c23_no_pages(
    %q: memref<2x8x300x64xf16>,
    %k: memref<0x2x16x64xf16>,
    %v: memref<0x2x16x64xf16>,
    %o: memref<2x8x300x64xf16>,
    %table: memref<2x16xi32>) {
  // expected-error @below {{expected dimension 0 of 'k', its pages, to be at least 1, got 0}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<0x2x16x64xf16>, memref<0x2x16x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
    pages(%table : memref<2x16xi32>)
    {page_size = 16 : i64}
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
