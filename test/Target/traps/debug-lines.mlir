// Line information without `debug` in the .target line, which would make ptxas
// compile without optimization.
//
// RUN: attn-opt %s -o /dev/null --pass-pipeline='builtin.module(gpu.module(attn-emit-ptx{output=- debug-lines}))' | FileCheck %s
// RUN: attn-opt %s -o /dev/null --pass-pipeline='builtin.module(gpu.module(attn-emit-ptx{output=-}))' | FileCheck %s --check-prefix=PLAIN
// RUN: %if ptxas %{ attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-emit-ptx{assemble debug-lines}))' | FileCheck %s --check-prefix=PTXAS %}

// CHECK: .target sm_90a{{$}}
// CHECK: .loc 1 [[#@LINE+9]] 10
// CHECK: add.rn.f32
// CHECK: .file 1 "{{.*}}debug-lines.mlir"
// PLAIN-NOT: .loc
// PTXAS: attn.ptxas = {{{.*}}registers = {{[0-9]+}}

gpu.module @m [#attn.target<chip = "sm_90a">] {
  llvm.func @k(%p: !llvm.ptr<1>, %f: f32) attributes {nvvm.kernel} {
    %v = llvm.load %p : !llvm.ptr<1> -> f32
    %w = llvm.fadd %v, %f : f32
    llvm.store %w, %p : f32, !llvm.ptr<1>
    llvm.return
  }
}
