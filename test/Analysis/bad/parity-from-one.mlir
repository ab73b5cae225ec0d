// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s

// The readers pass at the barriers' first phase and wait for the wrong ones.

// CHECK: error: signal in the wrong phase: a signal of warp 1 for phase 1 of 'k.empty'[0] is not ordered after the completion of phase 0: it may count there
// CHECK: note: initialised here
// CHECK: note: the last signal of phase 0, by warp 1, that a wait has to come after

gpu.module @kernels {
  gpu.func @ring(%map: !attn.tensor_map<1x1x64x64xf16, swizzle = 128>) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c5 = arith.constant 5 : i32
    %k = attn.alloc {name = "k", offset = 0} : !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared>
    %full = attn.mbarrier.alloc {name = "k.full", offset = 16384} : !attn.mbarriers<2>
    %empty = attn.mbarrier.alloc {name = "k.empty", offset = 16400} : !attn.mbarriers<2>
    attn.elect {
      attn.mbarrier.init %full {count = 1} : !attn.mbarriers<2>
      attn.mbarrier.init %empty {count = 4} : !attn.mbarriers<2>
      attn.mbarrier.fence_init
    }
    gpu.barrier
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 240 {
      scf.for %i = %c0 to %c5 step %c1 : i32 {
        %slot = arith.remui %i, %c2 : i32
        %lap = arith.divui %i, %c2 : i32
        %parity = arith.remui %lap, %c2 : i32
        attn.mbarrier.wait %full[%slot] parity %c1 : !attn.mbarriers<2>
        %s = attn.slot %k[%slot] : !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
        %t = attn.local_load %s : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared> -> tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
        attn.fence.proxy_async
        attn.mbarrier.arrive %empty[%slot] : !attn.mbarriers<2>
      }
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        scf.for %i = %c0 to %c5 step %c1 : i32 {
          %slot = arith.remui %i, %c2 : i32
          %lap = arith.divui %i, %c2 : i32
          %odd = arith.remui %lap, %c2 : i32
          %parity = arith.xori %odd, %c1 : i32
          attn.mbarrier.wait %empty[%slot] parity %parity : !attn.mbarriers<2>
          attn.mbarrier.expect_tx %full[%slot] {bytes = 8192} : !attn.mbarriers<2>
          %s = attn.slot %k[%slot] : !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
          attn.tma.load %map[%c0, %c0, %i, %c0], %s barrier %full[%slot] : !attn.mbarriers<2> : !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
        }
      }
    }
    gpu.return
  }
}
