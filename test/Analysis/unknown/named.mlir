// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers{require-proof}))' -o /dev/null 2>&1 | FileCheck %s

// The smaller one of two numbers that is only divided has a name, of which the check does not know
// that it is one of them. No launch leads to the wait, since 100 is no block before 64: a name that
// is 0 there is no error, since the kernel computes something else.

// CHECK: error: the synchronisation of 'smaller' cannot be checked
// CHECK-SAME: with unknown trip counts it is not shown to be right (deadlock)

gpu.module @kernels {
  gpu.func @smaller(%n: i32) kernel {
    %full = attn.mbarrier.alloc {name = "full", offset = 0} : !attn.mbarriers<1>
    attn.elect {
      attn.mbarrier.init %full {count = 1} : !attn.mbarriers<1>
      attn.mbarrier.fence_init
    }
    gpu.barrier
    attn.warp_specialize
    partition "waits" warps 4 tiles [4, 1] registers 240 {
      %c0 = arith.constant 0 : i32
      %c64 = arith.constant 64 : i32
      %c100 = arith.constant 100 : i32
      %least = arith.minsi %n, %c100 : i32
      %blocks = arith.divui %least, %c64 : i32
      %is_long = arith.cmpi sge, %n, %c64 : i32
      scf.if %is_long {
        %is_empty = arith.cmpi eq, %blocks, %c0 : i32
        scf.if %is_empty {
          attn.mbarrier.wait %full[%c0] parity %c0 : !attn.mbarriers<1>
        }
      }
    }
    partition "idle" warps 4 registers 24 {
    }
    gpu.return
  }
}
