// What LLVM, MLIR's translation or ptxas turn into something else without a
// word is an error.
//
// RUN: attn-opt %s -o /dev/null --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(gpu.module(attn-emit-ptx))'

gpu.module @m [#attn.target<chip = "sm_100a">] {
  llvm.func @predicate(%s: !llvm.ptr<7>, %d: !llvm.ptr, %b: !llvm.ptr<3>, %c: i32, %p: i1) attributes {nvvm.kernel} {
    // expected-error @below {{op with a predicate loses modifiers in translation, branch around it instead}}
    nvvm.cp.async.bulk.tensor.shared.cluster.global %s, %d, %b, box[%c, %c] predicate = %p {group = #nvvm.cta_group<cta_2>} : !llvm.ptr<7>, !llvm.ptr
    llvm.return
  }
}

// -----

gpu.module @m [#attn.target<chip = "sm_80">] {
  // expected-error @below {{parameter 0 is 'llvm.noalias', so it must be 'llvm.readonly' or 'llvm.writeonly': LLVM reuses its loads across barriers and fences}}
  llvm.func @noalias(%p: !llvm.ptr<1> {llvm.noalias}, %q: !llvm.ptr<1> {llvm.noalias, llvm.readonly}, %o: !llvm.ptr<1> {llvm.noalias, llvm.writeonly}) attributes {nvvm.kernel} {
    llvm.return
  }
}

// -----

gpu.module @m [#attn.target<chip = "sm_90a">] {
  // expected-error @below {{parameter 0 is passed by value without 'nvvm.grid_constant', so it would be copied to local memory}}
  llvm.func @by_value(%d: !llvm.ptr {llvm.byval = !llvm.array<128 x i8>}) attributes {nvvm.kernel} {
    llvm.return
  }
}

// -----

gpu.module @m [#attn.target<chip = "sm_90a">] {
  llvm.func @registers() attributes {nvvm.kernel, nvvm.reqntid = array<i32: 384>} {
    // expected-error @below {{is ignored by ptxas unless the kernel states its block size and 'nvvm.minctasm' or 'nvvm.maxnreg'}}
    nvvm.setmaxregister decrease 24
    llvm.return
  }
}

// -----

gpu.module @m [#attn.target<chip = "sm_90a">] {
  llvm.func @wgmma_wait(%a: i64) attributes {nvvm.kernel} {
    %d = llvm.mlir.poison : !llvm.struct<(f32, f32, f32, f32)>
    // expected-note @below {{registers in flight from here}}
    %r = nvvm.wgmma.mma_async %a, %a, %d, <m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<zero>], A [<f16>, #nvvm.wgmma_scale_in<one>, <row>], B [<f16>, #nvvm.wgmma_scale_in<one>, <col>] : !llvm.struct<(f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32)>
    // expected-error @below {{does not name the registers it waits for, so their uses may move above it; use 'llvm.inline_asm' with tied registers}}
    nvvm.wgmma.wait.group.sync.aligned 0
    llvm.return
  }
}

// -----

gpu.module @m [#attn.target<chip = "sm_100a">] {
  llvm.func @tmem_wait(%t: !llvm.ptr<6>) attributes {nvvm.kernel} {
    // expected-note @below {{registers in flight from here}}
    %v = llvm.inline_asm has_side_effects asm_dialect = att "tcgen05.ld.sync.aligned.32x32b.x1.b32 {$0}, [$1];", "=r,r" %t : (!llvm.ptr<6>) -> i32
    // expected-error @below {{does not name the registers it waits for, so their uses may move above it; use 'llvm.inline_asm' with tied registers}}
    nvvm.tcgen05.wait #nvvm.tcgen05_wait<load>
    llvm.return
  }
}

// -----

gpu.module @m [#attn.target<chip = "sm_80">] {
  llvm.func @read_write(%a: f32, %x: f32) attributes {nvvm.kernel} {
    // expected-error @below {{loses the new values of 'rw' operands in translation, use 'llvm.inline_asm' with tied constraints}}
    nvvm.inline_ptx "fma.rn.f32 $0, $1, $1, $0;" ro(%x : f32) rw(%a : f32)
    llvm.return
  }
}

// -----

gpu.module @m [#attn.target<chip = "sm_80">] {
  llvm.func @ordering(%s: !llvm.ptr<3>, %v: i32) attributes {nvvm.kernel} {
    // expected-error @below {{is translated without its ordering 'acq_rel', use 'monotonic' and 'llvm.fence'}}
    %d = llvm.atomicrmw umax %s, %v syncscope("block") acq_rel : !llvm.ptr<3>, i32
    llvm.return
  }
}

// -----

gpu.module @m [#attn.target<chip = "sm_80">] {
  // expected-error @below {{in shared memory expected external linkage, got internal: stores to it that only descriptors read would be deleted}}
  llvm.mlir.global internal @sm() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
}

// -----

gpu.module @m [#attn.target<chip = "sm_100a">] {
  llvm.func @commit(%b: !llvm.ptr<7>) attributes {nvvm.kernel} {
    // expected-error @below {{has no form for a barrier in shared::cluster, use the local address and a multicast mask}}
    nvvm.tcgen05.commit %b {group = #nvvm.cta_group<cta_1>} : !llvm.ptr<7>
    llvm.return
  }
}

// -----

gpu.module @m [#attn.target<chip = "sm_100a">] {
  llvm.func @groups(%b: !llvm.ptr<3>, %n: i32) attributes {nvvm.kernel} {
    // expected-note @below {{CTA group 1 here}}
    nvvm.tcgen05.alloc %b, %n {group = #nvvm.cta_group<cta_1>} : !llvm.ptr<3>, i32
    // expected-error @below {{has CTA group 2, expected 1 as in the rest of the function}}
    nvvm.tcgen05.commit %b {group = #nvvm.cta_group<cta_2>} : !llvm.ptr<3>
    llvm.return
  }
}

// -----

gpu.module @m [#attn.target<chip = "sm_80">] {
  llvm.func @large_copy(%p: !llvm.ptr<1>, %o: !llvm.ptr<1>) attributes {nvvm.kernel} {
    // expected-error @below {{of 128 bytes or more that is only stored would move to the store, across barriers; split it}}
    %v = llvm.load %p {alignment = 16 : i64} : !llvm.ptr<1> -> vector<32xf32>
    nvvm.barrier0
    // expected-note @below {{stored here}}
    llvm.store %v, %o {alignment = 16 : i64} : vector<32xf32>, !llvm.ptr<1>
    %w = llvm.load %p {alignment = 16 : i64} : !llvm.ptr<1> -> vector<16xf32>
    llvm.store %w, %o {alignment = 16 : i64} : vector<16xf32>, !llvm.ptr<1>
    llvm.return
  }
}
