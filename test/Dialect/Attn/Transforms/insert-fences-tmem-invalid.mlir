// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-insert-fences))' --split-input-file -verify-diagnostics

#regs = #attn.tmem_regs<shape_32x32b, warps = [4, 1]>
!s = !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
!f = !attn.inflight<128x64xf32, #regs>
!t = tensor<128x64xf32, #regs>
gpu.module @kernels {
  gpu.func @released(%full: !attn.mbarriers<1>) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant 0 : i32
    %s = attn.tmem_alloc : !s
    // expected-note @below {{it starts here; an attn.tmem.wait has to cover it}}
    %f = attn.tmem.load %s : !s -> !f
    // expected-error @below {{a signal before the wait for a load from tensor memory, whose columns it still reads}}
    attn.mbarrier.arrive %full[%zero] : !attn.mbarriers<1>
    %t = attn.tmem.wait %f : !f -> !t
    gpu.return
  }
}

// -----

#regs = #attn.tmem_regs<shape_32x32b, warps = [4, 1]>
!s = !attn.buffer<128x128xf32, #attn.tmem<m = 128>, tmem>
!c = !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
!p = !attn.buffer<128x128xf16, #attn.tmem<m = 128>, tmem>
!f = !attn.inflight<128x64xf32, #regs>
!t = tensor<128x64xf32, #regs>
!r = tensor<128x128xf16, #regs>
gpu.module @kernels {
  gpu.func @overlay(%x: !r) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = attn.tmem_alloc {fields = [#attn.field<"s", 0, 128>, #attn.field<"p", 64, 64>]} : !s
    %low = attn.tmem.slice %s {column = 0} : !s -> !c
    %high = attn.tmem.slice %s {column = 64} : !s -> !c
    %p = attn.tmem.field %s "p" : !s -> !p
    // The lower half has other columns.
    %f0 = attn.tmem.load %low : !c -> !f
    // expected-note @below {{it starts here; an attn.tmem.wait has to cover it}}
    %f1 = attn.tmem.load %high : !c -> !f
    // expected-error @below {{a store to the same columns before the wait for a load from tensor memory, whose columns it still reads}}
    attn.tmem.store %x, %p : !r, !p
    %t:2 = attn.tmem.wait %f0, %f1 : !f, !f -> !t, !t
    gpu.return
  }
}

// -----

#regs = #attn.tmem_regs<shape_32x32b, warps = [4, 1]>
!s = !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
!f = !attn.inflight<128x64xf32, #regs>
gpu.module @kernels {
  gpu.func @given_back(%base: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = attn.tmem_alloc : !s
    // expected-note @below {{it starts here; an attn.tmem.wait has to cover it}}
    %f = attn.tmem.load %s : !s -> !f
    // expected-error @below {{a signal before the wait for a load from tensor memory, whose columns it still reads}}
    attn.tmem.dealloc %base {columns = 64}
    gpu.return
  }
}
