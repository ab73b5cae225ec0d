// RUN: attn-opt %s -pass-pipeline='builtin.module(gpu.module(attn-expand-pipeline))' -split-input-file -verify-diagnostics

// First blocks that cannot have sizes of their own.

!queries = !attn.buffer<128x64xf16, #attn.auto, shared>
!slot = !attn.buffer<64x64xf16, #attn.auto, shared>
!tile = tensor<128x64xf32, #attn.auto>
!half = tensor<128x64xf16, #attn.auto>
!rows = tensor<128xf32, #attn.auto>
!sums = tensor<128x4xf32, #attn.partial<parent = #attn.auto>>

gpu.module @kernels {
  gpu.func @groups(%n: i32, %m: !rows, %l: !sums, %o: !tile, %q: !queries, %k: !slot, %scale: f32) kernel {
    // expected-error @below {{expected one number in first or one for each of 2 warpgroups, got 3}}
    %r:3 = attn.kv_loop %n, %n, %n, %n block 64 stages 1 qk_ahead first [16, 32, 64] iter_args(%m, %l, %o : !rows, !sums, !tile) {
    ^bb0(%key: i32, %m0: !rows, %l0: !sums, %o0: !tile):
      %s = attn.wgmma %q, %k : !queries, !slot -> !attn.inflight<128x64xf32>
      %s1 = attn.wgmma.wait %s {pending = 0} : !attn.inflight<128x64xf32> -> !tile
      %p0, %m1, %l1, %o1 = attn.online_softmax %s1, %m0, %l0, %o0 scale %scale : !tile, !rows, !sums, !tile
      %p1 = arith.truncf %p0 : !tile to !half
      %a = attn.wgmma %p1, %k acc %o1 : !tile : !half, !slot -> !attn.inflight<128x64xf32>
      %b = attn.wgmma.wait %a {pending = 0} : !attn.inflight<128x64xf32> -> !tile
      attn.yield %m1, %l1, %b : !rows, !sums, !tile
    }
    gpu.return
  }
}

// -----

!queries = !attn.buffer<128x64xf16, #attn.auto, shared>
!slot = !attn.buffer<64x64xf16, #attn.auto, shared>
!tile = tensor<128x64xf32, #attn.auto>
!half = tensor<128x64xf16, #attn.auto>
!rows = tensor<128xf32, #attn.auto>
!sums = tensor<128x4xf32, #attn.partial<parent = #attn.auto>>

gpu.module @kernels {
  gpu.func @narrow(%n: i32, %m: !rows, %l: !sums, %o: !tile, %q: !attn.buffer<128x64xf8E4M3FN, #attn.auto, shared>, %k: !attn.buffer<64x64xf8E4M3FN, #attn.auto, shared>, %scale: f32) kernel {
    // expected-error @below {{expected multiples of 32 in first, as PV takes keys, got 16}}
    %r:3 = attn.kv_loop %n, %n, %n, %n block 64 stages 1 qk_ahead first [16, 64] iter_args(%m, %l, %o : !rows, !sums, !tile) {
    ^bb0(%key: i32, %m0: !rows, %l0: !sums, %o0: !tile):
      %s = attn.wgmma %q, %k : !attn.buffer<128x64xf8E4M3FN, #attn.auto, shared>, !attn.buffer<64x64xf8E4M3FN, #attn.auto, shared> -> !attn.inflight<128x64xf32>
      %s1 = attn.wgmma.wait %s {pending = 0} : !attn.inflight<128x64xf32> -> !tile
      %p0, %m1, %l1, %o1 = attn.online_softmax %s1, %m0, %l0, %o0 scale %scale : !tile, !rows, !sums, !tile
      %p1 = attn.narrow_operand %p0 : !tile -> tensor<128x64xf8E4M3FN, #attn.auto>
      %a = attn.wgmma %p1, %k acc %o1 : !tile : tensor<128x64xf8E4M3FN, #attn.auto>, !attn.buffer<64x64xf8E4M3FN, #attn.auto, shared> -> !attn.inflight<128x64xf32>
      %b = attn.wgmma.wait %a {pending = 0} : !attn.inflight<128x64xf32> -> !tile
      attn.yield %m1, %l1, %b : !rows, !sums, !tile
    }
    gpu.return
  }
}

// -----

!queries = !attn.buffer<128x64xf16, #attn.auto, shared>
!slot = !attn.buffer<64x64xf16, #attn.auto, shared>
!tile = tensor<128x64xf32, #attn.auto>
!half = tensor<128x64xf16, #attn.auto>
!rows = tensor<128xf32, #attn.auto>
!sums = tensor<128x4xf32, #attn.partial<parent = #attn.auto>>

gpu.module @kernels {
  gpu.func @reduced(%n: i32, %m: !rows, %l: !sums, %o: !tile, %q: !queries, %k: !slot, %scale: f32) kernel {
    %r:3 = attn.kv_loop %n, %n, %n, %n block 64 stages 1 qk_ahead first [16, 64] iter_args(%m, %l, %o : !rows, !sums, !tile) {
    ^bb0(%key: i32, %m0: !rows, %l0: !sums, %o0: !tile):
      %s = attn.wgmma %q, %k : !queries, !slot -> !attn.inflight<128x64xf32>
      %s1 = attn.wgmma.wait %s {pending = 0} : !attn.inflight<128x64xf32> -> !tile
      // expected-error @below {{with first expected ops between the two products that take columns one by one}}
      %max = attn.reduce max %s1 : !tile -> !rows
      %spread = attn.broadcast %max : !rows -> !tile
      %s2 = arith.subf %s1, %spread : !tile
      %p0, %m1, %l1, %o1 = attn.online_softmax %s2, %m0, %l0, %o0 scale %scale : !tile, !rows, !sums, !tile
      %p1 = arith.truncf %p0 : !tile to !half
      %a = attn.wgmma %p1, %k acc %o1 : !tile : !half, !slot -> !attn.inflight<128x64xf32>
      %b = attn.wgmma.wait %a {pending = 0} : !attn.inflight<128x64xf32> -> !tile
      attn.yield %m1, %l1, %b : !rows, !sums, !tile
    }
    gpu.return
  }
}

// -----

!queries = !attn.buffer<128x64xf16, #attn.auto, shared>
!slot = !attn.buffer<64x64xf16, #attn.auto, shared>
!tile = tensor<128x64xf32, #attn.auto>
!half = tensor<128x64xf16, #attn.auto>
!rows = tensor<128xf32, #attn.auto>
!sums = tensor<128x4xf32, #attn.partial<parent = #attn.auto>>

gpu.module @kernels {
  gpu.func @other_tile(%n: i32, %m: !rows, %l: !sums, %o: !tile, %q: !queries, %k: !slot, %scale: f32, %bias: !tile) kernel {
    %r:3 = attn.kv_loop %n, %n, %n, %n block 64 stages 1 qk_ahead first [16, 64] iter_args(%m, %l, %o : !rows, !sums, !tile) {
    ^bb0(%key: i32, %m0: !rows, %l0: !sums, %o0: !tile):
      %s = attn.wgmma %q, %k : !queries, !slot -> !attn.inflight<128x64xf32>
      %s1 = attn.wgmma.wait %s {pending = 0} : !attn.inflight<128x64xf32> -> !tile
      // expected-error @below {{with first expected ops between the two products that take columns one by one}}
      %s2 = arith.subf %s1, %bias : !tile
      %p0, %m1, %l1, %o1 = attn.online_softmax %s2, %m0, %l0, %o0 scale %scale : !tile, !rows, !sums, !tile
      %p1 = arith.truncf %p0 : !tile to !half
      %a = attn.wgmma %p1, %k acc %o1 : !tile : !half, !slot -> !attn.inflight<128x64xf32>
      %b = attn.wgmma.wait %a {pending = 0} : !attn.inflight<128x64xf32> -> !tile
      attn.yield %m1, %l1, %b : !rows, !sums, !tile
    }
    gpu.return
  }
}

// -----

!queries = !attn.buffer<128x64xf16, #attn.auto, shared>
!slot = !attn.buffer<64x64xf16, #attn.auto, shared>
!tile = tensor<128x64xf32, #attn.auto>
!half = tensor<128x64xf16, #attn.auto>
!rows = tensor<128xf32, #attn.auto>
!sums = tensor<128x4xf32, #attn.partial<parent = #attn.auto>>

gpu.module @kernels {
  gpu.func @quads(%n: i32, %m: !rows, %l: !sums, %o: !tile, %q: !queries, %k: !slot, %scale: f32) kernel {
    %r:3 = attn.kv_loop %n, %n, %n, %n block 64 stages 1 qk_ahead first [16, 64] iter_args(%m, %l, %o : !rows, !sums, !tile) {
    ^bb0(%key: i32, %m0: !rows, %l0: !sums, %o0: !tile):
      %s = attn.wgmma %q, %k : !queries, !slot -> !attn.inflight<128x64xf32>
      %s1 = attn.wgmma.wait %s {pending = 0} : !attn.inflight<128x64xf32> -> !tile
      // expected-error @below {{with first expected ops between the two products that take columns one by one}}
      %s2 = attn.apply_mask %s1[%n, %key] limit %n {quads} : !tile
      %p0, %m1, %l1, %o1 = attn.online_softmax %s2, %m0, %l0, %o0 scale %scale : !tile, !rows, !sums, !tile
      %p1 = arith.truncf %p0 : !tile to !half
      %a = attn.wgmma %p1, %k acc %o1 : !tile : !half, !slot -> !attn.inflight<128x64xf32>
      %b = attn.wgmma.wait %a {pending = 0} : !attn.inflight<128x64xf32> -> !tile
      attn.yield %m1, %l1, %b : !rows, !sums, !tile
    }
    gpu.return
  }
}

// -----

!queries = !attn.buffer<128x64xf16, #attn.auto, shared>
!slot = !attn.buffer<64x64xf16, #attn.auto, shared>
!tile = tensor<128x64xf32, #attn.auto>
!half = tensor<128x64xf16, #attn.auto>
!rows = tensor<128xf32, #attn.auto>
!sums = tensor<128x4xf32, #attn.partial<parent = #attn.auto>>

gpu.module @kernels {
  gpu.func @stored(%n: i32, %m: !rows, %l: !sums, %o: !tile, %q: !queries, %k: !slot, %scale: f32) kernel {
    %r:3 = attn.kv_loop %n, %n, %n, %n block 64 stages 1 qk_ahead first [16, 64] iter_args(%m, %l, %o : !rows, !sums, !tile) {
    ^bb0(%key: i32, %m0: !rows, %l0: !sums, %o0: !tile):
      %s = attn.wgmma %q, %k : !queries, !slot -> !attn.inflight<128x64xf32>
      %s1 = attn.wgmma.wait %s {pending = 0} : !attn.inflight<128x64xf32> -> !tile
      // expected-error @below {{with first expected state and probabilities alone to leave the block}}
      %p0, %m1, %l1, %o1 = attn.online_softmax %s1, %m0, %l0, %o0 scale %scale : !tile, !rows, !sums, !tile
      %p1 = arith.truncf %p0 : !tile to !half
      %a = attn.wgmma %p1, %k acc %p0 : !tile : !half, !slot -> !attn.inflight<128x64xf32>
      %b = attn.wgmma.wait %a {pending = 0} : !attn.inflight<128x64xf32> -> !tile
      attn.yield %m1, %l1, %b : !rows, !sums, !tile
    }
    gpu.return
  }
}

// -----

!queries = !attn.buffer<128x64xf16, #attn.auto, shared>
!slot = !attn.buffer<64x64xf16, #attn.auto, shared>
!tile = tensor<128x64xf32, #attn.auto>
!half = tensor<128x64xf16, #attn.auto>
!rows = tensor<128xf32, #attn.auto>
!sums = tensor<128x4xf32, #attn.partial<parent = #attn.auto>>

gpu.module @kernels {
  gpu.func @no_sum(%n: i32, %m: !rows, %l: !sums, %o: !tile, %q: !queries, %k: !slot, %scale: f32) kernel {
    %r:3 = attn.kv_loop %n, %n, %n, %n block 64 stages 1 qk_ahead first [16, 64] iter_args(%m, %l, %o : !rows, !sums, !tile) {
    ^bb0(%key: i32, %m0: !rows, %l0: !sums, %o0: !tile):
      %s = attn.wgmma %q, %k : !queries, !slot -> !attn.inflight<128x64xf32>
      %s1 = attn.wgmma.wait %s {pending = 0} : !attn.inflight<128x64xf32> -> !tile
      %p0, %m1, %l1, %o1 = attn.online_softmax %s1, %m0, %l0, %o0 scale %scale : !tile, !rows, !sums, !tile
      %p1 = arith.truncf %p0 : !tile to !half
      // expected-error @below {{with first expected PV to add to an accumulator}}
      %a = attn.wgmma %p1, %k : !half, !slot -> !attn.inflight<128x64xf32>
      %b = attn.wgmma.wait %a {pending = 0} : !attn.inflight<128x64xf32> -> !tile
      attn.yield %m1, %l1, %b : !rows, !sums, !tile
    }
    gpu.return
  }
}
