// RUN: attn-opt %s --split-input-file --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s

// A buffer or mbarriers that end beyond the kernel's shared memory.

// CHECK: warning: the synchronisation of 'buffer' cannot be checked: its bytes lie beyond 'attn.shared_bytes'

gpu.module @kernels {
  gpu.func @buffer() kernel attributes {known_block_size = array<i32: 128, 1, 1>, attn.shared_bytes = 16383 : i64} {
    %c0 = arith.constant 0 : i32
    %k = attn.alloc {name = "k", offset = 8192} : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    gpu.barrier
    gpu.return
  }
}

// -----

// CHECK: warning: the synchronisation of 'mbarriers' cannot be checked: its bytes lie beyond 'attn.shared_bytes'

gpu.module @kernels {
  gpu.func @mbarriers() kernel attributes {known_block_size = array<i32: 128, 1, 1>, attn.shared_bytes = 64 : i64} {
    %full = attn.mbarrier.alloc {name = "full", offset = 56} : !attn.mbarriers<2>
    gpu.barrier
    gpu.return
  }
}
