// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s

// The slot of the second block is not handed back.

// CHECK: error: deadlock: 'consumer' waits for phase 2 of 'k.full'[0] from 'producer', which waits for phase 1 of 'k.empty'[0]
// CHECK: note: where argument 1 is 129

gpu.module @kernels {
  gpu.func @ring(%map: !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, %n: i32) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c63 = arith.constant 63 : i32
    %c64 = arith.constant 64 : i32
    %k = attn.alloc {name = "k", offset = 0} : !attn.buffer<1x64x64xf16, #attn.swizzled<span = 128>, shared>
    %full = attn.mbarrier.alloc {name = "k.full", offset = 16384} : !attn.mbarriers<1>
    %empty = attn.mbarrier.alloc {name = "k.empty", offset = 16400} : !attn.mbarriers<1>
    attn.elect {
      attn.mbarrier.init %full {count = 1} : !attn.mbarriers<1>
      attn.mbarrier.init %empty {count = 4} : !attn.mbarriers<1>
      attn.mbarrier.fence_init
    }
    gpu.barrier
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 240 {
      %padded = arith.addi %n, %c63 : i32
      %blocks = arith.divui %padded, %c64 : i32
      %end = scf.for %i = %c0 to %blocks step %c1 iter_args(%parity = %c0) -> (i32) : i32 {
        attn.mbarrier.wait %full[%c0] parity %parity : !attn.mbarriers<1>
        %s = attn.slot %k[%c0] : !attn.buffer<1x64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
        %t = attn.local_load %s : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared> -> tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
        attn.fence.proxy_async
        %goes_on = arith.cmpi ne, %i, %c1 : i32
        scf.if %goes_on {
          attn.mbarrier.arrive %empty[%c0] : !attn.mbarriers<1>
        }
        %next = arith.xori %parity, %c1 : i32
        scf.yield %next : i32
      }
    }
    partition "producer" warps 4 registers 24 {
      %padded = arith.addi %n, %c63 : i32
      %blocks = arith.divui %padded, %c64 : i32
      attn.elect {
        %end = scf.for %i = %c0 to %blocks step %c1 iter_args(%parity = %c1) -> (i32) : i32 {
          attn.mbarrier.wait %empty[%c0] parity %parity : !attn.mbarriers<1>
          attn.mbarrier.expect_tx %full[%c0] {bytes = 8192} : !attn.mbarriers<1>
          %s = attn.slot %k[%c0] : !attn.buffer<1x64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
          attn.tma.load %map[%c0, %c0, %i, %c0], %s barrier %full[%c0] : !attn.mbarriers<1> : !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
          %next = arith.xori %parity, %c1 : i32
          scf.yield %next : i32
        }
      }
    }
    gpu.return
  }
}
