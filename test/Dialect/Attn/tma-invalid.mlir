// RUN: attn-opt %s -split-input-file -verify-diagnostics

func.func @coordinates(%map: !attn.tensor_map<1x64x64xf16, swizzle = 128>, %i: i32, %dest: !attn.buffer<64x64xf16, #attn.auto, shared>, %t: !attn.token) {
  // expected-error @below {{expected 3 coordinates, got 2}}
  attn.tma.load %map[%i, %i], %dest token %t : !attn.tensor_map<1x64x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #attn.auto, shared>
  return
}

// -----

func.func @element(%map: !attn.tensor_map<64x64xf16, swizzle = 128>, %i: i32, %dest: !attn.buffer<64x64xbf16, #attn.auto, shared>, %t: !attn.token) {
  // expected-error @below {{expected the element type 'f16' of the map, got 'bf16'}}
  attn.tma.load %map[%i, %i], %dest token %t : !attn.tensor_map<64x64xf16, swizzle = 128>, !attn.buffer<64x64xbf16, #attn.auto, shared>
  return
}

// -----

func.func @rank(%map: !attn.tensor_map<64x64xf16, swizzle = 128>, %i: i32, %dest: !attn.buffer<2x64x64xf16, #attn.auto, shared>, %t: !attn.token) {
  // expected-error @below {{expected a buffer of rank 2, got rank 3}}
  attn.tma.load %map[%i, %i], %dest token %t : !attn.tensor_map<64x64xf16, swizzle = 128>, !attn.buffer<2x64x64xf16, #attn.auto, shared>
  return
}

// -----

func.func @rows(%map: !attn.tensor_map<64x64xf16, swizzle = 128>, %i: i32, %source: !attn.buffer<32x64xf16, #attn.auto, shared>) {
  // expected-error @below {{expected a buffer of 64 rows and a multiple of 64 columns, got 32 x 64}}
  attn.tma.store %source, %map[%i, %i] : !attn.buffer<32x64xf16, #attn.auto, shared>, !attn.tensor_map<64x64xf16, swizzle = 128>
  return
}

// -----

func.func @swizzle(%map: !attn.tensor_map<64x64xf16, swizzle = 128>, %i: i32, %source: !attn.buffer<64x64xf16, #attn.swizzled<span = 64>, shared>) {
  // expected-error @below {{expected a buffer in the map's layout #attn.swizzled<span = 128>, got #attn.swizzled<span = 64>}}
  attn.tma.store %source, %map[%i, %i] : !attn.buffer<64x64xf16, #attn.swizzled<span = 64>, shared>, !attn.tensor_map<64x64xf16, swizzle = 128>
  return
}

// -----

func.func @completion(%map: !attn.tensor_map<64x64xf16, swizzle = 128>, %i: i32, %dest: !attn.buffer<64x64xf16, #attn.auto, shared>) {
  // expected-error @below {{expected either a token or a barrier to complete}}
  attn.tma.load %map[%i, %i], %dest : !attn.tensor_map<64x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #attn.auto, shared>
  return
}

// -----

func.func @rank(%k: memref<8x64x128xf16>) -> !attn.tensor_map<1x1x64x64xf16, swizzle = 128> {
  // expected-error @+1 {{expected a box of the memref's rank 3, got rank 4}}
  %map = attn.encode_tensor_map %k : memref<8x64x128xf16> -> !attn.tensor_map<1x1x64x64xf16, swizzle = 128>
  return %map : !attn.tensor_map<1x1x64x64xf16, swizzle = 128>
}

// -----

func.func @element(%k: memref<64x128xbf16>) -> !attn.tensor_map<64x64xf16, swizzle = 128> {
  // expected-error @+1 {{expected the memref's element type 'bf16', got 'f16'}}
  %map = attn.encode_tensor_map %k : memref<64x128xbf16> -> !attn.tensor_map<64x64xf16, swizzle = 128>
  return %map : !attn.tensor_map<64x64xf16, swizzle = 128>
}

// -----

func.func @stride(%k: memref<64x128xf16, strided<[1, 64]>>) -> !attn.tensor_map<64x64xf16, swizzle = 128> {
  // expected-error @+1 {{expected an innermost stride of 1, got 64}}
  %map = attn.encode_tensor_map %k : memref<64x128xf16, strided<[1, 64]>> -> !attn.tensor_map<64x64xf16, swizzle = 128>
  return %map : !attn.tensor_map<64x64xf16, swizzle = 128>
}

// -----

func.func @padded(%map: !attn.tensor_map<64x64xf16, swizzle = 0>, %i: i32, %source: !attn.buffer<64x64xf16, #attn.swizzled<span = 0>, shared>) {
  // expected-error @below {{expected a buffer in the map's layout #attn.rows, got #attn.swizzled<span = 0>}}
  attn.tma.store %source, %map[%i, %i] : !attn.buffer<64x64xf16, #attn.swizzled<span = 0>, shared>, !attn.tensor_map<64x64xf16, swizzle = 0>
  return
}

// -----

func.func @narrow(%map: !attn.tensor_map<64x32xf16, swizzle = 128>, %i: i32, %source: !attn.buffer<64x64xf16, #attn.auto, shared>) {
  // expected-error @below {{expected boxes as wide as their swizzle, 128 bytes, got 64}}
  attn.tma.store %source, %map[%i, %i] : !attn.buffer<64x64xf16, #attn.auto, shared>, !attn.tensor_map<64x32xf16, swizzle = 128>
  return
}

// -----

func.func @two_boxes(%map: !attn.tensor_map<64x32xf16, swizzle = 0>, %i: i32, %source: !attn.buffer<64x64xf16, #attn.auto, shared>) {
  // expected-error @below {{expected boxes as wide as the buffer, 64 columns, got 32}}
  attn.tma.store %source, %map[%i, %i] : !attn.buffer<64x64xf16, #attn.auto, shared>, !attn.tensor_map<64x32xf16, swizzle = 0>
  return
}

// -----

func.func @multicast_to_one(%map: !attn.tensor_map<64x64xf16, swizzle = 128>, %i: i32, %t: !attn.token, %dest: !attn.buffer<64x64xf16, #attn.auto, shared>) {
  // expected-error @below {{expected a cluster of 2 to 16 CTAs, got 1}}
  attn.tma.load %map[%i, %i], %dest token %t {multicast = 1} : !attn.tensor_map<64x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #attn.auto, shared>
  return
}

// -----

func.func @multicast_whole(%map: !attn.tensor_map<64x64xf16, swizzle = 128>, %i: i32, %t: !attn.token, %dest: !attn.buffer<64x64xf16, #attn.auto, shared>) {
  // expected-error @below {{expected a buffer of 128 rows and a multiple of 64 columns, got 64 x 64}}
  attn.tma.load %map[%i, %i], %dest token %t {multicast = 2} : !attn.tensor_map<64x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #attn.auto, shared>
  return
}

// -----

func.func @store_parts(%map: !attn.tensor_map<64x64xf16, swizzle = 128>, %i: i32, %source: !attn.buffer<128x64xf16, #attn.auto, shared>) {
  attn.elect {
    // expected-error @below {{expected to stand in an attn.elect each_warpgroup with 'warpgroups'}}
    attn.tma.store %source, %map[%i, %i] {warpgroups = 2} : !attn.buffer<128x64xf16, #attn.auto, shared>, !attn.tensor_map<64x64xf16, swizzle = 128>
  }
  return
}

// -----

func.func @store_no_parts(%map: !attn.tensor_map<64x64xf16, swizzle = 128>, %i: i32, %source: !attn.buffer<128x64xf16, #attn.auto, shared>) {
  attn.elect each_warpgroup {
    // expected-error @below {{expected 1 to 8 warpgroups, got 0}}
    attn.tma.store %source, %map[%i, %i] {warpgroups = 0} : !attn.buffer<128x64xf16, #attn.auto, shared>, !attn.tensor_map<64x64xf16, swizzle = 128>
  }
  return
}

// -----

func.func @store_whole(%map: !attn.tensor_map<64x64xf16, swizzle = 128>, %i: i32, %source: !attn.buffer<64x64xf16, #attn.auto, shared>) {
  attn.elect each_warpgroup {
    // expected-error @below {{expected a buffer of 128 rows and a multiple of 64 columns, got 64 x 64}}
    attn.tma.store %source, %map[%i, %i] {warpgroups = 2} : !attn.buffer<64x64xf16, #attn.auto, shared>, !attn.tensor_map<64x64xf16, swizzle = 128>
  }
  return
}

// -----

func.func @stacked_one(%map: !attn.tensor_map<16x2x64xf16, swizzle = 128>, %i: i32, %t: !attn.token, %dest: !attn.buffer<32x64xf16, #attn.auto, shared>) {
  // expected-error @below {{expected 2 to 256 stacked boxes and no multicast, got 1 and no multicast}}
  attn.tma.load %map[%i, %i, %i], %dest token %t {stacked = 1} : !attn.tensor_map<16x2x64xf16, swizzle = 128>, !attn.buffer<32x64xf16, #attn.auto, shared>
  return
}

// -----

func.func @stacked_multicast(%map: !attn.tensor_map<16x2x64xf16, swizzle = 128>, %i: i32, %t: !attn.token, %dest: !attn.buffer<64x64xf16, #attn.auto, shared>) {
  // expected-error @below {{expected 2 to 256 stacked boxes and no multicast, got 2 and a multicast}}
  attn.tma.load %map[%i, %i, %i], %dest token %t {multicast = 2, stacked = 2} : !attn.tensor_map<16x2x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #attn.auto, shared>
  return
}

// -----

func.func @stacked_whole(%map: !attn.tensor_map<16x2x64xf16, swizzle = 128>, %i: i32, %t: !attn.token, %dest: !attn.buffer<32x64xf16, #attn.auto, shared>) {
  // expected-error @below {{expected a buffer of 64 rows and a multiple of 64 columns, got 32 x 64}}
  attn.tma.load %map[%i, %i, %i], %dest token %t {stacked = 2} : !attn.tensor_map<16x2x64xf16, swizzle = 128>, !attn.buffer<32x64xf16, #attn.auto, shared>
  return
}

// -----

func.func @stacked_coordinates(%map: !attn.tensor_map<16x2x64xf16, swizzle = 128>, %i: i32, %t: !attn.token, %dest: !attn.buffer<64x64xf16, #attn.auto, shared>) {
  // expected-error @below {{expected 3 coordinates, got 5}}
  attn.tma.load %map[%i, %i, %i, %i, %i], %dest token %t {stacked = 2} : !attn.tensor_map<16x2x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #attn.auto, shared>
  return
}

// -----

func.func @spare_conditions(%map: !attn.tensor_map<32x64xf16, swizzle = 128>, %i: i32, %c: i1, %t: !attn.token, %dest: !attn.buffer<64x64xf16, #attn.auto, shared>) {
  // expected-error @below {{expected a condition for each of 2 boxes that may be of a spare map, got 1}}
  attn.tma.load %map[%i, %i], %dest token %t spare %map[%c] : !attn.tensor_map<32x64xf16, swizzle = 128> {stacked = 2} : !attn.tensor_map<32x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #attn.auto, shared>
  return
}

// -----

func.func @spare_rank(%map: !attn.tensor_map<64x64xf16, swizzle = 128>, %spare: !attn.tensor_map<16x4x64xf16, swizzle = 128>, %i: i32, %c: i1, %t: !attn.token, %dest: !attn.buffer<64x64xf16, #attn.auto, shared>) {
  // expected-error @below {{expected a spare map of the rank, rows, columns, elements and swizzle of '!attn.tensor_map<64x64xf16, swizzle = 128>', got '!attn.tensor_map<16x4x64xf16, swizzle = 128>'}}
  attn.tma.load %map[%i, %i], %dest token %t spare %spare[%c] : !attn.tensor_map<16x4x64xf16, swizzle = 128> : !attn.tensor_map<64x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #attn.auto, shared>
  return
}

// -----

func.func @bounded_rank(%k: memref<2x8x64x128xf16>) -> !attn.tensor_map<1x1x64x64xf16, swizzle = 128> {
  // expected-error @below {{expected a box of one more than the memref's rank, 5, got rank 4}}
  %map = attn.encode_tensor_map bounded %k : memref<2x8x64x128xf16> -> !attn.tensor_map<1x1x64x64xf16, swizzle = 128>
  return %map : !attn.tensor_map<1x1x64x64xf16, swizzle = 128>
}

// -----

func.func @bounded_batch(%k: memref<64x128xf16>) -> !attn.tensor_map<1x64x64xf16, swizzle = 128> {
  // expected-error @below {{expected a batch before rows with 'bounded', got 'memref<64x128xf16>'}}
  %map = attn.encode_tensor_map bounded %k : memref<64x128xf16> -> !attn.tensor_map<1x64x64xf16, swizzle = 128>
  return %map : !attn.tensor_map<1x64x64xf16, swizzle = 128>
}

// -----

func.func @bounded_packed(%k: memref<1x64x128xf16>) -> !attn.tensor_map<1x1x64x64xf16, swizzle = 128> {
  // expected-error @below {{expected 'packed' or 'bounded', got both}}
  %map = attn.encode_tensor_map packed bounded %k : memref<1x64x128xf16> -> !attn.tensor_map<1x1x64x64xf16, swizzle = 128>
  return %map : !attn.tensor_map<1x1x64x64xf16, swizzle = 128>
}

// -----

func.func @by_row_bounded(%k: memref<2x64x128xf16>) -> !attn.tensor_map<1x1x64x64xf16, swizzle = 128> {
  // expected-error @below {{expected heads before rows, and no 'bounded', with 'by_row', got 'memref<2x64x128xf16>'}}
  %map = attn.encode_tensor_map bounded by_row %k : memref<2x64x128xf16> -> !attn.tensor_map<1x1x64x64xf16, swizzle = 128>
  return %map : !attn.tensor_map<1x1x64x64xf16, swizzle = 128>
}

// -----

func.func @packed_batch(%k: memref<2x8x64x128xf16>) -> !attn.tensor_map<1x1x64x64xf16, swizzle = 128> {
  // expected-error @below {{expected packed sequences in a batch of 1, got 'memref<2x8x64x128xf16>'}}
  %map = attn.encode_tensor_map packed %k : memref<2x8x64x128xf16> -> !attn.tensor_map<1x1x64x64xf16, swizzle = 128>
  return %map : !attn.tensor_map<1x1x64x64xf16, swizzle = 128>
}

// -----

func.func @no_index(%map: !attn.tensor_map<64x64xf16, swizzle = 128>, %i: i32, %dest: !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>, %full: !attn.mbarriers<1>) {
  // expected-error @below {{expected the index of one of the barriers, got none}}
  attn.tma.load %map[%i, %i], %dest barrier %full[] : !attn.mbarriers<1> : !attn.tensor_map<64x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
  return
}

// -----

func.func @no_groups() {
  // expected-error @below {{expected a number of pending groups of at least 0, got -9223372036854775808}}
  attn.tma.wait {pending = 9223372036854775808, read}
  return
}

// -----

func.func @multicast_to_leader(%map: !attn.tensor_map<32x64xf16, swizzle = 128>, %i: i32, %t: !attn.token, %dest: !attn.buffer<64x64xf16, #attn.auto, shared>) {
  // expected-error @below {{expected a multicast to CTAs of other pairs beside 'leader', got one to both CTAs of a pair}}
  attn.tma.load %map[%i, %i], %dest token %t {multicast = 2, leader} : !attn.tensor_map<32x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #attn.auto, shared>
  return
}

// -----

func.func @gather_box(%map: !attn.tensor_map<4x64xf16, swizzle = 128>, %rows: !attn.buffer<64xi32, #attn.rows, shared>, %i: i32, %t: !attn.token, %dest: !attn.buffer<64x64xf16, #attn.auto, shared>) {
  // expected-error @below {{expected a swizzled map with a box of one row of a tensor of rank 2, got '!attn.tensor_map<4x64xf16, swizzle = 128>'}}
  attn.tma.gather %map[%rows[%i], %i], %dest token %t : !attn.tensor_map<4x64xf16, swizzle = 128>, !attn.buffer<64xi32, #attn.rows, shared>, !attn.buffer<64x64xf16, #attn.auto, shared>
  return
}

// -----

func.func @gather_rank(%map: !attn.tensor_map<1x1x64xf16, swizzle = 128>, %rows: !attn.buffer<64xi32, #attn.rows, shared>, %i: i32, %t: !attn.token, %dest: !attn.buffer<64x64xf16, #attn.auto, shared>) {
  // expected-error @below {{expected a swizzled map with a box of one row of a tensor of rank 2, got '!attn.tensor_map<1x1x64xf16, swizzle = 128>'}}
  attn.tma.gather %map[%rows[%i], %i], %dest token %t : !attn.tensor_map<1x1x64xf16, swizzle = 128>, !attn.buffer<64xi32, #attn.rows, shared>, !attn.buffer<64x64xf16, #attn.auto, shared>
  return
}

// -----

func.func @gather_plain(%map: !attn.tensor_map<1x64xf16, swizzle = 0>, %rows: !attn.buffer<64xi32, #attn.rows, shared>, %i: i32, %t: !attn.token, %dest: !attn.buffer<64x64xf16, #attn.auto, shared>) {
  // expected-error @below {{expected a swizzled map with a box of one row of a tensor of rank 2, got '!attn.tensor_map<1x64xf16, swizzle = 0>'}}
  attn.tma.gather %map[%rows[%i], %i], %dest token %t : !attn.tensor_map<1x64xf16, swizzle = 0>, !attn.buffer<64xi32, #attn.rows, shared>, !attn.buffer<64x64xf16, #attn.auto, shared>
  return
}

// -----

func.func @gather_numbers(%map: !attn.tensor_map<1x64xf16, swizzle = 128>, %rows: !attn.buffer<64xf32, #attn.rows, shared>, %i: i32, %t: !attn.token, %dest: !attn.buffer<64x64xf16, #attn.auto, shared>) {
  // expected-error @below {{expected a buffer of rank 1 with rows of i32 in shared memory as numbers of rows, got '!attn.buffer<64xf32, #attn.rows, shared>'}}
  attn.tma.gather %map[%rows[%i], %i], %dest token %t : !attn.tensor_map<1x64xf16, swizzle = 128>, !attn.buffer<64xf32, #attn.rows, shared>, !attn.buffer<64x64xf16, #attn.auto, shared>
  return
}

// -----

func.func @gather_rows(%map: !attn.tensor_map<1x64xf16, swizzle = 128>, %rows: !attn.buffer<64xi32, #attn.rows, shared>, %i: i32, %t: !attn.token, %dest: !attn.buffer<62x64xf16, #attn.auto, shared>) {
  // expected-error @below {{expected a destination of a multiple of 4 rows, at most 64, got 62}}
  attn.tma.gather %map[%rows[%i], %i], %dest token %t : !attn.tensor_map<1x64xf16, swizzle = 128>, !attn.buffer<64xi32, #attn.rows, shared>, !attn.buffer<62x64xf16, #attn.auto, shared>
  return
}

// -----

func.func @gather_more(%map: !attn.tensor_map<1x64xf16, swizzle = 128>, %rows: !attn.buffer<64xi32, #attn.rows, shared>, %i: i32, %t: !attn.token, %dest: !attn.buffer<128x64xf16, #attn.auto, shared>) {
  // expected-error @below {{expected a destination of a multiple of 4 rows, at most 64, got 128}}
  attn.tma.gather %map[%rows[%i], %i], %dest token %t : !attn.tensor_map<1x64xf16, swizzle = 128>, !attn.buffer<64xi32, #attn.rows, shared>, !attn.buffer<128x64xf16, #attn.auto, shared>
  return
}

// -----

func.func @gather_columns(%map: !attn.tensor_map<1x64xf16, swizzle = 128>, %rows: !attn.buffer<64xi32, #attn.rows, shared>, %i: i32, %t: !attn.token, %dest: !attn.buffer<64x32xf16, #attn.auto, shared>) {
  // expected-error @below {{expected a buffer of 64 rows and a multiple of 64 columns, got 64 x 32}}
  attn.tma.gather %map[%rows[%i], %i], %dest token %t : !attn.tensor_map<1x64xf16, swizzle = 128>, !attn.buffer<64xi32, #attn.rows, shared>, !attn.buffer<64x32xf16, #attn.auto, shared>
  return
}

// -----

func.func @gather_twice(%map: !attn.tensor_map<1x64xf16, swizzle = 128>, %rows: !attn.buffer<64xi32, #attn.rows, shared>, %i: i32, %t: !attn.token, %dest: !attn.buffer<64x64xf16, #attn.auto, shared>, %full: !attn.mbarriers<1>) {
  // expected-error @below {{expected either a token or a barrier to complete}}
  attn.tma.gather %map[%rows[%i], %i], %dest token %t barrier %full[%i] : !attn.mbarriers<1> : !attn.tensor_map<1x64xf16, swizzle = 128>, !attn.buffer<64xi32, #attn.rows, shared>, !attn.buffer<64x64xf16, #attn.auto, shared>
  return
}
