// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers{require-proof}))' -o /dev/null

// A warp reads a word before it is written, and once more behind the wait for it. It goes on by what it has read then.

gpu.module @kernels {
  gpu.func @word() kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c3 = arith.constant 3 : i32
    %all = arith.constant -1 : i32
    %x = attn.alloc {name = "x", offset = 0} : !attn.buffer<1xi32, #attn.rows, shared>
    %full = attn.mbarrier.alloc {name = "x.full", offset = 16} : !attn.mbarriers<1>
    %free = attn.mbarrier.alloc {name = "x.free", offset = 24} : !attn.mbarriers<1>
    attn.elect {
      attn.mbarrier.init %full {count = 1} : !attn.mbarriers<1>
      attn.mbarrier.init %free {count = 1} : !attn.mbarriers<1>
      attn.mbarrier.fence_init
    }
    gpu.barrier
    attn.warp_specialize
    partition "take" warps 1 registers 24 {
      %before = attn.scalar_load %x[%c0] : !attn.buffer<1xi32, #attn.rows, shared>
      attn.mbarrier.arrive %free[%c0] : !attn.mbarriers<1>
      %end = scf.for %i = %c0 to %c1 step %c1 iter_args(%n = %before) -> (i32) : i32 {
        attn.mbarrier.wait %full[%c0] parity %c0 : !attn.mbarriers<1>
        %read = attn.scalar_load %x[%c0] : !attn.buffer<1xi32, #attn.rows, shared>
        scf.yield %read : i32
      }
      scf.for %i = %c0 to %end step %c1 : i32 {
        nvvm.bar.warp.sync %all : i32
      }
    }
    partition "give" warps 3 registers 24 {
      attn.elect {
        attn.mbarrier.wait %free[%c0] parity %c0 : !attn.mbarriers<1>
        attn.scalar_store %c3, %x[%c0] : !attn.buffer<1xi32, #attn.rows, shared>
        attn.mbarrier.arrive %full[%c0] : !attn.mbarriers<1>
      }
    }
    gpu.return
  }
}
