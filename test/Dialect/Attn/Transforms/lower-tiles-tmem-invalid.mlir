// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-lower-tiles))' --split-input-file -verify-diagnostics

gpu.module @kernels {
  gpu.func @no_column() kernel attributes {attn.warps = array<i64: 4, 1>} {
    // expected-error @below {{expected a column and an attn.tmem.reserve in front of it; attn-allocate-tmem makes them}}
    %s = attn.tmem_alloc : !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
    gpu.return
  }
}

// -----

!slot = !attn.buffer<1xi32, #attn.rows, shared>
gpu.module @kernels {
  gpu.func @twice() kernel attributes {attn.warps = array<i64: 4, 1>} {
    %slot = attn.alloc {offset = 0 : i64} : !slot
    %base = attn.tmem.reserve %slot {columns = 64} : !slot
    // expected-error @below {{expected one attn.tmem.reserve in a kernel, got another one}}
    %more = attn.tmem.reserve %slot {columns = 64} : !slot
    gpu.return
  }
}

// -----

!slot = !attn.buffer<1xi32, #attn.rows, shared>
!p = !attn.buffer<128x64xi16, #attn.tmem<m = 128>, tmem>
gpu.module @kernels {
  gpu.func @integers(%x: i16) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %slot = attn.alloc {offset = 0 : i64} : !slot
    %base = attn.tmem.reserve %slot {columns = 64} : !slot
    %p = attn.tmem_alloc {column = 0 : i64} : !p
    %t = tensor.splat %x : tensor<128x64xi16, #attn.tmem_regs<shape_32x32b, warps = [4, 1]>>
    // expected-error @below {{expected elements that are kept 2 in a register, got 'i16'}}
    attn.tmem.store %t, %p : tensor<128x64xi16, #attn.tmem_regs<shape_32x32b, warps = [4, 1]>>, !p
    gpu.return
  }
}
