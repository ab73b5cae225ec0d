// The last line of defence: with the checks off, what ends LLVM's process is an
// error here, and the next module compiles.
//
// RUN: attn-opt %s -o /dev/null --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(gpu.module(attn-emit-ptx{check=false}))'

// expected-error @below {{LLVM cannot translate this module for sm_80 and PTX 8.0: Cannot select: intrinsic %llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta}}
gpu.module @intrinsic [#attn.target<chip = "sm_80">] {
  llvm.func @k(%b: !llvm.ptr<3>, %n: i32) attributes {nvvm.kernel} {
    nvvm.mbarrier.arrive.expect_tx %b, %n : !llvm.ptr<3>, i32
    llvm.return
  }
}

// -----

// expected-error @below {{LLVM: no libcall available for flog2}}
// expected-error @below {{LLVM cannot translate this module for sm_80 and PTX 8.0}}
gpu.module @libcall [#attn.target<chip = "sm_80">] {
  llvm.func @k(%f: f32, %o: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %l = llvm.intr.log2(%f) : (f32) -> f32
    llvm.store %l, %o : f32, !llvm.ptr<1>
    llvm.return
  }
}

// -----

gpu.module @fine [#attn.target<chip = "sm_80">] {
  llvm.func @k(%f: f32, %o: !llvm.ptr<1>) attributes {nvvm.kernel} {
    llvm.store %f, %o : f32, !llvm.ptr<1>
    llvm.return
  }
}
