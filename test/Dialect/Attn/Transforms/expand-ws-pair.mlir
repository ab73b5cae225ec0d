// RUN: attn-opt %s -attn-expand=chip=sm_90a | FileCheck %s
// RUN: attn-opt %s -attn-expand=chip=sm_90a -attn-shard-cga --remarks-filter=attn.shard-cga -o %t 2>&1 | FileCheck %s --check-prefix=SHARD

// Two CTAs have 128 rows, 64 for each warpgroup: a CTA has the scores of half of a
// block's keys, sends their probabilities with the maxima, and has half of the
// columns of the results.

// CHECK: gpu.func @attn_fwd
// CHECK-SAME: known_cluster_size = array<i32: 2, 1, 1>
// CHECK: attn.alloc {name = "q0"} : <4x64x128xf16
// CHECK: attn.channel.create {name = "p0", roles = [#attn.role<"sender0" in ["rows0"], tx>, #attn.role<"reader0" in ["rows0"], arrive>]} : <1>
// CHECK: attn.alloc {name = "p0"} : <64x32xf16, #attn.swizzled<span = 32>, shared>
// CHECK: attn.alloc {name = "m0"} : <64xf32
// CHECK: attn.alloc {name = "l0"} : <64x4xf32
// CHECK: attn.alloc {name = "kv"} : <4x32x128xf16
// CHECK: attn.channel.create {name = "kv", roles = [#attn.role<"load", tx>, #attn.role<"rows" in ["rows0", "rows1"], arrive>]} : <4>
// CHECK: %[[ID:.*]] = gpu.cluster_block_id x
// CHECK: %[[CTA:.*]] = arith.index_cast %[[ID]]
// CHECK: %[[OWN:.*]] = arith.muli %[[CTA]], %{{.*}}

// CHECK: partition "rows0"
// CHECK: attn.kv_loop {{.*}}
// CHECK-COUNT-4: attn.wgmma %
// CHECK: %[[SCORES:.*]] = attn.wgmma.wait
// CHECK: %[[FIRST:.*]] = arith.addi %{{.*}}, %[[OWN]]
// CHECK: attn.apply_mask %[[SCORES]][%{{.*}}, %[[FIRST]]]
// CHECK: %[[P:.*]], %[[M:.*]], %[[L:.*]], %{{.*}} = attn.online_softmax
// CHECK: attn.channel.acquire {{.*}} as "sender0"
// CHECK-NEXT: attn.local_send %{{.*}} : tensor<64x32xf16
// CHECK-NEXT: attn.local_send %[[M]], {{.*}} : tensor<64xf32
// CHECK-NEXT: attn.channel.release {{.*}} as "sender0"
// The products of the own keys are under way while the others' probabilities come.
// CHECK-COUNT-2: attn.wgmma %
// CHECK: attn.channel.acquire {{.*}} as "reader0"
// CHECK-NEXT: attn.local_load {{.*}} -> tensor<64x32xf16
// CHECK-NEXT: %[[OTHER:.*]] = attn.local_load {{.*}} -> tensor<64xf32
// CHECK-NEXT: attn.channel.release {{.*}} as "reader0"
// CHECK: attn.wgmma.wait
// CHECK: arith.cmpf une, %[[M]], %[[OTHER]]
// CHECK: attn.rare
// CHECK: arith.maximumf %[[M]], %[[OTHER]]
// CHECK-COUNT-2: attn.wgmma %
// CHECK: attn.local_send %{{.*}} : tensor<64x4xf32
// CHECK: arith.addf
// CHECK: %[[IS:.*]] = arith.cmpi eq, %[[CTA]], %c0_i32
// CHECK: scf.if %[[IS]] {
// CHECK: attn.global_store
// CHECK: partition "rows1"

// Both have the same queries, and load half of the rows for both; keys and values
// are each CTA's own.
// SHARD-DAG: {{.*}}the CTAs of a cluster fill the slots of channel 'q0' together
// SHARD-DAG: {{.*}}the CTAs of a cluster fill the slots of channel 'q1' together
// SHARD-DAG: {{.*}}each CTA fills the slots of channel 'kv' for itself
func.func @problem(%q: memref<1x2x128x512xf16>, %k: memref<1x1x300x512xf16>, %o: memref<1x2x128x512xf16>, %lse: memref<1x2x128xf32>) {
  attn.attention ins(%q, %k, %k : memref<1x2x128x512xf16>, memref<1x1x300x512xf16>, memref<1x1x300x512xf16>)
                 outs(%o, %lse : memref<1x2x128x512xf16>, memref<1x2x128xf32>)
                 {plan = #attn.ws_pair<block_n = 64, stages = 4, softmax = threshold>}
  return
}
