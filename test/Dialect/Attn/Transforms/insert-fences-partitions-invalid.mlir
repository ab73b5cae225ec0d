// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-insert-fences))' --split-input-file -verify-diagnostics

gpu.module @kernels {
  gpu.func @barrier_of_the_cta() kernel {
    // expected-note@below {{the other partitions do not come to it}}
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      // expected-error@below {{expected no barrier of all threads in partition "consumer", got one}}
      gpu.barrier
    }
    partition "producer" warps 4 registers 24 {
    }
    gpu.return
  }
}

// -----

!b = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
gpu.module @kernels {
  gpu.func @wgmma_reads() kernel {
    %q = attn.alloc {name = "q"} : !b
    %k = attn.alloc {name = "k"} : !b
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %o = arith.constant dense<0.0> : tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
      // expected-note@below {{it starts here; an attn.wgmma.wait has to cover it}}
      %f = attn.wgmma %q, %k : !b, !b -> !attn.inflight<64x64xf32>
      %g = attn.wgmma %k, %k : !b, !b -> !attn.inflight<64x64xf32>
      %h = attn.wgmma %k, %k : !b, !b -> !attn.inflight<64x64xf32>
      %r = attn.wgmma.wait %f {pending = 3} : !attn.inflight<64x64xf32> -> tensor<64x64xf32, #attn.mma<warps = [4, 1]>>
      // expected-error@below {{write of buffer 'q', which an attn.wgmma still reads}}
      attn.local_store %o, %q : tensor<64x64xf16, #attn.mma<warps = [4, 1]>>, !b
    }
    partition "producer" warps 4 registers 24 {
    }
    gpu.return
  }
}

// -----

!b = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!map = !attn.tensor_map<64x64xf16, swizzle = 128>
gpu.module @kernels {
  gpu.func @store_reads(%map: !map, %x: i32) kernel {
    %q = attn.alloc {name = "q"} : !b
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %o = arith.constant dense<0.0> : tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
      attn.elect {
        // expected-note@below {{it starts here; an attn.tma.wait has to cover its group}}
        attn.tma.store %q, %map[%x, %x] : !b, !map
        attn.tma.wait {pending = 0}
        attn.tma.commit
      }
      // expected-error@below {{write of buffer 'q', which an attn.tma.store still reads}}
      attn.local_store %o, %q : tensor<64x64xf16, #attn.mma<warps = [4, 1]>>, !b
    }
    partition "producer" warps 4 registers 24 {
    }
    gpu.return
  }
}

// -----

!b = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
gpu.module @kernels {
  gpu.func @unknown_id(%id: i32) kernel {
    %q = attn.alloc {name = "q"} : !b
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %o = arith.constant dense<0.0> : tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
      attn.local_store %o, %q : tensor<64x64xf16, #attn.mma<warps = [4, 1]>>, !b
      %0 = attn.local_load %q : !b -> tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
    }
    partition "producer" warps 4 registers 24 {
      // expected-error@below {{expected a constant id beside those that attn-insert-fences allots, got one from above}}
      attn.named_barrier %id {threads = 128}
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @closed() kernel attributes {attn.warps = array<i64: 4, 1>, attn.shared_bytes = 0 : i64} {
    // expected-error@below {{expected an offset: shared memory is laid out, and no pass creates buffers any more}}
    %full = attn.mbarrier.alloc : !attn.mbarriers<2>
    gpu.return
  }
}

// -----

!b = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
gpu.module @kernels {
  gpu.func @no_id_left() kernel {
    %q = attn.alloc {name = "q"} : !b
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %i1 = arith.constant 1 : i32
      attn.named_barrier %i1 {threads = 64}
      %i2 = arith.constant 2 : i32
      attn.named_barrier %i2 {threads = 64}
      %i3 = arith.constant 3 : i32
      attn.named_barrier %i3 {threads = 64}
      %i4 = arith.constant 4 : i32
      attn.named_barrier %i4 {threads = 64}
      %i5 = arith.constant 5 : i32
      attn.named_barrier %i5 {threads = 64}
      %i6 = arith.constant 6 : i32
      attn.named_barrier %i6 {threads = 64}
      %i7 = arith.constant 7 : i32
      attn.named_barrier %i7 {threads = 64}
      %i8 = arith.constant 8 : i32
      attn.named_barrier %i8 {threads = 64}
      %i9 = arith.constant 9 : i32
      attn.named_barrier %i9 {threads = 64}
      %i10 = arith.constant 10 : i32
      attn.named_barrier %i10 {threads = 64}
      %i11 = arith.constant 11 : i32
      attn.named_barrier %i11 {threads = 64}
      %i12 = arith.constant 12 : i32
      attn.named_barrier %i12 {threads = 64}
      %i13 = arith.constant 13 : i32
      attn.named_barrier %i13 {threads = 64}
      %i14 = arith.constant 14 : i32
      attn.named_barrier %i14 {threads = 64}
      %i15 = arith.constant 15 : i32
      attn.named_barrier %i15 {threads = 64}
      %o = arith.constant dense<0.0> : tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
      attn.local_store %o, %q : tensor<64x64xf16, #attn.mma<warps = [4, 1]>>, !b
      // expected-error@below {{expected a run of 1 free named barriers for partition "consumer", got none among 16}}
      %0 = attn.local_load %q : !b -> tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
    }
    partition "producer" warps 4 registers 24 {
    }
    gpu.return
  }
}

// -----

gpu.module @m [#nvvm.target<chip = "sm_90a">] {
  gpu.func @vote(%x: tensor<64x8xf32, #attn.mma<warps = [4, 1]>>, %c: tensor<64x8xi1, #attn.mma<warps = [4, 1]>>) {
    // expected-error@below {{expected a partition of whole warpgroups around 'each_warpgroup', got 0 warps}}
    %r = attn.rare any %c default(%x : tensor<64x8xf32, #attn.mma<warps = [4, 1]>>) {each_warpgroup} : tensor<64x8xi1, #attn.mma<warps = [4, 1]>> {
      attn.yield %x : tensor<64x8xf32, #attn.mma<warps = [4, 1]>>
    }
    gpu.return
  }
}
