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
