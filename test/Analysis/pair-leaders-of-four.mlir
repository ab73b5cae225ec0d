// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers{require-proof}))' -o /dev/null --remarks-filter='attn.check.*' 2>&1 | FileCheck %s

// Bytes of each pair of four CTAs count at its leader, which announces them and waits for them.

// CHECK: synchronisation is proved for all tiles

gpu.module @kernels {
  gpu.func @ring(%map: !attn.tensor_map<64x64xf16, swizzle = 128>) kernel attributes {known_block_size = array<i32: 32, 1, 1>, known_cluster_size = array<i32: 4, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %k = attn.alloc {name = "k", offset = 0} : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    %full = attn.mbarrier.alloc {name = "k.full", offset = 8192} : !attn.mbarriers<1>
    attn.elect {
      attn.mbarrier.init %full {count = 1} : !attn.mbarriers<1>
      attn.mbarrier.fence_init
    }
    attn.cluster_barrier
    attn.elect {
      attn.mbarrier.expect_tx %full[%c0] {bytes = 16384, leader, rank_bits = 1} : !attn.mbarriers<1>
      attn.tma.load %map[%c0, %c0], %k barrier %full[%c0] : !attn.mbarriers<1> {leader} : !attn.tensor_map<64x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    }
    attn.cluster_leader bits 1 {
      attn.mbarrier.wait %full[%c0] parity %c0 : !attn.mbarriers<1>
    }
    attn.cluster_barrier
    gpu.return
  }
}
