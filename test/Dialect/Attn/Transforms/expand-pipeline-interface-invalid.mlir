// RUN: attn-test-opt %s -pass-pipeline='builtin.module(gpu.module(attn-expand-pipeline))' -split-input-file -verify-diagnostics

// Products of another dialect that the expander cannot rotate.

!slot = !attn.buffer<64x64xf16, #attn.auto, shared>
!sum = !attn.buffer<64x64xf32, #attn.auto, shared>
!tile = tensor<64x64xf32, #attn.auto>
!rows = tensor<64xf32, #attn.auto>
!sums = tensor<64x4xf32, #attn.auto>
gpu.module @kernels {
  gpu.func @in_buffer(%n: i32, %m: !rows, %l: !sums, %o: !tile, %q: !slot, %k: !slot, %d: !sum, %scale: f32) kernel {
    %r:3 = attn.kv_loop %n, %n, %n, %n block 64 stages 1 qk_ahead iter_args(%m, %l, %o : !rows, !sums, !tile) {
    ^bb0(%key: i32, %m0: !rows, %l0: !sums, %o0: !tile):
      %s = test_attn.product %q, %k : !slot, !slot -> !attn.inflight<64x64xf32>
      %s1 = test_attn.product_wait %s {pending = 0} : !attn.inflight<64x64xf32> -> !tile
      %p0, %m1, %l1, %o1 = attn.online_softmax %s1, %m0, %l0, %o0 scale %scale : !tile, !rows, !sums, !tile
      // expected-error @below {{'test_attn.buffer_product' op with qk_ahead expected a product in flight, in registers}}
      test_attn.buffer_product %q, %k to %d : !slot, !slot, !sum
      attn.yield %m1, %l1, %o1 : !rows, !sums, !tile
    }
    gpu.return
  }
}

// -----

!slot = !attn.buffer<64x64xf16, #attn.auto, shared>
!tile = tensor<64x64xf32, #attn.auto>
!rows = tensor<64xf32, #attn.auto>
!sums = tensor<64x4xf32, #attn.auto>
gpu.module @kernels {
  gpu.func @whole(%n: i32, %m: !rows, %l: !sums, %o: !tile, %q: !slot, %k: !slot, %scale: f32) kernel {
    %r:3 = attn.kv_loop %n, %n, %n, %n block 64 stages 1 qk_ahead first [16] iter_args(%m, %l, %o : !rows, !sums, !tile) {
    ^bb0(%key: i32, %m0: !rows, %l0: !sums, %o0: !tile):
      %s = test_attn.product %q, %k : !slot, !slot -> !attn.inflight<64x64xf32>
      %s1 = test_attn.product_wait %s {pending = 0} : !attn.inflight<64x64xf32> -> !tile
      %p0, %m1, %l1, %o1 = attn.online_softmax %s1, %m0, %l0, %o0 scale %scale : !tile, !rows, !sums, !tile
      %p1 = arith.truncf %p0 : !tile to tensor<64x64xf16, #attn.auto>
      // expected-error @below {{'test_attn.product' op with first expected a product that can leave columns and depth out}}
      %a = test_attn.product %p1, %k acc %o1 : !tile {whole} : tensor<64x64xf16, #attn.auto>, !slot -> !attn.inflight<64x64xf32>
      %a1 = test_attn.product_wait %a {pending = 0} : !attn.inflight<64x64xf32> -> !tile
      attn.yield %m1, %l1, %a1 : !rows, !sums, !tile
    }
    gpu.return
  }
}
