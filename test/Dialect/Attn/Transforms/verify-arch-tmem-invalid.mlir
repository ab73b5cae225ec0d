// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-verify-arch))' -verify-diagnostics

#regs = #attn.tmem_regs<shape_32x32b, warps = [4, 1]>
!s = !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
// expected-note @below {{the target of the kernels here is #attn.target<chip = "sm_90a">}}
gpu.module @hopper [#attn.target<chip = "sm_90a">] {
  gpu.func @loads(%done: !attn.mbarriers<1>, %i: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    // expected-error @below {{'attn.tmem_alloc' op needs sm_100 or later, got sm_90a}}
    %s = attn.tmem_alloc : !s
    // expected-error @below {{'attn.tmem.load' op needs sm_100 or later, got sm_90a}}
    %f = attn.tmem.load %s : !s -> !attn.inflight<128x64xf32, #regs>
    // expected-error @below {{'attn.tcgen05.fence' op needs sm_100 or later, got sm_90a}}
    attn.tcgen05.fence before
    gpu.return
  }
}

// The row's maximum comes with the load from sm_103a on.
// expected-note @below {{the target of the kernels here is #attn.target<chip = "sm_100a">}}
gpu.module @first [#attn.target<chip = "sm_100a">] {
  gpu.func @maxima() kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = attn.tmem_alloc : !s
    // expected-error @below {{'attn.tmem.load' op needs sm_103 or later, got sm_100a}}
    %f, %m = attn.tmem.load %s {reduce = #attn<reduce_kind max>} : !s -> !attn.inflight<128x64xf32, #regs>, !attn.inflight<128xf32, #attn.slice<dim = 1, parent = #regs>>
    gpu.return
  }
}

gpu.module @second [#attn.target<chip = "sm_103a">] {
  gpu.func @maxima() kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = attn.tmem_alloc : !s
    %f, %m = attn.tmem.load %s {reduce = #attn<reduce_kind max>} : !s -> !attn.inflight<128x64xf32, #regs>, !attn.inflight<128xf32, #attn.slice<dim = 1, parent = #regs>>
    gpu.return
  }
}

// Bytes that count at the leader of a pair.

// expected-note @below {{the target of the kernels here is #attn.target<chip = "sm_90a">}}
gpu.module @pairs [#attn.target<chip = "sm_90a">] {
  gpu.func @kernel(%map: !attn.tensor_map<64x64xf16, swizzle = 128>, %i: i32, %b: !attn.mbarriers<1>) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    %k = attn.alloc : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    attn.tma.load %map[%i, %i], %k barrier %b[%i] : !attn.mbarriers<1> : !attn.tensor_map<64x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    // expected-error @below {{'attn.tma.load' op needs sm_100 or later, got sm_90a}}
    attn.tma.load %map[%i, %i], %k barrier %b[%i] : !attn.mbarriers<1> {leader} : !attn.tensor_map<64x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    gpu.return
  }
}
