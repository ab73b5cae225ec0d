// RUN: not attn-opt %s -o /dev/null --pass-pipeline='builtin.module(gpu.module(attn-emit-ptx{pipeline=no-such-pass}))' 2>&1 | FileCheck %s --check-prefix=PIPELINE
// RUN: not attn-opt %s -o /dev/null --pass-pipeline='builtin.module(gpu.module(attn-emit-ptx{codegen-level=4}))' 2>&1 | FileCheck %s --check-prefix=LEVEL
// RUN: not attn-opt %s -o /dev/null --pass-pipeline='builtin.module(gpu.module(attn-emit-ptx{output=%t.missing/x.ptx}))' 2>&1 | FileCheck %s --check-prefix=OUTPUT
// RUN: %if ptxas %{ not attn-opt %s -o /dev/null --pass-pipeline='builtin.module(gpu.module(attn-emit-ptx{assemble assemble-for=sm_1}))' 2>&1 | FileCheck %s --check-prefix=CHIP %}

// PIPELINE: error: invalid LLVM pipeline 'no-such-pass': unknown pass name 'no-such-pass'
// LEVEL: error: expected a code generation level from 0 to 3, got 4
// OUTPUT: error: cannot write '{{.*}}x.ptx': No such file or directory
// CHIP: error: ptxas: Value 'sm_1' is not defined for option 'gpu-name'
gpu.module @m [#attn.target<chip = "sm_80">] {
  llvm.func @k() attributes {nvvm.kernel} {
    llvm.return
  }
}
