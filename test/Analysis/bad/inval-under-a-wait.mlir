// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s

// A barrier ends when its waiters may still look at it.

// CHECK: error: lifetime: warp 0 invalidates 'ready'[0] while warp 4 may still wait at it
// CHECK: note: the wait

gpu.module @kernels {
  gpu.func @second_phase() kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %x = attn.alloc {name = "x", offset = 0} : !attn.buffer<4xi32, #attn.rows, shared>
    %ready = attn.mbarrier.alloc {name = "ready", offset = 16} : !attn.mbarriers<1>
    %seen = attn.mbarrier.alloc {name = "seen", offset = 24} : !attn.mbarriers<1>
    attn.elect {
      attn.mbarrier.init %ready {count = 1} : !attn.mbarriers<1>
      attn.mbarrier.init %seen {count = 4} : !attn.mbarriers<1>
      attn.mbarrier.fence_init
    }
    gpu.barrier
    attn.warp_specialize
    partition "writer" warps 4 registers 24 {
      attn.elect {
        attn.mbarrier.arrive %ready[%c0] : !attn.mbarriers<1>
        attn.mbarrier.wait %seen[%c0] parity %c0 : !attn.mbarriers<1>
        attn.scalar_store %c1, %x[%c0] : !attn.buffer<4xi32, #attn.rows, shared>
        attn.mbarrier.arrive %ready[%c0] : !attn.mbarriers<1>
        attn.mbarrier.inval %ready : !attn.mbarriers<1>
      }
    }
    partition "reader" warps 4 registers 24 {
      attn.mbarrier.wait %ready[%c0] parity %c0 : !attn.mbarriers<1>
      attn.mbarrier.arrive %seen[%c0] : !attn.mbarriers<1>
      attn.mbarrier.wait %ready[%c0] parity %c1 : !attn.mbarriers<1>
      %v = attn.scalar_load %x[%c0] : !attn.buffer<4xi32, #attn.rows, shared>
    }
    gpu.return
  }
}
