// RUN: attn-opt %s --attn-plan -verify-diagnostics
// RUN: attn-opt %s --attn-expand -verify-diagnostics
// RUN: not attn-compile %s --emit=barrier 2>&1 | FileCheck %s

// What no schedule computes does not pass for compiled.

// CHECK: error: 'attn.combine' op cannot be computed: expected problems that a schedule knows, and none knows this one yet
func.func @combine(%po: memref<4x2x8x300x64xf32>, %pl: memref<4x2x8x300xf32>, %o: memref<2x8x300x64xf16>) {
  // expected-error @below {{cannot be computed: expected problems that a schedule knows, and none knows this one yet}}
  attn.combine ins(%po, %pl : memref<4x2x8x300x64xf32>, memref<4x2x8x300xf32>)
               outs(%o : memref<2x8x300x64xf16>)
  return
}
