// RUN: attn-opt %s -split-input-file -verify-diagnostics

func.func @bases() {
  // expected-error @below {{expected a basis for each bit of the rank in a cluster of 2, 4 or 8 CTAs, got 4}}
  %b = attn.mbarrier.alloc {cga = #attn.cga<[[1], [0], [0], [0]]>} : !attn.mbarriers<1>
  return
}

// -----

func.func @dimensions() {
  // expected-error @below {{expected bases of 1 or 2 dimensions, got 3}}
  %b = attn.mbarrier.alloc {cga = #attn.cga<[[1, 0, 0]]>} : !attn.mbarriers<1>
  return
}

// -----

func.func @unlike() {
  // expected-error @below {{expected bases of as many dimensions, got 2 and 1}}
  %b = attn.mbarrier.alloc {cga = #attn.cga<[[1], [0, 1]]>} : !attn.mbarriers<1>
  return
}

// -----

func.func @askew() {
  // expected-error @below {{expected a basis that steps along one dimension, got [1, 1]}}
  %k = attn.alloc {cga = #attn.cga<[[1, 1]]>} : !attn.buffer<64x64xf16, #attn.auto, shared>
  return
}

// -----

func.func @hole() {
  // expected-error @below {{expected steps of 1, 2 and 4 blocks along dimension 0, each once and none left out, got 2 for 1}}
  %k = attn.alloc {cga = #attn.cga<[[2, 0], [0, 0]]>} : !attn.buffer<64x64xf16, #attn.auto, shared>
  return
}

// -----

func.func @twice() {
  // expected-error @below {{expected steps of 1, 2 and 4 blocks along dimension 1, each once and none left out, got 1 for 2}}
  %k = attn.alloc {cga = #attn.cga<[[0, 1], [0, 1]]>} : !attn.buffer<64x64xf16, #attn.auto, shared>
  return
}

// -----

func.func @rank_of_buffer() {
  // expected-error @below {{expected 'cga' of 2 dimensions, got 1}}
  %k = attn.alloc {cga = #attn.cga<[[1]]>} : !attn.buffer<2x64x64xf16, #attn.auto, shared>
  return
}

// -----

func.func @rank_of_view(%b: !attn.buffer<2x64x64xf16, #attn.auto, shared>) {
  // expected-error @below {{expected 'cga' of 2 dimensions, got 1}}
  %v = attn.reinterpret %b {cga = #attn.cga<[[1]]>} : !attn.buffer<2x64x64xf16, #attn.auto, shared> -> !attn.buffer<2x128x32xf16, #attn.auto, shared>
  return
}

// -----

func.func @rank_of_tensor_memory() {
  // expected-error @below {{expected 'cga' of 2 dimensions, got 1}}
  %d = attn.tmem_alloc {cga = #attn.cga<[[1]]>} : !attn.buffer<128x128xf32, #attn.tmem<m = 128>, tmem>
  return
}

// -----

func.func @rank_of_barriers() {
  // expected-error @below {{expected 'cga' of 1 dimension, got 2}}
  %b = attn.mbarrier.alloc {cga = #attn.cga<[[1, 0]]>} : !attn.mbarriers<1>
  return
}

// -----

func.func @own(%b: !attn.mbarriers<1>, %i: i32) {
  // expected-error @below {{expected no 'rank_bits' at this CTA alone, got 1}}
  attn.mbarrier.arrive %b[%i] {rank_bits = 1} : !attn.mbarriers<1>
  return
}

// -----

func.func @bits(%b: !attn.mbarriers<1>, %i: i32) {
  // expected-error @below {{expected 'rank_bits' from 1 to 7, got 8}}
  attn.mbarrier.arrive %b[%i] {leader, rank_bits = 8} : !attn.mbarriers<1>
  return
}

// -----

func.func @count(%b: !attn.mbarriers<1>, %i: i32) {
  // expected-error @below {{expected 4 CTAs whose ranks differ in 'rank_bits' 3, got 2}}
  attn.mbarrier.arrive %b[%i] {ctas = 2, rank_bits = 3} : !attn.mbarriers<1>
  return
}

// -----

// A mask beyond the cluster.

gpu.module @kernels {
  // expected-note @below {{the kernel's known_cluster_size says so}}
  gpu.func @mask(%b: !attn.mbarriers<1>, %i: i32) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    // expected-error @below {{expected 'rank_bits' 2 of the ranks in a cluster of 2, 4 or 8 CTAs, got a cluster of 2}}
    attn.mbarrier.arrive %b[%i] {ctas = 2, rank_bits = 2} : !attn.mbarriers<1>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-note @below {{the kernel's known_cluster_size says so}}
  gpu.func @five(%i: i32) kernel attributes {known_cluster_size = array<i32: 5, 1, 1>} {
    // expected-error @below {{expected 'rank_bits' 1 of the ranks in a cluster of 2, 4 or 8 CTAs, got a cluster of 5}}
    attn.cluster_leader bits 1 {
    }
    gpu.return
  }
}

// -----

func.func @commit(%b: !attn.mbarriers<1>, %i: i32) {
  attn.elect {
    // expected-error @below {{expected no 'rank_bits' at this CTA alone, got 1}}
    attn.tcgen05.commit %b[%i] {rank_bits = 1} : !attn.mbarriers<1>
  }
  return
}

// -----

func.func @load(%map: !attn.tensor_map<32x64xf16, swizzle = 128>, %i: i32, %t: !attn.token, %dest: !attn.buffer<64x64xf16, #attn.auto, shared>) {
  // expected-error @below {{expected 2 CTAs whose ranks differ in 'rank_bits' 4, got 4}}
  attn.tma.load %map[%i, %i], %dest token %t {multicast = 4, rank_bits = 4} : !attn.tensor_map<32x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #attn.auto, shared>
  return
}

// -----

gpu.module @kernels {
  // expected-note @below {{the kernel is here}}
  gpu.func @no_pairs(%map: !attn.tensor_map<64x64xf16, swizzle = 128>, %i: i32, %t: !attn.token) kernel {
    %dest = attn.alloc : !attn.buffer<64x64xf16, #attn.auto, shared>
    // expected-error @below {{expected a cluster of pairs of CTAs beside 'leader', got 1 CTAs}}
    attn.tma.load %map[%i, %i], %dest token %t {leader} : !attn.tensor_map<64x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #attn.auto, shared>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @leader_of_own(%i: i32) kernel attributes {known_cluster_size = array<i32: 4, 1, 1>} {
    // expected-note @below {{the barriers' 'cga' is here}}
    %b = attn.mbarrier.alloc {cga = #attn.cga<[[1], [2]]>} : !attn.mbarriers<1>
    // expected-error @below {{expected barriers that CTAs whose ranks differ in bits 1 have together, got #attn.cga<[[1], [2]]>}}
    attn.mbarrier.arrive %b[%i] {leader, rank_bits = 1} : !attn.mbarriers<1>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @leader_of_all(%i: i32) kernel attributes {known_cluster_size = array<i32: 4, 1, 1>} {
    // expected-note @below {{the barriers' 'cga' is here}}
    %b = attn.mbarrier.alloc {cga = #attn.cga<[[0], [1]]>} : !attn.mbarriers<1>
    // expected-error @below {{expected barriers that CTAs whose ranks differ in bits 3 have together, got #attn.cga<[[0], [1]]>}}
    attn.mbarrier.expect_tx %b[%i] {bytes = 0, leader} : !attn.mbarriers<1>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @commit_to_shared(%i: i32) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    // expected-note @below {{the barriers' 'cga' is here}}
    %b = attn.mbarrier.alloc {cga = #attn.cga<[[0]]>} : !attn.mbarriers<1>
    attn.elect {
      // expected-error @below {{expected barriers of each of the CTAs whose ranks differ in bits 1, got #attn.cga<[[0]]>}}
      attn.tcgen05.commit %b[%i] {ctas = 2} : !attn.mbarriers<1>
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @bytes_at_leader(%map: !attn.tensor_map<64x64xf16, swizzle = 128>, %i: i32) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    %dest = attn.alloc : !attn.buffer<64x64xf16, #attn.auto, shared>
    // expected-note @below {{the barriers' 'cga' is here}}
    %b = attn.mbarrier.alloc {cga = #attn.cga<[[1]]>} : !attn.mbarriers<1>
    // expected-error @below {{expected barriers that CTAs whose ranks differ in bits 1 have together, got #attn.cga<[[1]]>}}
    attn.tma.load %map[%i, %i], %dest barrier %b[%i] : !attn.mbarriers<1> {leader} : !attn.tensor_map<64x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #attn.auto, shared>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-note @below {{the kernel's known_cluster_size says so}}
  gpu.func @barriers_of_four() kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    // expected-error @below {{expected 'cga' of 2 CTAs, got one of 4}}
    %b = attn.mbarrier.alloc {cga = #attn.cga<[[1], [2]]>} : !attn.mbarriers<1>
    gpu.return
  }
}
