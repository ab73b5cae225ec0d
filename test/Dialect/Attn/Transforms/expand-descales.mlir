// RUN: attn-opt %s -attn-expand=chip=sm_90a -attn-expand-arithmetic | FileCheck %s

// Of heads in groups of four Q has a descale each, K and V have one that the group
// shares.
// CHECK: gpu.func @attn_fwd({{.*}} %[[Q_DESCALE:.*]]: !llvm.ptr<1>, %[[K_DESCALE:.*]]: !llvm.ptr<1>, %[[V_DESCALE:.*]]: !llvm.ptr<1>, %{{[^ ]*}}: !attn.tensor_map
// CHECK: partition "consumer"
// CHECK: %[[BATCH:.*]] = arith.divui %{{.*}}, %c8
// CHECK: %[[HEAD:.*]] = arith.subi
// CHECK: %[[GROUP:.*]] = arith.divui %[[HEAD]], %c4_i32 : i32
// CHECK: arith.extui %[[BATCH]]
// CHECK: %[[Q_OF_BATCH:.*]] = llvm.getelementptr %[[Q_DESCALE]]
// CHECK: arith.extui %[[HEAD]]
// CHECK: %[[Q_UNIT:.*]] = llvm.getelementptr %[[Q_OF_BATCH]]
// CHECK: llvm.load %[[Q_UNIT]]
// CHECK: %[[K_OF_BATCH:.*]] = llvm.getelementptr %[[K_DESCALE]]
// CHECK: arith.extui %[[GROUP]]
// CHECK: %[[K_UNIT:.*]] = llvm.getelementptr %[[K_OF_BATCH]]
// CHECK: llvm.load %[[K_UNIT]]
// CHECK: %[[V_OF_BATCH:.*]] = llvm.getelementptr %[[V_DESCALE]]
// CHECK: %[[V_UNIT:.*]] = llvm.getelementptr %[[V_OF_BATCH]]
// CHECK: llvm.load %[[V_UNIT]]
!q = memref<3x8x256x128xf8E5M2>
!k = memref<3x2x256x128xf8E5M2>
func.func @grouped(%q: !q, %k: !k, %o: memref<3x8x256x128xf16>, %s: memref<3x8xf32>, %t: memref<3x2xf32>) {
  attn.attention ins(%q, %k, %k : !q, !k, !k) outs(%o : memref<3x8x256x128xf16>)
                 descales(%s, %t, %t : memref<3x8xf32>, memref<3x2xf32>, memref<3x2xf32>)
                 {plan = #attn.ws_wgmma<block_m = 64>}
  return
}
