// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-instrument,attn-lower-tiles{cluster-scope}))' | FileCheck %s --check-prefixes=CHECK,CLUSTER
// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-instrument,attn-lower-tiles))' | FileCheck %s --check-prefixes=CHECK,CTA
// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-instrument))' | FileCheck %s --check-prefix=LANES

// A wait has the scope that it has without checks.

// CHECK: nvvm.mbarrier.try_wait
// CHECK-NOT: cluster
// CHECK: {{$}}
// CHECK: nvvm.mbarrier.try_wait
// CLUSTER-SAME: #nvvm.mem_scope<cluster>
// CTA-NOT: #nvvm.mem_scope<cluster>

// Lanes give up on their own: none waits for the others between the pauses' loop and the wait's.

// LANES: nvvm.mbarrier.try_wait
// LANES-NOT: nvvm.bar.warp.sync
// LANES: scf.condition

gpu.module @kernels [#attn.target<chip = "sm_90a">] {
  gpu.func @waits() kernel attributes {attn.warps = array<i64: 1, 1>, attn.shared_bytes = 16 : i64, known_cluster_size = array<i32: 2, 1, 1>} {
    %0 = arith.constant 0 : i32
    %b = attn.mbarrier.alloc {name = "b", offset = 0} : !attn.mbarriers<2>
    attn.mbarrier.wait %b[%0] parity %0 : !attn.mbarriers<2>
    attn.mbarrier.wait %b[%0] parity %0 {cluster} : !attn.mbarriers<2>
    gpu.return
  }
}
