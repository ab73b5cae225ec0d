// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s

// The signal stands in front of the copies, so that it does not tell their end.

// CHECK: error: race: read by warp 0 of 'k' is not ordered after write by warp {{4|5}}
// CHECK: note: the write

gpu.module @kernels {
  gpu.func @ring(%rows: !attn.global<?x64xf16>) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c5 = arith.constant 5 : i32
    %k = attn.alloc {name = "k", offset = 0} : !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared>
    %full = attn.mbarrier.alloc {name = "k.full", offset = 16384} : !attn.mbarriers<2>
    %empty = attn.mbarrier.alloc {name = "k.empty", offset = 16400} : !attn.mbarriers<2>
    attn.elect {
      attn.mbarrier.init %full {count = 64} : !attn.mbarriers<2>
      attn.mbarrier.init %empty {count = 4} : !attn.mbarriers<2>
      attn.mbarrier.fence_init
    }
    gpu.barrier
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 128 {
      scf.for %i = %c0 to %c5 step %c1 : i32 {
        %slot = arith.remui %i, %c2 : i32
        %lap = arith.divui %i, %c2 : i32
        %parity = arith.remui %lap, %c2 : i32
        attn.mbarrier.wait %full[%slot] parity %parity : !attn.mbarriers<2>
        %s = attn.slot %k[%slot] : !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
        %t = attn.local_load %s : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared> -> tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
        attn.mbarrier.arrive %empty[%slot] : !attn.mbarriers<2>
      }
    }
    partition "load" warps 2 registers 128 {
      scf.for %i = %c0 to %c5 step %c1 : i32 {
        %slot = arith.remui %i, %c2 : i32
        %lap = arith.divui %i, %c2 : i32
        %odd = arith.remui %lap, %c2 : i32
        %parity = arith.xori %odd, %c1 : i32
        attn.mbarrier.wait %empty[%slot] parity %parity : !attn.mbarriers<2>
        %s = attn.slot %k[%slot] : !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
        attn.cp_async.arrive %full[%slot] : !attn.mbarriers<2>
        attn.cp_async %rows[%i], %s : !attn.global<?x64xf16>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
      }
    }
    gpu.return
  }
}
