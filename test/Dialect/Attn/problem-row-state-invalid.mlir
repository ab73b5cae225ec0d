// RUN: attn-opt %s --split-input-file --verify-diagnostics

// What rows that are not divided, and keys that are expected, have to be (attention_c57, attention_c58).

func.func @attention_c57(%q: memref<1x2x3x64xf16>, %k: memref<1x2x9x64xf16>, %o: memref<1x2x3x64xf32>) {
  // expected-error @below {{expected 'lse' with 'row_state', for the maxima and sums of rows, got none}}
  attn.attention ins(%q, %k, %k : memref<1x2x3x64xf16>, memref<1x2x9x64xf16>, memref<1x2x9x64xf16>)
    outs(%o : memref<1x2x3x64xf32>) {row_state}
  return
}

// -----

func.func @attention_c57_rank(%q: memref<1x2x3x64xf16>, %k: memref<1x2x9x64xf16>, %o: memref<1x2x3x64xf32>, %l: memref<1x2x3xf32>) {
  // expected-error @below {{expected 'lse' of rank 4, got 'memref<1x2x3xf32>'}}
  attn.attention ins(%q, %k, %k : memref<1x2x3x64xf16>, memref<1x2x9x64xf16>, memref<1x2x9x64xf16>)
    outs(%o, %l : memref<1x2x3x64xf32>, memref<1x2x3xf32>) {row_state}
  return
}

// -----

func.func @attention_c57_numbers(%q: memref<1x2x3x64xf16>, %k: memref<1x2x9x64xf16>, %o: memref<1x2x3x64xf32>, %l: memref<1x2x3x3xf32>) {
  // expected-error @below {{expected two numbers in 'lse' for each row with 'row_state', got 3}}
  attn.attention ins(%q, %k, %k : memref<1x2x3x64xf16>, memref<1x2x9x64xf16>, memref<1x2x9x64xf16>)
    outs(%o, %l : memref<1x2x3x64xf32>, memref<1x2x3x3xf32>) {row_state}
  return
}

// -----

func.func @attention_c57_type(%q: memref<1x2x3x64xf16>, %k: memref<1x2x9x64xf16>, %o: memref<1x2x3x64xf16>, %l: memref<1x2x3x2xf32>) {
  // expected-error @below {{expected 'o' of type f32 with 'row_state', got 'f16'}}
  attn.attention ins(%q, %k, %k : memref<1x2x3x64xf16>, memref<1x2x9x64xf16>, memref<1x2x9x64xf16>)
    outs(%o, %l : memref<1x2x3x64xf16>, memref<1x2x3x2xf32>) {row_state}
  return
}

// -----

func.func @attention_c57_splits(%q: memref<1x2x3x64xf16>, %k: memref<1x2x9x64xf16>, %o: memref<2x1x2x3x64xf32>, %l: memref<2x1x2x3x4xf32>) {
  // expected-error @below {{expected two numbers in 'lse' for each row with 'row_state', got 4}}
  attn.attention ins(%q, %k, %k : memref<1x2x3x64xf16>, memref<1x2x9x64xf16>, memref<1x2x9x64xf16>)
    outs(%o, %l : memref<2x1x2x3x64xf32>, memref<2x1x2x3x4xf32>) {row_state, kv_splits = 2}
  return
}

// -----

func.func @attention_c57_init(%q: memref<1x2x3x64xf16>, %k: memref<1x2x9x64xf16>, %o: memref<1x2x3x64xf32>, %l: memref<1x2x3x2xf32>, %n: memref<1x2x3xf32>) {
  // expected-error @below {{expected no 'row_state' beside 'init'}}
  attn.attention ins(%q, %k, %k : memref<1x2x3x64xf16>, memref<1x2x9x64xf16>, memref<1x2x9x64xf16>)
    outs(%o, %l : memref<1x2x3x64xf32>, memref<1x2x3x2xf32>) init(%o, %n : memref<1x2x3x64xf32>, memref<1x2x3xf32>) {row_state}
  return
}

// -----

func.func @attention_c57_out_mod(%q: memref<1x2x3x64xf16>, %k: memref<1x2x9x64xf16>, %o: memref<1x2x3x64xf32>, %l: memref<1x2x3x2xf32>) {
  // expected-error @below {{expected no 'row_state' beside 'out_mod'}}
  attn.attention ins(%q, %k, %k : memref<1x2x3x64xf16>, memref<1x2x9x64xf16>, memref<1x2x9x64xf16>)
    outs(%o, %l : memref<1x2x3x64xf32>, memref<1x2x3x2xf32>) out_mod {
    ^bb0(%r: f32, %b: i32, %h: i32, %i: i32, %c: i32):
      attn.yield %r : f32
    } {row_state}
  return
}

// -----

func.func @attention_c58(%q: memref<1x2x3x64xf16>, %k: memref<1x2x9x64xf16>, %o: memref<1x2x3x64xf16>) {
  // expected-error @below {{expected 'expected_keys' only with cu_seqlens or 'kv_lengths'}}
  attn.attention ins(%q, %k, %k : memref<1x2x3x64xf16>, memref<1x2x9x64xf16>, memref<1x2x9x64xf16>)
    outs(%o : memref<1x2x3x64xf16>) {expected_keys = array<i64: 3>}
  return
}

// -----

func.func @attention_c58_none(%q: memref<1x2x3x64xf16>, %k: memref<1x2x9x64xf16>, %o: memref<1x2x3x64xf16>, %n: memref<1xi32>) {
  // expected-error @below {{expected at least one of 'expected_keys', got none}}
  attn.attention ins(%q, %k, %k : memref<1x2x3x64xf16>, memref<1x2x9x64xf16>, memref<1x2x9x64xf16>)
    outs(%o : memref<1x2x3x64xf16>) kv_lengths(%n : memref<1xi32>) {expected_keys = array<i64>}
  return
}

// -----

func.func @attention_c58_range(%q: memref<1x2x3x64xf16>, %k: memref<1x2x9x64xf16>, %o: memref<1x2x3x64xf16>, %n: memref<1xi32>) {
  // expected-error @below {{expected 'expected_keys' in [0, 2^31), got -1}}
  attn.attention ins(%q, %k, %k : memref<1x2x3x64xf16>, memref<1x2x9x64xf16>, memref<1x2x9x64xf16>)
    outs(%o : memref<1x2x3x64xf16>) kv_lengths(%n : memref<1xi32>) {expected_keys = array<i64: 4, -1>}
  return
}

// -----

func.func @combine_c15_no_lse(%po: memref<2x1x2x3x64xf32>, %pl: memref<2x1x2x3x2xf32>, %o: memref<1x2x3x64xf32>) {
  // expected-error @below {{expected 'lse' beside maxima and sums of rows in 'partial_lse', got none}}
  attn.combine ins(%po, %pl : memref<2x1x2x3x64xf32>, memref<2x1x2x3x2xf32>) outs(%o : memref<1x2x3x64xf32>)
  return
}

// -----

func.func @combine_c15_numbers(%po: memref<2x1x2x3x64xf32>, %pl: memref<2x1x2x3x3xf32>, %o: memref<1x2x3x64xf32>, %l: memref<1x2x3x2xf32>) {
  // expected-error @below {{expected two numbers in 'partial_lse' for each row, got 3}}
  attn.combine ins(%po, %pl : memref<2x1x2x3x64xf32>, memref<2x1x2x3x3xf32>)
    outs(%o, %l : memref<1x2x3x64xf32>, memref<1x2x3x2xf32>)
  return
}

// -----

func.func @combine_c15_type(%po: memref<2x1x2x3x64xf32>, %pl: memref<2x1x2x3x2xf32>, %o: memref<1x2x3x64xf16>, %l: memref<1x2x3x2xf32>) {
  // expected-error @below {{expected 'o' of type f32 beside maxima and sums of rows, got 'f16'}}
  attn.combine ins(%po, %pl : memref<2x1x2x3x64xf32>, memref<2x1x2x3x2xf32>)
    outs(%o, %l : memref<1x2x3x64xf16>, memref<1x2x3x2xf32>)
  return
}

// -----

func.func @combine_c15_out_mod(%po: memref<2x1x2x3x64xf32>, %pl: memref<2x1x2x3x2xf32>, %o: memref<1x2x3x64xf32>, %l: memref<1x2x3x2xf32>) {
  // expected-error @below {{expected no 'out_mod' beside maxima and sums of rows}}
  attn.combine ins(%po, %pl : memref<2x1x2x3x64xf32>, memref<2x1x2x3x2xf32>)
    outs(%o, %l : memref<1x2x3x64xf32>, memref<1x2x3x2xf32>) out_mod {
    ^bb0(%r: f32, %b: i32, %h: i32, %i: i32, %c: i32):
      attn.yield %r : f32
    }
  return
}

// -----

func.func @combine_c15_amax(%po: memref<2x1x2x3x64xf32>, %pl: memref<2x1x2x3x2xf32>, %o: memref<1x2x3x64xf32>, %l: memref<1x2x3x2xf32>, %a: memref<1xf32>) {
  // expected-error @below {{expected no 'amax' beside maxima and sums of rows}}
  attn.combine ins(%po, %pl : memref<2x1x2x3x64xf32>, memref<2x1x2x3x2xf32>)
    outs(%o, %l, %a : memref<1x2x3x64xf32>, memref<1x2x3x2xf32>, memref<1xf32>) {amax}
  return
}
