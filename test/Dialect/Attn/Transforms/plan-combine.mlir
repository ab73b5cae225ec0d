// RUN: attn-opt %s --attn-plan | FileCheck %s

// A combine gets the default of its schedule, and keeps a plan that it has.

// CHECK-LABEL: @default
// CHECK: plan = #attn.combine<>
func.func @default(%po: memref<4x2x8x300x64xf32>, %pl: memref<4x2x8x300xf32>, %o: memref<2x8x300x64xf16>) {
  attn.combine ins(%po, %pl : memref<4x2x8x300x64xf32>, memref<4x2x8x300xf32>)
               outs(%o : memref<2x8x300x64xf16>)
  return
}

// CHECK-LABEL: @kept
// CHECK: kernel = "merge"
// CHECK-SAME: plan = #attn.combine<warps = 2>
func.func @kept(%po: memref<4x2x8x300x64xf32>, %pl: memref<4x2x8x300xf32>, %o: memref<2x8x300x64xf16>) {
  attn.combine ins(%po, %pl : memref<4x2x8x300x64xf32>, memref<4x2x8x300xf32>)
               outs(%o : memref<2x8x300x64xf16>) {kernel = "merge", plan = #attn.combine<warps = 2>}
  return
}
