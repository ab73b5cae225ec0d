// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-allocate-shared))' --split-input-file -verify-diagnostics

#s128 = #attn.swizzled<span = 128>
!tile = tensor<128x128xf16, #attn.mma<warps = [4, 1]>>
!b = !attn.buffer<128x128xf16, #s128, shared>
!ring = !attn.buffer<2x128x128xf16, #s128, shared>
gpu.module @kernels {
  // expected-error@below {{shared memory does not fit: expected at most 166912 bytes on sm_80, got 229376 (q 32768 + k 2 x 32768 + v 2 x 32768 + w 2 x 32768)}}
  gpu.func @too_much(%t: !tile, %i: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %dead = attn.alloc {name = "dead"} : !b
    %q = attn.alloc {name = "q"} : !b
    %k = attn.alloc {name = "k"} : !ring
    %v = attn.alloc {name = "v"} : !ring
    %w = attn.alloc {name = "w"} : !ring
    %ks = attn.slot %k[%i] : !ring -> !b
    %vs = attn.slot %v[%i] : !ring -> !b
    %ws = attn.slot %w[%i] : !ring -> !b
    attn.local_store %t, %dead : !tile, !b
    %x = attn.local_load %dead : !b -> !tile
    attn.local_store %t, %q : !tile, !b
    attn.local_store %t, %ks : !tile, !b
    attn.local_store %t, %vs : !tile, !b
    attn.local_store %t, %ws : !tile, !b
    %0 = attn.local_load %q : !b -> !tile
    %1 = attn.local_load %ks : !b -> !tile
    %2 = attn.local_load %vs : !b -> !tile
    %3 = attn.local_load %ws : !b -> !tile
    gpu.return
  }
}

// -----

#s128 = #attn.swizzled<span = 128>
!tile = tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
!b = !attn.buffer<64x64xf16, #s128, shared>
gpu.module @kernels {
  gpu.func @overlay(%t: !tile) kernel attributes {attn.warps = array<i64: 4, 1>} {
    // expected-note@below {{the other buffer is here}}
    %k = attn.alloc {name = "k", overlay = "kv"} : !b
    // expected-error@below {{expected the buffers of overlay group 'kv' to be live one after the other, got 'k' and 'v' live at the same time}}
    %v = attn.alloc {name = "v", overlay = "kv"} : !b
    attn.local_store %t, %k : !tile, !b
    attn.local_store %t, %v : !tile, !b
    %0 = attn.local_load %k : !b -> !tile
    gpu.return
  }
}

// -----

#s128 = #attn.swizzled<span = 128>
!tile = tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
!b = !attn.buffer<64x64xf16, #s128, shared>
gpu.module @kernels {
  gpu.func @given_overlap(%t: !tile) kernel attributes {attn.warps = array<i64: 4, 1>} {
    // expected-note@below {{the other buffer is here, live at the same time}}
    %k = attn.alloc {name = "k", offset = 0 : i64} : !b
    // expected-error@below {{expected bytes of its own, got [4096, 12288), which overlap 'k' at [0, 8192)}}
    %v = attn.alloc {name = "v", offset = 4096 : i64} : !b
    attn.local_store %t, %k : !tile, !b
    attn.local_store %t, %v : !tile, !b
    %0 = attn.local_load %k : !b -> !tile
    gpu.return
  }
}

// -----

// A few bytes are as bad as many.
!g = !attn.global<?x8xf16>
!b = !attn.buffer<9x8xf16, #attn.rows, shared>
gpu.module @kernels {
  gpu.func @given_few(%g: !g, %row: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    // expected-note@below {{the other buffer is here, live at the same time}}
    %k = attn.alloc {name = "k", offset = 0 : i64} : !b
    // expected-error@below {{expected bytes of its own, got [128, 272), which overlap 'k' at [0, 144)}}
    %v = attn.alloc {name = "v", offset = 128 : i64} : !b
    attn.cp_async %g[%row], %k : !g, !b
    attn.cp_async %g[%row], %v : !g, !b
    gpu.return
  }
}

// -----

#s128 = #attn.swizzled<span = 128>
gpu.module @kernels {
  gpu.func @given_alignment() kernel attributes {attn.warps = array<i64: 4, 1>} {
    // expected-error@below {{expected an offset that is a multiple of 1024, got 512}}
    %k = attn.alloc {offset = 512 : i64} : !attn.buffer<64x64xf16, #s128, shared>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @auto() kernel attributes {attn.warps = array<i64: 4, 1>} {
    // expected-error@below {{cannot be placed: }}
    %k = attn.alloc : !attn.buffer<64x64xf16, #attn.auto, shared>
    gpu.return
  }
}

// -----

!tile = tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
gpu.module @kernels {
  gpu.func @auto_access(%t: !tile) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %k = attn.alloc : !attn.buffer<64x64xf16, #attn.auto, shared>
    // expected-error@below {{cannot tell which bytes it touches: }}
    attn.local_store %t, %k : !tile, !attn.buffer<64x64xf16, #attn.auto, shared>
    gpu.return
  }
}

// -----

!tile = tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
!b = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
gpu.module @kernels {
  gpu.func @foreign(%t: !tile, %k: !b) kernel attributes {attn.warps = array<i64: 4, 1>} {
    // expected-error@below {{expected a buffer that comes from an attn.alloc through views}}
    attn.local_store %t, %k : !tile, !b
    gpu.return
  }
}

// -----

!b = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
gpu.module @kernels {
  gpu.func @unknown(%n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %k = attn.alloc : !b
    %one = arith.constant 1 : i32
    // expected-error@below {{does not say what it does with its buffer}}
    %0 = scf.for %i = %n to %n step %one iter_args(%x = %k) -> !b : i32 {
      scf.yield %k : !b
    }
    gpu.return
  }
}

// -----

// Mbarriers are part of the sum.
#s128 = #attn.swizzled<span = 128>
!q = !attn.buffer<2x128x256xf16, #s128, shared>
!s = !attn.buffer<128x256xf16, #s128, shared>
!b = !attn.buffer<128x64xf16, #s128, shared>
!map = !attn.tensor_map<128x64xf16, swizzle = 128>
gpu.module @kernels {
  // expected-error@below {{shared memory does not fit: expected at most 166912 bytes on sm_80, got 180272 (q 2 x 65536 + k 16384 + v 16384 + w 16384 + mbarriers 6 x 8)}}
  gpu.func @with_mbarriers(%t: tensor<128x256xf16, #attn.mma<warps = [4, 1]>>, %map: !map, %i: i32) kernel {
    %q = attn.alloc {name = "q"} : !q
    %k = attn.alloc {name = "k"} : !b
    %v = attn.alloc {name = "v"} : !b
    %w = attn.alloc {name = "w"} : !b
    %full = attn.mbarrier.alloc {name = "full"} : !attn.mbarriers<6>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %slot = attn.slot %q[%i] : !q -> !s
      %0 = attn.local_load %slot : !s -> tensor<128x256xf16, #attn.mma<warps = [4, 1]>>
    }
    partition "producer" warps 4 registers 96 {
      attn.tma.load %map[%i, %i], %k barrier %full[%i] : !attn.mbarriers<6> : !map, !b
      attn.tma.load %map[%i, %i], %v barrier %full[%i] : !attn.mbarriers<6> : !map, !b
      attn.tma.load %map[%i, %i], %w barrier %full[%i] : !attn.mbarriers<6> : !map, !b
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @odd_mbarrier() kernel attributes {attn.warps = array<i64: 4, 1>} {
    // expected-error@below {{expected an offset that is a multiple of 8, got 4}}
    %full = attn.mbarrier.alloc {name = "full", offset = 4 : i64} : !attn.mbarriers<2>
    gpu.return
  }
}

// -----

!b = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
gpu.module @kernels {
  gpu.func @mbarrier_in_buffer(%t: tensor<64x64xf16, #attn.mma<warps = [4, 1]>>) kernel attributes {attn.warps = array<i64: 4, 1>} {
    // expected-note@below {{it is made here}}
    %k = attn.alloc {name = "k"} : !b
    // expected-error@below {{expected bytes of its own, got [8184, 8200), which overlap 'k' at [0, 8192)}}
    %full = attn.mbarrier.alloc {name = "full", offset = 8184 : i64} : !attn.mbarriers<2>
    attn.local_store %t, %k : tensor<64x64xf16, #attn.mma<warps = [4, 1]>>, !b
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @two_mbarriers() kernel attributes {attn.warps = array<i64: 4, 1>} {
    // expected-note@below {{it is made here}}
    %full = attn.mbarrier.alloc {name = "full", offset = 0 : i64} : !attn.mbarriers<2>
    // expected-error@below {{expected bytes of its own, got [8, 16), which overlap 'full' at [0, 16)}}
    %empty = attn.mbarrier.alloc {name = "empty", offset = 8 : i64} : !attn.mbarriers<1>
    gpu.return
  }
}
