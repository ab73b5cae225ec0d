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

// Two warps have halves of a row: each stores what it has and reads both. The
// reductions of a kernel pass through one buffer.

#halves = #attn.tmem_regs<shape_32x32b, warps = [2, 2]>
#rows = #attn.slice<dim = 1, parent = #halves>
gpu.module @halves {
  // CHECK-LABEL: gpu.func @halves
  // CHECK: %[[ROWS:.*]] = attn.alloc {name = "rows"} : <2x1x64xf32, #attn.rows, shared>
  // CHECK: %[[OWN:.*]] = attn.reduce max %{{.*}} partial : {{.*}} -> tensor<64x2xf32, #attn.partial<
  // CHECK: attn.local_store %[[OWN]], %{{.*}} : {{.*}}, <64x2xf32, #attn.transposed<#attn.rows>, shared>
  // CHECK: %[[FIRST:.*]] = attn.local_load
  // CHECK: %[[SECOND:.*]] = attn.local_load
  // CHECK: arith.maxnumf %[[FIRST]], %[[SECOND]]
  // CHECK-NOT: attn.alloc
  // CHECK: attn.local_store
  // CHECK: arith.addf
  gpu.func @halves(%t: tensor<64x256xf32, #halves>, %l: tensor<64x2xf32, #attn.partial<parent = #halves>>) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %m = attn.reduce max %t : tensor<64x256xf32, #halves> -> tensor<64xf32, #rows>
    %s = attn.reduce add %l : tensor<64x2xf32, #attn.partial<parent = #halves>> -> tensor<64xf32, #rows>
    gpu.return
  }
}
