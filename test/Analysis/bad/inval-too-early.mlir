// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s

// A signal to a barrier that is none any more.

// CHECK: error: lifetime: warp 2 of CTA 1 uses 'done'[0] of CTA 0 after it was invalidated
// CHECK: note: it was invalidated here

gpu.module @kernels {
  gpu.func @peers() kernel attributes {known_cluster_size = array<i32: 2, 1, 1>, known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %done = attn.mbarrier.alloc {name = "done", offset = 0} : !attn.mbarriers<1>
    attn.elect {
      attn.mbarrier.init %done {count = 8} : !attn.mbarriers<1>
      attn.mbarrier.fence_init
    }
    attn.cluster_barrier
    attn.elect {
      attn.mbarrier.inval %done : !attn.mbarriers<1>
    }
    attn.cluster_barrier
    attn.mbarrier.arrive %done[%c0] {ctas = 2} : !attn.mbarriers<1>
    attn.cluster_barrier
    gpu.return
  }
}
