// RUN: attn-opt %s -split-input-file -verify-diagnostics

// What the matrix instruction refuses.

func.func @f(%a: tensor<64xf16, #attn.auto>, %b: tensor<64x32xf16, #attn.auto>, %c: tensor<64x32xf32, #attn.auto>) {
  // expected-error @below {{expected 'a' of rank 2, got rank 1}}
  %d = attn.mma %a, %b, %c : tensor<64xf16, #attn.auto>, tensor<64x32xf16, #attn.auto>, tensor<64x32xf32, #attn.auto>
  return
}

// -----

func.func @f(%a: tensor<64x64xf16, #attn.auto>, %b: tensor<32x32xf16, #attn.auto>, %c: tensor<64x32xf32, #attn.auto>) {
  // expected-error @below {{expected the contraction extents of 'a' and 'b' to agree, got 64 and 32}}
  %d = attn.mma %a, %b, %c : tensor<64x64xf16, #attn.auto>, tensor<32x32xf16, #attn.auto>, tensor<64x32xf32, #attn.auto>
  return
}

// -----

func.func @f(%a: tensor<64x64xf16, #attn.auto>, %b: tensor<64x32xf16, #attn.auto>, %c: tensor<64x64xf32, #attn.auto>) {
  // expected-error @below {{expected an accumulator of 64 x 32, got 64 x 64}}
  %d = attn.mma %a, %b, %c : tensor<64x64xf16, #attn.auto>, tensor<64x32xf16, #attn.auto>, tensor<64x64xf32, #attn.auto>
  return
}

// -----

func.func @f(%a: tensor<64x64xf16, #attn.auto>, %b: tensor<64x32xbf16, #attn.auto>, %c: tensor<64x32xf32, #attn.auto>) {
  // expected-error @below {{expected operands of one element type, got 'f16' and 'bf16'}}
  %d = attn.mma %a, %b, %c : tensor<64x64xf16, #attn.auto>, tensor<64x32xbf16, #attn.auto>, tensor<64x32xf32, #attn.auto>
  return
}

// -----

func.func @f(%a: tensor<64x64xf32, #attn.auto>, %b: tensor<64x32xf32, #attn.auto>, %c: tensor<64x32xf32, #attn.auto>) {
  // expected-error @below {{expected operands of f16, bf16, f8E4M3FN or f8E5M2, got 'f32'}}
  %d = attn.mma %a, %b, %c : tensor<64x64xf32, #attn.auto>, tensor<64x32xf32, #attn.auto>, tensor<64x32xf32, #attn.auto>
  return
}

// -----

func.func @f(%a: tensor<64x64xbf16, #attn.auto>, %b: tensor<64x32xbf16, #attn.auto>, %c: tensor<64x32xf16, #attn.auto>) {
  // expected-error @below {{expected an f32 accumulator (or f16 for f16 operands), got 'f16'}}
  %d = attn.mma %a, %b, %c : tensor<64x64xbf16, #attn.auto>, tensor<64x32xbf16, #attn.auto>, tensor<64x32xf16, #attn.auto>
  return
}

// -----

#blocked = #attn.blocked<per_thread = [1, 8], warps = 4, order = [1, 0]>
func.func @accumulator_layout(%a: tensor<64x16xf16, #attn.auto>, %b: tensor<16x64xf16, #attn.auto>, %c: tensor<64x64xf32, #blocked>) {
  // expected-error @below {{expected an accumulator with an #attn.mma layout, got 'tensor<64x64xf32, #attn.blocked<}}
  %d = attn.mma %a, %b, %c : tensor<64x16xf16, #attn.auto>, tensor<16x64xf16, #attn.auto>, tensor<64x64xf32, #blocked>
  return
}

// -----

func.func @f(%a: tensor<64x64xf16, #attn.auto>, %b: tensor<64x32xf16, #attn.auto>, %c: tensor<64x64xf32, #attn.auto>) {
  // expected-error @below {{expected columns of 'c' from 'column' on for the 32 of 'b', got column 48 of 64}}
  %d = attn.mma %a, %b, %c {column = 48} : tensor<64x64xf16, #attn.auto>, tensor<64x32xf16, #attn.auto>, tensor<64x64xf32, #attn.auto>
  return
}

// -----

func.func @f(%a: tensor<64x64xf16, #attn.auto>, %b: tensor<64x32xf16, #attn.auto>, %c: tensor<64x64xf32, #attn.auto>) {
  // expected-error @below {{expected columns of 'c' from 'column' on for the 32 of 'b', got column -8 of 64}}
  %d = attn.mma %a, %b, %c {column = -8} : tensor<64x64xf16, #attn.auto>, tensor<64x32xf16, #attn.auto>, tensor<64x64xf32, #attn.auto>
  return
}

// -----

func.func @depth_parts(%a: tensor<64x48xf16, #attn.auto>, %b: tensor<48x32xf16, #attn.auto>, %c: tensor<64x64xf32, #attn.auto>) {
  // expected-error @below {{expected 'depth_parts' without 'column' and a contraction of whole steps of 16 for each part, got 2 of 48}}
  %d = attn.mma %a, %b, %c {depth_parts = 2} : tensor<64x48xf16, #attn.auto>, tensor<48x32xf16, #attn.auto>, tensor<64x64xf32, #attn.auto>
  return
}

// -----

func.func @depth_parts_that_wrap(%a: tensor<64x48xf16, #attn.auto>, %b: tensor<48x32xf16, #attn.auto>, %c: tensor<64x64xf32, #attn.auto>) {
  // expected-error @below {{expected 'depth_parts' without 'column' and a contraction of whole steps of 16 for each part, got 1152921504606846979 of 48}}
  %d = attn.mma %a, %b, %c {depth_parts = 1152921504606846979} : tensor<64x48xf16, #attn.auto>, tensor<48x32xf16, #attn.auto>, tensor<64x64xf32, #attn.auto>
  return
}

// -----

func.func @depth_columns(%a: tensor<64x64xf16, #attn.auto>, %b: tensor<64x32xf16, #attn.auto>, %c: tensor<64x32xf32, #attn.auto>) {
  // expected-error @below {{expected an accumulator of 64 x 64, got 64 x 32}}
  %d = attn.mma %a, %b, %c {depth_parts = 2} : tensor<64x64xf16, #attn.auto>, tensor<64x32xf16, #attn.auto>, tensor<64x32xf32, #attn.auto>
  return
}

// -----

func.func @f16_sums(%a: tensor<64x16xbf16, #attn.auto>, %b: tensor<16x32xbf16, #attn.auto>, %c: tensor<64x32xf32, #attn.auto>) {
  // expected-error @below {{expected operands of f16 and an f32 accumulator with 'f16_sums', got 'bf16' and 'f32'}}
  %d = attn.mma %a, %b, %c {f16_sums} : tensor<64x16xbf16, #attn.auto>, tensor<16x32xbf16, #attn.auto>, tensor<64x32xf32, #attn.auto>
  return
}

// -----

// 8-bit elements become f16 beside f16 only.
func.func @f(%a: tensor<64x64xbf16, #attn.auto>, %b: !attn.buffer<64x32xf8E4M3FN, #attn.auto, shared>, %c: tensor<64x32xf32, #attn.auto>) {
  // expected-error @below {{expected a tile of f16 beside a buffer of 8-bit floats, got 'tensor<64x64xbf16, #attn.auto>'}}
  %d = attn.mma %a, %b, %c : tensor<64x64xbf16, #attn.auto>, !attn.buffer<64x32xf8E4M3FN, #attn.auto, shared>, tensor<64x32xf32, #attn.auto>
  return
}

// -----

func.func @f(%a: !attn.buffer<64x64xbf16, #attn.auto, shared>, %b: !attn.buffer<64x32xf8E4M3FN, #attn.auto, shared>, %c: tensor<64x32xf32, #attn.auto>) {
  // expected-error @below {{expected a tile of f16 beside a buffer of 8-bit floats, got '!attn.buffer<64x64xbf16, #attn.auto, shared>'}}
  %d = attn.mma %a, %b, %c : !attn.buffer<64x64xbf16, #attn.auto, shared>, !attn.buffer<64x32xf8E4M3FN, #attn.auto, shared>, tensor<64x32xf32, #attn.auto>
  return
}

// -----

func.func @f(%a: tensor<64x64xf16, #attn.auto>, %b: !attn.buffer<64x32xf8E4M3FN, #attn.auto, shared>, %c: tensor<64x32xf16, #attn.auto>) {
  // expected-error @below {{expected an f32 accumulator without 'depth_parts' and 'f16_sums' beside a buffer of 8-bit floats that become f16, got 'f16'}}
  %d = attn.mma %a, %b, %c : tensor<64x64xf16, #attn.auto>, !attn.buffer<64x32xf8E4M3FN, #attn.auto, shared>, tensor<64x32xf16, #attn.auto>
  return
}

// -----

// Columns in the other order are those of 8-bit operands.
func.func @f(%a: tensor<64x64xf16, #attn.auto>, %b: !attn.buffer<64x32xf16, #attn.auto, shared>, %c: tensor<64x32xf32, #attn.auto>) {
  // expected-error @below {{expected a buffer 'b' of 8-bit floats beside such an 'a' without 'depth_parts' with 'interleaved', got 'tensor<64x64xf16, #attn.auto>' and '!attn.buffer<64x32xf16, #attn.auto, shared>'}}
  %d = attn.mma %a, %b, %c {interleaved} : tensor<64x64xf16, #attn.auto>, !attn.buffer<64x32xf16, #attn.auto, shared>, tensor<64x32xf32, #attn.auto>
  return
}

// -----

func.func @f(%a: tensor<64x64xf8E4M3FN, #attn.auto>, %b: tensor<64x32xf8E5M2, #attn.auto>, %c: tensor<64x32xf32, #attn.auto>) {
  // expected-error @below {{expected a buffer 'b' of 8-bit floats beside such an 'a' without 'depth_parts' with 'interleaved', got 'tensor<64x64xf8E4M3FN, #attn.auto>' and 'tensor<64x32xf8E5M2, #attn.auto>'}}
  %d = attn.mma %a, %b, %c {interleaved} : tensor<64x64xf8E4M3FN, #attn.auto>, tensor<64x32xf8E5M2, #attn.auto>, tensor<64x32xf32, #attn.auto>
  return
}

// -----

func.func @far_column(%a: tensor<64x64xf16, #attn.auto>, %b: tensor<64x32xf16, #attn.auto>, %c: tensor<64x64xf32, #attn.auto>) {
  // expected-error @below {{expected columns of 'c' from 'column' on for the 32 of 'b', got column 9223372036854775807 of 64}}
  %d = attn.mma %a, %b, %c {column = 9223372036854775807} : tensor<64x64xf16, #attn.auto>, tensor<64x32xf16, #attn.auto>, tensor<64x64xf32, #attn.auto>
  return
}
