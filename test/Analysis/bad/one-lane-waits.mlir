// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s

// One thread waits for what all threads of its warp read.

// CHECK: error: race: read by warp 0 of 'x' is not ordered after write by warp 1: the threads of the warp have not waited for each other since
// CHECK: note: the write

gpu.module @kernels {
  gpu.func @ring() kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c5 = arith.constant 5 : i32
    %x = attn.alloc {name = "x", offset = 0} : !attn.buffer<4xi32, #attn.rows, shared>
    %full = attn.mbarrier.alloc {name = "x.full", offset = 16} : !attn.mbarriers<2>
    %empty = attn.mbarrier.alloc {name = "x.empty", offset = 32} : !attn.mbarriers<2>
    attn.elect {
      attn.mbarrier.init %full {count = 1} : !attn.mbarriers<2>
      attn.mbarrier.init %empty {count = 1} : !attn.mbarriers<2>
      attn.mbarrier.fence_init
    }
    gpu.barrier
    attn.warp_specialize
    partition "take" warps 1 registers 24 {
      scf.for %i = %c0 to %c5 step %c1 : i32 {
        %slot = arith.remui %i, %c2 : i32
        %lap = arith.divui %i, %c2 : i32
        %parity = arith.remui %lap, %c2 : i32
        attn.elect {
          attn.mbarrier.wait %full[%slot] parity %parity : !attn.mbarriers<2>
        }
        %v = attn.scalar_load %x[%slot] : !attn.buffer<4xi32, #attn.rows, shared>
        attn.mbarrier.arrive %empty[%slot] : !attn.mbarriers<2>
      }
    }
    partition "give" warps 3 registers 24 {
      attn.elect {
        scf.for %i = %c0 to %c5 step %c1 : i32 {
          %slot = arith.remui %i, %c2 : i32
          %lap = arith.divui %i, %c2 : i32
          %odd = arith.remui %lap, %c2 : i32
          %parity = arith.xori %odd, %c1 : i32
          attn.mbarrier.wait %empty[%slot] parity %parity : !attn.mbarriers<2>
          attn.scalar_store %i, %x[%slot] : !attn.buffer<4xi32, #attn.rows, shared>
          attn.mbarrier.arrive %full[%slot] : !attn.mbarriers<2>
        }
      }
    }
    gpu.return
  }
}
