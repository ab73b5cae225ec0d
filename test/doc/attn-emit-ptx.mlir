// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-emit-ptx{output=-}))' -o /dev/null | FileCheck %s

gpu.module @kernels [#attn.target<chip = "sm_80", ptx = 80>] {
  llvm.func @scale(%p: !llvm.ptr<1>, %factor: f32) attributes {gpu.kernel, nvvm.kernel} {
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %at = llvm.getelementptr %p[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %x = llvm.load %at : !llvm.ptr<1> -> f32
    %y = llvm.fmul %x, %factor : f32
    llvm.store %y, %at : f32, !llvm.ptr<1>
    llvm.return
  }
}

// CHECK: .version 8.0
// CHECK: .target sm_80
// CHECK: .visible .entry scale(
// CHECK:   mov.u32 {{.*}}, %tid.x;
// CHECK:   ld.global.b32
// CHECK:   mul.rn.f32
// CHECK:   st.global.b32
// CHECK:   ret;
