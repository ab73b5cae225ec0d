// LLVM ends the process on what it cannot select. The form check says so first,
// where the operation stands.
//
// RUN: attn-opt %s -o /dev/null --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(gpu.module(attn-emit-ptx))'
// RUN: attn-opt %s -o /dev/null --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(gpu.module(attn-check-forms,attn-emit-ptx))'

gpu.module @m [#attn.target<chip = "sm_80", ptx = 80>] {
  llvm.func @k(%b: !llvm.ptr<3>, %n: i32) attributes {nvvm.kernel} {
    // expected-error @below {{'nvvm.mbarrier.arrive.expect_tx' op needs sm_90 and PTX 8.0, got sm_80 and PTX 8.0}}
    nvvm.mbarrier.arrive.expect_tx %b, %n : !llvm.ptr<3>, i32
    llvm.return
  }
}

// -----

gpu.module @m [#attn.target<chip = "sm_90a", ptx = 80>] {
  llvm.func @k(%b: !llvm.ptr<3>, %n: i32, %f: f32, %o: !llvm.ptr<1>) attributes {nvvm.kernel} {
    // expected-error @below {{'nvvm.mbarrier.arrive' op needs PTX 8.6, got sm_90a and PTX 8.0 (relaxed)}}
    nvvm.mbarrier.arrive %b {relaxed = true} : !llvm.ptr<3>
    // expected-error @below {{'llvm.intr.log2' op is not in the form table (f32)}}
    %l = llvm.intr.log2(%f) : (f32) -> f32
    // expected-error @below {{'llvm.intr.tanh' op is not in the form table (f32)}}
    %t = llvm.intr.tanh(%l) : (f32) -> f32
    // expected-error @below {{intrinsic 'llvm.nvvm.no.such.thing' is not in the form table}}
    %x = llvm.call_intrinsic "llvm.nvvm.no.such.thing"(%t) : (f32) -> f32
    // expected-error @below {{intrinsic 'llvm.nvvm.redux.sync.fmax' needs sm_100a, sm_100f or sm_103a and PTX 8.6, got sm_90a and PTX 8.0}}
    %y = llvm.call_intrinsic "llvm.nvvm.redux.sync.fmax"(%x, %n) : (f32, i32) -> f32
    // expected-error @below {{instruction 'add.rn.f32x2' needs sm_100 and PTX 8.6, got sm_90a and PTX 8.0}}
    // expected-error @below {{instruction 'frobnicate.b32' is not in the form table}}
    llvm.inline_asm has_side_effects asm_dialect = att "{ .reg .b64 a; L: @p add.rn.f32x2 a, a, a; // nothing\0A frobnicate.b32 x; }", "" : () -> ()
    // expected-error @below {{instruction 'tcgen05.fence::before_thread_sync' needs sm_100a, sm_100f or sm_103a and PTX 8.6, got sm_90a and PTX 8.0}}
    nvvm.inline_ptx "tcgen05.fence::before_thread_sync;"
    llvm.store %y, %o : f32, !llvm.ptr<1>
    llvm.return
  }
}

// -----

gpu.module @m [#attn.target<chip = "sm_90a">] {
  llvm.func @k(%t: !llvm.ptr<6>, %o: !llvm.ptr<1>) attributes {nvvm.kernel} {
    // expected-error @below {{'llvm.load' op is not in the form table (ptr<6>)}}
    %v = llvm.load %t : !llvm.ptr<6> -> i32
    // expected-error @below {{'arith.addi' op is neither of the llvm nor of the nvvm dialect, as translation to PTX expects}}
    %w = arith.addi %v, %v : i32
    llvm.store %w, %o : i32, !llvm.ptr<1>
    llvm.return
  }
}

// -----

// A call that only the translation recognizes as an intrinsic.
// expected-error @below {{the translation to LLVM IR uses 'llvm.nvvm.redux.sync.fmax', which needs sm_100a, sm_100f or sm_103a and PTX 8.6, got sm_90a and PTX 8.6}}
gpu.module @m [#attn.target<chip = "sm_90a">] {
  llvm.func @llvm.nvvm.redux.sync.fmax(f32, i32) -> f32
  llvm.func @k(%f: f32, %m: i32, %o: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %r = llvm.call @llvm.nvvm.redux.sync.fmax(%f, %m) : (f32, i32) -> f32
    llvm.store %r, %o : f32, !llvm.ptr<1>
    llvm.return
  }
}
