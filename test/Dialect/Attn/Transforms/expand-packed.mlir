// RUN: attn-opt %s -attn-expand=chip=sm_90a -split-input-file | FileCheck %s

// Maps of packed sequences start as many rows in front of the tensor as it has,
// and have a dimension that says where a sequence ends: what lies behind its last
// row is outside of the map, so that TMA loads zeros there.

// CHECK-LABEL: func.func @static
// CHECK: attn.encode_tensor_map packed %{{.*}} : memref<1x2x100x64xf16> -> <1x1x128x64xf16, swizzle = 128>
// CHECK: gpu.func @attn_fwd
// CHECK-SAME: tensor = "q", view = "packed"
// CHECK-SAME: tensor = "k", view = "packed"
// CHECK-SAME: tensor = "v", view = "packed"
// CHECK: partition "producer"
// CHECK: %[[FIRST:.*]] = llvm.load
// CHECK: %[[END:.*]] = llvm.load
// CHECK: %[[QUERIES:.*]] = arith.subi %[[END]], %[[FIRST]]
// CHECK: %[[LAST:.*]] = arith.addi %{{.*}}, %[[QUERIES]]
// CHECK: %[[SHIFT:.*]] = arith.subi %c100_i32{{.*}}, %[[QUERIES]]
// CHECK: %[[ROW:.*]] = arith.addi %[[SHIFT]], %{{.*}}
// CHECK: attn.tma.load %{{.*}}[%[[LAST]], %{{.*}}, %[[ROW]], %{{.*}}]
!q = memref<1x2x100x64xf16>
func.func @static(%q: !q, %o: !q, %lengths: memref<3xi32>) {
  attn.attention ins(%q, %q, %q : !q, !q, !q) outs(%o : !q) cu_seqlens(%lengths, %lengths : memref<3xi32>, memref<3xi32>)
                 {max_seqlen_q = 70 : i64, plan = #attn.ws_wgmma<>}
  return
}

// -----

// The number of rows is a parameter where the launch decides.

// CHECK-LABEL: func.func @dynamic
// CHECK: attn.encode_tensor_map packed %{{.*}} : memref<1x2x?x64xf16>
// CHECK: gpu.func @attn_fwd
// CHECK-SAME: {dim = 2 : i64, kind = "size", tensor = "q", type = "i32"}
// CHECK-SAME: {dim = 2 : i64, kind = "size", tensor = "k", type = "i32"}
// CHECK-SAME: {dim = 2 : i64, kind = "size", tensor = "v", type = "i32"}
!q = memref<1x2x?x64xf16>
func.func @dynamic(%q: !q, %o: !q, %lengths: memref<3xi32>) {
  attn.attention ins(%q, %q, %q : !q, !q, !q) outs(%o : !q) cu_seqlens(%lengths, %lengths : memref<3xi32>, memref<3xi32>)
                 {max_seqlen_q = 70 : i64, plan = #attn.self_load<>}
  return
}
