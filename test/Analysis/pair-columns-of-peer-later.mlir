// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s
// RUN: sed 's/^    attn.tmem.dealloc/    attn.cluster_barrier\n&/' %s | attn-opt --pass-pipeline='builtin.module(gpu.module(attn-check-barriers{require-proof}))' -o /dev/null

// The second CTA waits for a signal that the first one gives in front of the product, so that it may
// be the last one to give columns back. It does not know of the product either.

// CHECK: error: lifetime: warp 0 of CTA 1 gives columns back while a write by warp 0 of CTA 0 of 'd' may be in flight

gpu.module @kernels {
  gpu.func @pair() kernel attributes {known_block_size = array<i32: 32, 1, 1>, known_cluster_size = array<i32: 2, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %no = arith.constant false
    %a = attn.alloc {name = "a", offset = 0} : !attn.buffer<128x64xf16, #attn.swizzled<span = 128>, shared>
    %b = attn.alloc {name = "b", offset = 16384} : !attn.buffer<32x64xf16, #attn.swizzled<span = 128>, shared>
    %bt = attn.transpose %b : !attn.buffer<32x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x32xf16, #attn.transposed<#attn.swizzled<span = 128>>, shared>
    %d = attn.tmem_alloc {column = 0 : i64, name = "d"} : !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
    %slot = attn.alloc {name = "slot", offset = 32768} : !attn.buffer<1xi32, #attn.rows, shared>
    %done = attn.mbarrier.alloc {name = "done", offset = 32784} : !attn.mbarriers<1>
    %go = attn.mbarrier.alloc {name = "go", offset = 32792} : !attn.mbarriers<1>
    attn.elect {
      attn.mbarrier.init %go {count = 1} : !attn.mbarriers<1>
      attn.mbarrier.init %done {count = 1} : !attn.mbarriers<1>
      attn.mbarrier.fence_init
    }
    attn.cluster_barrier
    %base = attn.tmem.reserve %slot {columns = 64, pair} : !attn.buffer<1xi32, #attn.rows, shared>
    attn.cluster_leader {
      attn.elect {
        attn.mbarrier.arrive %go[%c0] {ctas = 2} : !attn.mbarriers<1>
        attn.tcgen05.mma %a, %bt, %d accumulate %no {pair} : !attn.buffer<128x64xf16, #attn.swizzled<span = 128>, shared>, !attn.buffer<64x32xf16, #attn.transposed<#attn.swizzled<span = 128>>, shared>, !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
        attn.tcgen05.commit %done[%c0] {pair} : !attn.mbarriers<1>
      }
      attn.mbarrier.wait %done[%c0] parity %c0 : !attn.mbarriers<1>
    }
    attn.mbarrier.wait %go[%c0] parity %c0 : !attn.mbarriers<1>
    attn.tmem.dealloc %base {columns = 64, pair}
    gpu.return
  }
}
