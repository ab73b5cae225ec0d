// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' 2>&1 | FileCheck %s

// The copy is of 8192 bytes.
// CHECK: error: wrong count: phase 0 of 'full'[0] gets 4096 bytes more than were announced for it
// CHECK: note: initialised here

gpu.module @kernels {
  gpu.func @load(%map: !attn.tensor_map<1x1x64x64xf16, swizzle = 128>) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %zero = arith.constant 0 : i32
    %k = attn.alloc {name = "k", offset = 0} : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    %full = attn.mbarrier.alloc {name = "full", offset = 8192} : !attn.mbarriers<1>
    attn.elect {
      attn.mbarrier.init %full {count = 1} : !attn.mbarriers<1>
      attn.mbarrier.fence_init
      attn.mbarrier.expect_tx %full[%zero] {bytes = 4096} : !attn.mbarriers<1>
      attn.tma.load %map[%zero, %zero, %zero, %zero], %k barrier %full[%zero] : !attn.mbarriers<1> : !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    }
    gpu.barrier
    attn.mbarrier.wait %full[%zero] parity %zero : !attn.mbarriers<1>
    gpu.return
  }
}
