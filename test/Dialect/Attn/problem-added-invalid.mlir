// RUN: attn-opt %s -split-input-file -verify-diagnostics

// What attn.attention requires of keys that stand beside those of k.
// Functions are named after the constraint in docs/spec.md.

func.func @attention_c59_size(%q: memref<2x8x1x64xf16>, %k: memref<30x2x16x64xf16>, %t: memref<2x9xi32>,
    %n: memref<2xi32>, %ak: memref<50x2x1x64xf16>, %av: memref<50x2x1x64xf16>, %at: memref<2x40xi32>, %an: memref<2xi32>) {
  // expected-error @below {{expected all of 'added_k', 'added_table', 'added_lengths' and 'added_page_size' or none, got some}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x64xf16>, memref<30x2x16x64xf16>, memref<30x2x16x64xf16>)
    outs(%q : memref<2x8x1x64xf16>)
    pages(%t : memref<2x9xi32>) kv_lengths(%n : memref<2xi32>)
    added(%ak, %av, %at, %an : memref<50x2x1x64xf16>, memref<50x2x1x64xf16>, memref<2x40xi32>, memref<2xi32>)
    {page_size = 16}
  return
}

// -----

func.func @attention_c59_range(%q: memref<2x8x1x64xf16>, %k: memref<30x2x16x64xf16>, %t: memref<2x9xi32>,
    %n: memref<2xi32>, %ak: memref<50x2x1x64xf16>, %av: memref<50x2x1x64xf16>, %at: memref<2x40xi32>, %an: memref<2xi32>) {
  // expected-error @below {{expected 'added_page_size' in [1, 2^31), got 0}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x64xf16>, memref<30x2x16x64xf16>, memref<30x2x16x64xf16>)
    outs(%q : memref<2x8x1x64xf16>)
    pages(%t : memref<2x9xi32>) kv_lengths(%n : memref<2xi32>)
    added(%ak, %av, %at, %an : memref<50x2x1x64xf16>, memref<50x2x1x64xf16>, memref<2x40xi32>, memref<2xi32>)
    {page_size = 16, added_page_size = 0}
  return
}

// -----

func.func @attention_c59_type(%q: memref<2x8x1x64xf16>, %k: memref<30x2x16x64xf16>, %t: memref<2x9xi32>,
    %n: memref<2xi32>, %ak: memref<50x2x1x64xbf16>, %av: memref<50x2x1x64xf16>, %at: memref<2x40xi32>, %an: memref<2xi32>) {
  // expected-error @below {{expected 'added_k' of the type of 'k', 'f16', got 'bf16'}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x64xf16>, memref<30x2x16x64xf16>, memref<30x2x16x64xf16>)
    outs(%q : memref<2x8x1x64xf16>)
    pages(%t : memref<2x9xi32>) kv_lengths(%n : memref<2xi32>)
    added(%ak, %av, %at, %an : memref<50x2x1x64xbf16>, memref<50x2x1x64xf16>, memref<2x40xi32>, memref<2xi32>)
    {page_size = 16, added_page_size = 1}
  return
}

// -----

func.func @attention_c59_rows(%q: memref<2x8x1x64xf16>, %k: memref<30x2x16x64xf16>, %t: memref<2x9xi32>,
    %n: memref<2xi32>, %ak: memref<50x2x1x64xf16>, %av: memref<50x2x1x64xf16>, %at: memref<2x40xi32>, %an: memref<2xi32>) {
  // expected-error @below {{expected dimension 2 of 'added_k' to be 'added_page_size' = 4, got 1}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x64xf16>, memref<30x2x16x64xf16>, memref<30x2x16x64xf16>)
    outs(%q : memref<2x8x1x64xf16>)
    pages(%t : memref<2x9xi32>) kv_lengths(%n : memref<2xi32>)
    added(%ak, %av, %at, %an : memref<50x2x1x64xf16>, memref<50x2x1x64xf16>, memref<2x40xi32>, memref<2xi32>)
    {page_size = 16, added_page_size = 4}
  return
}

// -----

// expected-note @below {{dimension 1 of 'k' is 2}}
func.func @attention_c59_heads(%q: memref<2x8x1x64xf16>, %k: memref<30x2x16x64xf16>, %t: memref<2x9xi32>,
    %n: memref<2xi32>, %ak: memref<50x4x1x64xf16>, %av: memref<50x2x1x64xf16>, %at: memref<2x40xi32>, %an: memref<2xi32>) {
  // expected-error @below {{expected dimension 1 of 'added_k' (key heads) to be 2, got 4}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x64xf16>, memref<30x2x16x64xf16>, memref<30x2x16x64xf16>)
    outs(%q : memref<2x8x1x64xf16>)
    pages(%t : memref<2x9xi32>) kv_lengths(%n : memref<2xi32>)
    added(%ak, %av, %at, %an : memref<50x4x1x64xf16>, memref<50x2x1x64xf16>, memref<2x40xi32>, memref<2xi32>)
    {page_size = 16, added_page_size = 1}
  return
}

// -----

// expected-note @below {{dimension 3 of 'v' is 64}}
func.func @attention_c59_columns(%q: memref<2x8x1x64xf16>, %k: memref<30x2x16x64xf16>, %t: memref<2x9xi32>,
    %n: memref<2xi32>, %ak: memref<50x2x1x64xf16>, %av: memref<50x2x1x32xf16>, %at: memref<2x40xi32>, %an: memref<2xi32>) {
  // expected-error @below {{expected dimension 3 of 'added_v' (columns) to be 64, got 32}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x64xf16>, memref<30x2x16x64xf16>, memref<30x2x16x64xf16>)
    outs(%q : memref<2x8x1x64xf16>)
    pages(%t : memref<2x9xi32>) kv_lengths(%n : memref<2xi32>)
    added(%ak, %av, %at, %an : memref<50x2x1x64xf16>, memref<50x2x1x32xf16>, memref<2x40xi32>, memref<2xi32>)
    {page_size = 16, added_page_size = 1}
  return
}

// -----

func.func @attention_c59_pages(%q: memref<2x8x1x64xf16>, %k: memref<30x2x16x64xf16>, %t: memref<2x9xi32>,
    // expected-note @below {{dimension 0 of 'added_k' is 50}}
    %n: memref<2xi32>, %ak: memref<50x2x1x64xf16>, %av: memref<49x2x1x64xf16>, %at: memref<2x40xi32>, %an: memref<2xi32>) {
  // expected-error @below {{expected dimension 0 of 'added_v' (added pages) to be 50, got 49}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x64xf16>, memref<30x2x16x64xf16>, memref<30x2x16x64xf16>)
    outs(%q : memref<2x8x1x64xf16>)
    pages(%t : memref<2x9xi32>) kv_lengths(%n : memref<2xi32>)
    added(%ak, %av, %at, %an : memref<50x2x1x64xf16>, memref<49x2x1x64xf16>, memref<2x40xi32>, memref<2xi32>)
    {page_size = 16, added_page_size = 1}
  return
}

// -----

// expected-note @below {{dimension 0 of 'q' is 2}}
func.func @attention_c59_batch(%q: memref<2x8x1x64xf16>, %k: memref<30x2x16x64xf16>, %t: memref<2x9xi32>,
    %n: memref<2xi32>, %ak: memref<50x2x1x64xf16>, %av: memref<50x2x1x64xf16>, %at: memref<2x40xi32>, %an: memref<3xi32>) {
  // expected-error @below {{expected dimension 0 of 'added_lengths' (batch) to be 2, got 3}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x64xf16>, memref<30x2x16x64xf16>, memref<30x2x16x64xf16>)
    outs(%q : memref<2x8x1x64xf16>)
    pages(%t : memref<2x9xi32>) kv_lengths(%n : memref<2xi32>)
    added(%ak, %av, %at, %an : memref<50x2x1x64xf16>, memref<50x2x1x64xf16>, memref<2x40xi32>, memref<3xi32>)
    {page_size = 16, added_page_size = 1}
  return
}

// -----

func.func @attention_c59_table(%q: memref<2x8x1x64xf16>, %k: memref<30x2x16x64xf16>, %t: memref<2x9xi32>,
    %n: memref<2xi32>, %ak: memref<50x2x1x64xf16>, %av: memref<50x2x1x64xf16>, %at: memref<2x40xi64>, %an: memref<2xi32>) {
  // expected-error @below {{expected 'added_table' of type i32, got 'i64'}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x64xf16>, memref<30x2x16x64xf16>, memref<30x2x16x64xf16>)
    outs(%q : memref<2x8x1x64xf16>)
    pages(%t : memref<2x9xi32>) kv_lengths(%n : memref<2xi32>)
    added(%ak, %av, %at, %an : memref<50x2x1x64xf16>, memref<50x2x1x64xf16>, memref<2x40xi64>, memref<2xi32>)
    {page_size = 16, added_page_size = 1}
  return
}

// -----

func.func @attention_c59_columns(%q: memref<2x8x1x64xf16>, %k: memref<30x2x16x64xf16>, %t: memref<2x9xi32>,
    %n: memref<2xi32>, %ak: memref<50x2x1x64xf16>, %av: memref<50x2x1x64xf16>, %at: memref<2x0xi32>, %an: memref<2xi32>) {
  // expected-error @below {{expected dimension 1 of 'added_table' to be at least 1, got 0}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x64xf16>, memref<30x2x16x64xf16>, memref<30x2x16x64xf16>)
    outs(%q : memref<2x8x1x64xf16>)
    pages(%t : memref<2x9xi32>) kv_lengths(%n : memref<2xi32>)
    added(%ak, %av, %at, %an : memref<50x2x1x64xf16>, memref<50x2x1x64xf16>, memref<2x0xi32>, memref<2xi32>)
    {page_size = 16, added_page_size = 1}
  return
}

// -----

func.func @attention_c59_no_pages(%q: memref<2x8x1x64xf16>, %k: memref<30x2x16x64xf16>, %t: memref<2x9xi32>,
    %n: memref<2xi32>, %ak: memref<0x2x1x64xf16>, %av: memref<0x2x1x64xf16>, %at: memref<2x40xi32>, %an: memref<2xi32>) {
  // expected-error @below {{expected dimension 0 of 'added_k' to be at least 1, got 0}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x64xf16>, memref<30x2x16x64xf16>, memref<30x2x16x64xf16>)
    outs(%q : memref<2x8x1x64xf16>)
    pages(%t : memref<2x9xi32>) kv_lengths(%n : memref<2xi32>)
    added(%ak, %av, %at, %an : memref<0x2x1x64xf16>, memref<0x2x1x64xf16>, memref<2x40xi32>, memref<2xi32>)
    {page_size = 16, added_page_size = 1}
  return
}

// -----

func.func @attention_c59_rank(%q: memref<2x8x1x64xf16>, %k: memref<30x2x16x64xf16>, %t: memref<2x9xi32>,
    %n: memref<2xi32>, %ak: memref<50x2x1x64xf16>, %av: memref<50x2x1x64xf16>, %at: memref<80xi32>, %an: memref<2xi32>) {
  // expected-error @below {{expected 'added_table' of rank 2, got 'memref<80xi32>'}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x64xf16>, memref<30x2x16x64xf16>, memref<30x2x16x64xf16>)
    outs(%q : memref<2x8x1x64xf16>)
    pages(%t : memref<2x9xi32>) kv_lengths(%n : memref<2xi32>)
    added(%ak, %av, %at, %an : memref<50x2x1x64xf16>, memref<50x2x1x64xf16>, memref<80xi32>, memref<2xi32>)
    {page_size = 16, added_page_size = 1}
  return
}

// -----

func.func @attention_c60_pages(%q: memref<2x8x1x64xf16>, %k: memref<2x2x16x64xf16>, %t: memref<2x9xi32>,
    %n: memref<2xi32>, %ak: memref<50x2x1x64xf16>, %av: memref<50x2x1x64xf16>, %at: memref<2x40xi32>, %an: memref<2xi32>) {
  // expected-error @below {{expected added keys only beside a page table}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x64xf16>, memref<2x2x16x64xf16>, memref<2x2x16x64xf16>)
    outs(%q : memref<2x8x1x64xf16>) kv_lengths(%n : memref<2xi32>)
    added(%ak, %av, %at, %an : memref<50x2x1x64xf16>, memref<50x2x1x64xf16>, memref<2x40xi32>, memref<2xi32>)
    {added_page_size = 1}
  return
}

// -----

func.func @attention_c60_mask(%q: memref<2x8x1x64xf16>, %k: memref<30x2x16x64xf16>, %t: memref<2x9xi32>,
    %n: memref<2xi32>, %ak: memref<50x2x1x64xf16>, %av: memref<50x2x1x64xf16>, %at: memref<2x40xi32>, %an: memref<2xi32>) {
  // expected-error @below {{expected a mask that counts from the last key, align = bottom_right, beside added keys, got top_left}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x64xf16>, memref<30x2x16x64xf16>, memref<30x2x16x64xf16>)
    outs(%q : memref<2x8x1x64xf16>)
    pages(%t : memref<2x9xi32>) kv_lengths(%n : memref<2xi32>)
    added(%ak, %av, %at, %an : memref<50x2x1x64xf16>, memref<50x2x1x64xf16>, memref<2x40xi32>, memref<2xi32>)
    {page_size = 16, added_page_size = 1, mask = #attn.mask<kind = causal>}
  return
}

// -----

func.func @attention_c60_selected(%q: memref<2x8x1x64xf16>, %k: memref<30x2x16x64xf16>, %t: memref<2x9xi32>,
    %n: memref<2xi32>, %ak: memref<50x2x1x64xf16>, %av: memref<50x2x1x64xf16>, %at: memref<2x40xi32>, %an: memref<2xi32>) {
  // expected-error @below {{expected no added keys beside 'selected'}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x64xf16>, memref<30x2x16x64xf16>, memref<30x2x16x64xf16>)
    outs(%q : memref<2x8x1x64xf16>)
    pages(%t : memref<2x9xi32>) kv_lengths(%n : memref<2xi32>)
    added(%ak, %av, %at, %an : memref<50x2x1x64xf16>, memref<50x2x1x64xf16>, memref<2x40xi32>, memref<2xi32>)
    {page_size = 16, added_page_size = 1, selected}
  return
}

// -----

func.func @attention_c59_latent(%q: memref<2x8x1x64xf16>, %k: memref<30x1x16x64xf16>, %t: memref<2x9xi32>,
    %n: memref<2xi32>, %ak: memref<50x1x1x64xf16>, %at: memref<2x40xi32>) {
  // expected-error @below {{expected no 'added_v' with 'rope_dim', whose values are columns of the keys, got one}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x64xf16>, memref<30x1x16x64xf16>, memref<30x1x16x64xf16>)
    outs(%q : memref<2x8x1x64xf16>) pages(%t : memref<2x9xi32>) kv_lengths(%n : memref<2xi32>)
    added(%ak, %ak, %at, %n : memref<50x1x1x64xf16>, memref<50x1x1x64xf16>, memref<2x40xi32>, memref<2xi32>)
    {page_size = 16, added_page_size = 1, rope_dim = 0}
  return
}

// -----

func.func @attention_c59_values(%q: memref<2x8x1x64xf16>, %k: memref<30x2x16x64xf16>, %t: memref<2x9xi32>,
    %n: memref<2xi32>, %ak: memref<50x2x1x64xf16>, %at: memref<2x40xi32>) {
  // expected-error @below {{expected 'added_v' beside 'added_k', got none}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x64xf16>, memref<30x2x16x64xf16>, memref<30x2x16x64xf16>)
    outs(%q : memref<2x8x1x64xf16>) pages(%t : memref<2x9xi32>) kv_lengths(%n : memref<2xi32>)
    added(%ak, %at, %n : memref<50x2x1x64xf16>, memref<2x40xi32>, memref<2xi32>)
    {page_size = 16, added_page_size = 1}
  return
}

// -----

func.func @added_form(%q: memref<2x8x1x64xf16>, %k: memref<30x2x16x64xf16>, %t: memref<2x9xi32>, %n: memref<2xi32>) {
  attn.attention ins(%q, %k, %k : memref<2x8x1x64xf16>, memref<30x2x16x64xf16>, memref<30x2x16x64xf16>)
    outs(%q : memref<2x8x1x64xf16>) pages(%t : memref<2x9xi32>) kv_lengths(%n : memref<2xi32>)
    // expected-error @below {{expected keys, values, a table and lengths, or latent keys, a table and lengths, with as many types, got 2 and 2}}
    added(%t, %n : memref<2x9xi32>, memref<2xi32>)
    {page_size = 16, added_page_size = 1}
  return
}

// -----

func.func @attention_c60_expected(%q: memref<2x8x1x64xf16>, %k: memref<30x2x16x64xf16>, %t: memref<2x9xi32>,
    %n: memref<2xi32>, %ak: memref<50x2x1x64xf16>, %av: memref<50x2x1x64xf16>, %at: memref<2x40xi32>, %an: memref<2xi32>) {
  // expected-error @below {{expected no added keys beside 'expected_keys'}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x64xf16>, memref<30x2x16x64xf16>, memref<30x2x16x64xf16>)
    outs(%q : memref<2x8x1x64xf16>)
    pages(%t : memref<2x9xi32>) kv_lengths(%n : memref<2xi32>)
    added(%ak, %av, %at, %an : memref<50x2x1x64xf16>, memref<50x2x1x64xf16>, memref<2x40xi32>, memref<2xi32>)
    {page_size = 16, added_page_size = 1, expected_keys = array<i64: 100, 9>}
  return
}

// -----

func.func @attention_c60_score_mod(%q: memref<2x8x1x64xf16>, %k: memref<30x2x16x64xf16>, %t: memref<2x9xi32>,
    %n: memref<2xi32>, %ak: memref<50x2x1x64xf16>, %av: memref<50x2x1x64xf16>, %at: memref<2x40xi32>, %an: memref<2xi32>) {
  // expected-error @below {{expected no added keys beside 'score_mod'}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x64xf16>, memref<30x2x16x64xf16>, memref<30x2x16x64xf16>)
    outs(%q : memref<2x8x1x64xf16>)
    pages(%t : memref<2x9xi32>) kv_lengths(%n : memref<2xi32>)
    added(%ak, %av, %at, %an : memref<50x2x1x64xf16>, memref<50x2x1x64xf16>, memref<2x40xi32>, memref<2xi32>)
    score_mod {
    ^bb0(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32):
      attn.yield %s : f32
    }
    {page_size = 16, added_page_size = 1}
  return
}

// -----

func.func @attention_c60_mask_mod(%q: memref<2x8x1x64xf16>, %k: memref<30x2x16x64xf16>, %t: memref<2x9xi32>,
    %n: memref<2xi32>, %ak: memref<50x2x1x64xf16>, %av: memref<50x2x1x64xf16>, %at: memref<2x40xi32>, %an: memref<2xi32>) {
  // expected-error @below {{expected no added keys beside 'mask_mod'}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x64xf16>, memref<30x2x16x64xf16>, memref<30x2x16x64xf16>)
    outs(%q : memref<2x8x1x64xf16>)
    pages(%t : memref<2x9xi32>) kv_lengths(%n : memref<2xi32>)
    added(%ak, %av, %at, %an : memref<50x2x1x64xf16>, memref<50x2x1x64xf16>, memref<2x40xi32>, memref<2xi32>)
    mask_mod {
    ^bb0(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32):
      %c = arith.cmpi sle, %j, %i : i32
      attn.yield %c : i1
    }
    {page_size = 16, added_page_size = 1}
  return
}
