// RUN: attn-opt %s --attn-plan=set=block_m=64,block_n=64,order=row_major --attn-expand --split-input-file | FileCheck %s

// Partial results that the function allocates are workspaces: two kernels in one
// gpu.module, which name the same memory.

// CHECK-LABEL: func.func @split
// CHECK: %[[PO:.*]] = memref.alloc() : memref<3x2x8x100x64xf32>
// CHECK: gpu.launch_func @split_kernels::@attn_fwd
// CHECK: gpu.launch_func @split_kernels::@attn_combine
// CHECK: memref.dealloc %[[PO]]
// CHECK: gpu.module @split_kernels
// CHECK: gpu.func @attn_fwd
// CHECK-SAME: grid = ["ceildiv(q.dim2, 64)", "q.dim1", "q.dim0 * 3"]
// CHECK-SAME: args = [{kind = "pointer", tensor = "q"}, {kind = "pointer", tensor = "k"}, {kind = "pointer", tensor = "v"}, {access = "write", index = 0 : i64, kind = "workspace"}, {access = "write", index = 1 : i64, kind = "workspace"}]
// CHECK-SAME: workspaces = [{bytes = "1228800", name = "partial_o", zeroed = false}, {bytes = "19200", name = "partial_lse", zeroed = false}]
// The third dimension of the grid has runs and batches; a run has the third part
// of the blocks.
// CHECK: %[[Z:.*]] = gpu.block_id {{ *}}z
// CHECK: %[[PIECE:.*]] = arith.remui
// CHECK: arith.divui
// CHECK: %[[PART:.*]] = arith.divui %{{.*}}, %c3_i32
// CHECK: arith.muli %[[PIECE]], %[[PART]]
// CHECK: attn.kv_loop
// CHECK: gpu.func @attn_combine
// Few runs: a thread has four columns and asks for all of them at once.
// CHECK-SAME: grid = ["ceildiv(o.dim0 * o.dim1 * o.dim2 * 16, 128)", "1", "1"]
// CHECK-SAME: args = [{access = "read", index = 0 : i64, kind = "workspace"}, {access = "read", index = 1 : i64, kind = "workspace"}, {kind = "pointer", tensor = "o"}, {kind = "pointer", tensor = "lse"}]
// CHECK-SAME: workspaces = [{bytes = "1228800", name = "partial_o", zeroed = false}, {bytes = "19200", name = "partial_lse", zeroed = false}]
// CHECK-NOT: scf.for
// CHECK-COUNT-4: llvm.load {{.*}} -> f32
// CHECK: llvm.load {{.*}} -> vector<4xf32>
// CHECK: llvm.store {{.*}} : vector<4xf16>
func.func @split(%q: memref<2x8x100x64xf16>, %k: memref<2x8x300x64xf16>, %o: memref<2x8x100x64xf16>, %lse: memref<2x8x100xf32>) {
  %po = memref.alloc() : memref<3x2x8x100x64xf32>
  %pl = memref.alloc() : memref<3x2x8x100xf32>
  attn.attention ins(%q, %k, %k : memref<2x8x100x64xf16>, memref<2x8x300x64xf16>, memref<2x8x300x64xf16>)
                 outs(%po, %pl : memref<3x2x8x100x64xf32>, memref<3x2x8x100xf32>) {kv_splits = 3 : i64}
  attn.combine ins(%po, %pl : memref<3x2x8x100x64xf32>, memref<3x2x8x100xf32>)
               outs(%o, %lse : memref<2x8x100x64xf16>, memref<2x8x100xf32>)
  memref.dealloc %po : memref<3x2x8x100x64xf32>
  return
}

// -----

// What only the launch decides: no tensor of the launch has the strides of a
// workspace, so that they are expressions over those that there are.

// CHECK-LABEL: gpu.module @dynamic_kernels
// CHECK: gpu.func @attn_fwd
// CHECK-SAME: {kind = "expression", type = "i64", value = "q.dim0 * q.dim2 * 512"}
// CHECK-SAME: workspaces = [{bytes = "q.dim0 * q.dim2 * 512 * 12", name = "partial_o"
// CHECK: gpu.func @attn_combine
// CHECK-SAME: name = "q"
// CHECK-SAME: {kind = "expression", type = "i64", value = "q.dim0 * q.dim2 * 512"}
func.func @dynamic(%q: memref<?x8x?x64xf16>, %k: memref<?x8x?x64xf16>, %o: memref<?x8x?x64xbf16>) {
  %zero = arith.constant 0 : index
  %two = arith.constant 2 : index
  %b = memref.dim %q, %zero : memref<?x8x?x64xf16>
  %n = memref.dim %q, %two : memref<?x8x?x64xf16>
  %po = memref.alloc(%b, %n) : memref<3x?x8x?x64xf32>
  %pl = memref.alloc(%b, %n) : memref<3x?x8x?xf32>
  attn.attention ins(%q, %k, %k : memref<?x8x?x64xf16>, memref<?x8x?x64xf16>, memref<?x8x?x64xf16>)
                 outs(%po, %pl : memref<3x?x8x?x64xf32>, memref<3x?x8x?xf32>) {kv_splits = 3 : i64}
  attn.combine ins(%po, %pl : memref<3x?x8x?x64xf32>, memref<3x?x8x?xf32>)
               outs(%o : memref<?x8x?x64xbf16>)
  return
}

// -----

// Partial results of the caller are tensors of a launch of its own. More of them
// than a few make a loop; columns that no vector holds are loaded one by one.

// CHECK-LABEL: gpu.module @alone_kernels
// CHECK: gpu.func @merge
// CHECK-SAME: name = "partial_o"
// CHECK-SAME: {kind = "pointer", tensor = "partial_o"}, {kind = "pointer", tensor = "partial_lse"}, {kind = "pointer", tensor = "o"}
// CHECK-NOT: workspaces
// CHECK: scf.for
// CHECK: llvm.load {{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> f32
// CHECK-NOT: vector<
func.func @alone(%po: memref<80x1x2x5x9xf32>, %pl: memref<80x1x2x5xf32>, %o: memref<1x2x5x9xf32>) {
  attn.combine ins(%po, %pl : memref<80x1x2x5x9xf32>, memref<80x1x2x5xf32>)
               outs(%o : memref<1x2x5x9xf32>) {kernel = "merge"}
  return
}
