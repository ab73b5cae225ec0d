// ptxas drops setmaxnreg and spills registers with exit status 0; its log says
// so, and so do we.
//
// REQUIRES: ptxas
// RUN: attn-opt %s -o /dev/null --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(gpu.module(attn-emit-ptx{assemble check=false}))'

// expected-warning @below {{ptxas: C7508: Potential Performance Loss: 'setmaxnreg' ignored; unable to determine register count at entry.}}
gpu.module @m [#attn.target<chip = "sm_90a">] {
  llvm.func @k() attributes {nvvm.kernel} {
    nvvm.setmaxregister decrease 24
    llvm.return
  }
}

// -----

gpu.module @m [#attn.target<chip = "sm_80">] {
  // expected-warning @below {{ptxas: Registers are spilled to local memory in function 'spills'}}
  llvm.func @spills(%p: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.maxnreg = 24 : i32} {
    %p0 = llvm.getelementptr %p[0] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
    %v0 = llvm.load volatile %p0 {alignment = 16 : i64} : !llvm.ptr<1> -> vector<16xf32>
    %p1 = llvm.getelementptr %p[16] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
    %v1 = llvm.load volatile %p1 {alignment = 16 : i64} : !llvm.ptr<1> -> vector<16xf32>
    %p2 = llvm.getelementptr %p[32] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
    %v2 = llvm.load volatile %p2 {alignment = 16 : i64} : !llvm.ptr<1> -> vector<16xf32>
    %p3 = llvm.getelementptr %p[48] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
    %v3 = llvm.load volatile %p3 {alignment = 16 : i64} : !llvm.ptr<1> -> vector<16xf32>
    nvvm.barrier0
    llvm.store volatile %v0, %p0 {alignment = 16 : i64} : vector<16xf32>, !llvm.ptr<1>
    llvm.store volatile %v1, %p1 {alignment = 16 : i64} : vector<16xf32>, !llvm.ptr<1>
    llvm.store volatile %v2, %p2 {alignment = 16 : i64} : vector<16xf32>, !llvm.ptr<1>
    llvm.store volatile %v3, %p3 {alignment = 16 : i64} : vector<16xf32>, !llvm.ptr<1>
    llvm.return
  }
}

// -----

// expected-error @below {{Instruction 'wgmma.fence' not supported on .target 'sm_80'}}
// expected-error @below {{ptxas: Ptx assembly aborted due to errors}}
gpu.module @m [#attn.target<chip = "sm_80">] {
  llvm.func @k() attributes {nvvm.kernel} {
    nvvm.inline_ptx "wgmma.fence.sync.aligned;"
    llvm.return
  }
}
