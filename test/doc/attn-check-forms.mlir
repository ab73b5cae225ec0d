// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-forms))' 2>&1 | FileCheck %s

gpu.module @kernels [#attn.target<chip = "sm_80", ptx = 80>] {
  llvm.func @wait(%group: !llvm.ptr<3>) attributes {gpu.kernel, nvvm.kernel} {
    nvvm.wgmma.fence.aligned
    llvm.return
  }
}

// CHECK: error: 'nvvm.wgmma.fence.aligned' op needs sm_90a and PTX 8.0, got sm_80 and PTX 8.0
