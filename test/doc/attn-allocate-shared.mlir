// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-allocate-shared))' | FileCheck %s

gpu.module @kernels {
  gpu.func @in_turn(%t: tensor<64x64xf16, #attn.mma<warps = [4, 1]>>) kernel
      attributes {attn.warps = array<i64: 4, 1>} {
    %a = attn.alloc {name = "a"} : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    %b = attn.alloc {name = "b"} : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    attn.local_store %t, %a : tensor<64x64xf16, #attn.mma<warps = [4, 1]>>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    %0 = attn.local_load %a : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared> -> tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
    attn.local_store %0, %b : tensor<64x64xf16, #attn.mma<warps = [4, 1]>>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    %1 = attn.local_load %b : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared> -> tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
    gpu.return
  }
}

// CHECK: gpu.func @in_turn({{.*}}) kernel attributes {attn.shared_bytes = 8192 : i64
// CHECK:   attn.alloc {name = "a", offset = 0 : i64}
// CHECK:   attn.alloc {name = "b", offset = 0 : i64}
