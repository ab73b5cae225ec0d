// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s

// The fence is missing in each fourth trip, of as many as the launch gives.

// CHECK: error: missing proxy fence: asynchronous write by warp 4 of 'k' is not ordered after read by warp {{[0-3]}}
// CHECK: note: the read
// CHECK: note: where argument 1 is 5

gpu.module @kernels {
  gpu.func @ring(%map: !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, %n: i32) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c3 = arith.constant 3 : i32
    %c4 = arith.constant 4 : i32
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
      %end = scf.for %i = %c0 to %n step %c1 iter_args(%parity = %c0) -> (i32) : i32 {
        attn.mbarrier.wait %full[%c0] parity %parity : !attn.mbarriers<1>
        %t = attn.local_load %k : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared> -> tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
        %rest = arith.remui %i, %c4 : i32
        %orders = arith.cmpi ne, %rest, %c3 : i32
        scf.if %orders {
          attn.fence.proxy_async
        }
        attn.mbarrier.arrive %empty[%c0] : !attn.mbarriers<1>
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
