// RUN: attn-opt %s -split-input-file -verify-diagnostics

// What the ops on buffers refuse.

func.func @f() {
  // expected-error @below {{expected a buffer in shared memory, got tmem}}
  %b = attn.alloc : !attn.buffer<64x128xf16, #attn.auto, tmem>
  return
}

// -----

func.func @f() {
  // expected-error @below {{expected an offset that is a multiple of 16 up to 16777216, got 8}}
  %b = attn.alloc {offset = 8 : i64} : !attn.buffer<64x128xf16, #attn.auto, shared>
  return
}

// -----

func.func @f(%r: !attn.buffer<64x128xf16, #attn.auto, shared>, %i: i32) {
  // expected-error @below {{expected a ring (a buffer of rank 3), got '!attn.buffer<64x128xf16, #attn.auto, shared>'}}
  %s = attn.slot %r[%i] : !attn.buffer<64x128xf16, #attn.auto, shared> -> !attn.buffer<128xf16, #attn.auto, shared>
  return
}

// -----

func.func @f(%r: !attn.buffer<2x64x128xf16, #attn.auto, shared>, %i: i32) {
  // expected-error @below {{expected the slot type '!attn.buffer<64x128xf16, #attn.auto, shared>', got '!attn.buffer<64x64xf16, #attn.auto, shared>'}}
  %s = attn.slot %r[%i] : !attn.buffer<2x64x128xf16, #attn.auto, shared> -> !attn.buffer<64x64xf16, #attn.auto, shared>
  return
}

// -----

func.func @f(%b: !attn.buffer<64x128xf16, #attn.auto, shared>) {
  // expected-error @below {{expected the element type 'f16' of the source, got 'bf16'}}
  %t = attn.transpose %b : !attn.buffer<64x128xf16, #attn.auto, shared> -> !attn.buffer<128x64xbf16, #attn.auto, shared>
  return
}

// -----

func.func @f(%b: !attn.buffer<64x128xf16, #attn.auto, shared>) {
  // expected-error @below {{expected the memory space shared of the source, got tmem}}
  %t = attn.transpose %b : !attn.buffer<64x128xf16, #attn.auto, shared> -> !attn.buffer<128x64xf16, #attn.auto, tmem>
  return
}

// -----

func.func @f(%b: !attn.buffer<128xf16, #attn.auto, shared>) {
  // expected-error @below {{expected buffers of rank 2, got}}
  %t = attn.transpose %b : !attn.buffer<128xf16, #attn.auto, shared> -> !attn.buffer<128xf16, #attn.auto, shared>
  return
}

// -----

func.func @f(%b: !attn.buffer<64x128xf16, #attn.auto, shared>) {
  // expected-error @below {{expected the extents of the source exchanged, got '!attn.buffer<64x128xf16, #attn.auto, shared>'}}
  %t = attn.transpose %b : !attn.buffer<64x128xf16, #attn.auto, shared> -> !attn.buffer<64x128xf16, #attn.auto, shared>
  return
}

// -----

func.func @f(%b: !attn.buffer<64x128xf16, #attn.swizzled<span = 128>, shared>) {
  // expected-error @below {{expected the layout #attn.transposed<#attn.swizzled<span = 128>>, got #attn.swizzled<span = 128>}}
  %t = attn.transpose %b : !attn.buffer<64x128xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<128x64xf16, #attn.swizzled<span = 128>, shared>
  return
}

// -----

func.func @f(%b: !attn.buffer<64x128xf16, #attn.auto, shared>) {
  // expected-error @below {{expected the memory space shared of the source, got tmem}}
  %t = attn.reinterpret %b : !attn.buffer<64x128xf16, #attn.auto, shared> -> !attn.buffer<64x64xf16, #attn.auto, tmem>
  return
}

// -----

func.func @f(%b: !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>) {
  // expected-error @below {{expected at most the source's 8192 bytes, got 16384}}
  %t = attn.reinterpret %b : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x128xf16, #attn.swizzled<span = 128>, shared>
  return
}

// -----

func.func @f(%b: !attn.buffer<64x128xf16, #attn.rows, shared>) {
  // expected-error @below {{expected a layout that needs at most the source's alignment of 16 bytes, got 1024}}
  %t = attn.reinterpret %b : !attn.buffer<64x128xf16, #attn.rows, shared> -> !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
  return
}

// -----

func.func @f(%b: !attn.buffer<64x128xf16, #attn.auto, shared>) {
  // expected-error @below {{expected a register tile (a static tensor with a layout), got 'tensor<64x128xf16>'}}
  %t = attn.local_load %b : !attn.buffer<64x128xf16, #attn.auto, shared> -> tensor<64x128xf16>
  return
}

// -----

func.func @f(%b: !attn.buffer<64x128xf16, #attn.auto, shared>) {
  // expected-error @below {{expected a buffer of the tile's shape, got}}
  %t = attn.local_load %b : !attn.buffer<64x128xf16, #attn.auto, shared> -> tensor<64x64xf16, #attn.auto>
  return
}

// -----

func.func @f(%b: !attn.buffer<64x64xf32, #attn.swizzled<span = 128>, shared>) {
  // expected-error @below {{expected a buffer of rank 2 in #attn.rows to read a column of, got}}
  %t = attn.local_load %b column(0) : !attn.buffer<64x64xf32, #attn.swizzled<span = 128>, shared> -> tensor<64xf32, #attn.auto>
  return
}

// -----

func.func @f(%b: !attn.buffer<64x4xf32, #attn.rows, shared>) {
  // expected-error @below {{expected a column below 4, got 4}}
  %t = attn.local_load %b column(4) : !attn.buffer<64x4xf32, #attn.rows, shared> -> tensor<64xf32, #attn.auto>
  return
}

// -----

func.func @f(%b: !attn.buffer<64x128xf16, #attn.auto, shared>, %t: tensor<64x128xf32, #attn.auto>) {
  // expected-error @below {{expected the element type 'f32' of the tile, got 'f16'}}
  attn.local_store %t, %b : tensor<64x128xf32, #attn.auto>, !attn.buffer<64x128xf16, #attn.auto, shared>
  return
}

// -----

func.func @f(%b: !attn.buffer<2xf32, #attn.rows, shared>, %i: i32) {
  // expected-error @below {{expected a buffer of rank 1 of i32, got '!attn.buffer<2xf32, #attn.rows, shared>'}}
  %x = attn.scalar_load %b[%i] : !attn.buffer<2xf32, #attn.rows, shared>
  return
}

// -----

func.func @f(%b: !attn.buffer<2x8xi32, #attn.auto, shared>, %i: i32) {
  attn.elect {
    // expected-error @below {{expected a buffer of rank 1 of i32, got '!attn.buffer<2x8xi32, #attn.auto, shared>'}}
    attn.scalar_store %i, %b[%i] : !attn.buffer<2x8xi32, #attn.auto, shared>
  }
  return
}

// -----

func.func @f(%b: !attn.buffer<2xi32, #attn.rows, shared>, %i: i32) {
  // expected-error @below {{expected to stand in an attn.elect}}
  attn.scalar_store %i, %b[%i] : !attn.buffer<2xi32, #attn.rows, shared>
  return
}

// -----

func.func @f(%b: !attn.buffer<2xi32, #attn.rows, shared>, %i: i32) {
  attn.elect {
    // expected-error @below {{expected either a token or a barrier to complete}}
    attn.scalar_send %i, %b[%i] : !attn.buffer<2xi32, #attn.rows, shared>
  }
  return
}

// -----

func.func @f(%b: !attn.buffer<2xi32, #attn.rows, shared>, %i: i32, %t: !attn.token) {
  // expected-error @below {{expected to stand in an attn.elect}}
  attn.scalar_send %i, %b[%i] token %t : !attn.buffer<2xi32, #attn.rows, shared>
  return
}

// -----

func.func @f(%b: !attn.buffer<2xi32, #attn.rows, shared>, %i: i32, %t: !attn.token) {
  attn.elect {
    // expected-error @below {{expected a cluster of 2 to 16 CTAs, got 1}}
    attn.scalar_send %i, %b[%i] token %t {ctas = 1} : !attn.buffer<2xi32, #attn.rows, shared>
  }
  return
}

// -----

func.func @send_without_index(%b: !attn.buffer<2xi32, #attn.rows, shared>, %full: !attn.mbarriers<1>, %i: i32) {
  attn.elect {
    // expected-error @below {{expected the index of one of the barriers, got none}}
    attn.scalar_send %i, %b[%i] barrier %full[] : !attn.mbarriers<1> : !attn.buffer<2xi32, #attn.rows, shared>
  }
  return
}

// -----

func.func @send_to_many(%b: !attn.buffer<2xi32, #attn.rows, shared>, %full: !attn.mbarriers<1>, %i: i32) {
  attn.elect {
    // expected-error @below {{expected a cluster of 2 to 16 CTAs, got 70368744177666}}
    attn.scalar_send %i, %b[%i] barrier %full[%i] : !attn.mbarriers<1> {ctas = 70368744177666} : !attn.buffer<2xi32, #attn.rows, shared>
  }
  return
}

// -----

func.func @request_of_words(%b: !attn.buffer<2xi32, #attn.rows, shared>, %i: i32, %t: !attn.token) {
  attn.elect {
    // expected-error @below {{expected a buffer of rank 1 of i128, got '!attn.buffer<2xi32, #attn.rows, shared>'}}
    attn.cluster_request %b[%i] token %t : !attn.buffer<2xi32, #attn.rows, shared>
  }
  return
}

// -----

func.func @request_of_all(%b: !attn.buffer<2xi128, #attn.rows, shared>, %i: i32, %t: !attn.token) {
  // expected-error @below {{expected to stand in an attn.elect}}
  attn.cluster_request %b[%i] token %t : !attn.buffer<2xi128, #attn.rows, shared>
  return
}

// -----

func.func @request_without_end(%b: !attn.buffer<2xi128, #attn.rows, shared>, %i: i32) {
  attn.elect {
    // expected-error @below {{expected either a token or a barrier to complete}}
    attn.cluster_request %b[%i] : !attn.buffer<2xi128, #attn.rows, shared>
  }
  return
}

// -----

func.func @request_for_many(%b: !attn.buffer<2xi128, #attn.rows, shared>, %i: i32, %t: !attn.token) {
  attn.elect {
    // expected-error @below {{expected a cluster of 2 to 16 CTAs, got 17}}
    attn.cluster_request %b[%i] token %t {ctas = 17} : !attn.buffer<2xi128, #attn.rows, shared>
  }
  return
}

// -----

func.func @response_of_words(%b: !attn.buffer<2xi32, #attn.rows, shared>, %i: i32) -> i32 {
  // expected-error @below {{expected a buffer of rank 1 of i128, got '!attn.buffer<2xi32, #attn.rows, shared>'}}
  %x = attn.cluster_response %b[%i] none %i : !attn.buffer<2xi32, #attn.rows, shared>
  return %x : i32
}

// -----

!tile = tensor<64x32xf32, #attn.auto>
func.func @send_without_end(%t: !tile, %b: !attn.buffer<64x32xf32, #attn.auto, shared>) {
  // expected-error @below {{expected either a token or a barrier to complete}}
  attn.local_send %t, %b : !tile, !attn.buffer<64x32xf32, #attn.auto, shared>
  return
}

// -----

!tile = tensor<64x32xf32, #attn.auto>
func.func @send_elsewhere(%t: !tile, %b: !attn.buffer<32x64xf32, #attn.auto, shared>, %token: !attn.token) {
  // expected-error @below {{expected a buffer of the tile's shape}}
  attn.local_send %t, %b token %token : !tile, !attn.buffer<32x64xf32, #attn.auto, shared>
  return
}

// -----

!tile = tensor<64x32xf32, #attn.auto>
func.func @send_by_one(%t: !tile, %b: !attn.buffer<64x32xf32, #attn.auto, shared>, %token: !attn.token) {
  attn.elect {
    // expected-error @below {{expected all warps of a partition to execute it, got an attn.elect around it}}
    attn.local_send %t, %b token %token : !tile, !attn.buffer<64x32xf32, #attn.auto, shared>
  }
  return
}

// -----

!tile = tensor<64x32xf8E4M3FN, #attn.auto>
func.func @send_bytes(%t: !tile, %b: !attn.buffer<64x32xf8E4M3FN, #attn.auto, shared>, %token: !attn.token) {
  // expected-error @below {{expected elements of 32 or 16 bits, got 'f8E4M3FN'}}
  attn.local_send %t, %b token %token : !tile, !attn.buffer<64x32xf8E4M3FN, #attn.auto, shared>
  return
}
