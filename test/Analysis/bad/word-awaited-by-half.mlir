// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s

// One of two warpgroups waits for the word by which both go on.

// CHECK: error: race: read by warp 4 of 'x', by which it goes on, does not wait until the word is written
// CHECK: note: the write

gpu.module @kernels {
  gpu.func @word() kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c3 = arith.constant 3 : i32
    %x = attn.alloc {name = "x", offset = 0} : !attn.buffer<1xi32, #attn.rows, shared>
    %full = attn.mbarrier.alloc {name = "x.full", offset = 16} : !attn.mbarriers<1>
    attn.elect {
      attn.mbarrier.init %full {count = 1} : !attn.mbarriers<1>
      attn.mbarrier.fence_init
    }
    gpu.barrier
    attn.warp_specialize
    partition "take" warps 8 registers 24 {
      %group = attn.warpgroup_index
      %waits = arith.cmpi eq, %group, %c0 : i32
      scf.if %waits {
        attn.mbarrier.wait %full[%c0] parity %c0 : !attn.mbarriers<1>
      }
      %n = attn.scalar_load %x[%c0] : !attn.buffer<1xi32, #attn.rows, shared>
      scf.for %i = %c0 to %n step %c1 : i32 {
        attn.named_barrier %c1 {threads = 256}
      }
    }
    partition "give" warps 4 registers 24 {
      attn.elect {
        attn.scalar_store %c3, %x[%c0] : !attn.buffer<1xi32, #attn.rows, shared>
        attn.mbarrier.arrive %full[%c0] : !attn.mbarriers<1>
      }
    }
    gpu.return
  }
}
