// RUN: attn-opt %s --attn-print-layouts -o /dev/null | FileCheck %s
// RUN: attn-opt %s --attn-print-layouts | FileCheck %s --check-prefix=IR
// RUN: rm -rf %t && attn-opt %s -o /dev/null --attn-print-layouts="svg output-dir=%t/pictures" | FileCheck %s --check-prefix=SVG
// RUN: FileCheck %s --check-prefix=FILE < %t/pictures/0-tile-mma-16x8xf32.svg
// RUN: attn-opt /dev/null -o /dev/null --attn-print-layouts="layout=#attn.mma<warps=[4,1]> shape=64x16 element=f32" | FileCheck %s --check-prefix=ONE
// RUN: attn-opt /dev/null -o /dev/null --attn-print-layouts="layout={#attn.swizzled<span = 32>} shape=8x16 element=f16" | FileCheck %s --check-prefix=BRACES

// Each layout once, in the order of the module: the f32 tile is the f16 one
// again, another shape is another picture; #attn.auto has none.

// CHECK:       tile 16x8xf32, #attn.mma<warps = [1, 1]>
// CHECK-NEXT:  {register: [0,1] [8,0]; lane: [0,2] [0,4] [1,0] [2,0] [4,0]; {{.*}} -> dim0: 16, dim1: 8}
// CHECK-NEXT:     |      0      1
// CHECK-NEXT:  ---+
// CHECK-NEXT:   0 |  T0:r0  T0:r1  T1:r0
// CHECK:       15 | T28:r2 T28:r3
// CHECK-EMPTY:
// CHECK-NEXT:  buffer 64x64xf16, #attn.swizzled<span = 128>, the first of 2 slots
// CHECK-NEXT:  16-bit {dim0
// CHECK:        1 | 144/4
// CHECK:       tile 16xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [1, 1]>>
// CHECK:       0 | T0:r0* T4:r0*
// CHECK:       tile 16x16xf16, #attn.operand
// CHECK-NOT:   {{^}}tile
// CHECK-NOT:   {{^}}buffer

// IR:      module {
// IR-NEXT: func.func @f(%{{.*}}: tensor<16x8xf32, #attn.mma<warps = [1, 1]>>

// SVG:      tile 16x8xf32, #attn.mma<warps = [1, 1]>: {{.*}}0-tile-mma-16x8xf32.svg
// SVG-NEXT: buffer {{.*}}1-buffer-swizzled-64x64xf16.svg
// SVG-NEXT: tile {{.*}}2-tile-slice-16xf32.svg
// SVG-NEXT: tile {{.*}}3-tile-operand-16x16xf16.svg
// SVG-NOT:  {{.}}

// FILE:      <svg xmlns="http://www.w3.org/2000/svg"
// FILE:      >T0:r0<
// FILE:      >T31:r3<
// FILE-NEXT: </svg>

// ONE:      tile 64x16xf32, #attn.mma<warps = [4, 1]>
// ONE:       0 |   T0:r0
// ONE:      16 |  T32:r0
// ONE-NOT:  {{^}}tile

// BRACES:      buffer 8x16xf16, #attn.swizzled<span = 32>
// BRACES:      4 |  144/4

func.func @f(%a: tensor<16x8xf32, #attn.mma<warps = [1, 1]>>,
             %b: tensor<16x8xf16, #attn.mma<warps = [1, 1]>>,
             %c: tensor<16x8xf32, #attn.auto>, %d: tensor<16x8xf32>) {
  %ring = attn.alloc : !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared>
  %zero = arith.constant 0 : i32
  %slot = attn.slot %ring[%zero] : !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
  %rows = arith.constant dense<0.0> : tensor<16xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [1, 1]>>>
  return
}

func.func private @g(tensor<16x16xf16, #attn.operand<index = 0, parent = #attn.mma<warps = [1, 1]>>>)
