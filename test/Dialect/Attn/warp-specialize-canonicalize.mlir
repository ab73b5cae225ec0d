// RUN: attn-opt %s -canonicalize | FileCheck %s

// Regions that do nothing are run by nobody.

// CHECK-LABEL: func.func @empty(
// CHECK-NEXT: return
func.func @empty() {
  attn.elect {
    attn.cluster_leader {
    }
  }
  attn.elect each_warpgroup {
  }
  return
}

// CHECK-LABEL: func.func @others(
// CHECK: attn.elect
// CHECK: attn.cluster_leader
// CHECK: attn.tma.commit
func.func @others() {
  attn.elect {
    attn.cluster_leader {
      attn.tma.commit
    }
  }
  return
}

// Constants stay in the partition that needs them: tiles do not come from above.
// CHECK-LABEL: gpu.func @partitions(
gpu.module @kernels {
  gpu.func @partitions(%b: !attn.buffer<64x32xf32, #attn.auto, shared>) kernel attributes {attn.warps = array<i64: 4, 1>} {
    // CHECK-NEXT: attn.warp_specialize
    attn.warp_specialize
    // CHECK-NEXT: partition "all"
    partition "all" warps 4 tiles [4, 1] registers 168 {
      // CHECK-NEXT: arith.constant dense<2.000000e+00> : tensor<64x32xf32, #attn.auto>
      %two = arith.constant dense<2.0> : tensor<64xf32, #attn.auto>
      %s = attn.broadcast %two : tensor<64xf32, #attn.auto> -> tensor<64x32xf32, #attn.auto>
      attn.local_store %s, %b : tensor<64x32xf32, #attn.auto>, !attn.buffer<64x32xf32, #attn.auto, shared>
    }
    gpu.return
  }
}
