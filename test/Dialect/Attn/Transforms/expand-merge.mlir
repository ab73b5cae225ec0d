// RUN: attn-opt %s --attn-expand=chip=sm_90a | FileCheck %s

// With combine = launch the kernel of an attention merges its partial results as well:
// no second kernel, and what it reads is written by other CTAs. Each of the 2 x 3 tiles
// has a counter, a workspace that is zeros before and behind the launch. The tile's number
// does not depend on the run; the heads of a group are rows of their query.

// CHECK-LABEL: func.func @merged(
// CHECK: %[[MEMORY:.*]] = gpu.alloc (%{{.*}}) : memref<?xi8>
// CHECK: gpu.memset %[[MEMORY]]
// CHECK: gpu.launch_func @merged_kernels::@attn_fwd
// CHECK-NOT: attn.combine
// CHECK-NOT: griddepcontrol
// CHECK: gpu.func @attn_fwd(
// CHECK-SAME: %[[Q:[^:]*]]: !llvm.ptr<1>, %[[K:[^:]*]]: !llvm.ptr<1>, %[[V:[^:]*]]: !llvm.ptr<1>, %[[PO:[^:]*]]: !llvm.ptr<1>, %[[PL:[^:]*]]: !llvm.ptr<1>, %[[O:[^:]*]]: !llvm.ptr<1>, %[[LSE:[^:]*]]: !llvm.ptr<1>, %[[COUNTERS:[^:]*]]: !llvm.ptr<1>
// CHECK-SAME: {index = 0 : i64, kind = "workspace"}, {index = 1 : i64, kind = "workspace"}, {kind = "pointer", tensor = "o"}, {kind = "pointer", tensor = "lse"}, {index = 2 : i64, kind = "workspace"}
// CHECK-SAME: workspaces = [{bytes = "{{.*}}", name = "partial_o", zeroed = false}, {bytes = "{{.*}}", name = "partial_lse", zeroed = false}, {bytes = "ceildiv(q.dim2 * 2, 16) * k.dim1 * q.dim0 * 4", restored = true, zeroed = true}]

// CHECK: attn.store_result %{{.*}}, %{{.*}}
// CHECK: %[[FOUR:.*]] = arith.constant 4 : i32
// CHECK: %[[BATCH:.*]] = arith.divui %{{.*}}, %[[FOUR]] : i32
// CHECK: arith.muli %[[BATCH]], %{{.*}} : i32
// CHECK: %[[COUNTER:.*]] = llvm.getelementptr %[[COUNTERS]]
// CHECK: %[[RUNS:.*]] = arith.constant 4 : i32
// CHECK: %[[LAST:.*]] = attn.tile_arrive %[[COUNTER]] of %[[RUNS]]
// CHECK: scf.if %[[LAST]] {
// CHECK: gpu.thread_id x
// CHECK: scf.for
// CHECK: arith.remui
// CHECK: llvm.getelementptr %[[PL]]
// CHECK: llvm.getelementptr %[[PO]]
// CHECK: llvm.getelementptr %[[O]]
// CHECK: llvm.getelementptr %[[LSE]]
func.func @merged(%q: memref<2x6x1x64xf16>, %kv: memref<2x3x500x64xf16>, %o: memref<2x6x1x64xf16>, %lse: memref<2x6x1xf32>) {
  %po = memref.alloc() : memref<4x2x6x1x64xf32>
  %pl = memref.alloc() : memref<4x2x6x1xf32>
  attn.attention ins(%q, %kv, %kv : memref<2x6x1x64xf16>, memref<2x3x500x64xf16>, memref<2x3x500x64xf16>)
                 outs(%po, %pl : memref<4x2x6x1x64xf32>, memref<4x2x6x1xf32>)
                 {kv_splits = 4 : i64, plan = #attn.decode<pack_heads = true, combine = launch>}
  attn.combine ins(%po, %pl : memref<4x2x6x1x64xf32>, memref<4x2x6x1xf32>)
               outs(%o, %lse : memref<2x6x1x64xf16>, memref<2x6x1xf32>) {plan = #attn.combine<>}
  return
}
