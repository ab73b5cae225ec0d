// RUN: attn-opt %s -split-input-file -verify-diagnostics

// Which extents attn.attention requires to agree, and their bounds. Functions
// are named after the constraint in docs/spec.md.

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
