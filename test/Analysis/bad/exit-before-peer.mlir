// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s

// A CTA exits while its peer may still signal to it.

// CHECK: error: exit in flight: the CTA may have exited when this signal of warp 3 of CTA 1 comes to 'done'[0] of CTA 0
// CHECK: note: initialised here
// CHECK: note: the exit; a wait or a cluster barrier after the signal has to come before it

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
    gpu.return
  }
}
