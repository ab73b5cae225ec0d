// RUN: attn-opt %s -split-input-file -verify-diagnostics

// expected-error @below {{expected m = 64 or m = 128, got 96}}
func.func private @lanes(!attn.buffer<96x64xf32, #attn.tmem<m = 96>, tmem>)

// -----

// expected-error @below {{expected a slot of 128 rows of one or more columns for #attn.tmem, got 64 x 64}}
func.func private @rows(!attn.buffer<64x64xf32, #attn.tmem<m = 128>, tmem>)

// -----

// expected-error @below {{expected at most 512 columns of 32 bits in tensor memory, got 513}}
func.func private @columns(!attn.buffer<128x513xf32, #attn.tmem<m = 128>, tmem>)

// -----

// expected-error @below {{expected a layout of shared memory, got one of tensor memory}}
func.func private @shared(!attn.buffer<128x64xf32, #attn.tmem<m = 128>, shared>)

// -----

// expected-error @below {{expected a layout of tensor memory, got one of shared memory}}
func.func private @tensor(!attn.buffer<128x64xf32, #attn.rows, tmem>)

// -----

// expected-error @below {{expected warps = [4, 1] or [2, 2], which reach all lanes of tensor memory, got [8, 1]}}
func.func private @warps(tensor<128x64xf32, #attn.tmem_regs<shape_32x32b, warps = [8, 1]>>)

// -----

// expected-error @below {{expected shape_32x32b with warps = [2, 2], got shape_16x256b}}
func.func private @halved_shape(tensor<64x128xf32, #attn.tmem_regs<shape_16x256b, warps = [2, 2]>>)

// -----

// expected-error @below {{expected 64 rows in halves, got 128}}
func.func private @halved_rows(tensor<128x128xf32, #attn.tmem_regs<shape_32x32b, warps = [2, 2]>>)

// -----

// expected-error @below {{expected n to be a multiple of 128 or a power of two below, got 96}}
func.func private @halved_columns(tensor<64x96xf32, #attn.tmem_regs<shape_32x32b, warps = [2, 2]>>)

// -----

// expected-error @below {{expected 2 columns, one for each owner of a row, got 1}}
func.func private @halved_owners(tensor<64x1xf32, #attn.partial<parent = #attn.tmem_regs<shape_32x32b, warps = [2, 2]>>>)

// -----

// expected-error @below {{expected m = 64 with halves, got 128}}
func.func private @halves(!attn.buffer<128x128xf32, #attn.tmem<m = 128, halves = true>, tmem>)

// -----

// expected-error @below {{expected elements of 32 bits in halves, got 16}}
func.func private @halves16(!attn.buffer<64x128xf16, #attn.tmem<m = 64, halves = true>, tmem>)

// -----

// expected-error @below {{expected a multiple of 128 columns in halves, or a power of two from 2 on, got 192}}
func.func private @half_columns(!attn.buffer<64x192xf32, #attn.tmem<m = 64, halves = true>, tmem>)

// -----

func.func @halved_slice(%s: !attn.buffer<64x256xf32, #attn.tmem<m = 64, halves = true>, tmem>) {
  // expected-error @below {{expected a view of a buffer in halves that starts at a multiple of 128 columns, got 64}}
  %c = attn.tmem.slice %s {column = 64} : !attn.buffer<64x256xf32, #attn.tmem<m = 64, halves = true>, tmem> -> !attn.buffer<64x128xf32, #attn.tmem<m = 64, halves = true>, tmem>
  return
}

// -----

func.func @part_of_halves(%s: !attn.buffer<64x256xf32, #attn.tmem<m = 64, halves = true>, tmem>) {
  %a = attn.tmem.slice %s {column = 160} : !attn.buffer<64x256xf32, #attn.tmem<m = 64, halves = true>, tmem> -> !attn.buffer<64x64xf32, #attn.tmem<m = 64, halves = true>, tmem>
  // expected-error @below {{expected a view of a buffer in halves whose first half ends within 64 columns, got 32 from 48 on}}
  %b = attn.tmem.slice %s {column = 176} : !attn.buffer<64x256xf32, #attn.tmem<m = 64, halves = true>, tmem> -> !attn.buffer<64x64xf32, #attn.tmem<m = 64, halves = true>, tmem>
  return
}

// -----

// expected-error @+2 {{expected one of shape_32x32b, shape_16x64b, shape_16x128b, shape_16x256b, shape_16x32bx2}}
// expected-error @+1 {{failed to parse Attn_TmemRegsLayoutAttr parameter 'shape'}}
func.func private @shape(tensor<128x64xf32, #attn.tmem_regs<shape_8x8b, warps = [4, 1]>>)

// -----

// expected-error @below {{expected a tile of rank 2 for #attn.tmem_regs, got rank 1}}
func.func private @rank(tensor<128xf32, #attn.tmem_regs<shape_32x32b, warps = [4, 1]>>)

// -----

// expected-error @below {{expected 128 rows for 32x32b, got 64}}
func.func private @wide(tensor<64x64xf32, #attn.tmem_regs<shape_32x32b, warps = [4, 1]>>)

// -----

// expected-error @below {{expected 1 columns, one for each owner of a row, got 4}}
func.func private @owners(tensor<128x4xf32, #attn.partial<parent = #attn.tmem_regs<shape_32x32b, warps = [4, 1]>>>)

// -----

// expected-error @below {{expected a layout of a register tile, got #attn.rows}}
func.func private @flying(!attn.inflight<128x64xf32, #attn.rows>)

// -----

// expected-error @below {{expected elements of 32 bits, got 'f16'}}
func.func private @flying16(!attn.inflight<128x64xf16, #attn.tmem_regs<shape_32x32b, warps = [4, 1]>>)

// -----

// expected-error @below {{expected 128 rows for 32x32b, got 96}}
func.func private @flying_rows(!attn.inflight<96x64xf32, #attn.tmem_regs<shape_32x32b, warps = [4, 1]>>)

// -----

// expected-error @below {{expected a field with a name, got none}}
func.func private @nameless() attributes {f = #attn.field<"", 0, 64>}

// -----

// expected-error @below {{expected columns between 0 and 512 for field 'p', got 0 from 64 on}}
func.func private @no_columns() attributes {f = #attn.field<"p", 64, 0>}

// -----

func.func @memory() {
  // expected-error @below {{expected a buffer in tensor memory with its layout, got '!attn.buffer<128x64xf32, #attn.rows, shared>'}}
  %b = attn.tmem_alloc : !attn.buffer<128x64xf32, #attn.rows, shared>
  return
}

// -----

func.func @no_layout() {
  // expected-error @below {{expected a buffer in tensor memory with its layout, got '!attn.buffer<128x64xf32, #attn.auto, tmem>'}}
  %b = attn.tmem_alloc : !attn.buffer<128x64xf32, #attn.auto, tmem>
  return
}

// -----

func.func @too_many() {
  // expected-error @below {{expected at most 512 columns of 32 bits, got 768}}
  %b = attn.tmem_alloc : !attn.buffer<3x128x256xf32, #attn.tmem<m = 128>, tmem>
  return
}

// -----

func.func @out_of_range() {
  // expected-error @below {{expected columns between 0 and 512, got 128 from 448 on}}
  %b = attn.tmem_alloc {column = 448 : i64} : !attn.buffer<128x128xf32, #attn.tmem<m = 128>, tmem>
  return
}

// -----

func.func @twins() {
  // expected-error @below {{expected fields of different names, got 'p' twice}}
  %b = attn.tmem_alloc {fields = [#attn.field<"p", 0, 64>, #attn.field<"p", 64, 64>]} : !attn.buffer<128x128xf32, #attn.tmem<m = 128>, tmem>
  return
}

// -----

func.func @beyond() {
  // expected-error @below {{expected field 'p' in the 128 columns of a slot, got 64 from 96 on}}
  %b = attn.tmem_alloc {fields = [#attn.field<"p", 96, 64>]} : !attn.buffer<128x128xf32, #attn.tmem<m = 128>, tmem>
  return
}

// -----

func.func @unknown_field() {
  // expected-note @below {{the allocation is here}}
  %b = attn.tmem_alloc {fields = [#attn.field<"p", 64, 64>]} : !attn.buffer<128x128xf32, #attn.tmem<m = 128>, tmem>
  // expected-error @below {{expected a field of an attn.tmem_alloc or of a slot of one, got 's', which is none}}
  %s = attn.tmem.field %b "s" : !attn.buffer<128x128xf32, #attn.tmem<m = 128>, tmem> -> !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
  return
}

// -----

func.func @wide_field() {
  %b = attn.tmem_alloc {fields = [#attn.field<"p", 64, 64>]} : !attn.buffer<128x128xf32, #attn.tmem<m = 128>, tmem>
  // expected-error @below {{expected at most the 64 columns of field 'p', got 128}}
  %s = attn.tmem.field %b "p" : !attn.buffer<128x128xf32, #attn.tmem<m = 128>, tmem> -> !attn.buffer<128x128xf32, #attn.tmem<m = 128>, tmem>
  return
}

// -----

func.func @slice_of_ring(%r: !attn.buffer<2x128x128xf32, #attn.tmem<m = 128>, tmem>) {
  // expected-error @below {{expected a buffer of rank 2, got rank 3}}
  %s = attn.tmem.slice %r {column = 0} : !attn.buffer<2x128x128xf32, #attn.tmem<m = 128>, tmem> -> !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
  return
}

// -----

func.func @slice_to_ring(%r: !attn.buffer<128x128xf32, #attn.tmem<m = 128>, tmem>) {
  // expected-error @below {{expected a buffer of rank 2, got rank 3}}
  %s = attn.tmem.slice %r {column = 0} : !attn.buffer<128x128xf32, #attn.tmem<m = 128>, tmem> -> !attn.buffer<1x128x64xf32, #attn.tmem<m = 128>, tmem>
  return
}

// -----

func.func @slice_type(%r: !attn.buffer<128x128xf32, #attn.tmem<m = 128>, tmem>) {
  // expected-error @below {{expected elements and layout of the source '!attn.buffer<128x128xf32, #attn.tmem<m = 128>, tmem>', got '!attn.buffer<128x64xf16, #attn.tmem<m = 128>, tmem>'}}
  %s = attn.tmem.slice %r {column = 0} : !attn.buffer<128x128xf32, #attn.tmem<m = 128>, tmem> -> !attn.buffer<128x64xf16, #attn.tmem<m = 128>, tmem>
  return
}

// -----

func.func @slice_range(%r: !attn.buffer<128x128xf32, #attn.tmem<m = 128>, tmem>) {
  // expected-error @below {{expected columns between 0 and 128, got 64 from 96 on}}
  %s = attn.tmem.slice %r {column = 96} : !attn.buffer<128x128xf32, #attn.tmem<m = 128>, tmem> -> !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
  return
}

// -----

func.func @slice_inside(%r: !attn.buffer<128x128xf16, #attn.tmem<m = 128>, tmem>) {
  // expected-error @below {{expected a view that starts at a column of 32 bits, a multiple of 2 elements, got 33}}
  %s = attn.tmem.slice %r {column = 33} : !attn.buffer<128x128xf16, #attn.tmem<m = 128>, tmem> -> !attn.buffer<128x64xf16, #attn.tmem<m = 128>, tmem>
  return
}

// -----

func.func @transposed(%r: !attn.buffer<128x128xf16, #attn.tmem<m = 128>, tmem>) {
  // expected-error @below {{expected a buffer in shared memory, got '!attn.buffer<128x128xf16, #attn.tmem<m = 128>, tmem>'}}
  %s = attn.transpose %r : !attn.buffer<128x128xf16, #attn.tmem<m = 128>, tmem> -> !attn.buffer<128x128xf16, #attn.tmem<m = 128>, tmem>
  return
}

// -----

func.func @reinterpreted(%r: !attn.buffer<128x128xf16, #attn.tmem<m = 128>, tmem>) {
  // expected-error @below {{expected a buffer in shared memory, got '!attn.buffer<128x128xf16, #attn.tmem<m = 128>, tmem>'}}
  %s = attn.reinterpret %r : !attn.buffer<128x128xf16, #attn.tmem<m = 128>, tmem> -> !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
  return
}

// -----

func.func @local(%r: !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>) {
  // expected-error @below {{expected a buffer in shared memory, got '!attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>'}}
  %t = attn.local_load %r : !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem> -> tensor<128x64xf32, #attn.auto>
  return
}

// -----

func.func @scratch(%slot: !attn.buffer<2xi32, #attn.rows, shared>) {
  // expected-error @below {{expected one i32 of shared memory for the address, got '!attn.buffer<2xi32, #attn.rows, shared>'}}
  %base = attn.tmem.reserve %slot {columns = 256} : !attn.buffer<2xi32, #attn.rows, shared>
  return
}

// -----

func.func @power(%slot: !attn.buffer<1xi32, #attn.rows, shared>) {
  // expected-error @below {{expected a power of two from 32 to 512 of columns, got 96}}
  %base = attn.tmem.reserve %slot {columns = 96} : !attn.buffer<1xi32, #attn.rows, shared>
  return
}

// -----

func.func @given_back(%base: i32) {
  // expected-error @below {{expected a power of two from 32 to 512 of columns, got 16}}
  attn.tmem.dealloc %base {columns = 16}
  return
}

// -----

func.func @far_columns() {
  // expected-error @below {{expected columns between 0 and 512, got 128 from 9223372036854775807 on}}
  %b = attn.tmem_alloc {column = 9223372036854775807 : i64} : !attn.buffer<128x128xf32, #attn.tmem<m = 128>, tmem>
  return
}
