// Alignments that the IR leaves open are computed at translation, so the data
// layout has to be there by then: otherwise a 64-bit load becomes two.
// Pointers to shared memory have 32 bits.
//
// RUN: attn-opt %s -o /dev/null --pass-pipeline='builtin.module(gpu.module(attn-emit-ptx{output=-}))' | FileCheck %s

gpu.module @m [#attn.target<chip = "sm_90a">] {
  // CHECK-LABEL: .entry k(
  // CHECK-DAG: ld.shared.v2.b64 {{{%rd[0-9]+, %rd[0-9]+}}}, [%r{{[0-9]+}}];
  // CHECK-DAG: ld.global.b64
  // CHECK: st.global.b64
  llvm.func @k(%p: !llvm.ptr<1>, %s: !llvm.ptr<3>) attributes {nvvm.kernel} {
    %a = llvm.load %p : !llvm.ptr<1> -> i64
    %b = llvm.load %s : !llvm.ptr<3> -> i128
    %c = llvm.mlir.constant(64 : i128) : i128
    %d = llvm.lshr %b, %c : i128
    %e = llvm.xor %b, %d : i128
    %f = llvm.trunc %e : i128 to i64
    %g = llvm.add %a, %f : i64
    llvm.store %g, %p : i64, !llvm.ptr<1>
    llvm.return
  }
}
