// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s

// The reader waits for the second phase alone, whose parity the fresh barrier has too.

// CHECK: error: phase slip: phase 0 of 'ready'[0] completes without being ordered after the wait of warp 7 for phase -1: the wait may miss its phase
// CHECK: note: initialised here
// CHECK: note: the signal that completes it, by warp 0, which has to come after a signal of the waiting warp

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
      }
    }
    partition "reader" warps 4 registers 24 {
      attn.mbarrier.arrive %seen[%c0] : !attn.mbarriers<1>
      attn.mbarrier.wait %ready[%c0] parity %c1 : !attn.mbarriers<1>
      %v = attn.scalar_load %x[%c0] : !attn.buffer<4xi32, #attn.rows, shared>
    }
    gpu.return
  }
}
