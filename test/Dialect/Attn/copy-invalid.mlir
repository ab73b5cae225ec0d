// RUN: attn-opt %s -split-input-file -verify-diagnostics

// What the ops on global memory refuse.

func.func @f(%p: !llvm.ptr<1>, %off: i64, %n: i32, %stride: i64) {
  // expected-error @below {{expected in tiles one element of 8 bits or i32 a row, got '!attn.global<?xf32>'}}
  %g = attn.global_view %p[%off] rows %n stride %stride tiles %off : !attn.global<?xf32>
  return
}

// -----

func.func @f(%p: !llvm.ptr<1>, %off: i64, %n: i32, %stride: i64) {
  // expected-error @below {{expected in tiles one element of 8 bits or i32 a row, got '!attn.global<?x4xi8>'}}
  %g = attn.global_view %p[%off] rows %n stride %stride tiles %off : !attn.global<?x4xi8>
  return
}

// -----

func.func @f(%p: !llvm.ptr<1>, %off: i64, %n: i32, %stride: i64) {
  // expected-error @below {{expected an alignment that is a power of two of at least 2 bytes, got 12}}
  %g = attn.global_view %p[%off] rows %n stride %stride {alignment = 12 : i64} : !attn.global<?x128xf16>
  return
}

// -----

func.func @f(%p: !llvm.ptr<1>, %off: i64, %n: i32, %stride: i64) {
  // expected-error @below {{expected both 'group' and 'members' or neither, got one}}
  %g = attn.global_view %p[%off] rows %n stride %stride {group = 4 : i64} : !attn.global<?x128xf16>
  return
}

// -----

func.func @f(%p: !llvm.ptr<1>, %off: i64, %n: i32, %stride: i64) {
  // expected-error @below {{expected groups of at least one row, got 0}}
  %g = attn.global_view %p[%off] rows %n stride %stride members %off {group = 0 : i64} : !attn.global<?x128xf16>
  return
}

// -----

func.func @f(%p: !llvm.ptr<1>, %off: i64, %n: i32, %stride: i64) {
  // expected-error @below {{expected 1 to 4 rows of a group in 'present', got 5}}
  %g = attn.global_view %p[%off] rows %n stride %stride members %off {group = 4 : i64, present = 5 : i64} : !attn.global<?x128xf16>
  return
}

// -----

func.func @f(%p: !llvm.ptr<1>, %off: i64, %n: i32, %stride: i64) {
  // expected-error @below {{expected 1 to 0 rows of a group in 'present', got 1}}
  %g = attn.global_view %p[%off] rows %n stride %stride {present = 1 : i64} : !attn.global<?x128xf16>
  return
}

// -----

func.func @f(%p: !llvm.ptr<1>, %off: i64, %n: i32, %stride: i64) {
  // expected-error @below {{expected 'page' in [1, 2^31), got 0}}
  %g = attn.paged_view %p[%off] rows %n stride %stride table %p[%off] pages %n distance %stride {page = 0 : i64} : !attn.global<?x128xf16>
  return
}

// -----

func.func @f(%p: !llvm.ptr<1>, %off: i64, %n: i32, %stride: i64) {
  // expected-error @below {{expected an alignment that is a power of two of at least 2 bytes, got 12}}
  %g = attn.paged_view %p[%off] rows %n stride %stride table %p[%off] pages %n distance %stride {alignment = 12 : i64, page = 16 : i64} : !attn.global<?x128xf16>
  return
}

// -----

func.func @f(%p: !llvm.ptr<1>, %off: i64, %n: i32, %stride: i64) {
  %g = attn.paged_view %p[%off] rows %n stride %stride table %p[%off] pages %n distance %stride {page = 16 : i64} : !attn.global<?x128xf16>
  %d = attn.global_view %p[%off] rows %n stride %stride : !attn.global<?x128xf16>
  // expected-error @below {{expected 'back' to be a result of attn.paged_view}}
  %j = attn.joined_view %g, %d[%n] : !attn.global<?x128xf16>
  return
}

// -----

func.func @f(%g: !attn.global<?x128xf16>, %row: i32, %b: !attn.buffer<64x128xbf16, #attn.auto, shared>) {
  // expected-error @below {{expected the element type 'f16' of the view, got 'bf16'}}
  attn.cp_async %g[%row], %b : !attn.global<?x128xf16>, !attn.buffer<64x128xbf16, #attn.auto, shared>
  return
}

// -----

func.func @f(%g: !attn.global<?x128xf16>, %row: i32, %b: !attn.buffer<2x64x128xf16, #attn.auto, shared>) {
  // expected-error @below {{expected rank 2 of the view, got rank 3}}
  attn.cp_async %g[%row], %b : !attn.global<?x128xf16>, !attn.buffer<2x64x128xf16, #attn.auto, shared>
  return
}

// -----

func.func @f(%g: !attn.global<?x128xf16>, %row: i32, %b: !attn.buffer<64x64xf16, #attn.auto, shared>) {
  // expected-error @below {{expected at least 128 columns, got 64}}
  attn.cp_async %g[%row], %b : !attn.global<?x128xf16>, !attn.buffer<64x64xf16, #attn.auto, shared>
  return
}

// -----

func.func @f() {
  // expected-error @below {{expected a number of pending groups of at least 0, got -1}}
  attn.cp_async.wait {pending = -1 : i64}
  return
}

// -----

func.func @f(%g: !attn.global<?x128xf16>, %row: i32) {
  // expected-error @below {{expected 128 columns, got 64}}
  %t = attn.global_load %g[%row] : !attn.global<?x128xf16> -> tensor<64x64xf16, #attn.auto>
  return
}

// -----

func.func @f(%g: !attn.global<?x128xf16>, %row: i32, %t: tensor<64xf16, #attn.auto>) {
  // expected-error @below {{expected rank 2 of the view, got rank 1}}
  attn.global_store %t, %g[%row] : tensor<64xf16, #attn.auto>, !attn.global<?x128xf16>
  return
}

// -----

func.func @f(%g: !attn.global<?x128xf16>, %row: i32, %b: !attn.buffer<64x64xf16, #attn.auto, shared>) {
  // expected-error @below {{expected at least 128 columns, got 64}}
  attn.copy_out %b, %g[%row] : !attn.buffer<64x64xf16, #attn.auto, shared>, !attn.global<?x128xf16>
  return
}

// -----

func.func @f(%g: !attn.global<?x128xf16>, %row: i32, %t: tensor<64x128xf32, #attn.auto>) {
  // expected-error @below {{expected the element type 'f16' of the view, got 'f32'}}
  attn.store_result %t, %g[%row] : tensor<64x128xf32, #attn.auto>, !attn.global<?x128xf16>
  return
}

// -----

func.func @f(%g: !attn.global<?x128xf16>, %row: i32, %t: tensor<64x128xf16, #attn.auto>, %map: !attn.tensor_map<1x1x64x64xf16, swizzle = 128>) {
  // expected-error @below {{expected 4 coordinates, got 2}}
  attn.store_result %t, %g[%row] map %map[%row, %row] : !attn.tensor_map<1x1x64x64xf16, swizzle = 128> : tensor<64x128xf16, #attn.auto>, !attn.global<?x128xf16>
  return
}

// -----

func.func @f(%g: !attn.global<?x128xf16>, %row: i32, %t: tensor<64x128xf16, #attn.auto>, %map: !attn.tensor_map<64x64xbf16, swizzle = 128>) {
  // expected-error @below {{expected the element type 'bf16' of the map, got 'f16'}}
  attn.store_result %t, %g[%row] map %map[%row, %row] : !attn.tensor_map<64x64xbf16, swizzle = 128> : tensor<64x128xf16, #attn.auto>, !attn.global<?x128xf16>
  return
}

// -----

func.func @f(%g: !attn.global<?x128xf16>, %row: i32, %t: tensor<64x128xf16, #attn.auto>) {
  // expected-error @below {{expected coordinates with a map only, got 1}}
  "attn.store_result"(%t, %g, %row, %row) <{kind = #attn<epilogue_kind auto>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 1>}> : (tensor<64x128xf16, #attn.auto>, !attn.global<?x128xf16>, i32, i32) -> ()
  return
}

// -----

func.func @f(%table: !llvm.ptr<1>, %first: i64, %n: i32, %b: !attn.buffer<2x64xi32, #attn.rows, shared>) {
  // expected-error @below {{expected a buffer of rank 1 with rows of i32 in shared memory as numbers of rows, got '!attn.buffer<2x64xi32, #attn.rows, shared>'}}
  attn.page_rows %table[%first], %n rows %n pages %n offset %n, %b {distance = 8 : i64, page = 4 : i64, stride = 2 : i64} : !attn.buffer<2x64xi32, #attn.rows, shared>
  return
}

// -----

func.func @f(%table: !llvm.ptr<1>, %first: i64, %n: i32, %b: !attn.buffer<64xi32, #attn.rows, shared>) {
  // expected-error @below {{attribute 'page' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
  attn.page_rows %table[%first], %n rows %n pages %n offset %n, %b {distance = 8 : i64, page = 0 : i64, stride = 2 : i64} : !attn.buffer<64xi32, #attn.rows, shared>
  return
}
