// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -mlir-print-op-generic | attn-opt | FileCheck %s
// RUN: attn-opt %s -emit-bytecode | attn-opt | FileCheck %s

// Rows of global memory. The forms are those that the printer writes:
// attributes that have their default are not there.

!b = !attn.buffer<64x128xf16, #attn.auto, shared>
!t = tensor<64x128xf16, #attn.auto>

// CHECK-LABEL: func.func @view(
// CHECK-SAME: %[[P:.*]]: !llvm.ptr<1>, %[[OFFSET:.*]]: i64, %[[ROWS:.*]]: i32, %[[STRIDE:.*]]: i64
func.func @view(%p: !llvm.ptr<1>, %offset: i64, %rows: i32, %stride: i64) {
  // CHECK: %[[G:.*]] = attn.global_view %[[P]][%[[OFFSET]]] rows %[[ROWS]] stride %[[STRIDE]] : <?x128xf16>
  %g = attn.global_view %p[%offset] rows %rows stride %stride : !attn.global<?x128xf16>
  // CHECK: %[[ALIGNED:.*]] = attn.global_view %[[P]][%[[OFFSET]]] rows %[[ROWS]] stride %[[STRIDE]] {alignment = 16 : i64} : <?xf32>
  %aligned = attn.global_view %p[%offset] rows %rows stride %stride {alignment = 16 : i64} : !attn.global<?xf32>
  return
}

// CHECK-LABEL: func.func @groups(
// CHECK-SAME: %[[P:.*]]: !llvm.ptr<1>, %[[OFFSET:.*]]: i64, %[[ROWS:.*]]: i32, %[[STRIDE:.*]]: i64
func.func @groups(%p: !llvm.ptr<1>, %offset: i64, %rows: i32, %stride: i64) {
  // CHECK: attn.global_view %[[P]][%[[OFFSET]]] rows %[[ROWS]] stride %[[STRIDE]] members %[[OFFSET]] {group = 5 : i64} : <?x128xf16>
  %g = attn.global_view %p[%offset] rows %rows stride %stride members %offset {group = 5 : i64} : !attn.global<?x128xf16>
  // CHECK: attn.global_view %[[P]][%[[OFFSET]]] rows %[[ROWS]] stride %[[STRIDE]] members %[[OFFSET]] {group = 5 : i64, in_bounds} : <?x128xf16>
  %known = attn.global_view %p[%offset] rows %rows stride %stride members %offset {group = 5 : i64, in_bounds} : !attn.global<?x128xf16>
  return
}

// CHECK-LABEL: func.func @pages(
// CHECK-SAME: %[[P:.*]]: !llvm.ptr<1>, %[[OFFSET:.*]]: i64, %[[ROWS:.*]]: i32, %[[STRIDE:.*]]: i64
func.func @pages(%p: !llvm.ptr<1>, %offset: i64, %rows: i32, %stride: i64) {
  // CHECK: attn.paged_view %[[P]][%[[OFFSET]]] rows %[[ROWS]] stride %[[STRIDE]] table %[[P]][%[[OFFSET]]] pages %[[ROWS]] distance %[[STRIDE]] {alignment = 16 : i64, page = 64 : i64} : <?x128xf16>
  %g = attn.paged_view %p[%offset] rows %rows stride %stride table %p[%offset] pages %rows distance %stride {alignment = 16 : i64, page = 64 : i64} : !attn.global<?x128xf16>
  return
}

// CHECK-LABEL: func.func @joined(
// CHECK-SAME: %{{.*}}: !llvm.ptr<1>, %{{.*}}: i64, %[[ROWS:.*]]: i32, %{{.*}}: i64
func.func @joined(%p: !llvm.ptr<1>, %offset: i64, %rows: i32, %stride: i64) {
  // CHECK: %[[F:.*]] = attn.paged_view
  %f = attn.paged_view %p[%offset] rows %rows stride %stride table %p[%offset] pages %rows distance %stride {page = 1 : i64} : !attn.global<?x128xf16>
  // CHECK: %[[G:.*]] = attn.paged_view
  %g = attn.paged_view %p[%offset] rows %rows stride %stride table %p[%offset] pages %rows distance %stride {page = 64 : i64} : !attn.global<?x128xf16>
  // CHECK: attn.joined_view %[[F]], %[[G]][%[[ROWS]]] : <?x128xf16>
  %j = attn.joined_view %f, %g[%rows] : !attn.global<?x128xf16>
  return
}

// CHECK-LABEL: func.func @asynchronous(
// CHECK-SAME: %[[G:.*]]: !attn.global<?x128xf16>, %[[ROW:.*]]: i32, %[[B:.*]]: !attn.buffer<64x128xf16, #attn.auto, shared>
func.func @asynchronous(%g: !attn.global<?x128xf16>, %row: i32, %b: !b) {
  // CHECK: attn.cp_async %[[G]][%[[ROW]]], %[[B]] : <?x128xf16>, <64x128xf16, #attn.auto, shared>
  attn.cp_async %g[%row], %b : !attn.global<?x128xf16>, !b
  // CHECK: attn.cp_async %[[G]][%[[ROW]]], %[[B]] {in_bounds} : <?x128xf16>, <64x128xf16, #attn.auto, shared>
  attn.cp_async %g[%row], %b {in_bounds} : !attn.global<?x128xf16>, !b
  // CHECK: attn.cp_async.commit
  attn.cp_async.commit
  // CHECK: attn.cp_async.wait {pending = 1 : i64}
  attn.cp_async.wait {pending = 1 : i64}
  return
}

// CHECK-LABEL: func.func @direct(
// CHECK-SAME: %[[G:.*]]: !attn.global<?x128xf16>, %[[ROW:.*]]: i32, %[[B:.*]]: !attn.buffer<64x128xf16, #attn.auto, shared>
func.func @direct(%g: !attn.global<?x128xf16>, %row: i32, %b: !b) {
  // CHECK: %[[T:.*]] = attn.global_load %[[G]][%[[ROW]]] : <?x128xf16> -> tensor<64x128xf16, #attn.auto>
  %t = attn.global_load %g[%row] : !attn.global<?x128xf16> -> !t
  // CHECK: attn.global_store %[[T]], %[[G]][%[[ROW]]] : tensor<64x128xf16, #attn.auto>, <?x128xf16>
  attn.global_store %t, %g[%row] : !t, !attn.global<?x128xf16>
  // CHECK: attn.copy_out %[[B]], %[[G]][%[[ROW]]] : <64x128xf16, #attn.auto, shared>, <?x128xf16>
  attn.copy_out %b, %g[%row] : !b, !attn.global<?x128xf16>
  return
}

// CHECK-LABEL: func.func @page_rows(
// CHECK-SAME: %[[TABLE:.*]]: !llvm.ptr<1>, %[[FIRST:.*]]: i64, %[[X:.*]]: i32, %[[N:.*]]: i32, %[[B:.*]]: !attn.buffer<64xi32, #attn.rows, shared>
func.func @page_rows(%table: !llvm.ptr<1>, %first: i64, %x: i32, %n: i32, %b: !attn.buffer<64xi32, #attn.rows, shared>) {
  // CHECK: attn.page_rows %[[TABLE]][%[[FIRST]]], %[[X]] rows %[[N]] pages %[[N]] offset %[[X]], %[[B]] {distance = 8 : i64, page = 4 : i64, stride = 2 : i64} : <64xi32, #attn.rows, shared>
  attn.page_rows %table[%first], %x rows %n pages %n offset %x, %b {distance = 8 : i64, page = 4 : i64, stride = 2 : i64} : !attn.buffer<64xi32, #attn.rows, shared>
  return
}

// CHECK-LABEL: func.func @results(
// CHECK-SAME: %[[T:.*]]: tensor<64x128xf16, #attn.auto>, %[[G:.*]]: !attn.global<?x128xf16>, %[[ROW:.*]]: i32, %[[B:.*]]: !attn.buffer<64x128xf16, #attn.auto, shared>, %[[MAP:.*]]: !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, %[[H:.*]]: i32
func.func @results(%t: !t, %g: !attn.global<?x128xf16>, %row: i32, %b: !b, %map: !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, %h: i32) {
  // The kind is left out where it is auto.
  // CHECK: attn.store_result %[[T:.*]], %[[G:.*]][%[[ROW:.*]]] : tensor<64x128xf16, #attn.auto>, <?x128xf16>
  attn.store_result %t, %g[%row] {kind = #attn<epilogue_kind auto>} : !t, !attn.global<?x128xf16>
  // CHECK: attn.store_result %[[T:.*]], %[[G:.*]][%[[ROW:.*]]] scratch %[[B:.*]] : !attn.buffer<64x128xf16, #attn.auto, shared> {kind = #attn<epilogue_kind staged>} : tensor<64x128xf16, #attn.auto>, <?x128xf16>
  attn.store_result %t, %g[%row] scratch %b : !b {kind = #attn<epilogue_kind staged>} : !t, !attn.global<?x128xf16>
  // CHECK: attn.store_result %[[T:.*]], %[[G:.*]][%[[ROW:.*]]] scratch %[[B:.*]] : !attn.buffer<64x128xf16, #attn.auto, shared> map %[[MAP:.*]][%[[H:.*]], %[[H]], %[[ROW]], %[[H]]] : !attn.tensor_map<1x1x64x64xf16, swizzle = 128> {kind = #attn<epilogue_kind tma>} : tensor<64x128xf16, #attn.auto>, <?x128xf16>
  attn.store_result %t, %g[%row] scratch %b : !b map %map[%h, %h, %row, %h] : !attn.tensor_map<1x1x64x64xf16, swizzle = 128> {kind = #attn<epilogue_kind tma>} : !t, !attn.global<?x128xf16>
  return
}

// CHECK-LABEL: func.func @largest(
// CHECK-SAME: %[[T:.*]]: tensor<64x128xf32, #attn.auto>, %[[G:.*]]: !attn.global<?x128xf16>, %[[ROW:.*]]: i32, %[[P:.*]]: !llvm.ptr<1>
func.func @largest(%t: tensor<64x128xf32, #attn.auto>, %g: !attn.global<?x128xf16>, %row: i32, %p: !llvm.ptr<1>) {
  // CHECK: attn.global_max %[[T]], %[[G]][%[[ROW]]] to %[[P]] : tensor<64x128xf32, #attn.auto>, <?x128xf16>
  attn.global_max %t, %g[%row] to %p : tensor<64x128xf32, #attn.auto>, !attn.global<?x128xf16>
  return
}
