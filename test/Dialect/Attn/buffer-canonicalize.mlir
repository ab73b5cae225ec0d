// RUN: attn-opt %s -canonicalize | FileCheck %s

// Views of views, and views that change nothing.

!b = !attn.buffer<64x128xf16, #attn.swizzled<span = 128>, shared>
!t = !attn.buffer<128x64xf16, #attn.transposed<#attn.swizzled<span = 128>>, shared>
!half = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!quarter = !attn.buffer<32x64xf16, #attn.swizzled<span = 128>, shared>
!auto = !attn.buffer<64x64xf16, #attn.auto, shared>

// CHECK-LABEL: func.func @transposed_twice(
// CHECK-SAME: %[[B:.*]]: !attn.buffer
// CHECK-NEXT: return %[[B]]
func.func @transposed_twice(%b: !b) -> !b {
  %t = attn.transpose %b : !b -> !t
  %r = attn.transpose %t : !t -> !b
  return %r : !b
}

// CHECK-LABEL: func.func @own_type(
// CHECK-SAME: %[[B:.*]]: !attn.buffer
// CHECK-NEXT: return %[[B]]
func.func @own_type(%b: !b) -> !b {
  %r = attn.reinterpret %b : !b -> !b
  return %r : !b
}

// A view of the buffer's own type that says which block it holds stays.
// CHECK-LABEL: func.func @own_block(
// CHECK: attn.reinterpret {{.*}} {cga = #attn.cga<{{\[\[}}0, 1]]>}
func.func @own_block(%b: !b) -> !b {
  %r = attn.reinterpret %b {cga = #attn.cga<[[0, 1]]>} : !b -> !b
  return %r : !b
}

// Neither is it lost behind another view.
// CHECK-LABEL: func.func @view_of_own_block(
// CHECK: attn.reinterpret {{.*}} {cga = #attn.cga<{{\[\[}}0, 1]]>}
// CHECK: attn.reinterpret
func.func @view_of_own_block(%b: !b) -> !half {
  %own = attn.reinterpret %b {cga = #attn.cga<[[0, 1]]>} : !b -> !b
  %r = attn.reinterpret %own : !b -> !half
  return %r : !half
}

// CHECK-LABEL: func.func @view_of_view(
// CHECK-SAME: %[[B:.*]]: !attn.buffer
// CHECK-NEXT: %[[R:.*]] = attn.reinterpret %[[B]] : <64x128xf16, #attn.swizzled<span = 128>, shared> -> <32x64xf16, #attn.swizzled<span = 128>, shared>
// CHECK-NEXT: return %[[R]]
func.func @view_of_view(%b: !b) -> !quarter {
  %half = attn.reinterpret %b : !b -> !half
  %r = attn.reinterpret %half : !half -> !quarter
  return %r : !quarter
}

// No one has compared the first buffer with the last one: a smaller one of a
// layout to be chosen stands between.
// CHECK-LABEL: func.func @layout_between(
// CHECK-COUNT-2: attn.reinterpret
func.func @layout_between(%b: !half) -> !b {
  %auto = attn.reinterpret %b : !half -> !auto
  %r = attn.reinterpret %auto : !auto -> !b
  return %r : !b
}
