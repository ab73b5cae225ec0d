// A tensor map passed by value stays in parameter space.
//
// RUN: attn-opt %s -o /dev/null --pass-pipeline='builtin.module(gpu.module(attn-emit-ptx{output=-}))' | FileCheck %s

gpu.module @m [#attn.target<chip = "sm_90a">] {
  // CHECK-LABEL: .entry k(
  // CHECK: .param .align 64 .b8 k_param_0[128]
  // CHECK-NOT: .local
  // CHECK: cp.async.bulk.tensor.2d.shared::cluster.global
  // CHECK-NOT: .local
  llvm.func @k(%d: !llvm.ptr {llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant, llvm.align = 64 : i64}, %s: !llvm.ptr<7>, %b: !llvm.ptr<3>, %c: i32) attributes {nvvm.kernel} {
    nvvm.cp.async.bulk.tensor.shared.cluster.global %s, %d, %b, box[%c, %c] : !llvm.ptr<7>, !llvm.ptr
    llvm.return
  }
}
