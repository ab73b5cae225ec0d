// RUN: attn-opt %s -split-input-file -verify-diagnostics

func.func @rank(%a: !attn.buffer<2x64x64xf16, #attn.auto, shared>, %b: !attn.buffer<64x64xf16, #attn.auto, shared>) {
  // expected-error @below {{expected 'a' of rank 2, got rank 3}}
  %s = attn.wgmma %a, %b : !attn.buffer<2x64x64xf16, #attn.auto, shared>, !attn.buffer<64x64xf16, #attn.auto, shared> -> !attn.inflight<64x64xf32>
  return
}

// -----

func.func @contraction(%a: !attn.buffer<64x32xf16, #attn.auto, shared>, %b: !attn.buffer<64x64xf16, #attn.auto, shared>) {
  // expected-error @below {{expected the contraction extents of 'a' and 'b' to agree, got 32 and 64}}
  %s = attn.wgmma %a, %b : !attn.buffer<64x32xf16, #attn.auto, shared>, !attn.buffer<64x64xf16, #attn.auto, shared> -> !attn.inflight<64x64xf32>
  return
}

// -----

func.func @shape(%a: !attn.buffer<64x64xf16, #attn.auto, shared>, %b: !attn.buffer<64x64xf16, #attn.auto, shared>) {
  // expected-error @below {{expected an accumulator of 64 x 64, got 64 x 32}}
  %s = attn.wgmma %a, %b : !attn.buffer<64x64xf16, #attn.auto, shared>, !attn.buffer<64x64xf16, #attn.auto, shared> -> !attn.inflight<64x32xf32>
  return
}

// -----

func.func @accumulator(%a: !attn.buffer<64x64xf16, #attn.auto, shared>, %b: !attn.buffer<64x64xf16, #attn.auto, shared>, %c: tensor<64x32xf32, #attn.auto>) {
  // expected-error @below {{expected an accumulator like the result '!attn.inflight<64x64xf32>', got 'tensor<64x32xf32, #attn.auto>'}}
  %s = attn.wgmma %a, %b acc %c : tensor<64x32xf32, #attn.auto> : !attn.buffer<64x64xf16, #attn.auto, shared>, !attn.buffer<64x64xf16, #attn.auto, shared> -> !attn.inflight<64x64xf32>
  return
}

// -----

func.func @mixed(%a: !attn.buffer<64x64xf16, #attn.auto, shared>, %b: !attn.buffer<64x64xbf16, #attn.auto, shared>) {
  // expected-error @below {{expected operands of one element type, got 'f16' and 'bf16'}}
  %s = attn.wgmma %a, %b : !attn.buffer<64x64xf16, #attn.auto, shared>, !attn.buffer<64x64xbf16, #attn.auto, shared> -> !attn.inflight<64x64xf32>
  return
}

// -----

func.func @element(%a: !attn.buffer<64x64xi8, #attn.auto, shared>, %b: !attn.buffer<64x64xi8, #attn.auto, shared>) {
  // expected-error @below {{expected operands of f16, bf16, f8E4M3FN or f8E5M2, got 'i8'}}
  %s = attn.wgmma %a, %b : !attn.buffer<64x64xi8, #attn.auto, shared>, !attn.buffer<64x64xi8, #attn.auto, shared> -> !attn.inflight<64x64xf32>
  return
}

// -----

func.func @sizes(%a: !attn.buffer<32x64xf16, #attn.auto, shared>, %b: !attn.buffer<64x64xf16, #attn.auto, shared>) {
  // expected-error @below {{expected M x N x K with M a multiple of 64, N of 8 up to 384 and K of 16, got 32 x 64 x 64}}
  %s = attn.wgmma %a, %b : !attn.buffer<32x64xf16, #attn.auto, shared>, !attn.buffer<64x64xf16, #attn.auto, shared> -> !attn.inflight<32x64xf32>
  return
}

// -----

func.func @accumulator(%a: !attn.buffer<64x64xf16, #attn.auto, shared>, %b: !attn.buffer<64x64xf16, #attn.auto, shared>) {
  // expected-error @below {{expected no layout, or 64 rows in copies or runs of columns of four warps in #attn.mma, got '!attn.inflight<64x64xf32, #attn.mma<warps = [4, 2]>>'}}
  %s = attn.wgmma %a, %b : !attn.buffer<64x64xf16, #attn.auto, shared>, !attn.buffer<64x64xf16, #attn.auto, shared> -> !attn.inflight<64x64xf32, #attn.mma<warps = [4, 2]>>
  return
}

// -----

func.func @divided(%a: !attn.buffer<64x64xf16, #attn.auto, shared>, %b: !attn.buffer<64x128xf16, #attn.auto, shared>) {
  // expected-error @below {{expected all columns of 'b' where warpgroups divide them}}
  %s = attn.wgmma %a, %b {columns = 64 : i64} : !attn.buffer<64x64xf16, #attn.auto, shared>, !attn.buffer<64x128xf16, #attn.auto, shared> -> !attn.inflight<64x64xf32, #attn.mma<warps = [4, 2], column_runs = true>>
  return
}

// -----

func.func @columns(%a: !attn.buffer<64x64xf16, #attn.auto, shared>, %b: !attn.buffer<64x392xf16, #attn.auto, shared>) {
  // expected-error @below {{expected M x N x K with M a multiple of 64, N of 8 up to 384 and K of 16, got 64 x 392 x 64}}
  %s = attn.wgmma %a, %b : !attn.buffer<64x64xf16, #attn.auto, shared>, !attn.buffer<64x392xf16, #attn.auto, shared> -> !attn.inflight<64x392xf32>
  return
}

// -----

func.func @pending(%s: !attn.inflight<64x64xf32>) {
  // expected-error @below {{expected 0 to 7 pending groups, got 8}}
  %r = attn.wgmma.wait %s {pending = 8} : !attn.inflight<64x64xf32> -> tensor<64x64xf32, #attn.auto>
  return
}

// -----

func.func @tile(%s: !attn.inflight<64x64xf32>) {
  // expected-error @below {{expected a tile like '!attn.inflight<64x64xf32>', got 'tensor<64x32xf32, #attn.auto>'}}
  %r = attn.wgmma.wait %s {pending = 0} : !attn.inflight<64x64xf32> -> tensor<64x32xf32, #attn.auto>
  return
}

// -----

func.func @resume(%o: tensor<64x32xf32, #attn.auto>) {
  // expected-error @below {{expected a tile like '!attn.inflight<64x64xf32>', got 'tensor<64x32xf32, #attn.auto>'}}
  %f = attn.wgmma.resume %o : tensor<64x32xf32, #attn.auto> -> !attn.inflight<64x64xf32>
  return
}

// -----

func.func @narrow_types(%p: tensor<64x32xf16, #attn.auto>) {
  // expected-error @below {{expected f32 elements to become f8E4M3FN or f8E5M2, got 'f16' and 'f8E4M3FN'}}
  %a = attn.narrow_operand %p : tensor<64x32xf16, #attn.auto> -> tensor<64x32xf8E4M3FN, #attn.auto>
  return
}

// -----

func.func @narrow_shape(%p: tensor<64x48xf32, #attn.auto>) {
  // expected-error @below {{expected two M x K tiles with K a multiple of 32, got 'tensor<64x48xf32, #attn.auto>' and 'tensor<64x48xf8E5M2, #attn.auto>'}}
  %a = attn.narrow_operand %p : tensor<64x48xf32, #attn.auto> -> tensor<64x48xf8E5M2, #attn.auto>
  return
}

// -----

func.func @transpose_types(%v: !attn.buffer<64x64xf16, #attn.auto, shared>, %t: !attn.buffer<64x64xf16, #attn.auto, shared>) {
  // expected-error @below {{expected buffers of one 8-bit type, got 'f16' and 'f16'}}
  attn.local_transpose %v, %t : !attn.buffer<64x64xf16, #attn.auto, shared>, !attn.buffer<64x64xf16, #attn.auto, shared>
  return
}

// -----

func.func @transpose_source(%v: !attn.buffer<48x64xf8E5M2, #attn.auto, shared>, %t: !attn.buffer<64x48xf8E5M2, #attn.auto, shared>) {
  // expected-error @below {{expected a source of K x N with K a multiple of 32 and N of 16, got '!attn.buffer<48x64xf8E5M2, #attn.auto, shared>'}}
  attn.local_transpose %v, %t : !attn.buffer<48x64xf8E5M2, #attn.auto, shared>, !attn.buffer<64x48xf8E5M2, #attn.auto, shared>
  return
}

// -----

func.func @transpose_dest(%v: !attn.buffer<32x64xf8E5M2, #attn.auto, shared>, %t: !attn.buffer<32x64xf8E5M2, #attn.auto, shared>) {
  // expected-error @below {{expected a destination of 64 x 32, got '!attn.buffer<32x64xf8E5M2, #attn.auto, shared>'}}
  attn.local_transpose %v, %t : !attn.buffer<32x64xf8E5M2, #attn.auto, shared>, !attn.buffer<32x64xf8E5M2, #attn.auto, shared>
  return
}

// -----

func.func @depth_from_first(%a: !attn.buffer<64x64xf16, #attn.auto, shared>, %b: !attn.buffer<64x64xf16, #attn.auto, shared>) {
  // expected-error @below {{expected a depth from 1 to the contraction extents 64 and 32, got 48}}
  %s = attn.wgmma %a, %b {depth = 48 : i64, first = 32 : i64} : !attn.buffer<64x64xf16, #attn.auto, shared>, !attn.buffer<64x64xf16, #attn.auto, shared> -> !attn.inflight<64x64xf32>
  return
}

// -----

func.func @first(%a: !attn.buffer<64x64xf16, #attn.auto, shared>, %b: !attn.buffer<64x64xf16, #attn.auto, shared>) {
  // expected-error @below {{expected 'first' to be a multiple of 16 from 0 on, got 8}}
  %s = attn.wgmma %a, %b {depth = 16 : i64, first = 8 : i64} : !attn.buffer<64x64xf16, #attn.auto, shared>, !attn.buffer<64x64xf16, #attn.auto, shared> -> !attn.inflight<64x64xf32>
  return
}

// -----

func.func @first_alone(%a: !attn.buffer<64x64xf16, #attn.auto, shared>, %b: !attn.buffer<64x64xf16, #attn.auto, shared>) {
  // expected-error @below {{expected a depth beside 'first', got none}}
  %s = attn.wgmma %a, %b {first = 16 : i64} : !attn.buffer<64x64xf16, #attn.auto, shared>, !attn.buffer<64x64xf16, #attn.auto, shared> -> !attn.inflight<64x64xf32>
  return
}

// -----

func.func @depth(%a: !attn.buffer<64x64xf16, #attn.auto, shared>, %b: !attn.buffer<32x64xf16, #attn.auto, shared>) {
  // expected-error @below {{expected a depth from 1 to the contraction extents 64 and 32, got 48}}
  %s = attn.wgmma %a, %b {depth = 48 : i64} : !attn.buffer<64x64xf16, #attn.auto, shared>, !attn.buffer<32x64xf16, #attn.auto, shared> -> !attn.inflight<64x64xf32>
  return
}

// -----

func.func @columns(%a: !attn.buffer<64x64xf16, #attn.auto, shared>, %b: !attn.buffer<64x32xf16, #attn.auto, shared>) {
  // expected-error @below {{expected 1 to 32 columns, got 64}}
  %s = attn.wgmma %a, %b {columns = 64 : i64} : !attn.buffer<64x64xf16, #attn.auto, shared>, !attn.buffer<64x32xf16, #attn.auto, shared> -> !attn.inflight<64x64xf32>
  return
}

// -----

func.func @extend(%p: tensor<64x64xf16, #attn.auto>) {
  // expected-error @below {{expected a tile of the source's rows and type with at least as many columns, got 'tensor<64x32xf16, #attn.auto>' for 'tensor<64x64xf16, #attn.auto>'}}
  %e = attn.extend_columns %p : tensor<64x64xf16, #attn.auto> -> tensor<64x32xf16, #attn.auto>
  return
}
