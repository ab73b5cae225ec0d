// RUN: attn-opt %s -split-input-file -verify-diagnostics

// Masks and functions of elements.

func.func @f(%t: tensor<128xf32, #attn.auto>, %i: i32) {
  // expected-error @below {{expected a float tile of rank 2, got 'tensor<128xf32, #attn.auto>'}}
  %r = attn.apply_mask %t[%i, %i] limit %i : tensor<128xf32, #attn.auto>
  return
}

// -----

func.func @f(%t: tensor<128x64xf32, #attn.auto>, %i: i32) {
  // expected-error @below {{expected at least one of limit, lower, upper, rows and to}}
  %r = attn.apply_mask %t[%i, %i] : tensor<128x64xf32, #attn.auto>
  return
}

// -----

func.func @f(%t: tensor<128x64xf32, #attn.auto>, %i: i32, %from: tensor<64xi32, #attn.auto>) {
  // expected-error @below {{expected an i32 key for each of 128 rows, got 'tensor<64xi32, #attn.auto>'}}
  %r = attn.apply_mask %t[%i, %i] rows %from : tensor<64xi32, #attn.auto> : tensor<128x64xf32, #attn.auto>
  return
}

// -----

func.func @f(%t: tensor<128x64xf32, #attn.auto>, %i: i32, %all: i1) {
  // expected-error @below {{expected 'hides' beside 'unless', got none}}
  %r = attn.map_elements %t[%i, %i] unless %all : tensor<128x64xf32, #attn.auto> {
  ^bb0(%x: f32, %q: i32, %k: i32):
    attn.yield %x : f32
  }
  return
}

// -----

func.func @f(%i: i32, %all: i1) {
  // expected-error @below {{expected results of rank 1, got 'tensor<64x4xi32, #attn.auto>'}}
  %from, %to, %exact = attn.row_keys of %i same %all from %i to %i : tensor<64x4xi32, #attn.auto>, tensor<64x4xi32, #attn.auto> {
  ^bb0(%r: i32):
    attn.yield %r, %r, %r, %r : i32, i32, i32, i32
  }
  return
}

// -----

func.func @f(%i: i32, %all: i1) {
  // expected-error @below {{expected an i32 key for each of 64 rows, got 'tensor<64xf32, #attn.auto>'}}
  %from, %to, %exact = attn.row_keys of %i same %all from %i to %i : tensor<64xi32, #attn.auto>, tensor<64xf32, #attn.auto> {
  ^bb0(%r: i32):
    attn.yield %r, %r, %r, %r : i32, i32, i32, i32
  }
  return
}

// -----

func.func @f(%i: i32, %all: i1) {
  // expected-error @below {{expected results of one type, got 'tensor<64xi32, #attn.auto>' and 'tensor<64xi32>'}}
  %from, %to, %exact = attn.row_keys of %i same %all from %i to %i : tensor<64xi32, #attn.auto>, tensor<64xi32> {
  ^bb0(%r: i32):
    attn.yield %r, %r, %r, %r : i32, i32, i32, i32
  }
  return
}

// -----

func.func @f(%i: i32, %all: i1) {
  // expected-error @below {{expected region arguments (i32), got ('index')}}
  %from, %to, %exact = attn.row_keys of %i same %all from %i to %i : tensor<64xi32, #attn.auto>, tensor<64xi32, #attn.auto> {
  ^bb0(%r: index):
    attn.yield %i, %i, %i, %i : i32, i32, i32, i32
  }
  return
}

// -----

func.func @f(%i: i32, %all: i1) {
  %from, %to, %exact = attn.row_keys of %i same %all from %i to %i : tensor<64xi32, #attn.auto>, tensor<64xi32, #attn.auto> {
  ^bb0(%r: i32):
    // expected-error @below {{expected four i32, got ('i32', 'i32')}}
    attn.yield %r, %r : i32, i32
  }
  return
}

// -----

func.func @f(%t: tensor<128x64xf32, #attn.auto>, %i: i32) -> tensor<128x64xf32, #attn.auto> {
  // expected-error @below {{expected at least one row of a query, got 0}}
  %r = attn.apply_mask %t[%i, %i] limit %i {group = 0 : i64} : tensor<128x64xf32, #attn.auto>
  return %r : tensor<128x64xf32, #attn.auto>
}

// -----

func.func @f(%t: tensor<128x64xf32, #attn.auto>, %i: i32) {
  // expected-error @below {{expected region arguments ('f32', i32, i32), got ('f32', 'i32')}}
  %r = attn.map_elements %t[%i, %i] : tensor<128x64xf32, #attn.auto> {
  ^bb0(%x: f32, %q: i32):
    attn.yield %x : f32
  }
  return
}

// -----

func.func @f(%t: tensor<128x64xf32, #attn.auto>, %i: i32) {
  %r = attn.map_elements %t[%i, %i] : tensor<128x64xf32, #attn.auto> {
  ^bb0(%x: f32, %q: i32, %k: i32):
    // expected-error @below {{expected one value of type 'f32', got ('i32')}}
    attn.yield %q : i32
  }
  return
}

// -----

func.func @f(%s: tensor<64x24xf32, #attn.auto>, %i: i32) {
  // expected-error @below {{expected a tile with a multiple of 16 columns for 'quads', got 'tensor<64x24xf32, #attn.auto>'}}
  %r = attn.apply_mask %s[%i, %i] limit %i {quads} : tensor<64x24xf32, #attn.auto>
  return
}

// -----

func.func @f(%s: tensor<64xf32, #attn.auto>, %i: i32) {
  // expected-error @below {{expected a tile with a multiple of 16 columns for 'quads', got 'tensor<64xf32, #attn.auto>'}}
  %r = attn.map_elements %s[%i, %i] {quads} : tensor<64xf32, #attn.auto> {
  ^bb0(%x: f32, %q: i32, %k: i32):
    attn.yield %x : f32
  }
  return
}
