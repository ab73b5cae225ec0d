// RUN: attn-opt %s -split-input-file -verify-diagnostics

#regs = #attn.tmem_regs<shape_32x32b, warps = [4, 1]>
!s = !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>

func.func @no_layout(%s: !s) {
  // expected-error @below {{expected a result with the layout of its registers, got '!attn.inflight<128x64xf32>'}}
  %f = attn.tmem.load %s : !s -> !attn.inflight<128x64xf32>
  return
}

// -----

!s = !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
func.func @shape(%s: !s) {
  // expected-error @below {{expected a tile like the buffer '!attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>', got 128, 32 of 'f32'}}
  %f = attn.tmem.load %s : !s -> !attn.inflight<128x32xf32, #attn.tmem_regs<shape_32x32b, warps = [4, 1]>>
  return
}

// -----

!s = !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
func.func @one_thread(%s: !s) {
  attn.elect {
    // expected-error @below {{expected all warps of a warpgroup, got the one thread of an attn.elect}}
    %f = attn.tmem.load %s : !s -> !attn.inflight<128x64xf32, #attn.tmem_regs<shape_32x32b, warps = [4, 1]>>
  }
  return
}

// -----

// A tile that two warpgroups share.
!s = !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
func.func @fragments(%s: !s, %t: tensor<128x64xf32, #attn.mma<warps = [8, 1]>>) {
  // expected-error @below {{expected four warps, each with a fourth of the rows}}
  attn.tmem.store %t, %s : tensor<128x64xf32, #attn.mma<warps = [8, 1]>>, !s
  return
}

// -----

!s = !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
func.func @no_tile(%s: !s, %t: tensor<128x64xf32>) {
  // expected-error @below {{expected a register tile, got 'tensor<128x64xf32>'}}
  attn.tmem.store %t, %s : tensor<128x64xf32>, !s
  return
}

// -----

#regs = #attn.tmem_regs<shape_32x32b, warps = [4, 1]>
!s = !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
gpu.module @kernels {
  gpu.func @lanes(%n: i32) kernel attributes {known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 1 : i32} {
    %s = attn.tmem_alloc : !s
    // expected-note @below {{the partitions are here}}
    attn.warp_specialize
    partition "one" warps 1 registers 168 {
    }
    partition "two" warps 2 tiles [2, 1] registers 168 {
      // expected-error @below {{expected a partition that is a warpgroup, whose warps reach all lanes of tensor memory, got 2 warps from warp 1 on}}
      %f = attn.tmem.load %s : !s -> !attn.inflight<128x64xf32, #regs>
    }
    partition "spare" warps 1 registers 168 {
    }
    partition "rest" warps 4 registers 168 {
    }
    gpu.return
  }
}

// -----

#regs = #attn.tmem_regs<shape_32x32b, warps = [4, 1]>
!s = !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
func.func @maximum_only(%s: !s) {
  // expected-error @below {{expected a second result with 'reduce' only}}
  %f = attn.tmem.load %s {reduce = #attn<reduce_kind max>} : !s -> !attn.inflight<128x64xf32, #regs>
  return
}

// -----

#regs = #attn.tmem_regs<shape_16x256b, warps = [4, 1]>
!s = !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
func.func @maximum_of_lanes(%s: !s) {
  // expected-error @below {{expected the maximum of f32 in shape_32x32b over a power of two from 2 to 128 of columns with 'reduce', got max of '!attn.inflight<128x64xf32, #attn.tmem_regs<shape_16x256b, warps = [4, 1]>>'}}
  %f, %m = attn.tmem.load %s {reduce = #attn<reduce_kind max>} : !s -> !attn.inflight<128x64xf32, #regs>, !attn.inflight<128xf32, #attn.slice<dim = 1, parent = #regs>>
  return
}

// -----

#regs = #attn.tmem_regs<shape_32x32b, warps = [4, 1]>
!s = !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
func.func @maximum_type(%s: !s) {
  // expected-error @below {{expected row values of type '!attn.inflight<128xf32, #attn.slice<dim = 1, parent = #attn.tmem_regs<shape_32x32b, warps = [4, 1]>>>', got '!attn.inflight<128x64xf32, #attn.tmem_regs<shape_32x32b, warps = [4, 1]>>'}}
  %f, %m = attn.tmem.load %s {reduce = #attn<reduce_kind max>} : !s -> !attn.inflight<128x64xf32, #regs>, !attn.inflight<128x64xf32, #regs>
  return
}

// -----

func.func @wait_accumulator(%f: !attn.inflight<64x64xf32>) {
  // expected-error @below {{expected what an attn.tmem.load loads, got '!attn.inflight<64x64xf32>'}}
  %t = attn.tmem.wait %f : !attn.inflight<64x64xf32> -> tensor<64x64xf32, #attn.auto>
  return
}

// -----

#regs = #attn.tmem_regs<shape_32x32b, warps = [4, 1]>
func.func @wait_type(%f: !attn.inflight<128x64xf32, #regs>) {
  // expected-error @below {{expected a tile like '!attn.inflight<128x64xf32, #attn.tmem_regs<shape_32x32b, warps = [4, 1]>>', got 'tensor<128x32xf32, #attn.auto>'}}
  %t = attn.tmem.wait %f : !attn.inflight<128x64xf32, #regs> -> tensor<128x32xf32, #attn.auto>
  return
}
