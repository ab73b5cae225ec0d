// RUN: attn-opt %s -attn-expand=chip=sm_90a -split-input-file | FileCheck %s

// 8-bit V whose keys are contiguous needs no transposer: TMA loads slots of Dv x
// keys from a transposed view, and all partitions have what 16-bit operands
// give them. Rows of K come in fours, two of each in a half of the slot.

// CHECK-LABEL: func.func @quads
// CHECK: %[[ROWS:.*]] = memref.expand_shape %{{.*}} {{\[}}[0], [1], [2, 3], [4]] output_shape [1, 8, 64, 4, 128]
// CHECK: attn.encode_tensor_map %[[ROWS]] : {{.*}} -> <1x1x32x2x128xf8E4M3FN, swizzle = 128>
// CHECK: %[[VT:.*]] = memref.transpose %{{.*}} (d0, d1, d2, d3) -> (d0, d1, d3, d2)
// CHECK: attn.encode_tensor_map %[[VT]] : {{.*}} -> <1x1x64x128xf8E4M3FN, swizzle = 128>
// CHECK: gpu.func @attn_fwd
// CHECK-SAME: {box = array<i64: 128, 2, 32, 1, 1>, element = "f8E4M3FN", kind = "tensor_map", rank = 5 : i64, swizzle = "128B", tensor = "k", view = "quads"}
// CHECK-SAME: {box = array<i64: 128, 64, 1, 1>, element = "f8E4M3FN", kind = "tensor_map", rank = 4 : i64, swizzle = "128B", tensor = "v", view = "transposed"}
// CHECK: attn.alloc {name = "k"} : <2x128x128x
// CHECK: attn.alloc {name = "v"} : <2x64x128x
// CHECK-NOT: attn.alloc
// CHECK: partition "consumer" warps 8 tiles [8, 1] registers 240
// CHECK: attn.apply_mask {{.*}} {quads}
// CHECK: %[[P:.*]], %{{.*}}, %{{.*}}, %{{.*}} = attn.online_softmax
// CHECK: attn.narrow_operand %[[P]] {order = #attn<key_order quads>}
// CHECK: partition "producer" warps 4 registers 24
// CHECK: %[[QUAD:.*]] = arith.divui %[[KEY:.*]], %c4_i32
// CHECK: attn.tma.load %{{.*}}[%[[B:.*]], %[[H:.*]], %[[QUAD]], %[[ZERO:.*]], %[[ZERO]]], {{.*}} {stacked = 2 : i64}
// CHECK: attn.tma.load %{{.*}}[%[[B]], %[[H]], %{{.*}}, %[[KEY]]]
// CHECK-NOT: attn.local_transpose
!q = memref<1x8x256x128xf8E4M3FN>
!v = memref<1x8x256x64xf8E4M3FN, strided<[131072, 16384, 1, 256]>>
func.func @quads(%q: !q, %v: !v, %o: memref<1x8x256x64xf16>) {
  attn.attention ins(%q, %q, %v : !q, !q, !v) outs(%o : memref<1x8x256x64xf16>)
                 {mask = #attn.mask<kind = causal>, plan = #attn.ws_wgmma<key_quads = true>}
  return
}

// -----

// Without key_quads rows of K keep their order, and probabilities move between
// threads.

// CHECK-LABEL: func.func @plain
// CHECK-NOT: memref.expand_shape
// CHECK: gpu.func @attn_fwd
// CHECK-NOT: quads
// CHECK: attn.narrow_operand %{{.*}} {order = #attn<key_order plain>}
// CHECK-NOT: stacked
!q = memref<1x8x256x128xf8E4M3FN>
!v = memref<1x8x256x64xf8E4M3FN, strided<[131072, 16384, 1, 256]>>
func.func @plain(%q: !q, %v: !v, %o: memref<1x8x256x64xf16>) {
  attn.attention ins(%q, %q, %v : !q, !q, !v) outs(%o : memref<1x8x256x64xf16>)
                 {plan = #attn.ws_wgmma<>}
  return
}

// -----

// 16-bit operands have two bytes a key, and no order of keys to care about.

// CHECK-LABEL: func.func @wide
// CHECK: %[[VT:.*]] = memref.transpose %{{.*}} (d0, d1, d2, d3) -> (d0, d1, d3, d2)
// CHECK: attn.encode_tensor_map %[[VT]] : {{.*}} -> <1x1x64x64xf16, swizzle = 128>
// CHECK: gpu.func @attn_fwd
// CHECK-NOT: quads
// CHECK: attn.alloc {name = "v"} : <2x64x128x
// CHECK: partition "consumer"
// CHECK: %[[P:.*]] = arith.truncf %{{.*}} : tensor<128x128xf32
// CHECK: %[[SLOT:.*]] = attn.slot %{{.*}} -> <64x128xf16
// CHECK: %[[B:.*]] = attn.transpose %[[SLOT]] : <64x128xf16, #attn.auto, shared> -> <128x64xf16
// CHECK: attn.wgmma %[[P]], %[[B]] acc
// CHECK: partition "producer"
// CHECK: attn.slot %k
// CHECK: attn.tma.load %{{.*}}[%[[BATCH:.*]], %[[H:.*]], %[[KEY:.*]], %c0_i32{{[_0-9]*}}]
// CHECK: attn.slot %v
// CHECK: attn.tma.load %{{.*}}[%[[BATCH]], %[[H]], %c0_i32{{[_0-9]*}}, %[[KEY]]]
!q = memref<1x8x256x128xf16>
!v = memref<1x8x256x64xf16, strided<[131072, 16384, 1, 256]>>
func.func @wide(%q: !q, %v: !v, %o: memref<1x8x256x64xf16>) {
  attn.attention ins(%q, %q, %v : !q, !q, !v) outs(%o : memref<1x8x256x64xf16>)
                 {plan = #attn.ws_wgmma<>}
  return
}
