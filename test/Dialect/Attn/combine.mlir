// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -mlir-print-op-generic | attn-opt | FileCheck %s

// CHECK-LABEL: @memrefs
// CHECK: attn.combine ins(%{{.*}}, %{{.*}} : memref<4x2x8x300x64xf32>, memref<4x2x8x300xf32>)
// CHECK-SAME: outs(%{{.*}}, %{{.*}} : memref<2x8x300x64xf16>, memref<2x8x300xf32>)
func.func @memrefs(%po: memref<4x2x8x300x64xf32>, %pl: memref<4x2x8x300xf32>,
                   %o: memref<2x8x300x64xf16>, %lse: memref<2x8x300xf32>) {
  attn.combine ins(%po, %pl : memref<4x2x8x300x64xf32>, memref<4x2x8x300xf32>)
               outs(%o, %lse : memref<2x8x300x64xf16>, memref<2x8x300xf32>)
  return
}

// CHECK-LABEL: @tensors
// CHECK: %{{.*}} = attn.combine ins(%{{.*}}, %{{.*}} : tensor<?x2x8x?x64xf32>, tensor<?x2x8x?xf32>)
// CHECK-SAME: outs(%{{.*}} : tensor<2x8x?x64xf16>) -> tensor<2x8x?x64xf16>
func.func @tensors(%po: tensor<?x2x8x?x64xf32>, %pl: tensor<?x2x8x?xf32>,
                   %o: tensor<2x8x?x64xf16>) -> tensor<2x8x?x64xf16> {
  %r = attn.combine ins(%po, %pl : tensor<?x2x8x?x64xf32>, tensor<?x2x8x?xf32>)
                    outs(%o : tensor<2x8x?x64xf16>) -> tensor<2x8x?x64xf16>
  return %r : tensor<2x8x?x64xf16>
}
