// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(convert-attn-to-nvvm))' | FileCheck %s

gpu.module @kernels [#attn.target<chip = "sm_80", ptx = 80>] {
  gpu.func @scale(%p: !llvm.ptr<1>, %factor: f32) kernel
      attributes {attn.warps = array<i64: 4, 1>} {
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %at = llvm.getelementptr %p[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %x = llvm.load %at : !llvm.ptr<1> -> f32
    %y = arith.mulf %x, %factor : f32
    llvm.store %y, %at : f32, !llvm.ptr<1>
    gpu.barrier
    gpu.return
  }
}

// CHECK: llvm.func @scale(%[[P:.*]]: !llvm.ptr<1>, %[[FACTOR:.*]]: f32) attributes {{.*}}nvvm.kernel
// CHECK:   %[[X:.*]] = llvm.load
// CHECK:   llvm.fmul %[[X]], %[[FACTOR]] : f32
// CHECK:   nvvm.barrier0
// CHECK:   llvm.return
