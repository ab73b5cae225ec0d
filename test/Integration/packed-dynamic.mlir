// Packed sequences whose number of rows only the launch decides.

// RUN: attn-compile %s --chip=sm_90a --schedule=ws_wgmma --size=q.dim2=200 --size=k.dim2=190 --verify -o %t.ptx | FileCheck %s
// RUN: attn-compile %s --chip=sm_90a --schedule=self_load --size=q.dim2=90 --size=k.dim2=300 --verify -o %t.ptx | FileCheck %s
// CHECK: findings: none
// CHECK: {{^}}passed{{$}}

!q = memref<1x4x?x40xbf16>
!k = memref<1x2x?x40xbf16>
func.func @packed(%q: !q, %k: !k, %v: !k, %o: !q, %lse: memref<1x4x?xf32>, %queries: memref<5xi32>, %keys: memref<5xi32>) {
  attn.attention ins(%q, %k, %v : !q, !k, !k) outs(%o, %lse : !q, memref<1x4x?xf32>)
                 cu_seqlens(%queries, %keys : memref<5xi32>, memref<5xi32>)
                 {max_seqlen_q = 80 : i64, mask = #attn.mask<kind = causal, align = bottom_right>}
  return
}
