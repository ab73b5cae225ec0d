// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-materialize-scratch))' | FileCheck %s

gpu.module @kernels {
  gpu.func @across_warps(%t: tensor<64x64xf16, #attn.mma<warps = [4, 1]>>) kernel
      attributes {attn.warps = array<i64: 4, 1>} {
    %0 = attn.convert_layout %t : tensor<64x64xf16, #attn.mma<warps = [4, 1]>> -> tensor<64x64xf16, #attn.blocked<per_thread = [1, 8], warps = 4, order = [1, 0]>>
    gpu.return
  }
}

// CHECK: gpu.func @across_warps({{.*}}) kernel attributes {attn.shared_closed
// CHECK:   %[[B:.*]] = attn.alloc {name = "exchange"} : <64x64xf16, #attn.swizzled<span = 128>, shared>
// CHECK:   attn.local_store {{.*}}, %[[B]]
// CHECK:   attn.local_load %[[B]]
