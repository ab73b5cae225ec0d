// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers{require-proof}))' -o /dev/null 2>&1 | FileCheck %s

// What is divided is negative on one way: the multiple of the quotient is no less than it there, and
// the wait on that way has no end.

// CHECK: error: {{.*}}deadlock

gpu.module @kernels {
  gpu.func @products(%n0: i32, %by: i32) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %full = attn.mbarrier.alloc {name = "full", offset = 0} : !attn.mbarriers<1>
    attn.elect {
      attn.mbarrier.init %full {count = 1} : !attn.mbarriers<1>
      attn.mbarrier.fence_init
    }
    gpu.barrier
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c3 = arith.constant 3 : i32
    %n = arith.subi %n0, %c3 : i32
    %pre = arith.cmpi slt, %n, %c0 : i32
    scf.if %pre {
      attn.elect {
        attn.mbarrier.fence_init
      }
    }
    %times = arith.divui %n, %by : i32
    %isby = arith.cmpi sge, %by, %c1 : i32
    scf.if %isby {
      %ispos = arith.cmpi sge, %times, %c0 : i32
      scf.if %ispos {
        %multiple = arith.muli %times, %by : i32
        %isneg = arith.cmpi slt, %n, %c0 : i32
        %isz = arith.cmpi sge, %multiple, %c0 : i32
        scf.if %isz {
          scf.if %isneg {
            attn.mbarrier.wait %full[%c0] parity %c0 : !attn.mbarriers<1>
          }
        }
      }
    }
    gpu.return
  }
}
