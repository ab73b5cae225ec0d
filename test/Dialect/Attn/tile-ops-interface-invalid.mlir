// RUN: attn-test-opt %s -split-input-file -verify-diagnostics

// What stands on a path that only some warps take is asked for its effects.

!tile = tensor<64x8xf32, #attn.auto>
func.func @unknown(%x: !tile, %c: tensor<64x8xi1, #attn.auto>, %i: i32) {
  // expected-note @below {{the path is here}}
  %r = attn.rare any %c default(%x : !tile) : tensor<64x8xi1, #attn.auto> {
    // expected-error @below {{'test_attn.opaque' op expected no operation of unknown effects on a path that only some warps take}}
    test_attn.opaque %i : i32
    attn.yield %x : !tile
  }
  return
}

// -----

!tile = tensor<64x8xf32, #attn.auto>
!b = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
func.func @starts(%x: !tile, %c: tensor<64x8xi1, #attn.auto>, %b: !b) {
  // expected-note @below {{the path is here}}
  %r = attn.rare any %c default(%x : !tile) : tensor<64x8xi1, #attn.auto> {
    // expected-error @below {{'test_attn.async_read' op expected no memory access on a path that only some warps take}}
    test_attn.async_read %b : !b
    attn.yield %x : !tile
  }
  return
}

// -----

!tile = tensor<64x8xf32, #attn.auto>
func.func @commits(%x: !tile, %c: tensor<64x8xi1, #attn.auto>) {
  // expected-note @below {{the path is here}}
  %r = attn.rare any %c default(%x : !tile) : tensor<64x8xi1, #attn.auto> {
    // expected-error @below {{'test_attn.async_commit' op expected no collective operation on a path that only some warps take}}
    test_attn.async_commit
    attn.yield %x : !tile
  }
  return
}

// -----

!tile = tensor<64x8xf32, #attn.auto>
func.func @waits(%x: !tile, %c: tensor<64x8xi1, #attn.auto>, %f: !attn.inflight<64x8xf32>) {
  // expected-note @below {{the path needs 'each_warpgroup'}}
  %r = attn.rare any %c default(%x : !tile) : tensor<64x8xi1, #attn.auto> {
    // expected-error @below {{expected a path that the warps of a warpgroup take together}}
    %y = test_attn.product_wait %f {pending = 0} : !attn.inflight<64x8xf32> -> !tile
    attn.yield %y : !tile
  }
  return
}
