// RUN: attn-opt %s -attn-expand=chip=sm_90a | FileCheck %s

// Two CTAs have one tile: the rank says which half of the columns of Q, K, V and
// of the results is a CTA's. Each sends its part of the scores to the other one
// and adds what it gets, before the softmax; the first one stores LSE.

// CHECK: gpu.func @attn_fwd
// CHECK-SAME: known_cluster_size = array<i32: 2, 1, 1>
// CHECK: attn.alloc {name = "q"} : <5x64x64xf16
// CHECK: %[[S:.*]] = attn.channel.create {name = "s", roles = [#attn.role<"sender" in ["softmax"], tx>, #attn.role<"adder" in ["softmax"], arrive>]} : <1>
// CHECK: %[[SENT:.*]] = attn.alloc {name = "s"} : <64x32xf32
// CHECK: %[[ID:.*]] = gpu.cluster_block_id x
// CHECK: %[[RANK:.*]] = arith.index_cast %[[ID]]

// CHECK: partition "softmax"
// CHECK: attn.kv_loop
// CHECK-COUNT-5: attn.wgmma %
// CHECK: %[[PART:.*]] = attn.wgmma.wait
// CHECK: attn.channel.acquire %[[S]]{{.*}} as "sender"
// CHECK-NEXT: attn.local_send %[[PART]], %[[SENT]] token
// CHECK-NEXT: attn.channel.release %[[S]]{{.*}} as "sender"
// CHECK-NEXT: attn.channel.acquire %[[S]]{{.*}} as "adder"
// CHECK-NEXT: %[[OTHER:.*]] = attn.local_load %[[SENT]]
// CHECK: %[[SUM:.*]] = arith.addf %[[PART]], %[[OTHER]]
// CHECK: %[[MASKED:.*]] = attn.apply_mask %[[SUM]]
// CHECK: attn.online_softmax %[[MASKED]]
// The slot is handed back when all of it was used.
// CHECK: attn.local_store
// CHECK: attn.channel.release %[[S]]{{.*}} as "adder"
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[RANK]], %c0_i32
// CHECK: scf.if %[[FIRST]] {
// CHECK: attn.global_store
// CHECK: }

// CHECK: partition "load_k"
// CHECK: %[[SPAN:.*]] = arith.constant 320 : i32
// CHECK: %[[HALF:.*]] = arith.muli %[[RANK]], %[[SPAN]]
// CHECK: %[[COLUMN:.*]] = arith.addi %{{.*}}, %[[HALF]]
// CHECK: attn.tma.load {{.*}}, %[[COLUMN]]]
func.func @problem(%q: memref<1x2x128x640xf16>, %k: memref<1x1x300x640xf16>, %o: memref<1x2x128x640xf16>, %lse: memref<1x2x128xf32>) {
  attn.attention ins(%q, %k, %k : memref<1x2x128x640xf16>, memref<1x1x300x640xf16>, memref<1x1x300x640xf16>)
                 outs(%o, %lse : memref<1x2x128x640xf16>, memref<1x2x128xf32>)
                 {plan = #attn.ws_columns<block_n = 32, softmax_columns = 192, k_stages = 2, cluster = 2, depth_ctas = 2, softmax = threshold>}
  return
}
