// RUN: attn-opt %s -attn-expand=chip=sm_90a | FileCheck %s

// 8-bit keys and values beside 16-bit queries: TMA fills k and v, from where the threads of
// a partition of their own write each slot to kw or vw, as f16. Queries become f16 in place.

// CHECK-LABEL: gpu.func @attn_fwd
// CHECK-DAG: attn.alloc {name = "k"} : <2x64x128xf8E4M3FN
// CHECK-DAG: attn.alloc {name = "kw"} : <3x64x128xf16
// CHECK-DAG: attn.alloc {name = "v"} : <2x64x64xf8E4M3FN
// CHECK-DAG: attn.alloc {name = "vw"} : <2x64x64xf16
// CHECK: partition "consumer" warps 8 tiles [8, 1] registers 216
// CHECK: %[[QUERIES:.*]] = attn.reinterpret %[[SLOT:.*]] : <128x128xbf16, #attn.auto, shared> -> <128x128xf16, #attn.auto, shared>
// CHECK: attn.local_store %{{.*}}, %[[QUERIES]]
// CHECK-NOT: xf8E4M3FN
// CHECK: attn.wgmma %[[QUERIES]]
// CHECK: partition "producer" warps 4 registers 24
// CHECK-NOT: as "widener"
// CHECK: partition "widener" warps 4 tiles [4, 1] registers 56
// CHECK: attn.channel.acquire %[[K:[a-z_]*]][%{{.*}}] as "widener"
// CHECK: %[[NARROW:.*]] = attn.local_load {{.*}} -> tensor<64x128xf8E4M3FN, #attn.blocked<per_thread = [1, 16], warps = 4, order = [0, 1]>>
// CHECK-NEXT: attn.channel.acquire %[[KW:[a-z_]*]][%{{.*}}] as "widener"
// CHECK: %[[WIDE:.*]] = arith.extf %[[NARROW]]
// CHECK-NEXT: attn.local_store %[[WIDE]]
// CHECK-NEXT: attn.channel.release %[[K]]
// CHECK-NEXT: attn.channel.release %[[KW]]
!q = memref<1x8x256x128xbf16>
!k = memref<1x2x256x128xf8E4M3FN>
!v = memref<1x2x256x64xf8E4M3FN>
!o = memref<1x8x256x64xbf16>
func.func @widened(%q: !q, %k: !k, %v: !v, %o: !o) {
  attn.attention ins(%q, %k, %v : !q, !k, !v) outs(%o : !o)
                 {plan = #attn.ws_wgmma<block_n = 64, k_stages = 3>}
  return
}

// Scales of rows are loaded a block ahead. Those of keys go beside the wide keys, whose slot
// consumers give back when they have read them, and multiply scores; those of values multiply
// what is widened, as a power of two and a number from 1 to 2.

// CHECK-LABEL: gpu.func @attn_fwd
// CHECK: attn.alloc {name = "k_scales"} : <3x64x1xf32, #attn.rows, shared>
// CHECK: attn.kv_loop
// CHECK: %[[SCORES:.*]] = attn.wgmma.wait
// CHECK: %[[SCALES:.*]] = attn.local_load %{{.*}} : <64xf32, #attn.rows, shared>
// CHECK-NEXT: attn.channel.release
// CHECK-NEXT: %[[SPREAD:.*]] = attn.broadcast %[[SCALES]] {columns}
// CHECK-NEXT: arith.mulf %[[SCORES]], %[[SPREAD]]
// CHECK: partition "widener"
// CHECK-COUNT-2: attn.global_load
// CHECK: scf.for {{.*}} iter_args({{.*}}, %[[OF_KEYS:[a-z0-9]*]] = %{{[a-z0-9]*}}, %[[OF_VALUES:[a-z0-9]*]] = %{{[a-z0-9]*}})
// CHECK: attn.local_store %[[OF_KEYS]]
// CHECK: attn.channel.release
// CHECK: attn.global_load
// CHECK: arith.bitcast %[[OF_VALUES]]
// CHECK: dense<2139095040>
// CHECK: arith.andi
// CHECK: %[[SCALED:.*]] = arith.mulf {{.*}} : tensor<64x64xf16
// CHECK: %[[VALUES:.*]] = arith.mulf %[[SCALED]]
// CHECK: attn.local_store %[[VALUES]]
// CHECK: attn.global_load
!k64 = memref<1x2x256x64xf8E4M3FN>
!q64 = memref<1x8x256x64xf16>
!scales = memref<1x2x256x1xf32>
func.func @scaled(%q: !q64, %k: !k64, %v: !k64, %o: !q64, %k_scales: !scales, %v_scales: !scales) {
  attn.attention ins(%q, %k, %v : !q64, !k64, !k64) outs(%o : !q64)
                 scales(%k_scales, %v_scales : !scales, !scales)
                 {scale_group = 64, plan = #attn.ws_wgmma<block_n = 64, k_stages = 3>}
  return
}
