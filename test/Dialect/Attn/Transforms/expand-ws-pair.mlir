// RUN: attn-opt %s -attn-expand=chip=sm_90a | FileCheck %s
// RUN: attn-opt %s -attn-expand=chip=sm_90a -attn-shard-cga --remarks-filter=attn.shard-cga -o %t 2>&1 | FileCheck %s --check-prefix=SHARD

// Two CTAs have 128 rows, 64 for each warpgroup, which run one program: a CTA has the scores of half of a
// block's keys, sends their probabilities with the maxima, and has half of the
// columns of the results.

// CHECK: gpu.func @attn_fwd
// CHECK-SAME: known_cluster_size = array<i32: 2, 1, 1>
// CHECK: attn.alloc {name = "q"} : <4x128x128xf16
// Each warpgroup sends its own rows to the warpgroup that has the same ones.
// CHECK: attn.channel.create {name = "p", roles = [#attn.role<"sender" in ["rows"], tx, parts = ["upper", "lower"]>, #attn.role<"reader" in ["rows"], arrive, parts = ["upper", "lower"]>]} : <1>
// CHECK: attn.alloc {name = "p"} : <128x32xf16, #attn.swizzled<span = 32>, shared>
// CHECK: attn.alloc {name = "m"} : <128xf32
// CHECK: attn.alloc {name = "l"} : <128x4xf32
// CHECK: attn.alloc {name = "kv"} : <4x32x128xf16
// CHECK: attn.channel.create {name = "kv", roles = [#attn.role<"load", tx>, #attn.role<"rows", arrive>]} : <4>
// CHECK: %[[ID:.*]] = gpu.cluster_block_id x
// CHECK: %[[CTA:.*]] = arith.index_cast %[[ID]]
// CHECK: %[[OWN:.*]] = arith.muli %[[CTA]], %{{.*}}

// CHECK: partition "rows"
// The first block's scores stand in front of the loop, where a tile has a block.
// CHECK: scf.if
// CHECK-COUNT-4: attn.wgmma %q
// CHECK: attn.online_softmax
// CHECK: attn.local_send %{{.*}} : tensor<128x32xf16
// CHECK: attn.kv_loop
// A block's keys and values of the block before in turns, the own values first.
// CHECK: %[[S0:.*]] = attn.wgmma %q
// CHECK: %[[O0:.*]] = attn.wgmma %[[OWNP:arg[0-9]+]],
// CHECK-NEXT: attn.wgmma.wait {pending = 1
// CHECK-NEXT: attn.channel.release {{.*}} as "rows"
// CHECK: %[[S1:.*]] = attn.wgmma %q{{.*}} acc %[[S0]]
// CHECK: %[[O1:.*]] = attn.wgmma %[[OWNP]],
// CHECK: %[[S2:.*]] = attn.wgmma %q{{.*}} acc %[[S1]]
// What came from the other CTA, and the larger of both maxima.
// CHECK: attn.wgmma.wait %[[O0]], %[[O1]] {pending = 1
// CHECK-NEXT: attn.channel.acquire {{.*}} as "reader" {each_warpgroup}
// CHECK-NEXT: %[[THEIRP:.*]] = attn.local_load {{.*}} -> tensor<128x32xf16
// CHECK-NEXT: %[[THEIRM:.*]] = attn.local_load {{.*}} -> tensor<128xf32
// CHECK: %[[DIFFER:.*]] = arith.cmpf une, %{{.*}}, %[[THEIRM]]
// CHECK: %[[COMMON:.*]]:5 = attn.rare any %[[DIFFER]] default({{.*}}, %[[THEIRP]] :
// CHECK: arith.maximumf %{{.*}}, %[[THEIRM]]
// The slot is handed back behind a product that reads what came in it.
// CHECK: %[[O2:.*]] = attn.wgmma %[[COMMON]]#4,
// CHECK: attn.channel.release {{.*}} as "reader"
// CHECK: %[[S3:.*]] = attn.wgmma %q{{.*}} acc %[[S2]]
// CHECK: %[[O3:.*]] = attn.wgmma %[[COMMON]]#4,
// CHECK: %[[SCORES:.*]] = attn.wgmma.wait %[[S3]] {pending = 1
// CHECK: %[[FIRST:.*]] = arith.addi %key, %[[OWN]]
// CHECK: attn.apply_mask %[[SCORES]][%{{.*}}, %[[FIRST]]]
// CHECK: {{%p_[0-9]+}}, %[[M:[a-zA-Z0-9_]+]], %{{.*}}, %{{.*}} = attn.online_softmax
// CHECK: attn.channel.acquire {{.*}} as "sender" {each_warpgroup}
// CHECK-NEXT: attn.local_send %{{.*}} : tensor<128x32xf16
// CHECK-NEXT: attn.local_send %[[M]], {{.*}} : tensor<128xf32
// CHECK-NEXT: attn.channel.release {{.*}} as "sender"
// CHECK: attn.wgmma.wait %[[O2]], %[[O3]] {pending = 0
// The last block's values, and the sums of both CTAs.
// CHECK: scf.if
// CHECK-COUNT-4: attn.wgmma %
// CHECK: attn.local_send %{{.*}} : tensor<128x4xf32
// CHECK: arith.addf
// CHECK: %[[IS:.*]] = arith.cmpi eq, %[[CTA]], %c0_i32
// CHECK: scf.if %[[IS]] {
// CHECK: attn.global_store

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
// SHARD-DAG: {{.*}}the CTAs of a cluster fill the slots of channel 'q' together
// SHARD-DAG: {{.*}}each CTA fills the slots of channel 'kv' for itself
func.func @problem(%q: memref<1x2x128x512xf16>, %k: memref<1x1x300x512xf16>, %o: memref<1x2x128x512xf16>, %lse: memref<1x2x128xf32>) {
  attn.attention ins(%q, %k, %k : memref<1x2x128x512xf16>, memref<1x1x300x512xf16>, memref<1x1x300x512xf16>)
                 outs(%o, %lse : memref<1x2x128x512xf16>, memref<1x2x128xf32>)
                 {plan = #attn.ws_pair<block_n = 64, stages = 4, softmax = threshold>}
  return
}
