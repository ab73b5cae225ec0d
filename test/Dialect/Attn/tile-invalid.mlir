// RUN: attn-opt %s -split-input-file -verify-diagnostics

// What the ops on register tiles refuse.

func.func @f(%t: tensor<128xf32, #attn.auto>) {
  // expected-error @below {{expected a source of rank 2, got 'tensor<128xf32, #attn.auto>'}}
  %r = attn.reduce max %t : tensor<128xf32, #attn.auto> -> tensor<128xf32, #attn.auto>
  return
}

// -----

func.func @f(%t: tensor<128x64xf32, #attn.auto>) {
  // expected-error @below {{expected the element type 'f32' of the source, got 'f16'}}
  %r = attn.reduce max %t : tensor<128x64xf32, #attn.auto> -> tensor<128xf16, #attn.auto>
  return
}

// -----

func.func @f(%t: tensor<128x64xf32, #attn.auto>) {
  // expected-error @below {{expected a result of rank 1, got 'tensor<128x64xf32, #attn.auto>'}}
  %r = attn.reduce max %t : tensor<128x64xf32, #attn.auto> -> tensor<128x64xf32, #attn.auto>
  return
}

// -----

func.func @f(%t: tensor<128x64xf32, #attn.auto>) {
  // expected-error @below {{expected 128 rows, got 64}}
  %r = attn.reduce max %t : tensor<128x64xf32, #attn.auto> -> tensor<64xf32, #attn.auto>
  return
}

// -----

func.func @f(%t: tensor<128x64xf32, #attn.auto>) {
  // expected-error @below {{expected the result's columns to divide 64, got 3}}
  %r = attn.reduce max %t partial : tensor<128x64xf32, #attn.auto> -> tensor<128x3xf32, #attn.partial<parent = #attn.auto>>
  return
}

// -----

func.func @f(%t: tensor<128x64xf32, #attn.auto>) {
  // expected-error @below {{expected partial sums in a layout #attn.partial, got 'tensor<128x4xf32, #attn.auto>'}}
  %r = attn.reduce max %t partial : tensor<128x64xf32, #attn.auto> -> tensor<128x4xf32, #attn.auto>
  return
}

// -----

func.func @f(%t: tensor<128xf32, #attn.auto>) {
  // expected-error @below {{expected a source of rank 2 and a result of rank 1, got 'tensor<128xf32, #attn.auto>'}}
  %r = attn.column %t {column = 0} : tensor<128xf32, #attn.auto> -> tensor<128xf32, #attn.auto>
  return
}

// -----

func.func @f(%t: tensor<128x64xf32, #attn.auto>) {
  // expected-error @below {{expected the rows and element type of 'tensor<128x64xf32, #attn.auto>', got 'tensor<64xf32, #attn.auto>'}}
  %r = attn.column %t {column = 0} : tensor<128x64xf32, #attn.auto> -> tensor<64xf32, #attn.auto>
  return
}

// -----

func.func @f(%t: tensor<128x64xf32, #attn.auto>) {
  // expected-error @below {{expected a column of 64, got 64}}
  %r = attn.column %t {column = 64} : tensor<128x64xf32, #attn.auto> -> tensor<128xf32, #attn.auto>
  return
}

// -----

func.func @f(%t: tensor<128x64xf32, #attn.auto>) {
  // expected-error @below {{expected a source of rank 1 and a result of rank 2, got}}
  %r = attn.broadcast %t : tensor<128x64xf32, #attn.auto> -> tensor<128x64xf32, #attn.auto>
  return
}

// -----

func.func @f(%t: tensor<128xf16, #attn.auto>) {
  // expected-error @below {{expected the element type 'f16' of the source, got 'f32'}}
  %r = attn.broadcast %t : tensor<128xf16, #attn.auto> -> tensor<128x64xf32, #attn.auto>
  return
}

// -----

func.func @f(%t: tensor<128xf32, #attn.auto>) {
  // expected-error @below {{expected 128 rows, got 64}}
  %r = attn.broadcast %t : tensor<128xf32, #attn.auto> -> tensor<64x64xf32, #attn.auto>
  return
}

// -----

func.func @f(%t: tensor<128xf32, #attn.auto>) {
  // expected-error @below {{expected 128 columns, got 64}}
  %r = attn.broadcast %t {columns} : tensor<128xf32, #attn.auto> -> tensor<128x64xf32, #attn.auto>
  return
}

// -----

func.func @f(%t: tensor<128x64xf32, #attn.auto>) {
  // expected-error @below {{expected the source's shape and element type, got 'tensor<64x64xf32, #attn.auto>'}}
  %r = attn.convert_layout %t : tensor<128x64xf32, #attn.auto> -> tensor<64x64xf32, #attn.auto>
  return
}

// -----

func.func @f(%t: tensor<128x64xf16, #attn.auto>) {
  // expected-error @below {{expected f32 elements, got 'tensor<128x64xf16, #attn.auto>'}}
  %r = attn.exp2 %t : tensor<128x64xf16, #attn.auto>
  return
}

// -----

func.func @f(%t: tensor<128x64xf32, #attn.auto>) {
  // expected-error @below {{expected 0 to 16 polynomial elements of 16, got 17}}
  %r = attn.exp2 %t {polynomial = 17 : i64} : tensor<128x64xf32, #attn.auto>
  return
}

// -----

func.func @f(%s: tensor<128x64xf32, #attn.auto>, %m: tensor<128xf16, #attn.auto>, %l: tensor<128x4xf32, #attn.partial<parent = #attn.auto>>, %o: tensor<128x64xf32, #attn.auto>, %c: f32) {
  // expected-error @below {{expected 'm' to be an f32 tile of rank 1, got 'tensor<128xf16, #attn.auto>'}}
  %p, %m1, %l1, %o1 = attn.online_softmax %s, %m, %l, %o scale %c : tensor<128x64xf32, #attn.auto>, tensor<128xf16, #attn.auto>, tensor<128x4xf32, #attn.partial<parent = #attn.auto>>, tensor<128x64xf32, #attn.auto>
  return
}

// -----

func.func @f(%s: tensor<128x64xf32, #attn.auto>, %m: tensor<128xf32, #attn.auto>, %l: tensor<128x4xf32, #attn.partial<parent = #attn.auto>>, %c: f32) {
  // expected-error @below {{expected a finite 'offset' of at least 0, got -1}}
  %p, %m1, %l1, %o1 = attn.online_softmax %s, %m, %l, %s scale %c policy<exact, offset = -1> : tensor<128x64xf32, #attn.auto>, tensor<128xf32, #attn.auto>, tensor<128x4xf32, #attn.partial<parent = #attn.auto>>, tensor<128x64xf32, #attn.auto>
  return
}

// -----

func.func @f(%s: tensor<128x64xf32, #attn.auto>, %m: tensor<128xf32, #attn.auto>, %l: tensor<128x4xf32, #attn.partial<parent = #attn.auto>>, %c: f32) {
  // expected-error @below {{expected 0 to 16 polynomial elements of 16, got -1}}
  %p, %m1, %l1, %f = attn.online_softmax %s, %m, %l scale %c policy<exact, polynomial = -1> : tensor<128x64xf32, #attn.auto>, tensor<128xf32, #attn.auto>, tensor<128x4xf32, #attn.partial<parent = #attn.auto>>
  return
}

// -----

func.func @f(%s: tensor<128x64xf32, #attn.auto>, %m: tensor<128xf32, #attn.auto>, %l: tensor<128x4xf32, #attn.partial<parent = #attn.auto>>, %o: tensor<64x64xf32, #attn.auto>, %c: f32) {
  // expected-error @below {{expected 'o' to have the 128 rows of 's', got 64}}
  %p, %m1, %l1, %o1 = attn.online_softmax %s, %m, %l, %o scale %c : tensor<128x64xf32, #attn.auto>, tensor<128xf32, #attn.auto>, tensor<128x4xf32, #attn.partial<parent = #attn.auto>>, tensor<64x64xf32, #attn.auto>
  return
}

// -----

func.func @f(%x: tensor<64x8xf32, #attn.auto>) {
  // expected-error @below {{expected a condition of i1, got 'tensor<64x8xf32, #attn.auto>'}}
  %r = attn.rare any %x default(%x : tensor<64x8xf32, #attn.auto>) : tensor<64x8xf32, #attn.auto> {
    attn.yield %x : tensor<64x8xf32, #attn.auto>
  }
  return
}

// -----

func.func @f(%x: tensor<64x8xf32, #attn.auto>, %c: tensor<64x8xi1, #attn.auto>, %i: i32) {
  %r = attn.rare any %c default(%x : tensor<64x8xf32, #attn.auto>) : tensor<64x8xi1, #attn.auto> {
    // expected-error @below {{expected the defaults' types ('tensor<64x8xf32, #attn.auto>'), got ('i32')}}
    attn.yield %i : i32
  }
  return
}

// -----

func.func @f(%x: tensor<64x8xf32, #attn.auto>, %c: tensor<64x8xi1, #attn.auto>) {
  // expected-note @below {{the path is here}}
  %r = attn.rare any %c default(%x : tensor<64x8xf32, #attn.auto>) : tensor<64x8xi1, #attn.auto> {
    // expected-error @below {{'gpu.barrier' op expected no operation of unknown effects on a path that only some warps take}}
    gpu.barrier
    attn.yield %x : tensor<64x8xf32, #attn.auto>
  }
  return
}

// -----

func.func @f(%x: tensor<64x8xf32, #attn.auto>, %c: tensor<64x8xi1, #attn.auto>) {
  // expected-note @below {{the path is here}}
  %r = attn.rare any %c default(%x : tensor<64x8xf32, #attn.auto>) : tensor<64x8xi1, #attn.auto> {
    // expected-error @below {{expected no collective operation on a path that only some warps take}}
    attn.cp_async.commit
    attn.yield %x : tensor<64x8xf32, #attn.auto>
  }
  return
}

// -----

func.func @f(%x: tensor<64x8xf32, #attn.auto>, %c: tensor<64x8xi1, #attn.auto>, %b: !attn.buffer<64x8xf32, #attn.auto, shared>) {
  // expected-note @below {{the path is here}}
  %r = attn.rare any %c default(%x : tensor<64x8xf32, #attn.auto>) : tensor<64x8xi1, #attn.auto> {
    // expected-error @below {{expected no memory access on a path that only some warps take}}
    attn.local_store %x, %b : tensor<64x8xf32, #attn.auto>, !attn.buffer<64x8xf32, #attn.auto, shared>
    attn.yield %x : tensor<64x8xf32, #attn.auto>
  }
  return
}

// -----

func.func @f(%x: tensor<64x8xf32, #attn.auto>, %c: tensor<64x8xi1, #attn.auto>, %o: !attn.inflight<64x8xf32>) {
  // expected-note @below {{the path needs 'each_warpgroup'}}
  %r = attn.rare any %c default(%x : tensor<64x8xf32, #attn.auto>) : tensor<64x8xi1, #attn.auto> {
    // expected-error @below {{expected a path that the warps of a warpgroup take together}}
    %y = attn.wgmma.wait %o {pending = 0} : !attn.inflight<64x8xf32> -> tensor<64x8xf32, #attn.auto>
    attn.yield %y : tensor<64x8xf32, #attn.auto>
  }
  return
}

// -----

func.func @f(%x: tensor<64x8xf32, #attn.auto>, %c: tensor<64x8xi1, #attn.auto>) {
  // expected-error @below {{expected 'each_warpgroup' beside a barrier}}
  %r = attn.rare any %c default(%x : tensor<64x8xf32, #attn.auto>) {barrier = 2 : i64} : tensor<64x8xi1, #attn.auto> {
    attn.yield %x : tensor<64x8xf32, #attn.auto>
  }
  return
}

// -----

func.func @f(%x: tensor<64x8xf32, #attn.auto>, %c: tensor<64x8xi1, #attn.auto>) {
  // expected-error @below {{expected a named barrier from 1 to 15, got 16}}
  %r = attn.rare any %c default(%x : tensor<64x8xf32, #attn.auto>) {barrier = 16 : i64, each_warpgroup} : tensor<64x8xi1, #attn.auto> {
    attn.yield %x : tensor<64x8xf32, #attn.auto>
  }
  return
}

// -----

func.func @f(%t: tensor<128xf32, #attn.auto>) {
  // expected-error @below {{expected tiles of rank 2, got 'tensor<128xf32, #attn.auto>' and 'tensor<128x64xf32, #attn.auto>'}}
  %r = attn.slice %t {column = 0} : tensor<128xf32, #attn.auto> -> tensor<128x64xf32, #attn.auto>
  return
}

// -----

func.func @f(%t: tensor<128x64xf32, #attn.auto>) {
  // expected-error @below {{expected the rows, element type and layout of 'tensor<128x64xf32, #attn.auto>', got 'tensor<128x32xf16, #attn.auto>'}}
  %r = attn.slice %t {column = 0} : tensor<128x64xf32, #attn.auto> -> tensor<128x32xf16, #attn.auto>
  return
}

// -----

func.func @f(%t: tensor<128x64xf32, #attn.auto>) {
  // expected-error @below {{expected columns from 0 to 64, got 32 from 48 on}}
  %r = attn.slice %t {column = 48} : tensor<128x64xf32, #attn.auto> -> tensor<128x32xf32, #attn.auto>
  return
}

// -----

func.func @f(%t: tensor<128x64xf32, #attn.auto>) {
  // expected-error @below {{expected column to be a multiple of 16, got 8}}
  %r = attn.exp2 %t {column = 8 : i64} : tensor<128x64xf32, #attn.auto>
  return
}

// -----

func.func @f(%s: tensor<128x64xf32, #attn.auto>, %m: tensor<128xf32, #attn.auto>, %l: tensor<128x1xf32, #attn.partial<parent = #attn.auto>>, %o: tensor<128x64xf32, #attn.auto>, %c: f32) {
  // expected-error @below {{expected 'largest' without o, under a policy that knows maxima}}
  %p, %m1, %l1, %f, %e = attn.online_softmax %s, %m, %l, %o largest %m : tensor<128xf32, #attn.auto> scale %c : tensor<128x64xf32, #attn.auto>, tensor<128xf32, #attn.auto>, tensor<128x1xf32, #attn.partial<parent = #attn.auto>>, tensor<128x64xf32, #attn.auto>
  return
}

// -----

func.func @f(%s: tensor<128x64xf32, #attn.auto>, %m: tensor<128xf32, #attn.auto>, %l: tensor<128x1xf32, #attn.partial<parent = #attn.auto>>, %c: f32) {
  // expected-error @below {{expected 'largest' without o, under a policy that knows maxima}}
  %p, %m1, %l1, %f, %e = attn.online_softmax %s, %m, %l largest %m : tensor<128xf32, #attn.auto> scale %c policy<optimistic> : tensor<128x64xf32, #attn.auto>, tensor<128xf32, #attn.auto>, tensor<128x1xf32, #attn.partial<parent = #attn.auto>>
  return
}

// -----

func.func @f(%s: tensor<128x64xf32, #attn.auto>, %m: tensor<128xf32, #attn.auto>, %l: tensor<128x1xf32, #attn.partial<parent = #attn.auto>>, %c: f32) {
  // expected-error @below {{expected 'largest' to have the type of m or, with 'whole', that of l, got 'tensor<128x1xf32, #attn.partial<parent = #attn.auto>>'}}
  %p, %m1, %l1, %f, %e = attn.online_softmax %s, %m, %l largest %l : tensor<128x1xf32, #attn.partial<parent = #attn.auto>> scale %c : tensor<128x64xf32, #attn.auto>, tensor<128xf32, #attn.auto>, tensor<128x1xf32, #attn.partial<parent = #attn.auto>>
  return
}

// -----

func.func @f(%s: tensor<128x64xf32, #attn.auto>, %m: tensor<128xf32, #attn.auto>, %l: tensor<128x1xf32, #attn.partial<parent = #attn.auto>>, %c: f32) {
  // expected-error @below {{expected 'keys' under the policy threshold, beside the 'largest' of whole rows}}
  %p, %m1, %l1, %f = attn.online_softmax %s, %m, %l keys %c scale %c policy<threshold> : tensor<128x64xf32, #attn.auto>, tensor<128xf32, #attn.auto>, tensor<128x1xf32, #attn.partial<parent = #attn.auto>>
  return
}

// -----

func.func @f(%s: tensor<128x64xf32, #attn.auto>, %m: tensor<128xf32, #attn.auto>, %l: tensor<128x1xf32, #attn.partial<parent = #attn.auto>>, %c: f32) {
  // expected-error @below {{expected 'keys' under the policy threshold, beside the 'largest' of whole rows}}
  %p, %m1, %l1, %f, %e = attn.online_softmax %s, %m, %l largest %m : tensor<128xf32, #attn.auto> keys %c scale %c policy<lagged> : tensor<128x64xf32, #attn.auto>, tensor<128xf32, #attn.auto>, tensor<128x1xf32, #attn.partial<parent = #attn.auto>>
  return
}

// -----

func.func @f(%s: tensor<128x64xf32, #attn.auto>, %m: tensor<128xf32, #attn.auto>, %l: tensor<128x1xf32, #attn.partial<parent = #attn.auto>>, %c: f32) {
  // expected-error @below {{expected 'keys' beside a slack of 2}}
  %p, %m1, %l1, %f = attn.online_softmax %s, %m, %l scale %c policy<threshold, slack = 2> : tensor<128x64xf32, #attn.auto>, tensor<128xf32, #attn.auto>, tensor<128x1xf32, #attn.partial<parent = #attn.auto>>
  return
}

// -----

func.func @f(%s: tensor<128x64xf32, #attn.auto>, %m: tensor<128xf32, #attn.auto>, %l: tensor<128x4xf32, #attn.partial<parent = #attn.auto>>, %c: f32) {
  // expected-error @below {{expected 'growth' in the #attn.softmax after 'policy', got an attribute of its own}}
  %p, %m1, %l1, %f = attn.online_softmax %s, %m, %l scale %c {growth = 7.0 : f32} : tensor<128x64xf32, #attn.auto>, tensor<128xf32, #attn.auto>, tensor<128x4xf32, #attn.partial<parent = #attn.auto>>
  return
}

// -----

// expected-error @below {{expected offset, growth, limit, slack, polynomial or whole, got 'grows'}}
func.func private @f() attributes {step = #attn.softmax<lagged, grows = 7>}

// -----

// expected-error @below {{expected each parameter once, got 'whole' twice}}
func.func private @f() attributes {step = #attn.softmax<lagged, whole, whole>}

// -----

// expected-error @below {{expected a part of an order, got none}}
func.func private @f() attributes {order = #attn.kv_order<>}

// -----

func.func @f(%l: tensor<64x4xf32, #attn.partial<parent = #attn.auto>>, %m: tensor<128xf32, #attn.auto>) {
  // expected-error @below {{expected 'l' to have the 128 rows of 'm', got 64}}
  %sums = attn.softmax_sums %l, %m limit 1.0 : tensor<64x4xf32, #attn.partial<parent = #attn.auto>>, tensor<128xf32, #attn.auto>
  return
}

// -----

func.func @f(%l: tensor<64x4xf32, #attn.auto>) {
  // expected-error @below {{expected 'sums' to be an f32 tile of rank 1, got 'tensor<64x4xf32, #attn.auto>'}}
  %inverse = attn.softmax_inverse %l : tensor<64x4xf32, #attn.auto>
  return
}

// -----

func.func @far_slice(%t: tensor<128x64xf32, #attn.auto>) {
  // expected-error @below {{expected columns from 0 to 64, got 32 from 9223372036854775807 on}}
  %r = attn.slice %t {column = 9223372036854775807} : tensor<128x64xf32, #attn.auto> -> tensor<128x32xf32, #attn.auto>
  return
}
