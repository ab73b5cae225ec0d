// RUN: attn-opt %s -split-input-file -verify-diagnostics

func.func @order(%i: i32) {
  // expected-error @+1 {{expected the order longest_first with groups, got row_major}}
  %b, %h, %r = attn.tile_place %i of %i heads %i of %i rows 64 row_major group 8
  return
}

// -----

func.func @alternating(%i: i32) {
  // expected-error @+1 {{expected a group with alternating, got none}}
  %b, %h, %r = attn.tile_place %i of %i heads %i of %i rows 64 longest_first alternating
  return
}

// -----

func.func @rows(%i: i32) {
  // expected-error @+1 {{attribute 'rows' failed to satisfy constraint}}
  %b, %h, %r = attn.tile_place %i of %i heads %i of %i rows 0 longest_first
  return
}

// -----

func.func @block(%i: i32) {
  // expected-error @+1 {{attribute 'block' failed to satisfy constraint}}
  %b, %fb, %fe, %e = attn.key_blocks %i queries %i keys %i mask <kind = none> rows 64 block 0
  return
}

// -----

func.func @range(%i: i32) {
  // expected-error @+1 {{expected a range of 2 or 4 numbers, got 3}}
  %b, %fb, %fe, %e = attn.key_blocks %i queries %i keys %i range %i, %i, %i mask <kind = none> rows 64 block 64
  return
}

// -----

func.func @strides(%i: i32) {
  // expected-error @+1 {{expected a stride for each index, 1, got 2}}
  %o = attn.element_offset [%i] strides [1, 2]
  return
}

// -----

func.func @indices() {
  // expected-error @+1 {{expected at least one index, got none}}
  %o = attn.element_offset [] strides []
  return
}
