// RUN: attn-opt %s -split-input-file -verify-diagnostics

// What attn.attention requires of lengths of keys and of lists of pages.
// Functions are named after the constraint in docs/spec.md.

func.func @attention_c20_pages(
    %q: memref<1x8x300x64xf16>,
    %k: memref<50x2x16x64xf16>,
    %v: memref<50x2x16x64xf16>,
    %o: memref<1x8x300x64xf16>,
    %a: memref<3xi32>,
    %t: memref<2x16xi32>) {
  // expected-error @below {{expected both 'cu_seqlens_q' and 'cu_seqlens_k' or neither, or 'cu_seqlens_q' beside pages and 'kv_lengths', got one}}
  attn.attention ins(%q, %k, %v : memref<1x8x300x64xf16>, memref<50x2x16x64xf16>, memref<50x2x16x64xf16>)
    outs(%o : memref<1x8x300x64xf16>)
    cu_seqlens(%a : memref<3xi32>) pages(%t : memref<2x16xi32>)
    {max_seqlen_q = 64 : i64, page_size = 16 : i64}
  return
}

// -----

func.func @attention_c37(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x16x64xf16>,
    %v: memref<2x2x16x64xf16>,
    %o: memref<2x8x300x64xf16>,
    %n: memref<2xi64>) {
  // expected-error @below {{expected 'kv_lengths' of type i32, got 'i64'}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x16x64xf16>, memref<2x2x16x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
    kv_lengths(%n : memref<2xi64>)
    {}
  return
}

// -----

func.func @attention_c37_batch(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x16x64xf16>,
    %v: memref<2x2x16x64xf16>,
    %o: memref<2x8x300x64xf16>,
    %n: memref<3xi32>) {
  // expected-error @below {{expected one of 'kv_lengths' for each batch, got 3 and 2 batches}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x16x64xf16>, memref<2x2x16x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
    kv_lengths(%n : memref<3xi32>)
    {}
  return
}

// -----

func.func @attention_c37_rank(
    %q: memref<2x8x300x64xf16>,
    %k: memref<2x2x16x64xf16>,
    %v: memref<2x2x16x64xf16>,
    %o: memref<2x8x300x64xf16>,
    %n: memref<2x1xi32>) {
  // expected-error @below {{expected 'kv_lengths' of rank 1, got 'memref<2x1xi32>'}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x2x16x64xf16>, memref<2x2x16x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
    kv_lengths(%n : memref<2x1xi32>)
    {}
  return
}

// -----

func.func @attention_c37_packed(
    %q: memref<1x8x300x64xf16>,
    %k: memref<1x2x16x64xf16>,
    %v: memref<1x2x16x64xf16>,
    %o: memref<1x8x300x64xf16>,
    %a: memref<3xi32>,
    %n: memref<2xi32>) {
  // expected-error @below {{expected 'kv_lengths' or 'cu_seqlens_k', which both say how many keys there are, got both}}
  attn.attention ins(%q, %k, %v : memref<1x8x300x64xf16>, memref<1x2x16x64xf16>, memref<1x2x16x64xf16>)
    outs(%o : memref<1x8x300x64xf16>)
    cu_seqlens(%a, %a : memref<3xi32>, memref<3xi32>) kv_lengths(%n : memref<2xi32>)
    {max_seqlen_q = 64 : i64}
  return
}

// -----

func.func @attention_c37_sequences(
    %q: memref<1x8x300x64xf16>,
    %k: memref<50x2x16x64xf16>,
    %v: memref<50x2x16x64xf16>,
    %o: memref<1x8x300x64xf16>,
    %a: memref<3xi32>,
    %t: memref<2x16xi32>,
    %n: memref<3xi32>) {
  // expected-error @below {{expected one of 'kv_lengths' for each batch, got 3 and 2 batches}}
  attn.attention ins(%q, %k, %v : memref<1x8x300x64xf16>, memref<50x2x16x64xf16>, memref<50x2x16x64xf16>)
    outs(%o : memref<1x8x300x64xf16>)
    cu_seqlens(%a : memref<3xi32>) pages(%t : memref<2x16xi32>) kv_lengths(%n : memref<3xi32>)
    {max_seqlen_q = 64 : i64, page_size = 16 : i64}
  return
}

// -----

func.func @attention_c38(
    %q: memref<2x8x300x64xf16>,
    %k: memref<50x2x16x64xf16>,
    %v: memref<50x2x16x64xf16>,
    %o: memref<2x8x300x64xf16>,
    %t: memref<32xi32>,
    %n: memref<2xi32>) {
  // expected-error @below {{expected one of 'page_indptr' more than batches, got 2 and 2 batches}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<50x2x16x64xf16>, memref<50x2x16x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
    pages(%t, %n : memref<32xi32>, memref<2xi32>)
    {page_size = 16 : i64}
  return
}

// -----

func.func @attention_c38_type(
    %q: memref<2x8x300x64xf16>,
    %k: memref<50x2x16x64xf16>,
    %v: memref<50x2x16x64xf16>,
    %o: memref<2x8x300x64xf16>,
    %t: memref<32xi32>,
    %n: memref<3xi64>) {
  // expected-error @below {{expected 'page_indptr' of type i32, got 'i64'}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<50x2x16x64xf16>, memref<50x2x16x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
    pages(%t, %n : memref<32xi32>, memref<3xi64>)
    {page_size = 16 : i64}
  return
}

// -----

func.func @attention_c38_rank(
    %q: memref<2x8x300x64xf16>,
    %k: memref<50x2x16x64xf16>,
    %v: memref<50x2x16x64xf16>,
    %o: memref<2x8x300x64xf16>,
    %t: memref<2x16xi32>,
    %n: memref<3xi32>) {
  // expected-error @below {{expected 'page_table' of rank 1, got 'memref<2x16xi32>'}}
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<50x2x16x64xf16>, memref<50x2x16x64xf16>)
    outs(%o : memref<2x8x300x64xf16>)
    pages(%t, %n : memref<2x16xi32>, memref<3xi32>)
    {page_size = 16 : i64}
  return
}

// -----

func.func @attention_c38_alone(%q: memref<2x8x82x64xf16>, %counts: memref<3xi32>) {
  // expected-error @below {{expected 'page_indptr' only with a page table}}
  "attn.attention"(%q, %q, %q, %q, %counts) ({}, {}) {
    operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
  } : (memref<2x8x82x64xf16>, memref<2x8x82x64xf16>, memref<2x8x82x64xf16>, memref<2x8x82x64xf16>, memref<3xi32>) -> ()
  return
}

// -----

func.func @attention_c40(%q: memref<2x8x300x64xf16>) {
  // expected-error @below {{expected 'selected' only with a page table}}
  attn.attention ins(%q, %q, %q : memref<2x8x300x64xf16>, memref<2x8x300x64xf16>, memref<2x8x300x64xf16>)
    outs(%q : memref<2x8x300x64xf16>) {selected}
  return
}

// -----

func.func @attention_c40_mask(
    %q: memref<2x8x4x64xf16>,
    %k: memref<500x2x1x64xf16>,
    %t: memref<2x64xi32>) {
  // expected-error @below {{expected no mask with 'selected', since the keys of a table have no positions, got 'causal'}}
  attn.attention ins(%q, %k, %k : memref<2x8x4x64xf16>, memref<500x2x1x64xf16>, memref<500x2x1x64xf16>)
    outs(%q : memref<2x8x4x64xf16>)
    pages(%t : memref<2x64xi32>)
    {mask = #attn.mask<kind = causal>, page_size = 1 : i64, selected}
  return
}
