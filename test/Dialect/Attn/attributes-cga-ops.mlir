// RUN: attn-opt %s | attn-opt | FileCheck %s

// Blocks of buffers and mbarriers in a cluster, and signals to some of its CTAs.

// CHECK-LABEL: gpu.func @four
gpu.module @kernels {
  gpu.func @four(%map: !attn.tensor_map<32x64xf16, swizzle = 128>, %i: i32) kernel attributes {known_cluster_size = array<i32: 4, 1, 1>} {
    // CHECK: attn.alloc {cga = #attn.cga<{{\[}}[1, 0], [0, 0]]>, name = "k"}
    %k = attn.alloc {name = "k", cga = #attn.cga<[[1, 0], [0, 0]]>} : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    // CHECK: attn.tmem_alloc {cga = #attn.cga<{{\[}}[1, 0], [2, 0]]>, name = "d"}
    %d = attn.tmem_alloc {name = "d", cga = #attn.cga<[[1, 0], [2, 0]]>} : !attn.buffer<128x128xf32, #attn.tmem<m = 128>, tmem>
    // CHECK: attn.mbarrier.alloc {cga = #attn.cga<{{\[}}[0], [1]]>}
    %b = attn.mbarrier.alloc {cga = #attn.cga<[[0], [1]]>} : !attn.mbarriers<1>
    // CHECK: attn.mbarrier.alloc {cga = #attn.cga<{{\[}}[1], [2]]>}
    %e = attn.mbarrier.alloc {cga = #attn.cga<[[1], [2]]>} : !attn.mbarriers<1>
    // CHECK: attn.mbarrier.arrive %{{.*}} {leader, rank_bits = 1 : i64}
    attn.mbarrier.arrive %b[%i] {leader, rank_bits = 1} : !attn.mbarriers<1>
    // CHECK: attn.mbarrier.expect_tx %{{.*}} {bytes = 0 : i64, ctas = 2 : i64, rank_bits = 2 : i64}
    attn.mbarrier.expect_tx %b[%i] {bytes = 0, ctas = 2, rank_bits = 2} : !attn.mbarriers<1>
    attn.elect {
      // CHECK: attn.tma.load {{.*}} {leader, multicast = 2 : i64, rank_bits = 2 : i64}
      attn.tma.load %map[%i, %i], %k barrier %b[%i] : !attn.mbarriers<1> {leader, multicast = 2, rank_bits = 2} : !attn.tensor_map<32x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
      // CHECK: attn.cluster_leader bits 1 {
      attn.cluster_leader bits 1 {
        // CHECK: attn.tcgen05.commit %{{.*}} {ctas = 4 : i64, pair, rank_bits = 3 : i64}
        attn.tcgen05.commit %e[%i] {ctas = 4, rank_bits = 3, pair} : !attn.mbarriers<1>
      }
    }
    gpu.return
  }
}
