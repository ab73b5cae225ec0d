// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-lower-tiles,cse))' | FileCheck %s

// A CTA counts itself at its tile: all threads' stores come before the one thread that
// releases them, and what it has acquired comes before what all threads do behind the
// barrier that tells them who is last. The count wraps around at the number of CTAs.

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @arrive(
  // CHECK-SAME: %[[COUNTER:[^:]*]]: !llvm.ptr<1>, %[[OUT:[^:]*]]: !llvm.ptr<1>, %[[COUNT:[^:]*]]: i32
  gpu.func @arrive(%counter: !llvm.ptr<1>, %out: !llvm.ptr<1>, %count: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    // CHECK: gpu.barrier
    // CHECK: %[[THREAD:.*]] = gpu.thread_id x
    // CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[THREAD]]
    // CHECK: %[[END:.*]] = arith.subi %[[COUNT]]
    // CHECK: %[[FLAG:.*]] = scf.if %[[FIRST]] -> (i32)
    // CHECK: %[[BEFORE:.*]] = llvm.inline_asm has_side_effects "atom.acq_rel.gpu.global.inc.u32 $0, [$1], $2;", "=r,l,r,~{memory}" %[[COUNTER]], %[[END]]
    // CHECK: arith.cmpi eq, %[[BEFORE]], %[[END]]
    // CHECK: %[[ANY:.*]] = nvvm.barrier #nvvm.reduction<or> %[[FLAG]] -> i32
    // CHECK: %[[LAST:.*]] = arith.cmpi ne, %[[ANY]]
    %last = attn.tile_arrive %counter of %count
    // CHECK: scf.if %[[LAST]]
    scf.if %last {
      llvm.store %count, %out : i32, !llvm.ptr<1>
    }
    gpu.return
  }
}
