// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s

// More warps arrive than the barrier counts.

// CHECK: error: signal in the wrong phase: a signal of warp 2 of CTA 1 for phase 1 of 'done'[0] of CTA 0 is not ordered after the completion of phase 0: it may count there
// CHECK: note: initialised here
// CHECK: note: the last signal of phase 0, by warp 1 of CTA 1, that a wait has to come after

gpu.module @kernels {
  gpu.func @peers() kernel attributes {known_cluster_size = array<i32: 2, 1, 1>, known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %done = attn.mbarrier.alloc {name = "done", offset = 0} : !attn.mbarriers<1>
    attn.elect {
      attn.mbarrier.init %done {count = 7} : !attn.mbarriers<1>
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
