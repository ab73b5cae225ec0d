// RUN: attn-opt %s -attn-plan="chip=sm_80 schedule=tiled_d set=block_m=32,block_n=32,warps_m=2,warps_n=4,slice=128,stages=4,softmax=optimistic" -attn-expand=chip=sm_80 | FileCheck %s
// RUN: attn-opt %s -attn-plan="chip=sm_80 schedule=tiled_d set=spills=allow,block_m=32,block_n=32,warps_m=2,warps_n=1,slice=128,stages=4,q_streamed=true" -attn-expand=chip=sm_80 | FileCheck %s --check-prefix=STREAMED
// RUN: attn-opt %s -attn-plan="chip=sm_80 schedule=tiled_d set=block_m=32,block_n=32,warps_m=2,warps_n=4,slice=128,stages=4,s_split=depth,accumulate_s=f16,accumulate_o=f16,softmax=exact" -attn-expand=chip=sm_80 | FileCheck %s --check-prefix=DEPTH
// RUN: attn-opt %s -attn-plan="chip=sm_80 schedule=tiled_d set=block_m=32,block_n=32,warps_m=2,warps_n=4,slice=128,stages=4,accumulate_o=f16_block" -attn-expand=chip=sm_80 | FileCheck %s --check-prefix=BLOCK

// Slices of 128 of 296 columns: three of Q, K and V, the last one with columns
// that do not exist. K and V have the slots of one ring in turns.

// CHECK: gpu.func @attn_fwd
// CHECK-SAME: attn.warps = array<i64: 2, 4>
// CHECK: %[[K0:.*]] = attn.global_view {{.*}} : <?x128xf16>
// CHECK: attn.global_view {{.*}} : <?x40xf16>
// CHECK: %[[Q0:.*]] = attn.alloc {name = "q"} : <32x128xf16
// CHECK: %[[Q1:.*]] = attn.alloc {name = "q1"} : <32x128xf16
// CHECK: %[[Q2:.*]] = attn.alloc {name = "q2"} : <32x128xf16
// CHECK: %[[KV:.*]] = attn.alloc {name = "kv"} : <4x32x128xf16
// CHECK-COUNT-3: attn.cp_async
// CHECK-NEXT: attn.cp_async.commit
// CHECK: attn.kv_loop {{.*}} block 32 stages 4 {{.*}}tensor<32x384xf32, #attn.auto>

// A product of all slices, whose rows all warps of a group then know.
// CHECK: attn.stage %{{.*}}, %[[KV]]
// CHECK: attn.mma %[[Q0]],
// CHECK: attn.stage %{{.*}}, %[[KV]]
// CHECK: attn.mma %[[Q1]],
// CHECK: attn.stage %{{.*}}, %[[KV]]
// CHECK: %[[S:.*]] = attn.mma %[[Q2]],
// CHECK: attn.convert_layout %{{.*}} : tensor<32x32xf32, #attn.auto> -> tensor<32x32xf32, #attn.mma<warps = [2, 1], copies = 4>>
// CHECK: attn.online_softmax

// Slices of V are columns of the results.
// CHECK: attn.rare
// CHECK: attn.stage %{{.*}}, %[[KV]]
// CHECK: attn.mma {{.*}} {column = 0 : i64}
// CHECK: attn.stage %{{.*}}, %[[KV]]
// CHECK: attn.mma {{.*}} {column = 128 : i64}
// CHECK: attn.stage %{{.*}}, %[[KV]]
// CHECK: attn.mma {{.*}} {column = 256 : i64} : {{.*}} tensor<32x384xf32, #attn.auto>
// CHECK: attn.store_result {{.*}} : tensor<32x384xf16, #attn.auto>, <?x296xf16>

// Four partial sums of f16 beside each other, which all warps of a group add; and
// results of f16, which are rescaled by f16 factors and are f32 behind the loop.
// DEPTH: attn.kv_loop {{.*}}tensor<32x384xf16, #attn.auto>
// DEPTH-COUNT-2: attn.mma {{.*}} {depth_parts = 4 : i64}
// DEPTH: %[[PARTS:.*]] = attn.mma {{.*}} {depth_parts = 4 : i64} : {{.*}}, tensor<32x128xf16, #attn.mma<warps = [2, 4], column_runs = true>>
// DEPTH-NEXT: %[[WHOLE:.*]] = attn.convert_layout %[[PARTS]] : {{.*}} -> tensor<32x128xf16, #attn.mma<warps = [2, 1], copies = 4>>
// DEPTH-NEXT: %[[A0:.*]] = attn.slice %[[WHOLE]] {column = 0 : i64} : {{.*}} -> tensor<32x32xf16, #attn.mma<warps = [2, 1], copies = 4>>
// DEPTH-NEXT: %[[F0:.*]] = arith.extf %[[A0]]
// DEPTH-NEXT: %[[A1:.*]] = attn.slice %[[WHOLE]] {column = 32 : i64}
// DEPTH-NEXT: %[[F1:.*]] = arith.extf %[[A1]]
// DEPTH-NEXT: arith.addf %[[F0]], %[[F1]] : tensor<32x32xf32, #attn.mma<warps = [2, 1], copies = 4>>
// DEPTH: attn.slice %[[WHOLE]] {column = 96 : i64}
// DEPTH-NOT: attn.convert_layout %{{.*}} : tensor<32x32xf32
// DEPTH: attn.rare
// DEPTH: %[[SPREAD:.*]] = attn.broadcast
// DEPTH-NEXT: %[[NARROW:.*]] = arith.truncf %[[SPREAD]]
// DEPTH-NEXT: arith.mulf %{{.*}}, %[[NARROW]] : tensor<32x384xf16, #attn.auto>
// DEPTH: arith.extf %{{.*}} : tensor<32x384xf16, #attn.auto> to tensor<32x384xf32, #attn.auto>

// BLOCK: attn.kv_loop {{.*}}tensor<32x384xf32, #attn.auto>
// BLOCK: attn.mma {{.*}} {column = 0 : i64, f16_sums}
// BLOCK: attn.mma {{.*}} {column = 128 : i64, f16_sums}

// STREAMED: %[[Q:.*]] = attn.alloc {name = "q"} : <4x32x128xf16
// STREAMED: %[[KV:.*]] = attn.alloc {name = "kv"} : <4x32x128xf16
// STREAMED: attn.kv_loop
// STREAMED: attn.stage %{{.*}}, %[[KV]]
// STREAMED-NEXT: attn.stage %{{.*}}, %[[Q]]
// STREAMED: attn.mma
// STREAMED-NEXT: attn.stage %{{.*}}, %[[KV]]
// STREAMED-NEXT: attn.stage %{{.*}}, %[[Q]]
func.func @attention(%q: memref<1x2x64x296xf16>, %o: memref<1x2x64x296xf16>) {
  attn.attention ins(%q, %q, %q : memref<1x2x64x296xf16>, memref<1x2x64x296xf16>, memref<1x2x64x296xf16>)
                 outs(%o : memref<1x2x64x296xf16>)
  return
}
