// RUN: split-file %s %t
// RUN: attn-opt %t/below.mlir --pass-pipeline='builtin.module(gpu.module(attn-check-barriers{require-proof}))' -o /dev/null
// RUN: not attn-opt %t/last.mlir --pass-pipeline='builtin.module(gpu.module(attn-check-barriers{require-proof}))' -o /dev/null 2>&1 | FileCheck %s --check-prefix=LAST
// RUN: not attn-opt %t/narrow.mlir --pass-pipeline='builtin.module(gpu.module(attn-check-barriers{require-proof}))' -o /dev/null 2>&1 | FileCheck %s --check-prefix=NARROW

// A product of numbers that are not negative is not negative either. What is left of a number behind
// the multiple of another one in it is below that one, and may be one less. A product of few bits
// may have any sign.

// LAST: error: deadlock: warps 0-3 wait for phase 0 of 'full'[0]
// LAST: note: where argument 0 is 0, argument 1 is 1
// NARROW: error: the synchronisation of 'products' cannot be checked
// NARROW-SAME: (deadlock)

//--- below.mlir
gpu.module @kernels {
  gpu.func @products(%n: i32, %by: i32) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %full = attn.mbarrier.alloc {name = "full", offset = 0} : !attn.mbarriers<1>
    attn.elect {
      attn.mbarrier.init %full {count = 1} : !attn.mbarriers<1>
      attn.mbarrier.fence_init
    }
    gpu.barrier
    %c0 = arith.constant 0 : i32
    %times = arith.divui %n, %by : i32
    %multiple = arith.muli %times, %by : i32
    %rest = arith.subi %n, %multiple : i32
    %is_negative = arith.cmpi slt, %multiple, %c0 : i32
    scf.if %is_negative {
      attn.mbarrier.wait %full[%c0] parity %c0 : !attn.mbarriers<1>
    }
    %is_more = arith.cmpi sgt, %multiple, %n : i32
    scf.if %is_more {
      attn.mbarrier.wait %full[%c0] parity %c0 : !attn.mbarriers<1>
    }
    %is_beyond = arith.cmpi sge, %rest, %by : i32
    scf.if %is_beyond {
      attn.mbarrier.wait %full[%c0] parity %c0 : !attn.mbarriers<1>
    }
    gpu.return
  }
}

//--- last.mlir
gpu.module @kernels {
  gpu.func @products(%n: i32, %by: i32) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %full = attn.mbarrier.alloc {name = "full", offset = 0} : !attn.mbarriers<1>
    attn.elect {
      attn.mbarrier.init %full {count = 1} : !attn.mbarriers<1>
      attn.mbarrier.fence_init
    }
    gpu.barrier
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %times = arith.divui %n, %by : i32
    %multiple = arith.muli %times, %by : i32
    %rest = arith.subi %n, %multiple : i32
    %last = arith.subi %by, %c1 : i32
    %is_last = arith.cmpi sge, %rest, %last : i32
    scf.if %is_last {
      attn.mbarrier.wait %full[%c0] parity %c0 : !attn.mbarriers<1>
    }
    gpu.return
  }
}

//--- narrow.mlir
gpu.module @kernels {
  gpu.func @products(%n: i32, %m: i32) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %full = attn.mbarrier.alloc {name = "full", offset = 0} : !attn.mbarriers<1>
    attn.elect {
      attn.mbarrier.init %full {count = 1} : !attn.mbarriers<1>
      attn.mbarrier.fence_init
    }
    gpu.barrier
    %c0 = arith.constant 0 : i8
    %place = arith.constant 0 : i32
    %c128 = arith.constant 128 : i32
    %is_short = arith.cmpi slt, %n, %c128 : i32
    scf.if %is_short {
      %a = arith.trunci %n : i32 to i8
      %b = arith.trunci %m : i32 to i8
      %is_count = arith.cmpi sge, %a, %c0 : i8
      scf.if %is_count {
        %is_other = arith.cmpi sge, %b, %c0 : i8
        scf.if %is_other {
          %product = arith.muli %a, %b : i8
          %is_negative = arith.cmpi slt, %product, %c0 : i8
          scf.if %is_negative {
            attn.mbarrier.wait %full[%place] parity %place : !attn.mbarriers<1>
          }
        }
      }
    }
    gpu.return
  }
}
