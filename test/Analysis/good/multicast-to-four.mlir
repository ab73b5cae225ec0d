// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers{require-proof}))' -o /dev/null --remarks-filter='attn.check.*' 2>&1 | FileCheck %s

// Each of four CTAs loads a quarter of a block for all.

// CHECK: synchronisation is proved for all tiles

gpu.module @kernels {
  gpu.func @ring(%map: !attn.tensor_map<1x1x16x64xf16, swizzle = 128>) kernel attributes {known_cluster_size = array<i32: 4, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c5 = arith.constant 5 : i32
    %k = attn.alloc {name = "k", offset = 0} : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    %full = attn.mbarrier.alloc {name = "k.full", offset = 8192} : !attn.mbarriers<1>
    %empty = attn.mbarrier.alloc {name = "k.empty", offset = 8200} : !attn.mbarriers<1>
    attn.elect {
      attn.mbarrier.init %full {count = 1} : !attn.mbarriers<1>
      attn.mbarrier.init %empty {count = 16} : !attn.mbarriers<1>
      attn.mbarrier.fence_init
    }
    attn.cluster_barrier
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 240 {
      %end = scf.for %i = %c0 to %c5 step %c1 iter_args(%parity = %c0) -> (i32) : i32 {
        attn.mbarrier.wait %full[%c0] parity %parity : !attn.mbarriers<1>
        %t = attn.local_load %k : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared> -> tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
        %m = attn.reduce max %t : tensor<64x64xf16, #attn.mma<warps = [4, 1]>> -> tensor<64xf16, #attn.slice<dim = 1, parent = #attn.mma<warps = [4, 1]>>>
        attn.fence.proxy_async
        attn.mbarrier.arrive %empty[%c0] {ctas = 4} : !attn.mbarriers<1>
        %next = arith.xori %parity, %c1 : i32
        scf.yield %next : i32
      }
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        %end = scf.for %i = %c0 to %c5 step %c1 iter_args(%parity = %c1) -> (i32) : i32 {
          attn.mbarrier.wait %empty[%c0] parity %parity : !attn.mbarriers<1>
          attn.mbarrier.expect_tx %full[%c0] {bytes = 8192} : !attn.mbarriers<1>
          attn.tma.load %map[%c0, %c0, %i, %c0], %k barrier %full[%c0] : !attn.mbarriers<1> {multicast = 4} : !attn.tensor_map<1x1x16x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
          %next = arith.xori %parity, %c1 : i32
          scf.yield %next : i32
        }
      }
    }
    attn.cluster_barrier
    gpu.return
  }
}
