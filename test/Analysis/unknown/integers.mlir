// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers{require-proof}))' -o /dev/null --remarks-filter='attn.check.*' 2>&1 | FileCheck %s

// No integers lead to the wait: 256 m is below 128, so that m is 0, and 128 is no less than 256 m and
// 128. Other numbers do, such as a third of 1 for m, and once it is asked what p is nothing is left
// that says so.

// CHECK: synchronisation is proved for all tiles

gpu.module @kernels {
  gpu.func @between(%n: i32, %m: i32, %p: i32) kernel {
    %full = attn.mbarrier.alloc {name = "full", offset = 0} : !attn.mbarriers<1>
    attn.elect {
      attn.mbarrier.init %full {count = 1} : !attn.mbarriers<1>
      attn.mbarrier.fence_init
    }
    gpu.barrier
    attn.warp_specialize
    partition "waits" warps 4 tiles [4, 1] registers 240 {
      %c0 = arith.constant 0 : i32
      %c128 = arith.constant 128 : i32
      %c256 = arith.constant 256 : i32
      %first = arith.muli %m, %c256 : i32
      %behind = arith.addi %first, %c128 : i32
      %is_block = arith.cmpi eq, %n, %c128 : i32
      scf.if %is_block {
        %is_above = arith.cmpi sgt, %n, %first : i32
        scf.if %is_above {
          %is_below = arith.cmpi slt, %n, %behind : i32
          scf.if %is_below {
            %is_more = arith.cmpi sgt, %p, %c0 : i32
            scf.if %is_more {
              attn.mbarrier.wait %full[%c0] parity %c0 : !attn.mbarriers<1>
            }
          }
        }
      }
    }
    partition "idle" warps 4 registers 24 {
    }
    gpu.return
  }
}
