// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -mlir-print-op-generic | attn-opt | FileCheck %s
// RUN: attn-opt %s -emit-bytecode | attn-opt | FileCheck %s

// Partitions, and regions that one thread or one CTA runs. The forms are
// those that the printer writes: attributes that have their default are not
// there.

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @partitions(
  // CHECK-SAME: %[[X:.*]]: i32
  gpu.func @partitions(%x: i32) kernel {
    // Names, warps, grids and registers are attributes; terminators are left out.
    // CHECK: attn.warp_specialize attributes {attn.note = "kept"}
    attn.warp_specialize attributes {attn.note = "kept"}
    // CHECK: partition "consumer" warps 8 tiles [4, 2] registers 240 {
    partition "consumer" warps 8 tiles [4, 2] registers 240 {
      // CHECK: %[[W:.*]] = attn.warpgroup_index
      %w = attn.warpgroup_index
    }
    // CHECK: partition "mma" warps 1 registers 24 {
    partition "mma" warps 1 registers 24 {
    }
    // CHECK: partition "load" warps 3 registers 24 {
    partition "load" warps 3 registers 24 {
    }
    gpu.return
  }

  // CHECK-LABEL: gpu.func @alone(
  gpu.func @alone() kernel {
    // CHECK: attn.warp_specialize
    attn.warp_specialize
    // CHECK: partition "all" warps 4 tiles [4, 1] registers 168 {
    partition "all" warps 4 tiles [4, 1] registers 168 {
    }
    gpu.return
  }
}

// CHECK-LABEL: func.func @one_thread(
// CHECK-SAME: %[[FULL:.*]]: !attn.mbarriers<2>, %[[I:.*]]: i32
func.func @one_thread(%full: !attn.mbarriers<2>, %i: i32) {
  // CHECK: attn.elect {
  attn.elect {
    // CHECK: attn.mbarrier.expect_tx %[[FULL:.*]][%[[I:.*]]] {bytes = 1024 : i64} : <2>
    attn.mbarrier.expect_tx %full[%i] {bytes = 1024 : i64} : !attn.mbarriers<2>
  }
  // CHECK: attn.elect each_warpgroup {
  attn.elect each_warpgroup {
    // CHECK: attn.tma.commit
    attn.tma.commit
  }
  // CHECK: attn.cluster_leader {
  attn.cluster_leader {
    // CHECK: attn.tma.commit
    attn.tma.commit
  }
  return
}
