// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -mlir-print-op-generic | attn-opt | FileCheck %s
// RUN: attn-opt %s -emit-bytecode | attn-opt | FileCheck %s

// Products of a warpgroup. The forms are those that the printer writes:
// attributes that have their default are not there.

!q = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!kt = !attn.buffer<64x64xf16, #attn.transposed<#attn.swizzled<span = 128>>, shared>
!s = tensor<64x64xf32, #attn.mma<warps = [4, 1]>>
!p = tensor<64x64xf16, #attn.operand<index = 0, parent = #attn.mma<warps = [4, 1]>>>
!p8 = tensor<64x64xf8E4M3FN, #attn.operand<index = 0, parent = #attn.mma<warps = [4, 1]>>>

// CHECK-LABEL: func.func @products(
// CHECK-SAME: %[[Q:.*]]: !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>, %[[KT:.*]]: !attn.buffer<64x64xf16, #attn.transposed<#attn.swizzled<span = 128>>, shared>, %[[P:.*]]: tensor<64x64xf16, #attn.operand<index = 0, parent = #attn.mma<warps = [4, 1]>>>, %[[O:.*]]: tensor<64x64xf32, #attn.mma<warps = [4, 1]>>
func.func @products(%q: !q, %kt: !kt, %p: !p, %o: !s) {
  // CHECK: %[[S:.*]] = attn.wgmma %[[Q]], %[[KT]] : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>, <64x64xf16, #attn.transposed<#attn.swizzled<span = 128>>, shared> -> <64x64xf32>
  %s = attn.wgmma %q, %kt : !q, !kt -> !attn.inflight<64x64xf32>
  // The accumulator is a tile or in flight.
  // CHECK: %[[FIRST:.*]] = attn.wgmma %[[P]], %[[KT]] acc %[[O]] : tensor<64x64xf32, #attn.mma<warps = [4, 1]>> : tensor<64x64xf16, #attn.operand<index = 0, parent = #attn.mma<warps = [4, 1]>>>, <64x64xf16, #attn.transposed<#attn.swizzled<span = 128>>, shared> -> <64x64xf32>
  %first = attn.wgmma %p, %kt acc %o : !s : !p, !kt -> !attn.inflight<64x64xf32>
  // CHECK: %[[NEXT:.*]] = attn.wgmma %[[P]], %[[KT]] acc %[[FIRST]] : !attn.inflight<64x64xf32> : tensor<64x64xf16, #attn.operand<index = 0, parent = #attn.mma<warps = [4, 1]>>>, <64x64xf16, #attn.transposed<#attn.swizzled<span = 128>>, shared> -> <64x64xf32>
  %next = attn.wgmma %p, %kt acc %first : !attn.inflight<64x64xf32> : !p, !kt -> !attn.inflight<64x64xf32>
  // CHECK: %[[READY:.*]]:2 = attn.wgmma.wait %[[S]], %[[NEXT]] {pending = 0 : i64} : !attn.inflight<64x64xf32>, !attn.inflight<64x64xf32> -> tensor<64x64xf32, #attn.mma<warps = [4, 1]>>, tensor<64x64xf32, #attn.mma<warps = [4, 1]>>
  %ready:2 = attn.wgmma.wait %s, %next {pending = 0 : i64} : !attn.inflight<64x64xf32>, !attn.inflight<64x64xf32> -> !s, !s
  // CHECK: attn.wgmma.wait {pending = 1 : i64}
  attn.wgmma.wait {pending = 1 : i64}
  return
}

// CHECK-LABEL: func.func @narrow_products(
// CHECK-SAME: %[[Q:.*]]: !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>, %[[KT:.*]]: !attn.buffer<64x64xf16, #attn.transposed<#attn.swizzled<span = 128>>, shared>
func.func @narrow_products(%q: !q, %kt: !kt) {
  // CHECK: %[[COLUMNS:.*]] = attn.wgmma %[[Q]], %[[KT]] {columns = 32 : i64} : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>, <64x64xf16, #attn.transposed<#attn.swizzled<span = 128>>, shared> -> <64x32xf32>
  %columns = attn.wgmma %q, %kt {columns = 32 : i64} : !q, !kt -> !attn.inflight<64x32xf32>
  // CHECK: %[[DEPTH:.*]] = attn.wgmma %[[Q]], %[[KT]] {depth = 16 : i64} : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>, <64x64xf16, #attn.transposed<#attn.swizzled<span = 128>>, shared> -> <64x64xf32>
  %depth = attn.wgmma %q, %kt {depth = 16 : i64} : !q, !kt -> !attn.inflight<64x64xf32>
  // CHECK: %[[ROWS:.*]] = attn.wgmma %[[Q]], %[[KT]] {depth = 16 : i64, first = 32 : i64} : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>, <64x64xf16, #attn.transposed<#attn.swizzled<span = 128>>, shared> -> <64x64xf32>
  %rows = attn.wgmma %q, %kt {depth = 16 : i64, first = 32 : i64} : !q, !kt -> !attn.inflight<64x64xf32>
  return
}

// CHECK-LABEL: func.func @tiles(
// CHECK-SAME: %[[S:.*]]: tensor<64x64xf32, #attn.mma<warps = [4, 1]>>, %[[NARROW:.*]]: tensor<64x16xf16, #attn.auto>
func.func @tiles(%s: !s, %narrow: tensor<64x16xf16, #attn.auto>) {
  // CHECK: %[[FLYING:.*]] = attn.wgmma.resume %[[S]] : tensor<64x64xf32, #attn.mma<warps = [4, 1]>> -> <64x64xf32>
  %flying = attn.wgmma.resume %s : !s -> !attn.inflight<64x64xf32>
  // CHECK: %[[WIDE:.*]] = attn.extend_columns %[[NARROW]] : tensor<64x16xf16, #attn.auto> -> tensor<64x64xf16, #attn.auto>
  %wide = attn.extend_columns %narrow : tensor<64x16xf16, #attn.auto> -> tensor<64x64xf16, #attn.auto>
  // The order is left out where it is interleaved.
  // CHECK: %[[INTERLEAVED:.*]] = attn.narrow_operand %[[S]] : tensor<64x64xf32, #attn.mma<warps = [4, 1]>> -> tensor<64x64xf8E4M3FN, #attn.operand<index = 0, parent = #attn.mma<warps = [4, 1]>>>
  %interleaved = attn.narrow_operand %s {order = #attn<key_order interleaved>} : !s -> !p8
  // CHECK: %[[PLAIN:.*]] = attn.narrow_operand %[[S]] {order = #attn<key_order plain>} : tensor<64x64xf32, #attn.mma<warps = [4, 1]>> -> tensor<64x64xf8E4M3FN, #attn.operand<index = 0, parent = #attn.mma<warps = [4, 1]>>>
  %plain = attn.narrow_operand %s {order = #attn<key_order plain>} : !s -> !p8
  // CHECK: %[[QUADS:.*]] = attn.narrow_operand %[[S]] {order = #attn<key_order quads>} : tensor<64x64xf32, #attn.mma<warps = [4, 1]>> -> tensor<64x64xf8E4M3FN, #attn.operand<index = 0, parent = #attn.mma<warps = [4, 1]>>>
  %quads = attn.narrow_operand %s {order = #attn<key_order quads>} : !s -> !p8
  return
}

// CHECK-LABEL: func.func @rest(
// CHECK-SAME: %[[V:.*]]: !attn.buffer<64x128xf8E4M3FN, #attn.swizzled<span = 128>, shared>, %[[VT:.*]]: !attn.buffer<128x64xf8E4M3FN, #attn.swizzled<span = 64>, shared>
func.func @rest(%v: !attn.buffer<64x128xf8E4M3FN, #attn.swizzled<span = 128>, shared>, %vt: !attn.buffer<128x64xf8E4M3FN, #attn.swizzled<span = 64>, shared>) -> i32 {
  // CHECK: attn.local_transpose %[[V:.*]], %[[VT:.*]] : <64x128xf8E4M3FN, #attn.swizzled<span = 128>, shared>, <128x64xf8E4M3FN, #attn.swizzled<span = 64>, shared>
  attn.local_transpose %v, %vt : !attn.buffer<64x128xf8E4M3FN, #attn.swizzled<span = 128>, shared>, !attn.buffer<128x64xf8E4M3FN, #attn.swizzled<span = 64>, shared>
  // CHECK: %[[W:.*]] = attn.warpgroup_index
  %w = attn.warpgroup_index
  return %w : i32
}
