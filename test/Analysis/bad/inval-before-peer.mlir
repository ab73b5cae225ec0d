// RUN: not attn-opt %s --attn-check-barriers -o /dev/null 2>&1 | FileCheck %s

// Barriers end behind the CTA's barrier, while the peer owes an arrival.

// CHECK: error: lifetime: warp 0 of CTA 0 invalidates 'done'[0] of CTA 0 while a signal of warp 3 of CTA 1 may be on its way to it
// CHECK: note: the signal; a barrier that its warp comes to after it has to stand before the invalidation

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
    gpu.barrier
    attn.elect {
      attn.mbarrier.inval %done : !attn.mbarriers<1>
    }
    gpu.return
  }
}
