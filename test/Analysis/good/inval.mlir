// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers{require-proof}))' -o /dev/null --remarks-filter='attn.check.*' 2>&1 | FileCheck %s

// Barriers end behind the cluster's barrier, when no peer has a signal left.

// CHECK: synchronisation is proved for all tiles

gpu.module @kernels {
  gpu.func @peers() kernel attributes {known_cluster_size = array<i32: 2, 1, 1>, known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %done = attn.mbarrier.alloc {name = "done", offset = 0} : !attn.mbarriers<1>
    attn.elect {
      attn.mbarrier.init %done {count = 8} : !attn.mbarriers<1>
      attn.mbarrier.fence_init
    }
    attn.cluster_barrier
    // Each warp tells both CTAs that it is done.
    attn.mbarrier.arrive %done[%c0] {ctas = 2} : !attn.mbarriers<1>
    attn.cluster_barrier
    attn.elect {
      attn.mbarrier.inval %done : !attn.mbarriers<1>
    }
    gpu.return
  }
}
