// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-insert-fences))' | FileCheck %s

gpu.module @kernels {
  gpu.func @exchange(%t: tensor<64x64xf16, #attn.mma<warps = [4, 1]>>) kernel
      attributes {attn.warps = array<i64: 4, 1>} {
    %a = attn.alloc {name = "a", offset = 0 : i64} : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    attn.local_store %t, %a : tensor<64x64xf16, #attn.mma<warps = [4, 1]>>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    %0 = attn.local_load %a : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared> -> tensor<64x64xf16, #attn.blocked<per_thread = [1, 8], warps = 4, order = [1, 0]>>
    gpu.return
  }
}

// CHECK: attn.local_store
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: attn.local_load
