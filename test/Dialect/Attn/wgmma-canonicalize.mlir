// RUN: attn-opt %s -canonicalize | FileCheck %s

// CHECK-LABEL: func.func @extended_by_nothing(
// CHECK-SAME: %[[P:.*]]: tensor
// CHECK-NEXT: %[[WIDE:.*]] = attn.extend_columns %[[P]]
// CHECK-NEXT: return %[[P]], %[[WIDE]]
func.func @extended_by_nothing(%p: tensor<64x16xf16, #attn.auto>) -> (tensor<64x16xf16, #attn.auto>, tensor<64x32xf16, #attn.auto>) {
  %same = attn.extend_columns %p : tensor<64x16xf16, #attn.auto> -> tensor<64x16xf16, #attn.auto>
  %wide = attn.extend_columns %p : tensor<64x16xf16, #attn.auto> -> tensor<64x32xf16, #attn.auto>
  return %same, %wide : tensor<64x16xf16, #attn.auto>, tensor<64x32xf16, #attn.auto>
}
