// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-expand-pipeline))' --split-input-file -verify-diagnostics

// Slices that share a ring are read one after the other.

gpu.module @kernels {
  gpu.func @unread(%gk: !attn.global<?x64xf16>, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant 0 : i32
    %k = attn.alloc : !attn.buffer<2x64x64xf16, #attn.auto, shared>
    attn.kv_loop %zero, %zero, %n, %n block 64 stages 2 {
    ^bb0(%key: i32):
      %a = attn.stage %gk[%key], %k : !attn.global<?x64xf16>, !attn.buffer<2x64x64xf16, #attn.auto, shared> -> !attn.buffer<64x64xf16, #attn.auto, shared>
      // expected-error@below {{expected the slice before it in this ring to be read first}}
      %b = attn.stage %gk[%key], %k : !attn.global<?x64xf16>, !attn.buffer<2x64x64xf16, #attn.auto, shared> -> !attn.buffer<64x64xf16, #attn.auto, shared>
      %ta = attn.local_load %a : !attn.buffer<64x64xf16, #attn.auto, shared> -> tensor<64x64xf16, #attn.auto>
      %tb = attn.local_load %b : !attn.buffer<64x64xf16, #attn.auto, shared> -> tensor<64x64xf16, #attn.auto>
      attn.yield
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @late(%gk: !attn.global<?x64xf16>, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant 0 : i32
    %k = attn.alloc : !attn.buffer<2x64x64xf16, #attn.auto, shared>
    attn.kv_loop %zero, %zero, %n, %n block 64 stages 2 {
    ^bb0(%key: i32):
      // expected-error@below {{expected its last access before the next slice}}
      %a = attn.stage %gk[%key], %k : !attn.global<?x64xf16>, !attn.buffer<2x64x64xf16, #attn.auto, shared> -> !attn.buffer<64x64xf16, #attn.auto, shared>
      %ta = attn.local_load %a : !attn.buffer<64x64xf16, #attn.auto, shared> -> tensor<64x64xf16, #attn.auto>
      %b = attn.stage %gk[%key], %k : !attn.global<?x64xf16>, !attn.buffer<2x64x64xf16, #attn.auto, shared> -> !attn.buffer<64x64xf16, #attn.auto, shared>
      %tb = attn.local_load %b : !attn.buffer<64x64xf16, #attn.auto, shared> -> tensor<64x64xf16, #attn.auto>
      %tc = attn.local_load %a : !attn.buffer<64x64xf16, #attn.auto, shared> -> tensor<64x64xf16, #attn.auto>
      attn.yield
    }
    gpu.return
  }
}
