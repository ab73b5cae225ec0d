// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers{require-proof}))' -o /dev/null --remarks-filter='attn.check.*' 2>&1 | FileCheck %s

// Whether an extent is odd decides which number is taken, as it does which CTA of a cluster begins
// at a tile's first rows: both partitions take as many trips.

// CHECK: synchronisation is proved for all tiles

gpu.module @kernels {
  gpu.func @halves(%n: i32) kernel {
    %full = attn.mbarrier.alloc {name = "full", offset = 0} : !attn.mbarriers<1>
    %empty = attn.mbarrier.alloc {name = "empty", offset = 16} : !attn.mbarriers<1>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    attn.elect {
      attn.mbarrier.init %full {count = 4} : !attn.mbarriers<1>
      attn.mbarrier.init %empty {count = 4} : !attn.mbarriers<1>
      attn.mbarrier.fence_init
    }
    gpu.barrier
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 240 {
      %is_odd = arith.trunci %n : i32 to i1
      %half = arith.divui %n, %c2 : i32
      %more = arith.addi %half, %c1 : i32
      %trips = arith.select %is_odd, %more, %half : i32
      %end = scf.for %i = %c0 to %trips step %c1 iter_args(%parity = %c0) -> (i32) : i32 {
        attn.mbarrier.wait %full[%c0] parity %parity : !attn.mbarriers<1>
        attn.mbarrier.arrive %empty[%c0] : !attn.mbarriers<1>
        %next = arith.xori %parity, %c1 : i32
        scf.yield %next : i32
      }
    }
    partition "producer" warps 4 registers 24 {
      %trips = arith.ceildivui %n, %c2 : i32
      %end = scf.for %i = %c0 to %trips step %c1 iter_args(%parity = %c1) -> (i32) : i32 {
        attn.mbarrier.wait %empty[%c0] parity %parity : !attn.mbarriers<1>
        attn.mbarrier.arrive %full[%c0] : !attn.mbarriers<1>
        %next = arith.xori %parity, %c1 : i32
        scf.yield %next : i32
      }
    }
    gpu.return
  }
}
