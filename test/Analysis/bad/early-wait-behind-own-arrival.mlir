// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s
// RUN: sed 's,// MEET ,,' %s > %t.mlir
// RUN: attn-opt %t.mlir --pass-pipeline='builtin.module(gpu.module(attn-check-barriers{require-proof}))' --remarks-filter='attn.check.*' -o /dev/null 2>&1 | FileCheck %s --check-prefix=PROVED

// One thread of the warp arrives; others may wait for the phase behind before
// it has, and the fresh barrier has its parity. Once all have met they may not.

// CHECK: error: early wait: the wait of warp 0 for phase 1 of 'b'[0] is not ordered after the completion of phase 0: phase -1 satisfies it too
// PROVED: proved

gpu.module @kernels {
  gpu.func @own() kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %lanes = arith.constant -1 : i32
    %b = attn.mbarrier.alloc {name = "b", offset = 0} : !attn.mbarriers<1>
    attn.elect {
      attn.mbarrier.init %b {count = 1} : !attn.mbarriers<1>
      attn.mbarrier.fence_init
    }
    gpu.barrier
    attn.warp_specialize
    partition "first" warps 1 registers 24 {
      attn.mbarrier.arrive %b[%c0] : !attn.mbarriers<1>
      // MEET nvvm.bar.warp.sync %lanes : i32
      attn.mbarrier.wait %b[%c0] parity %c1 : !attn.mbarriers<1>
    }
    partition "second" warps 1 registers 24 {
      attn.mbarrier.wait %b[%c0] parity %c0 : !attn.mbarriers<1>
      attn.mbarrier.arrive %b[%c0] : !attn.mbarriers<1>
    }
    partition "rest" warps 2 registers 24 {
    }
    gpu.return
  }
}
