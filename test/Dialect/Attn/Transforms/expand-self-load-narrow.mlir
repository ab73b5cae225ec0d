// RUN: attn-opt %s -attn-expand=chip=sm_90a -split-input-file | FileCheck %s

// Values whose keys are not contiguous are transposed by the warpgroup that
// multiplies: a third role of its partition takes their slots and writes the
// one buffer that PV reads. In order it does so while QK runs, so that their
// slots are free where they are loaded again, all of them.

// CHECK-LABEL: func.func @under_qk
// CHECK: attn.alloc {name = "v"} : <2x64x128x
// CHECK: %[[V:.*]] = attn.channel.create {name = "v", roles = [#attn.role<"consumer.loader", tx>, #attn.role<"consumer.transposer", arrive>]} : <2>
// CHECK: %[[VT:.*]] = attn.alloc {name = "vt"} : <128x64x
// CHECK: partition "consumer" warps 4 tiles [4, 1] registers 256
// CHECK-DAG: attn.cursor.start %[[V]] as "consumer.loader"
// CHECK-DAG: attn.cursor.start %[[V]] as "consumer.transposer"

// Both slots of V are loaded in front of the first block.
// CHECK: attn.tile_loop
// CHECK: scf.for
// CHECK: %[[LOADS:.*]] = arith.minsi %{{.*}}, %c2_i32
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[LOADS]]
// CHECK: attn.channel.acquire %[[V]][%{{.*}}] as "consumer.loader"

// CHECK: attn.kv_loop
// CHECK: attn.wgmma
// CHECK: %[[INDEX:.*]], %[[TOKEN:.*]] = attn.channel.acquire %[[V]][%{{.*}}] as "consumer.transposer"
// CHECK: %[[SLOT:.*]] = attn.slot %{{.*}}[%[[INDEX]]]
// CHECK: attn.local_transpose %[[SLOT]], %[[VT]]
// CHECK: attn.channel.release %[[V]], %[[TOKEN]] as "consumer.transposer"
// CHECK: attn.wgmma.wait
// CHECK: %[[P:.*]], %{{.*}}, %{{.*}}, %{{.*}} = attn.online_softmax
// CHECK: arith.constant 128 : i32
// CHECK: attn.channel.acquire %[[V]][%{{.*}}] as "consumer.loader"
// CHECK: %[[A:.*]] = attn.narrow_operand %[[P]] :
// CHECK: %[[B:.*]] = attn.transpose %[[VT]]
// CHECK: attn.wgmma %[[A]], %[[B]]
!q = memref<1x8x256x128xf8E4M3FN>
func.func @under_qk(%q: !q, %o: memref<1x8x256x128xf16>) {
  attn.attention ins(%q, %q, %q : !q, !q, !q) outs(%o : memref<1x8x256x128xf16>)
                 {plan = #attn.self_load<>}
  return
}

// -----

// With QK ahead PV of the block before reads the buffer under QK: values are
// transposed behind the softmax, and their slots loaded again in the next block.

// CHECK-LABEL: func.func @behind_softmax
// CHECK: %[[V:.*]] = attn.channel.create {name = "v",
// CHECK: attn.tile_loop
// CHECK: scf.for
// CHECK: %[[LOADS:.*]] = arith.minsi %{{.*}}, %c1_i32
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[LOADS]]
// CHECK: attn.channel.acquire %[[V]][%{{.*}}] as "consumer.loader"
// CHECK: attn.kv_loop {{.*}} qk_ahead
// CHECK: attn.wgmma
// CHECK-NOT: attn.local_transpose
// CHECK: attn.online_softmax
// CHECK: attn.channel.acquire %[[V]][%{{.*}}] as "consumer.loader"
// CHECK: attn.channel.acquire %[[V]][%{{.*}}] as "consumer.transposer"
// CHECK: attn.local_transpose
// CHECK: attn.wgmma
!q = memref<1x8x256x128xf8E4M3FN>
func.func @behind_softmax(%q: !q, %o: memref<1x8x256x128xf16>) {
  attn.attention ins(%q, %q, %q : !q, !q, !q) outs(%o : memref<1x8x256x128xf16>)
                 {plan = #attn.self_load<qk_ahead = true>}
  return
}

// -----

// Values whose keys are contiguous: nothing is transposed, rows of K come in
// fours. Each tile reads what its units stand for: those of Q and K before its
// blocks, those of V where its results are stored, which is in the next tile.

// CHECK-LABEL: func.func @quads
// CHECK: gpu.func @attn_fwd
// CHECK-SAME: rank = 5 : i64, swizzle = "128B", tensor = "k", view = "quads"}
// CHECK-SAME: tensor = "v", view = "transposed"}
// CHECK: attn.alloc {name = "k"} : <2x64x128x
// CHECK: attn.alloc {name = "v"} : <2x128x64x
// CHECK: attn.channel.create {name = "v", roles = [#attn.role<"consumer.loader", tx>, #attn.role<"consumer", arrive>]} : <2>
// CHECK-NOT: attn.alloc
// CHECK: attn.tile_loop
// CHECK: %[[QUAD:.*]] = arith.divui %{{.*}}, %c4_i32
// CHECK: attn.tma.load %{{.*}}[%{{.*}}, %{{.*}}, %[[QUAD]], %{{.*}}, %{{.*}}], {{.*}} {stacked = 2 : i64}
// CHECK: scf.if
// CHECK: %[[UNIT:.*]] = llvm.load
// CHECK: attn.store_result
// CHECK: %[[UNITQ:.*]] = llvm.load
// CHECK: %[[UNITK:.*]] = llvm.load
// CHECK: arith.mulf %[[UNITQ]], %[[UNITK]]
// CHECK: attn.kv_loop
// CHECK-NOT: attn.local_transpose
// CHECK: attn.apply_mask {{.*}} {quads}
// CHECK: attn.narrow_operand %{{.*}} {order = #attn<key_order quads>}
!q = memref<1x8x256x128xf8E5M2>
!v = memref<1x8x256x128xf8E5M2, strided<[262144, 32768, 1, 256]>>
!s = memref<1x8xf32>
func.func @quads(%q: !q, %v: !v, %o: memref<1x8x256x128xf16>, %s: !s) {
  attn.attention ins(%q, %q, %v : !q, !q, !v) outs(%o : memref<1x8x256x128xf16>)
                 descales(%s, %s, %s : !s, !s, !s)
                 {mask = #attn.mask<kind = causal>, plan = #attn.self_load<key_quads = true>}
  return
}
