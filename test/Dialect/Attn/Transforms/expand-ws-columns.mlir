// RUN: attn-opt %s -attn-expand=chip=sm_90a | FileCheck %s

// Slices of the rows of Q, K and V are slots; a channel of q hands over all of a
// tile. V has a ring for each warpgroup, and each ring a warp that fills it.

// CHECK: gpu.func @attn_fwd
// CHECK: attn.alloc {name = "q"} : <2x64x64xf16
// CHECK: %[[Q:.*]] = attn.channel.create {name = "q", roles = [#attn.role<"load_k", tx>, #attn.role<"softmax", arrive>]} : <1>
// CHECK: attn.alloc {name = "k"} : <2x32x64xf16
// CHECK: %[[K:.*]] = attn.channel.create {name = "k", roles = [#attn.role<"load_k", tx>, #attn.role<"softmax", arrive>]} : <2>
// CHECK: %[[V:.*]] = attn.channel.create {name = "v", roles = [#attn.role<"load_v", tx>, #attn.role<"softmax", arrive>]} : <2>
// CHECK: %[[W:.*]] = attn.channel.create {name = "w", roles = [#attn.role<"load_w", tx>, #attn.role<"columns", arrive>]} : <2>
// CHECK: %[[P:.*]] = attn.channel.create {name = "p", roles = [#attn.role<"softmax", arrive>, #attn.role<"columns", arrive>]} : <1>
// CHECK: %[[PROBABILITIES:.*]] = attn.alloc {name = "p"} : <64x32xf16
// CHECK: %[[FACTOR:.*]] = attn.alloc {name = "factor"} : <64xf32
// CHECK: %[[SCALE:.*]] = attn.channel.create {name = "scale", roles = [#attn.role<"softmax", arrive>, #attn.role<"columns", arrive>]} : <1>
// CHECK: %[[SCALES:.*]] = attn.alloc {name = "scale"} : <64xf32

// The depth goes through the slices with one accumulator: a slot is handed back
// behind the start of the next product.
// CHECK: attn.warp_specialize
// CHECK-NEXT: partition "softmax" warps 4 tiles [4, 1] registers 232
// CHECK: attn.channel.acquire %[[Q]]
// CHECK: attn.kv_loop
// CHECK: %{{.*}}, %[[FIRST:.*]] = attn.channel.acquire %[[K]]
// CHECK: %[[PART:.*]] = attn.wgmma
// CHECK: %{{.*}}, %[[SECOND:.*]] = attn.channel.acquire %[[K]]
// CHECK: %[[PRODUCT:.*]] = attn.wgmma %{{.*}} acc %[[PART]]
// CHECK-NEXT: attn.wgmma.wait {pending = 1 : i64}
// CHECK-NEXT: attn.channel.release %[[K]], %[[FIRST]]
// CHECK: attn.wgmma.wait %[[PRODUCT]] {pending = 0 : i64}
// CHECK-NEXT: attn.channel.release %[[K]], %[[SECOND]]

// The probabilities go to the other warpgroup before this one multiplies.
// CHECK: attn.online_softmax
// CHECK: attn.channel.acquire %[[P]]
// CHECK-NEXT: attn.local_store %{{.*}}, %[[PROBABILITIES]]
// CHECK-NEXT: attn.local_store %{{.*}}, %[[FACTOR]]
// CHECK-NEXT: attn.channel.release %[[P]]
// CHECK: attn.rare any
// CHECK: attn.channel.acquire %[[V]]
// CHECK: attn.wgmma
// CHECK: attn.channel.release %[[V]]
// CHECK: attn.yield
// CHECK: attn.channel.release %[[Q]]
// CHECK: attn.channel.acquire %[[SCALE]]
// CHECK-NEXT: attn.local_store %{{.*}}, %[[SCALES]]
// CHECK-NEXT: attn.channel.release %[[SCALE]]
// CHECK: attn.global_view {{.*}} : <?x64xf16>
// CHECK: attn.store_result {{.*}} : tensor<64x64xf16

// The slot of the probabilities is handed back before its product starts.
// CHECK: partition "columns" warps 4 tiles [4, 1] registers 232
// CHECK: scf.for
// CHECK: attn.channel.acquire %[[P]]
// CHECK-NEXT: attn.local_load %[[FACTOR]]
// CHECK-NEXT: attn.local_load %[[PROBABILITIES]]
// CHECK-NEXT: attn.channel.release %[[P]]
// CHECK: attn.rare any
// CHECK: attn.channel.acquire %[[W]]
// CHECK: attn.wgmma
// CHECK: attn.local_load %[[SCALES]]
// CHECK: attn.store_result {{.*}} : tensor<64x64xf16

// CHECK: partition "load_k" warps 1 registers 40
// CHECK: attn.channel.acquire %[[Q]]
// CHECK: attn.tma.load {{.*}} : <1x1x64x64xf16, swizzle = 128>, <64x64xf16
// CHECK: attn.tma.load {{.*}}, %c64_i32{{.*}} : <1x1x64x64xf16, swizzle = 128>, <64x64xf16
// CHECK: attn.channel.release %[[Q]]
// CHECK: partition "load_v" warps 1 registers 40
// CHECK: attn.channel.acquire %[[V]]
// CHECK: partition "load_w" warps 2 registers 40
// CHECK: attn.channel.acquire %[[W]]
// CHECK: attn.tma.load {{.*}}, %c64_i32{{.*}} : <1x1x32x64xf16
func.func @problem(%q: memref<1x2x128x128xf16>, %k: memref<1x1x300x128xf16>, %o: memref<1x2x128x128xf16>) {
  attn.attention ins(%q, %k, %k : memref<1x2x128x128xf16>, memref<1x1x300x128xf16>, memref<1x1x300x128xf16>)
                 outs(%o : memref<1x2x128x128xf16>)
                 {plan = #attn.ws_columns<block_n = 32, softmax_columns = 64, k_stages = 2, softmax = threshold>}
  return
}
