// RUN: attn-opt %s -pass-pipeline='builtin.module(gpu.module(attn-expand-pipeline))' -split-input-file -verify-diagnostics

// What cannot be rotated.

!slot = !attn.buffer<64x64xf16, #attn.auto, shared>
!tile = tensor<64x64xf32, #attn.auto>

gpu.module @kernels {
  gpu.func @no_products(%n: i32, %o: !tile) kernel {
    // expected-error @below {{with qk_ahead expected two products with an attn.online_softmax between them, got 0 products and 0 attn.online_softmax}}
    %r = attn.kv_loop %n, %n, %n, %n block 64 stages 1 qk_ahead iter_args(%o : !tile) {
    ^bb0(%key: i32, %o0: !tile):
      attn.yield %o0 : !tile
    }
    gpu.return
  }
}

// -----

!slot = !attn.buffer<64x64xf16, #attn.auto, shared>
!tile = tensor<64x64xf32, #attn.auto>
!rows = tensor<64xf32, #attn.auto>
!sums = tensor<64x4xf32, #attn.partial<parent = #attn.auto>>

gpu.module @kernels {
  gpu.func @shared_wait(%n: i32, %m: !rows, %l: !sums, %o: !tile, %q: !slot, %k: !slot, %p: tensor<64x64xf16, #attn.auto>, %scale: f32) kernel {
    %r:3 = attn.kv_loop %n, %n, %n, %n block 64 stages 1 qk_ahead iter_args(%m, %l, %o : !rows, !sums, !tile) {
    ^bb0(%key: i32, %m0: !rows, %l0: !sums, %o0: !tile):
      %s = attn.wgmma %q, %k : !slot, !slot -> !attn.inflight<64x64xf32>
      %s1 = attn.wgmma.wait %s {pending = 0} : !attn.inflight<64x64xf32> -> !tile
      %p0, %m1, %l1, %o1 = attn.online_softmax %s1, %m0, %l0, %o0 scale %scale : !tile, !rows, !sums, !tile
      // expected-error @below {{with qk_ahead expected a wait of its own}}
      %a = attn.wgmma %p, %k acc %o1 : !tile : tensor<64x64xf16, #attn.auto>, !slot -> !attn.inflight<64x64xf32>
      attn.yield %m1, %l1, %o1 : !rows, !sums, !tile
    }
    gpu.return
  }
}

// -----

!ring = !attn.buffer<1x64x64xf16, #attn.auto, shared>
!slot = !attn.buffer<64x64xf16, #attn.auto, shared>
!tile = tensor<64x64xf32, #attn.auto>
!rows = tensor<64xf32, #attn.auto>
!sums = tensor<64x4xf32, #attn.partial<parent = #attn.auto>>

gpu.module @kernels {
  gpu.func @stage(%n: i32, %m: !rows, %l: !sums, %o: !tile, %q: !slot, %g: !attn.global<?x64xf16>, %ring: !ring, %p: tensor<64x64xf16, #attn.auto>, %scale: f32) kernel {
    // expected-error @below {{with qk_ahead expected slots of channels, got attn.stage}}
    %r:3 = attn.kv_loop %n, %n, %n, %n block 64 stages 1 qk_ahead iter_args(%m, %l, %o : !rows, !sums, !tile) {
    ^bb0(%key: i32, %m0: !rows, %l0: !sums, %o0: !tile):
      %k = attn.stage %g[%key], %ring : !attn.global<?x64xf16>, !ring -> !slot
      %s = attn.wgmma %q, %k : !slot, !slot -> !attn.inflight<64x64xf32>
      %s1 = attn.wgmma.wait %s {pending = 0} : !attn.inflight<64x64xf32> -> !tile
      %p0, %m1, %l1, %o1 = attn.online_softmax %s1, %m0, %l0, %o0 scale %scale : !tile, !rows, !sums, !tile
      %a = attn.wgmma %p, %k acc %o1 : !tile : tensor<64x64xf16, #attn.auto>, !slot -> !attn.inflight<64x64xf32>
      %b = attn.wgmma.wait %a {pending = 0} : !attn.inflight<64x64xf32> -> !tile
      attn.yield %m1, %l1, %b : !rows, !sums, !tile
    }
    gpu.return
  }
}

// -----

!slot = !attn.buffer<64x64xf16, #attn.auto, shared>
!tile = tensor<64x64xf32, #attn.auto>
!half = tensor<64x64xf16, #attn.auto>
!rows = tensor<64xf32, #attn.auto>
!sums = tensor<64x4xf32, #attn.partial<parent = #attn.auto>>

gpu.module @kernels {
  gpu.func @shared_slice(%n: i32, %m: !rows, %l: !sums, %o: !tile, %q: !slot, %ring: !attn.buffer<2x64x64xf16, #attn.auto, shared>, %p: !half, %scale: f32) kernel {
    %r:3 = attn.kv_loop %n, %n, %n, %n block 64 stages 1 qk_ahead iter_args(%m, %l, %o : !rows, !sums, !tile) {
    ^bb0(%key: i32, %m0: !rows, %l0: !sums, %o0: !tile):
      // expected-error @below {{with qk_ahead expected QK to be independent of the softmax and of PV}}
      %k = attn.slot %ring[%n] : !attn.buffer<2x64x64xf16, #attn.auto, shared> -> !slot
      %s = attn.wgmma %q, %k : !slot, !slot -> !attn.inflight<64x64xf32>
      %s1 = attn.wgmma.wait %s {pending = 0} : !attn.inflight<64x64xf32> -> !tile
      %p0, %m1, %l1, %o1 = attn.online_softmax %s1, %m0, %l0, %o0 scale %scale : !tile, !rows, !sums, !tile
      %a = attn.wgmma %p, %k acc %o1 : !tile : !half, !slot -> !attn.inflight<64x64xf32>
      %b = attn.wgmma.wait %a {pending = 0} : !attn.inflight<64x64xf32> -> !tile
      attn.yield %m1, %l1, %b : !rows, !sums, !tile
    }
    gpu.return
  }
}

// -----

!slot = !attn.buffer<64x64xf16, #attn.auto, shared>
!tile = tensor<64x64xf32, #attn.auto>
!half = tensor<64x64xf16, #attn.auto>
!rows = tensor<64xf32, #attn.auto>
!sums = tensor<64x4xf32, #attn.partial<parent = #attn.auto>>

gpu.module @kernels {
  gpu.func @not_carried(%n: i32, %m: !rows, %l: !sums, %o: !tile, %q: !slot, %k: !slot, %v: !slot, %p: !half, %scale: f32) kernel {
    %r:3 = attn.kv_loop %n, %n, %n, %n block 64 stages 1 qk_ahead iter_args(%m, %l, %o : !rows, !sums, !tile) {
    ^bb0(%key: i32, %m0: !rows, %l0: !sums, %o0: !tile):
      %s = attn.wgmma %q, %k : !slot, !slot -> !attn.inflight<64x64xf32>
      %s1 = attn.wgmma.wait %s {pending = 0} : !attn.inflight<64x64xf32> -> !tile
      %p0, %m1, %l1, %o1 = attn.online_softmax %s1, %m0, %l0, %o0 scale %scale : !tile, !rows, !sums, !tile
      %a = attn.wgmma %p, %v acc %o1 : !tile : !half, !slot -> !attn.inflight<64x64xf32>
      // expected-error @below {{with qk_ahead expected the accumulator to be carried}}
      %b = attn.wgmma.wait %a {pending = 0} : !attn.inflight<64x64xf32> -> !tile
      attn.yield %m1, %l1, %o1 : !rows, !sums, !tile
    }
    gpu.return
  }
}

// -----

!slot = !attn.buffer<64x64xf16, #attn.auto, shared>
!tile = tensor<64x64xf32, #attn.auto>
!rows = tensor<64xf32, #attn.auto>
!sums = tensor<64x4xf32, #attn.partial<parent = #attn.auto>>

gpu.module @kernels {
  gpu.func @behind_exact(%n: i32, %m: !rows, %l: !sums, %o: !tile, %q: !slot, %k: !slot, %scale: f32) kernel {
    %r:3 = attn.kv_loop %n, %n, %n, %n block 64 stages 1 qk_ahead pv_behind iter_args(%m, %l, %o : !rows, !sums, !tile) {
    ^bb0(%key: i32, %m0: !rows, %l0: !sums, %o0: !tile):
      %s = attn.wgmma %q, %k : !slot, !slot -> !attn.inflight<64x64xf32>
      %s1 = attn.wgmma.wait %s {pending = 0} : !attn.inflight<64x64xf32> -> !tile
      // expected-error @below {{with pv_behind expected the policy 'optimistic', got 'exact'}}
      %p0, %m1, %l1, %o1 = attn.online_softmax %s1, %m0, %l0, %o0 scale %scale : !tile, !rows, !sums, !tile
      %p1 = arith.truncf %p0 : !tile to tensor<64x64xf16, #attn.auto>
      %a = attn.wgmma %p1, %k acc %o1 : !tile : tensor<64x64xf16, #attn.auto>, !slot -> !attn.inflight<64x64xf32>
      %a1 = attn.wgmma.wait %a {pending = 0} : !attn.inflight<64x64xf32> -> !tile
      attn.yield %m1, %l1, %a1 : !rows, !sums, !tile
    }
    gpu.return
  }
}

// -----

!slot = !attn.buffer<64x64xf16, #attn.auto, shared>
!tile = tensor<64x64xf32, #attn.auto>
!rows = tensor<64xf32, #attn.auto>
!sums = tensor<64x4xf32, #attn.partial<parent = #attn.auto>>

gpu.module @kernels {
  gpu.func @no_accumulator(%n: i32, %m: !rows, %l: !sums, %o: !tile, %q: !slot, %k: !slot, %p: tensor<64x64xf16, #attn.auto>, %scale: f32) kernel {
    %r:3 = attn.kv_loop %n, %n, %n, %n block 64 stages 1 qk_ahead iter_args(%m, %l, %o : !rows, !sums, !tile) {
    ^bb0(%key: i32, %m0: !rows, %l0: !sums, %o0: !tile):
      %s = attn.wgmma %q, %k : !slot, !slot -> !attn.inflight<64x64xf32>
      %s1 = attn.wgmma.wait %s {pending = 0} : !attn.inflight<64x64xf32> -> !tile
      // expected-error @below {{with qk_ahead expected the accumulator as an operand, got none}}
      %p0, %m1, %l1, %f = attn.online_softmax %s1, %m0, %l0 scale %scale : !tile, !rows, !sums
      %a = attn.wgmma %p, %k acc %o0 : !tile : tensor<64x64xf16, #attn.auto>, !slot -> !attn.inflight<64x64xf32>
      %b = attn.wgmma.wait %a {pending = 0} : !attn.inflight<64x64xf32> -> !tile
      attn.yield %m1, %l1, %b : !rows, !sums, !tile
    }
    gpu.return
  }
}
