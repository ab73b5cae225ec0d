// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-allocate-tmem))' --split-input-file -verify-diagnostics

gpu.module @kernels [#attn.target<chip = "sm_100a">] {
  // expected-error @below {{tensor memory does not fit: s0 128 + s1 128 + o 257 = 513 of 512 columns on sm_100a}}
  gpu.func @too_much() kernel {
    %s0 = attn.tmem_alloc {name = "s0"} : !attn.buffer<128x128xf32, #attn.tmem<m = 128>, tmem>
    %s1 = attn.tmem_alloc {name = "s1"} : !attn.buffer<128x128xf32, #attn.tmem<m = 128>, tmem>
    %o = attn.tmem_alloc {name = "o"} : !attn.buffer<128x257xf32, #attn.tmem<m = 128>, tmem>
    gpu.return
  }
}

// -----

gpu.module @kernels [#attn.target<chip = "sm_100a">] {
  gpu.func @given() kernel {
    // expected-note @below {{the other buffer is here, live at the same time}}
    %a = attn.tmem_alloc {name = "a", column = 0 : i64} : !attn.buffer<128x128xf32, #attn.tmem<m = 128>, tmem>
    // expected-error @below {{expected columns of its own, got [64, 192), which overlap 'a' at [0, 128)}}
    %b = attn.tmem_alloc {name = "b", column = 64 : i64} : !attn.buffer<128x128xf32, #attn.tmem<m = 128>, tmem>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @nested() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    attn.warp_specialize
    partition "a" warps 4 tiles [4, 1] registers 128 {
      // expected-error @below {{expected to stand at the kernel's top level}}
      %s = attn.tmem_alloc : !attn.buffer<128x128xf32, #attn.tmem<m = 128>, tmem>
    }
    gpu.return
  }
}

// -----

// Between buffers there may be columns that nobody has.
gpu.module @kernels [#attn.target<chip = "sm_100a">] {
  // expected-error @below {{tensor memory does not fit: a 256 + b 256 + 4 between them = 516 of 512 columns on sm_100a}}
  gpu.func @gap() kernel {
    %a = attn.tmem_alloc {name = "a", column = 4 : i64} : !attn.buffer<128x256xf32, #attn.tmem<m = 128>, tmem>
    %b = attn.tmem_alloc {name = "b"} : !attn.buffer<128x256xf32, #attn.tmem<m = 128>, tmem>
    gpu.return
  }
}

// -----

!a = !attn.buffer<128x64xf16, #attn.swizzled<span = 128>, shared>
!b = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!d = !attn.buffer<128x128xf32, #attn.tmem<m = 128>, tmem>
gpu.module @kernels {
  // expected-note @below {{the kernel is here}}
  gpu.func @no_pair(%more: i1) kernel attributes {known_cluster_size = array<i32: 5, 1, 1>} {
    %a = attn.alloc {name = "a"} : !a
    %b = attn.alloc {name = "b"} : !b
    %d = attn.tmem_alloc {name = "d"} : !d
    attn.elect {
      // expected-error @below {{expected a cluster of 2, 4 or 8 CTAs, whose pairs have ranks 2n and 2n + 1, got 5}}
      attn.tcgen05.mma %a, %b, %d accumulate %more {pair} : !a, !b, !d
    }
    gpu.return
  }
}

// -----

!a = !attn.buffer<128x64xf16, #attn.swizzled<span = 128>, shared>
!b = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!d = !attn.buffer<128x128xf32, #attn.tmem<m = 128>, tmem>
gpu.module @kernels {
  gpu.func @mixed(%more: i1) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %a = attn.alloc {name = "a"} : !a
    %b = attn.alloc {name = "b"} : !b
    %d = attn.tmem_alloc {name = "d"} : !d
    %done = attn.mbarrier.alloc {name = "done"} : !attn.mbarriers<1>
    attn.elect {
      // expected-note @below {{this one is of a pair}}
      attn.tcgen05.mma %a, %b, %d accumulate %more {pair} : !a, !b, !d
      // expected-error @below {{expected all uses of the tensor core by a kernel to be of one CTA or all of a pair, got one of one CTA}}
      attn.tcgen05.commit %done[%c0] : !attn.mbarriers<1>
    }
    gpu.return
  }
}
