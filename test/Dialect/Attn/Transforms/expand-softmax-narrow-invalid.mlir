// RUN: attn-opt %s -pass-pipeline='builtin.module(gpu.module(attn-expand-pipeline))' -split-input-file -verify-diagnostics

// Probabilities that are larger than their 8-bit type has numbers.

!tile = tensor<64x64xf32, #attn.auto>
!rows = tensor<64xf32, #attn.auto>
!sums = tensor<64x4xf32, #attn.partial<parent = #attn.auto>>

gpu.module @kernels {
  gpu.func @offset_and_growth(%s: !tile, %m: !rows, %l: !sums, %o: !tile, %scale: f32) -> tensor<64x64xf8E4M3FN, #attn.auto> {
    // expected-error @below {{expected offset + growth of at most 8.81, the exponent of the largest 'f8E4M3FN', got 8.00 + 1.00 = 9.00}}
    %p, %m1, %l1, %o1 = attn.online_softmax %s, %m, %l, %o scale %scale policy<threshold, offset = 8, growth = 1> : !tile, !rows, !sums, !tile
    %a = attn.narrow_operand %p : !tile -> tensor<64x64xf8E4M3FN, #attn.auto>
    gpu.return %a : tensor<64x64xf8E4M3FN, #attn.auto>
  }
}

// -----

!tile = tensor<64x64xf32, #attn.auto>
!rows = tensor<64xf32, #attn.auto>
!sums = tensor<64x4xf32, #attn.partial<parent = #attn.auto>>

gpu.module @kernels {
  gpu.func @rounded(%s: !tile, %m: !rows, %l: !sums, %o: !tile, %scale: f32) -> tensor<64x64xf8E5M2, #attn.auto> {
    // expected-error @below {{expected offset + growth of at most 15.81, the exponent of the largest 'f8E5M2', got 16.00 + 0.00 = 16.00}}
    %p, %m1, %l1, %o1 = attn.online_softmax %s, %m, %l, %o scale %scale policy<exact, offset = 16, growth = 1> : !tile, !rows, !sums, !tile
    %a = arith.truncf %p : !tile to tensor<64x64xf8E5M2, #attn.auto>
    gpu.return %a : tensor<64x64xf8E5M2, #attn.auto>
  }
}

// -----

!tile = tensor<64x64xf32, #attn.auto>
!rows = tensor<64xf32, #attn.auto>
!sums = tensor<64x4xf32, #attn.partial<parent = #attn.auto>>

gpu.module @kernels {
  gpu.func @limit(%s: !tile, %m: !rows, %l: !sums, %o: !tile, %scale: f32) -> tensor<64x64xf8E4M3FN, #attn.auto> {
    // expected-error @below {{expected a limit of at most 448.00, the largest 'f8E4M3FN', got 500.00}}
    %p, %m1, %l1, %o1 = attn.online_softmax %s, %m, %l, %o scale %scale policy<optimistic, offset = 3, limit = 500> : !tile, !rows, !sums, !tile
    %a = attn.narrow_operand %p : !tile -> tensor<64x64xf8E4M3FN, #attn.auto>
    gpu.return %a : tensor<64x64xf8E4M3FN, #attn.auto>
  }
}
