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
// The first block's scores stand in front of the loop, where a tile has a block.
// CHECK: scf.if
// CHECK-COUNT-4: attn.wgmma %q0
// CHECK: attn.online_softmax
// CHECK: attn.local_send %{{.*}} : tensor<64x32xf16
// CHECK: attn.kv_loop
// A block's keys and values of the block before in turns, the own values first.
// CHECK: %[[S0:.*]] = attn.wgmma %q0
// CHECK: %[[O0:.*]] = attn.wgmma %[[OWNP:arg[0-9]+]],
// CHECK-NEXT: attn.wgmma.wait {pending = 1
// CHECK-NEXT: attn.channel.release {{.*}} as "rows"
// CHECK: %[[S1:.*]] = attn.wgmma %q0{{.*}} acc %[[S0]]
// CHECK: %[[O1:.*]] = attn.wgmma %[[OWNP]],
// CHECK: %[[S2:.*]] = attn.wgmma %q0{{.*}} acc %[[S1]]
// What came from the other CTA, and the larger of both maxima.
// CHECK: attn.wgmma.wait %[[O0]], %[[O1]] {pending = 1
// CHECK-NEXT: attn.channel.acquire {{.*}} as "reader0"
// CHECK-NEXT: %[[THEIRP:.*]] = attn.local_load {{.*}} -> tensor<64x32xf16
// CHECK-NEXT: %[[THEIRM:.*]] = attn.local_load {{.*}} -> tensor<64xf32
// CHECK: %[[DIFFER:.*]] = arith.cmpf une, %{{.*}}, %[[THEIRM]]
// CHECK: %[[COMMON:.*]]:5 = attn.rare any %[[DIFFER]] default(%{{.*}}, %{{.*}}, %[[THEIRP]],
// CHECK: arith.maximumf %{{.*}}, %[[THEIRM]]
// The slot is handed back behind a product that reads what came in it.
// CHECK: %[[O2:.*]] = attn.wgmma %[[COMMON]]#2,
// CHECK: attn.channel.release {{.*}} as "reader0"
// CHECK: %[[S3:.*]] = attn.wgmma %q0{{.*}} acc %[[S2]]
// CHECK: %[[O3:.*]] = attn.wgmma %[[COMMON]]#2,
// CHECK: %[[SCORES:.*]] = attn.wgmma.wait %[[S3]] {pending = 1
// CHECK: %[[FIRST:.*]] = arith.addi %key, %[[OWN]]
// CHECK: attn.apply_mask %[[SCORES]][%{{.*}}, %[[FIRST]]]
// CHECK: %p, %[[M:.*]], %{{.*}}, %{{.*}} = attn.online_softmax
// CHECK: attn.channel.acquire {{.*}} as "sender0"
// CHECK-NEXT: attn.local_send %{{.*}} : tensor<64x32xf16
// CHECK-NEXT: attn.local_send %[[M]], {{.*}} : tensor<64xf32
// CHECK-NEXT: attn.channel.release {{.*}} as "sender0"
// CHECK: attn.wgmma.wait %[[O2]], %[[O3]] {pending = 0
// The last block's values, and the sums of both CTAs.
// CHECK: scf.if
// CHECK-COUNT-4: attn.wgmma %
// CHECK: attn.local_send %{{.*}} : tensor<64x4xf32
// CHECK: arith.addf
// CHECK: %[[IS:.*]] = arith.cmpi eq, %[[CTA]], %c0_i32
// CHECK: scf.if %[[IS]] {
// CHECK: attn.global_store
// CHECK: partition "rows1"

// In the same turns the slots are filled.
// CHECK: partition "load"
// CHECK: scf.for
// CHECK-COUNT-4: attn.tma.load %arg{{[0-9]+}}[{{.*}}], %kv
// CHECK: scf.for
// CHECK-COUNT-8: attn.tma.load %arg{{[0-9]+}}[{{.*}}], %kv
// CHECK: scf.for
// CHECK-COUNT-4: attn.tma.load %arg{{[0-9]+}}[{{.*}}], %kv

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
