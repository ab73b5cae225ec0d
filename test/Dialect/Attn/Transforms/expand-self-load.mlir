// RUN: attn-opt %s -attn-expand=chip=sm_90a | FileCheck %s

// One partition has both roles of each channel: an elected thread of it loads.
// The kernel bounds its registers by the CTAs that share an SM, and the grid has
// as many CTAs as the board holds.

// CHECK-LABEL: func.func @problem
// CHECK: %[[GRID:.*]] = arith.constant 396 : index
// CHECK: gpu.launch_func @problem_kernels::@attn_fwd blocks in (%[[GRID]],
// CHECK: gpu.func @attn_fwd
// CHECK-SAME: known_block_size = array<i32: 128, 1, 1>
// CHECK-SAME: nvvm.minctasm = 3 : i32
// CHECK: attn.alloc {name = "q"} : <1x64x64xf16
// CHECK: %[[Q:.*]] = attn.channel.create {name = "q", roles = [#attn.role<"consumer.loader", tx>, #attn.role<"consumer", arrive>]} : <1>
// CHECK: attn.alloc {name = "k"} : <2x96x64xf16
// CHECK: %[[K:.*]] = attn.channel.create {name = "k", roles = [#attn.role<"consumer.loader", tx>, #attn.role<"consumer", arrive>]} : <2>
// CHECK: attn.alloc {name = "v"} : <3x96x64xf16
// CHECK: %[[V:.*]] = attn.channel.create {name = "v", roles = [#attn.role<"consumer.loader", tx>, #attn.role<"consumer", arrive>]} : <3>
// CHECK: attn.warp_specialize
// CHECK-NEXT: partition "consumer" warps 4 tiles [4, 1] registers 168
// CHECK: attn.tile_loop %{{.*}} scheduler snake

// The first loads of a tile: Q, two blocks of K and two of V.
// CHECK: attn.elect
// CHECK-NEXT: attn.channel.acquire %[[Q]][%{{.*}}] as "consumer.loader"
// CHECK: attn.tma.load
// CHECK: attn.channel.release %[[Q]]
// CHECK: %[[FIRST:.*]] = arith.constant 2 : i32
// CHECK: %[[LOADS:.*]] = arith.minsi %{{.*}}, %[[FIRST]]
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[LOADS]]
// CHECK: attn.channel.acquire %[[K]][%{{.*}}] as "consumer.loader"
// CHECK: %[[OTHERS:.*]] = arith.constant 2 : i32
// CHECK: %[[LOADS:.*]] = arith.minsi %{{.*}}, %[[OTHERS]]
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[LOADS]]
// CHECK: attn.channel.acquire %[[V]][%{{.*}}] as "consumer.loader"

// Then the results of the tile before, if there was one.
// CHECK: %[[SOME:.*]] = arith.cmpi sge
// CHECK-NEXT: scf.if %[[SOME]]
// CHECK: attn.store_result

// In a block, K has been released where it is loaded again, and V is loaded
// into the slot of the block before.
// CHECK: attn.channel.acquire %[[Q]][%{{.*}}] as "consumer"
// CHECK: attn.kv_loop {{.*}} qk_ahead
// CHECK: attn.channel.acquire %[[K]][%{{.*}}] as "consumer"
// CHECK: attn.wgmma
// CHECK: attn.channel.release %[[K]], %{{.*}} as "consumer"
// CHECK: attn.online_softmax
// CHECK: %[[KEYS:.*]] = arith.constant 192 : i32
// CHECK: %[[NEXT:.*]] = arith.subi %{{.*}}, %[[KEYS]]
// CHECK: %[[EXISTS:.*]] = arith.cmpi sge, %[[NEXT]]
// CHECK: scf.if %[[EXISTS]]
// CHECK: attn.elect
// CHECK-NEXT: attn.channel.acquire %[[K]][%{{.*}}] as "consumer.loader"
// CHECK: attn.tma.load %{{.*}}[%{{.*}}, %{{.*}}, %[[NEXT]], %{{.*}}]
// CHECK: %[[KEYS:.*]] = arith.constant 192 : i32
// CHECK: arith.subi %{{.*}}, %[[KEYS]]
// CHECK: scf.if
// CHECK: attn.channel.acquire %[[V]][%{{.*}}] as "consumer.loader"
// CHECK: attn.channel.acquire %[[V]][%{{.*}}] as "consumer"
// CHECK: attn.wgmma
// CHECK: attn.channel.release %[[V]], %{{.*}} as "consumer"
// CHECK: attn.channel.release %[[Q]], %{{.*}} as "consumer"

// The last tile's results.
// CHECK: scf.if
// CHECK: attn.store_result
func.func @problem(%q: memref<1x8x256x64xf16>, %o: memref<1x8x256x64xf16>) {
  attn.attention ins(%q, %q, %q : memref<1x8x256x64xf16>, memref<1x8x256x64xf16>, memref<1x8x256x64xf16>)
                 outs(%o : memref<1x8x256x64xf16>) {mask = #attn.mask<kind = causal>, plan = #attn.self_load<block_n = 96, v_stages = 3, qk_ahead = true, ctas_per_sm = 3, order = longest_first>}
  return
}
