// Upstream's pass works with our target.
//
// RUN: attn-opt %s --gpu-module-to-binary=format=isa | FileCheck %s
// RUN: %if ptxas %{ attn-opt %s --gpu-module-to-binary=format=bin | FileCheck %s --check-prefix=BIN %}

// CHECK: gpu.binary @m [#gpu.object<#attn.target<chip = "sm_90a">, assembly = "{{.*}}.target sm_90a\0A
// BIN: gpu.binary @m [#gpu.object<#attn.target<chip = "sm_90a">, bin = "\7FELF
gpu.module @m [#attn.target<chip = "sm_90a">] {
  llvm.func @k(%f: f32, %o: !llvm.ptr<1>) attributes {nvvm.kernel} {
    llvm.store %f, %o : f32, !llvm.ptr<1>
    llvm.return
  }
}
