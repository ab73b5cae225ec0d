// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -mlir-print-op-generic | attn-opt | FileCheck %s
// RUN: attn-opt %s -emit-bytecode | attn-opt | FileCheck %s

// Products of a warp. The forms are those that the printer writes:
// attributes that have their default are not there.

!c = tensor<64x32xf32, #attn.auto>

// Both operands are register tiles or buffers.
// CHECK-LABEL: func.func @tiles(
// CHECK-SAME: %[[A:.*]]: tensor<64x16xf16, #attn.auto>, %[[B:.*]]: tensor<16x32xf16, #attn.auto>, %[[C:.*]]: tensor<64x32xf32, #attn.auto>
func.func @tiles(%a: tensor<64x16xf16, #attn.auto>, %b: tensor<16x32xf16, #attn.auto>, %c: !c) -> !c {
  // CHECK: %[[D:.*]] = attn.mma %[[A]], %[[B]], %[[C]] : tensor<64x16xf16, #attn.auto>, tensor<16x32xf16, #attn.auto>, tensor<64x32xf32, #attn.auto>
  %d = attn.mma %a, %b, %c : tensor<64x16xf16, #attn.auto>, tensor<16x32xf16, #attn.auto>, !c
  return %d : !c
}

// CHECK-LABEL: func.func @buffers(
// CHECK-SAME: %[[A:.*]]: !attn.buffer<64x16xf16, #attn.auto, shared>, %[[B:.*]]: !attn.buffer<16x32xf16, #attn.auto, shared>, %[[C:.*]]: tensor<64x32xf32, #attn.auto>
func.func @buffers(%a: !attn.buffer<64x16xf16, #attn.auto, shared>, %b: !attn.buffer<16x32xf16, #attn.auto, shared>, %c: !c) -> !c {
  // CHECK: %[[D:.*]] = attn.mma %[[A]], %[[B]], %[[C]] : !attn.buffer<64x16xf16, #attn.auto, shared>, !attn.buffer<16x32xf16, #attn.auto, shared>, tensor<64x32xf32, #attn.auto>
  %d = attn.mma %a, %b, %c : !attn.buffer<64x16xf16, #attn.auto, shared>, !attn.buffer<16x32xf16, #attn.auto, shared>, !c
  return %d : !c
}

// The product of a slice of b's columns goes into some columns of c.
// CHECK-LABEL: func.func @slice(
// CHECK-SAME: %[[A:.*]]: tensor<64x16xf16, #attn.auto>, %[[B:.*]]: tensor<16x16xf16, #attn.auto>, %[[C:.*]]: tensor<64x32xf32, #attn.auto>
func.func @slice(%a: tensor<64x16xf16, #attn.auto>, %b: tensor<16x16xf16, #attn.auto>, %c: !c) -> !c {
  // CHECK: %[[D:.*]] = attn.mma %[[A]], %[[B]], %[[C]] {column = 16 : i64} : tensor<64x16xf16, #attn.auto>, tensor<16x16xf16, #attn.auto>, tensor<64x32xf32, #attn.auto>
  %d = attn.mma %a, %b, %c {column = 16} : tensor<64x16xf16, #attn.auto>, tensor<16x16xf16, #attn.auto>, !c
  return %d : !c
}

// Runs of c take parts of the contraction; sums of f16 are added to c.
// CHECK-LABEL: func.func @parts(
// CHECK-SAME: %[[A:.*]]: tensor<64x32xf16, #attn.auto>, %[[B:.*]]: tensor<32x16xf16, #attn.auto>, %[[C:.*]]: tensor<64x32xf32, #attn.auto>
func.func @parts(%a: tensor<64x32xf16, #attn.auto>, %b: tensor<32x16xf16, #attn.auto>, %c: !c) -> !c {
  // CHECK: attn.mma %[[A]], %[[B]], %[[C]] {depth_parts = 2 : i64, f16_sums} : tensor<64x32xf16, #attn.auto>, tensor<32x16xf16, #attn.auto>, tensor<64x32xf32, #attn.auto>
  %d = attn.mma %a, %b, %c {depth_parts = 2, f16_sums} : tensor<64x32xf16, #attn.auto>, tensor<32x16xf16, #attn.auto>, !c
  return %d : !c
}
