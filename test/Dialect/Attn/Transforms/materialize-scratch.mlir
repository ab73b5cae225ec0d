// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-materialize-scratch))' | FileCheck %s

#acc = #attn.mma<warps = [4, 1]>
#blocked = #attn.blocked<per_thread = [1, 8], warps = 4, order = [1, 0]>
#a = #attn.operand<index = 0, parent = #acc>

gpu.module @kernels {
  // Rows that move to other warps pass through a buffer.
  // CHECK-LABEL: gpu.func @between_warps
  // CHECK-SAME: attn.shared_closed
  // CHECK: %[[B:.*]] = attn.alloc {name = "exchange"} : <128x64xf16, #attn.swizzled<span = 128>, shared>
  // CHECK-NEXT: attn.local_store %[[T:.*]], %[[B]]
  // CHECK-NEXT: %[[R:.*]] = attn.local_load %[[B]]
  // CHECK-NOT: attn.convert_layout
  // CHECK: attn.global_store %[[R]]
  gpu.func @between_warps(%t: tensor<128x64xf16, #acc>, %g: !attn.global<?x64xf16>, %row: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %r = attn.convert_layout %t : tensor<128x64xf16, #acc> -> tensor<128x64xf16, #blocked>
    attn.global_store %r, %g[%row] : tensor<128x64xf16, #blocked>, !attn.global<?x64xf16>
    gpu.return
  }

  // Pairs of f32 of four rows are in different banks where 32 bytes of a row lie
  // together.
  // CHECK-LABEL: gpu.func @pairs
  // CHECK: attn.alloc {name = "exchange"} : <16x64xf32, #attn.swizzled<span = 32>, shared>
  gpu.func @pairs(%t: tensor<16x64xf32, #attn.mma<warps = [1, 4]>>, %g: !attn.global<?x64xf32>, %row: i32) kernel attributes {attn.warps = array<i64: 1, 4>} {
    %r = attn.convert_layout %t : tensor<16x64xf32, #attn.mma<warps = [1, 4]>> -> tensor<16x64xf32, #attn.mma<warps = [1, 1], copies = 4>>
    attn.global_store %r, %g[%row] : tensor<16x64xf32, #attn.mma<warps = [1, 1], copies = 4>>, !attn.global<?x64xf32>
    gpu.return
  }

  // Fragments that become an operand stay in their threads.
  // CHECK-LABEL: gpu.func @inside_threads
  // CHECK-SAME: attn.shared_closed
  // CHECK-NOT: attn.alloc
  // CHECK: attn.convert_layout
  gpu.func @inside_threads(%t: tensor<128x64xf16, #acc>, %g: !attn.global<?x64xf16>, %row: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %r = attn.convert_layout %t : tensor<128x64xf16, #acc> -> tensor<128x64xf16, #a>
    attn.global_store %r, %g[%row] : tensor<128x64xf16, #a>, !attn.global<?x64xf16>
    gpu.return
  }
}
