// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s

// The slot is not handed back in trip 7, where there are more than nine.

// CHECK: error: deadlock: 'consumer' waits for phase 8 of 'k.full'[0] from 'producer', which waits for phase 7 of 'k.empty'[0]
// CHECK: note: where argument 1 is 10

gpu.module @kernels {
  gpu.func @ring(%map: !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, %n: i32) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c7 = arith.constant 7 : i32
    %c9 = arith.constant 9 : i32
    %k = attn.alloc {name = "k", offset = 0} : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    %full = attn.mbarrier.alloc {name = "k.full", offset = 8192} : !attn.mbarriers<1>
    %empty = attn.mbarrier.alloc {name = "k.empty", offset = 8200} : !attn.mbarriers<1>
    attn.elect {
      attn.mbarrier.init %full {count = 1} : !attn.mbarriers<1>
      attn.mbarrier.init %empty {count = 4} : !attn.mbarriers<1>
      attn.mbarrier.fence_init
    }
    gpu.barrier
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 240 {
      %few = arith.cmpi sle, %n, %c9 : i32
      %end = scf.for %i = %c0 to %n step %c1 iter_args(%parity = %c0) -> (i32) : i32 {
        attn.mbarrier.wait %full[%c0] parity %parity : !attn.mbarriers<1>
        %t = attn.local_load %k : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared> -> tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
        attn.fence.proxy_async
        %other = arith.cmpi ne, %i, %c7 : i32
        %frees = arith.ori %few, %other : i1
        scf.if %frees {
          attn.mbarrier.arrive %empty[%c0] : !attn.mbarriers<1>
        }
        %next = arith.xori %parity, %c1 : i32
        scf.yield %next : i32
      }
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        %end = scf.for %i = %c0 to %n step %c1 iter_args(%parity = %c1) -> (i32) : i32 {
          attn.mbarrier.wait %empty[%c0] parity %parity : !attn.mbarriers<1>
          attn.mbarrier.expect_tx %full[%c0] {bytes = 8192} : !attn.mbarriers<1>
          attn.tma.load %map[%c0, %c0, %i, %c0], %k barrier %full[%c0] : !attn.mbarriers<1> : !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
          %next = arith.xori %parity, %c1 : i32
          scf.yield %next : i32
        }
      }
    }
    gpu.return
  }
}
