// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-lower-tiles))' -split-input-file -verify-diagnostics

#span128 = #attn.swizzled<span = 128>
gpu.module @kernels {
  gpu.func @no_swizzle() kernel attributes {attn.warps = array<i64: 4, 1>} {
    %q = attn.alloc {offset = 0 : i64} : !attn.buffer<64x64xf16, #attn.rows, shared>
    %v = attn.alloc {offset = 8192 : i64} : !attn.buffer<64x64xf16, #span128, shared>
    // expected-error @below {{'attn.wgmma' op expected a swizzle of 32, 64 or 128 bytes for a matrix descriptor, got none}}
    %s = attn.wgmma %q, %v : !attn.buffer<64x64xf16, #attn.rows, shared>, !attn.buffer<64x64xf16, #span128, shared> -> !attn.inflight<64x64xf32>
    gpu.return
  }
}

// -----

#span128 = #attn.swizzled<span = 128>
gpu.module @kernels {
  gpu.func @fp8_rows() kernel attributes {attn.warps = array<i64: 4, 1>} {
    %q = attn.alloc {offset = 0 : i64} : !attn.buffer<64x128xf8E4M3FN, #span128, shared>
    %v = attn.alloc {offset = 8192 : i64} : !attn.buffer<128x128xf8E4M3FN, #span128, shared>
    // expected-error @below {{'attn.wgmma' op expected elements of 16 bits in a matrix that is not contiguous along the contraction, got 8 bits}}
    %s = attn.wgmma %q, %v : !attn.buffer<64x128xf8E4M3FN, #span128, shared>, !attn.buffer<128x128xf8E4M3FN, #span128, shared> -> !attn.inflight<64x128xf32>
    gpu.return
  }
}

// -----

#span128 = #attn.swizzled<span = 128>
gpu.module @kernels {
  gpu.func @too_few_rows() kernel attributes {attn.warps = array<i64: 8, 1>} {
    %q = attn.alloc {offset = 0 : i64} : !attn.buffer<64x64xf16, #span128, shared>
    // expected-error @below {{expected 16 rows for each warp of a grid of one column, got 64 rows and a grid of 8 x 1}}
    %s = attn.wgmma %q, %q : !attn.buffer<64x64xf16, #span128, shared>, !attn.buffer<64x64xf16, #span128, shared> -> !attn.inflight<64x64xf32>
    gpu.return
  }
}

// -----

#span128 = #attn.swizzled<span = 128>
gpu.module @kernels {
  gpu.func @other_warps() kernel attributes {attn.warps = array<i64: 4, 1>} {
    %q = attn.alloc {offset = 0 : i64} : !attn.buffer<64x64xf16, #span128, shared>
    // expected-error @below {{expected an accumulator in the kernel's 4 warps, got '!attn.inflight<64x64xf32, #attn.mma<warps = [4, 1], copies = 2>>'}}
    %s = attn.wgmma %q, %q : !attn.buffer<64x64xf16, #span128, shared>, !attn.buffer<64x64xf16, #span128, shared> -> !attn.inflight<64x64xf32, #attn.mma<warps = [4, 1], copies = 2>>
    gpu.return
  }
}

// -----

#other = #attn.blocked<per_thread = [1, 8], warps = 4, order = [1, 0]>
#span128 = #attn.swizzled<span = 128>
gpu.module @kernels {
  gpu.func @fragments(%x: f16) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %v = attn.alloc {offset = 8192 : i64} : !attn.buffer<64x64xf16, #span128, shared>
    %p = tensor.splat %x : tensor<64x64xf16, #other>
    // expected-error @below {{expected 'a' in the fragments of the instruction, got 'tensor<64x64xf16, #attn.blocked}}
    %s = attn.wgmma %p, %v : tensor<64x64xf16, #other>, !attn.buffer<64x64xf16, #span128, shared> -> !attn.inflight<64x64xf32>
    gpu.return
  }
}

// -----

#other = #attn.blocked<per_thread = [1, 2], warps = 4, order = [1, 0]>
#span128 = #attn.swizzled<span = 128>
gpu.module @kernels {
  gpu.func @accumulator(%x: f32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %v = attn.alloc {offset = 8192 : i64} : !attn.buffer<64x64xf16, #span128, shared>
    %c = tensor.splat %x : tensor<64x64xf32, #other>
    // expected-error @below {{expected an accumulator in the fragments of the kernel's warps, got 'tensor<64x64xf32, #attn.blocked}}
    %s = attn.wgmma %v, %v acc %c : tensor<64x64xf32, #other> : !attn.buffer<64x64xf16, #span128, shared>, !attn.buffer<64x64xf16, #span128, shared> -> !attn.inflight<64x64xf32>
    gpu.return
  }
}

// -----

#other = #attn.blocked<per_thread = [1, 2], warps = 4, order = [1, 0]>
#span128 = #attn.swizzled<span = 128>
gpu.module @kernels {
  gpu.func @result() kernel attributes {attn.warps = array<i64: 4, 1>} {
    %v = attn.alloc {offset = 8192 : i64} : !attn.buffer<64x64xf16, #span128, shared>
    %s = attn.wgmma %v, %v : !attn.buffer<64x64xf16, #span128, shared>, !attn.buffer<64x64xf16, #span128, shared> -> !attn.inflight<64x64xf32>
    // expected-error @below {{expected a result in the fragments of the kernel's warps, got 'tensor<64x64xf32, #attn.blocked}}
    %r = attn.wgmma.wait %s {pending = 0} : !attn.inflight<64x64xf32> -> tensor<64x64xf32, #other>
    gpu.return
  }
}

// -----

!map = !attn.tensor_map<64x64xf16, swizzle = 128>
gpu.module @kernels {
  gpu.func @token(%map: !map, %i: i32, %t: !attn.token) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %b = attn.alloc {offset = 0 : i64} : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    // expected-error @below {{expected a barrier instead of a token; attn-lower-channels makes it one}}
    attn.tma.load %map[%i, %i], %b token %t : !map, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @gathered(%map: !attn.tensor_map<1x64xf16, swizzle = 128>, %i: i32, %t: !attn.token) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %b = attn.alloc {offset = 0 : i64} : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    %rows = attn.alloc {offset = 8192 : i64} : !attn.buffer<64xi32, #attn.rows, shared>
    // expected-error @below {{expected a barrier instead of a token; attn-lower-channels makes it one}}
    attn.tma.gather %map[%rows[%i], %i], %b token %t : !attn.tensor_map<1x64xf16, swizzle = 128>, !attn.buffer<64xi32, #attn.rows, shared>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    gpu.return
  }
}

// -----

!map = !attn.tensor_map<64x64xf16, swizzle = 128>
gpu.module @kernels {
  gpu.func @map_elsewhere(%one: !map, %other: !map, %c: i1) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %map = arith.select %c, %one, %other : !map
    // expected-error @below {{expected a tensor map that is a parameter of the kernel, got one from elsewhere}}
    attn.tma.prefetch %map : !map
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @no_barrier_offset() kernel attributes {attn.warps = array<i64: 4, 1>} {
    // expected-error @below {{'attn.mbarrier.alloc' op expected an offset; attn-allocate-shared gives it one}}
    %b = attn.mbarrier.alloc : !attn.mbarriers<2>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @misaligned_barrier() kernel attributes {attn.warps = array<i64: 4, 1>} {
    // expected-error @below {{expected an offset that is a multiple of 8, got 12}}
    %b = attn.mbarrier.alloc {offset = 12 : i64} : !attn.mbarriers<2>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @barriers_from_elsewhere(%b: !attn.mbarriers<1>) kernel attributes {attn.warps = array<i64: 4, 1>} {
    // expected-error @below {{expected buffers and views made in the kernel, got one from elsewhere of type '!attn.mbarriers<1>'}}
    attn.mbarrier.init %b {count = 1} : !attn.mbarriers<1>
    gpu.return
  }
}

// -----

// In 32 bits the product of these extents is 256.
gpu.module @kernels {
  gpu.func @block_wraps() kernel attributes {known_block_size = array<i32: 16777217, 256, 1>, nvvm.minctasm = 1 : i32} {
    // expected-error @below {{expected 'known_block_size' to be the 256 threads of the partitions, got 4294967552}}
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 240 {
    }
    partition "producer" warps 4 registers 24 {
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @block_size() kernel attributes {known_block_size = array<i32: 128, 1, 1>, nvvm.minctasm = 1 : i32} {
    // expected-error @below {{expected 'known_block_size' to be the 256 threads of the partitions, got 128}}
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 240 {
    }
    partition "producer" warps 4 registers 24 {
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @pool() kernel attributes {known_block_size = array<i32: 384, 1, 1>, nvvm.minctasm = 1 : i32} {
    // expected-error @below {{expected at most 64512 registers in all, 168 for each thread that the launch starts, got 65536}}
    attn.warp_specialize
    partition "consumer" warps 8 tiles [8, 1] registers 224 {
    }
    partition "producer" warps 4 registers 64 {
    }
    gpu.return
  }
}

// -----

// Two CTAs share the file.
gpu.module @kernels {
  gpu.func @half_a_pool() kernel attributes {known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 2 : i32} {
    // expected-error @below {{expected at most 32768 registers in all, 128 for each thread that the launch starts, got 33792}}
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 240 {
    }
    partition "producer" warps 4 registers 24 {
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @below {{expected 'nvvm.minctasm' from 1 to 32, got 0}}
  gpu.func @no_cta() kernel attributes {known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 0 : i32} {
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 240 {
    }
    partition "producer" warps 4 registers 24 {
    }
    gpu.return
  }
}

// -----

!map = !attn.tensor_map<20x64xf16, swizzle = 128>
!b = !attn.buffer<40x64xf16, #attn.swizzled<span = 128>, shared>
gpu.module @kernels {
  gpu.func @odd_parts(%map: !map, %x: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %b = attn.alloc {offset = 0 : i64} : !b
    %full = attn.mbarrier.alloc {offset = 8192 : i64} : !attn.mbarriers<1>
    // expected-error @below {{expected parts of whole 8 rows, got 20 rows}}
    attn.tma.load %map[%x, %x], %b barrier %full[%x] : !attn.mbarriers<1> {multicast = 2} : !map, !b
    gpu.return
  }
}

// -----

#other = #attn.blocked<per_thread = [1, 2], warps = 4, order = [1, 0]>
gpu.module @kernels {
  gpu.func @resume() kernel attributes {attn.warps = array<i64: 4, 1>} {
    %o = arith.constant dense<0.0> : tensor<64x64xf32, #other>
    // expected-error @below {{expected a tile in the fragments of the kernel's warps, got 'tensor<64x64xf32, #attn.blocked}}
    %f = attn.wgmma.resume %o : tensor<64x64xf32, #other> -> !attn.inflight<64x64xf32>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @turns() kernel attributes {attn.warps = array<i64: 8, 1>} {
    // expected-error @below {{expected a named barrier for each of 2 warpgroups from 15 on, got 15 in all}}
    attn.turn.take 15
    gpu.return
  }
}

// -----

#acc = #attn.mma<warps = [4, 1]>
#other = #attn.blocked<per_thread = [1, 2], warps = 4, order = [1, 0]>
gpu.module @kernels {
  gpu.func @narrow() kernel attributes {attn.warps = array<i64: 4, 1>} {
    %p = arith.constant dense<0.0> : tensor<64x32xf32, #other>
    // expected-error @below {{expected an accumulator whose warps have whole rows to become an operand, got 'tensor<64x32xf32, #attn.blocked}}
    %a = attn.narrow_operand %p : tensor<64x32xf32, #other> -> tensor<64x32xf8E4M3FN, #attn.operand<index = 0, parent = #acc>>
    gpu.return
  }
}

// -----

#other = #attn.blocked<per_thread = [1, 4], warps = 4, order = [1, 0]>
gpu.module @kernels {
  gpu.func @quads(%x: f32, %i: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = tensor.splat %x : tensor<64x32xf32, #other>
    // expected-error @below {{expected a thread's columns to be neighbours in every 8 for 'quads', got layout}}
    %r = attn.apply_mask %s[%i, %i] limit %i {quads} : tensor<64x32xf32, #other>
    gpu.return
  }
}

// -----

!v = !attn.buffer<32x64xf8E4M3FN, #attn.rows, shared>
!vt = !attn.buffer<64x32xf8E4M3FN, #attn.swizzled<span = 32>, shared>
gpu.module @kernels {
  gpu.func @transposed() kernel attributes {attn.warps = array<i64: 4, 1>} {
    %v = attn.alloc {offset = 0 : i64} : !v
    %vt = attn.alloc {offset = 2048 : i64} : !vt
    // expected-error @below {{expected a swizzled buffer of two dimensions, got 8-bit}}
    attn.local_transpose %v, %vt : !v, !vt
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @while(%n: i1) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %o = arith.constant dense<0.0> : tensor<64x64xf32, #attn.mma<warps = [4, 1]>>
    // expected-error @below {{expected a loop that carries no tiles}}
    %r = scf.while (%t = %o) : (tensor<64x64xf32, #attn.mma<warps = [4, 1]>>) -> tensor<64x64xf32, #attn.mma<warps = [4, 1]>> {
      scf.condition(%n) %t : tensor<64x64xf32, #attn.mma<warps = [4, 1]>>
    } do {
    ^bb0(%t: tensor<64x64xf32, #attn.mma<warps = [4, 1]>>):
      scf.yield %t : tensor<64x64xf32, #attn.mma<warps = [4, 1]>>
    }
    gpu.return
  }
}

// -----

gpu.module @m [#nvvm.target<chip = "sm_90a">] {
  gpu.func @vote(%x: f32, %c: i1) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %t = tensor.splat %x : tensor<64x8xf32, #attn.mma<warps = [4, 1]>>
    %b = tensor.splat %c : tensor<64x8xi1, #attn.mma<warps = [4, 1]>>
    // expected-error@below {{expected a barrier from attn-insert-fences beside 'each_warpgroup'}}
    %r = attn.rare any %b default(%t : tensor<64x8xf32, #attn.mma<warps = [4, 1]>>) {each_warpgroup} : tensor<64x8xi1, #attn.mma<warps = [4, 1]>> {
      attn.yield %t : tensor<64x8xf32, #attn.mma<warps = [4, 1]>>
    }
    gpu.return
  }
}

// -----

#acc = #attn.mma<warps = [8, 1]>
#other = #attn.mma<warps = [4, 2]>
gpu.module @kernels {
  gpu.func @extend(%x: f16) kernel attributes {attn.warps = array<i64: 8, 1>} {
    %p = tensor.splat %x : tensor<128x16xf16, #other>
    // expected-error @below {{expected layouts in which threads keep the source's elements, got 'tensor<128x16xf16, #attn.mma<warps = [4, 2]>>' and 'tensor<128x32xf16, #attn.mma<warps = [8, 1]>>'}}
    %e = attn.extend_columns %p : tensor<128x16xf16, #other> -> tensor<128x32xf16, #acc>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @send(%i: i32, %t: !attn.token) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %b = attn.alloc {offset = 0 : i64} : !attn.buffer<2xi32, #attn.rows, shared>
    attn.elect {
      // expected-error @below {{expected a barrier instead of a token; attn-lower-channels makes it one}}
      attn.scalar_send %i, %b[%i] token %t : !attn.buffer<2xi32, #attn.rows, shared>
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @request(%i: i32, %t: !attn.token) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %b = attn.alloc {offset = 0 : i64} : !attn.buffer<2xi128, #attn.rows, shared>
    attn.elect {
      // expected-error @below {{expected a barrier instead of a token; attn-lower-channels makes it one}}
      attn.cluster_request %b[%i] token %t : !attn.buffer<2xi128, #attn.rows, shared>
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @request(%i: i32) kernel attributes {attn.warps = array<i64: 4, 1>, known_cluster_size = array<i32: 4, 1, 1>} {
    %b = attn.alloc {offset = 0 : i64} : !attn.buffer<2xi128, #attn.rows, shared>
    %full = attn.mbarrier.alloc {offset = 32 : i64} : !attn.mbarriers<2>
    attn.elect {
      // expected-error @below {{expected a response for all 4 CTAs of the cluster, got one for 2}}
      attn.cluster_request %b[%i] barrier %full[%i] : !attn.mbarriers<2> {ctas = 2} : !attn.buffer<2xi128, #attn.rows, shared>
    }
    gpu.return
  }
}

// -----

!b = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
gpu.module @kernels {
  gpu.func @product_outside() kernel attributes {known_block_size = array<i32: 128, 1, 1>, nvvm.minctasm = 1 : i32} {
    %b = attn.alloc {offset = 0 : i64} : !b
    // expected-error @below {{expected a grid of warps for register tiles, which warps outside of partitions do not have here}}
    %t = attn.wgmma %b, %b : !b, !b -> !attn.inflight<64x64xf32>
    attn.warp_specialize
    partition "all" warps 4 tiles [4, 1] registers 256 {
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @each_warpgroup() kernel attributes {known_block_size = array<i32: 128, 1, 1>, nvvm.minctasm = 1 : i32} {
    attn.warp_specialize
    partition "one" warps 1 registers 256 {
      // expected-error @below {{expected whole warpgroups beside 'each_warpgroup', got 1 warps from warp 0 on}}
      attn.elect each_warpgroup {
      }
    }
    partition "others" warps 3 registers 256 {
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @send_tile(%t: !attn.token) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %b = attn.alloc {offset = 0 : i64} : !attn.buffer<64x16xf32, #attn.swizzled<span = 64>, shared>
    %x = arith.constant dense<1.0> : tensor<64x16xf32, #attn.mma<warps = [4, 1]>>
    // expected-error @below {{expected a barrier instead of a token; attn-lower-channels makes it one}}
    attn.local_send %x, %b token %t : tensor<64x16xf32, #attn.mma<warps = [4, 1]>>, !attn.buffer<64x16xf32, #attn.swizzled<span = 64>, shared>
    gpu.return
  }
}

// -----

// The bytes of a tile that warps hold twice would come twice.
gpu.module @kernels {
  gpu.func @send_copies() kernel attributes {attn.warps = array<i64: 8, 1>} {
    %zero = arith.constant 0 : i32
    %b = attn.alloc {offset = 1024 : i64} : !attn.buffer<64x16xf32, #attn.swizzled<span = 64>, shared>
    %full = attn.mbarrier.alloc {offset = 0 : i64} : !attn.mbarriers<1>
    %x = arith.constant dense<1.0> : tensor<64x16xf32, #attn.mma<warps = [4, 1], copies = 2>>
    // expected-error @below {{expected a tile of which each warp holds elements of its own, whose bytes count once}}
    attn.local_send %x, %b barrier %full[%zero] : !attn.mbarriers<1> : tensor<64x16xf32, #attn.mma<warps = [4, 1], copies = 2>>, !attn.buffer<64x16xf32, #attn.swizzled<span = 64>, shared>
    gpu.return
  }
}

// -----

// Elements of 16 bits that are no neighbours make no word.
gpu.module @kernels {
  gpu.func @send_apart() kernel attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant 0 : i32
    %b = attn.alloc {offset = 1024 : i64} : !attn.buffer<64x16xf16, #attn.transposed<#attn.swizzled<span = 128>>, shared>
    %full = attn.mbarrier.alloc {offset = 0 : i64} : !attn.mbarriers<1>
    %x = arith.constant dense<1.0> : tensor<64x16xf16, #attn.mma<warps = [4, 1]>>
    // expected-error @below {{expected two neighbours of a row in each thread, for words of 32 bits}}
    attn.local_send %x, %b barrier %full[%zero] : !attn.mbarriers<1> : tensor<64x16xf16, #attn.mma<warps = [4, 1]>>, !attn.buffer<64x16xf16, #attn.transposed<#attn.swizzled<span = 128>>, shared>
    gpu.return
  }
}

// -----

// Neither are they read one by one.
gpu.module @kernels {
  gpu.func @read_halves() kernel attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant 0 : i32
    %b = attn.alloc {offset = 1024 : i64} : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    %full = attn.mbarrier.alloc {offset = 0 : i64} : !attn.mbarriers<1>
    %x = arith.constant dense<1.0> : tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
    attn.local_send %x, %b barrier %full[%zero] : !attn.mbarriers<1> : tensor<64x64xf16, #attn.mma<warps = [4, 1]>>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    // expected-error @below {{expected ldmatrix to read what another CTA sends in elements of less than 32 bits}}
    %y = attn.local_load %b : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared> -> tensor<64x64xf16, #attn.blocked<per_thread = [1, 8], warps = 4, order = [1, 0]>>
    %z = arith.addf %y, %y : tensor<64x64xf16, #attn.blocked<per_thread = [1, 8], warps = 4, order = [1, 0]>>
    gpu.return
  }
}
