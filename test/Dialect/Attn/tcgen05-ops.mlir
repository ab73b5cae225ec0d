// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -mlir-print-op-generic | attn-opt | FileCheck %s
// RUN: attn-opt %s -emit-bytecode | attn-opt | FileCheck %s

!s = !attn.buffer<128x128xf32, #attn.tmem<m = 128>, tmem>
!p = !attn.buffer<128x128xbf16, #attn.tmem<m = 128>, tmem>

// CHECK-LABEL: func.func @commit(
// CHECK-SAME: %[[DONE:.*]]: !attn.mbarriers<2>, %[[I:.*]]: i32
func.func @commit(%done: !attn.mbarriers<2>, %i: i32) {
  attn.elect {
    // CHECK: attn.tcgen05.commit %[[DONE]][%[[I]]] : <2>
    attn.tcgen05.commit %done[%i] : !attn.mbarriers<2>
  }
  return
}

func.func @products(%q: !attn.buffer<128x64xbf16, #attn.auto, shared>, %k: !attn.buffer<64x128xbf16, #attn.auto, shared>, %v: !attn.buffer<128x128xbf16, #attn.auto, shared>, %s: !s, %p: !p, %more: i1) {
  attn.elect {
    attn.tcgen05.mma %q, %k, %s accumulate %more : !attn.buffer<128x64xbf16, #attn.auto, shared>, !attn.buffer<64x128xbf16, #attn.auto, shared>, !s
    attn.tcgen05.mma %p, %v, %s accumulate %more {depth = 64} : !p, !attn.buffer<128x128xbf16, #attn.auto, shared>, !s
  }
  attn.tcgen05.fence before
  attn.tcgen05.fence after
  return
}

// CHECK-LABEL: @products
// CHECK: attn.elect {
// CHECK: attn.tcgen05.mma %{{[^ ,:]+}}, %{{[^ ,:]+}}, %{{[^ ,:]+}} accumulate %{{[^ ,:]+}} : <128x64xbf16, #attn.auto, shared>, <64x128xbf16, #attn.auto, shared>, <128x128xf32, #attn.tmem<m = 128>, tmem>
// CHECK: attn.tcgen05.mma %{{[^ ,:]+}}, %{{[^ ,:]+}}, %{{[^ ,:]+}} accumulate %{{[^ ,:]+}} {depth = 64 : i64} : <128x128xbf16, #attn.tmem<m = 128>, tmem>, <128x128xbf16, #attn.auto, shared>, <128x128xf32, #attn.tmem<m = 128>, tmem>
// CHECK: attn.tcgen05.fence before
// CHECK: attn.tcgen05.fence after

// CHECK-LABEL: @pair
// CHECK: attn.tcgen05.mma %{{[^ ,:]+}}, %{{[^ ,:]+}}, %{{[^ ,:]+}} accumulate %{{[^ ,:]+}} {pair} : <128x64xbf16, #attn.auto, shared>, <64x64xbf16, #attn.auto, shared>, <128x128xf32, #attn.tmem<m = 128>, tmem>
// CHECK: attn.tcgen05.commit %{{[^ ,:]+}}[%{{[^ ,:]+}}] {ctas = 2 : i64, pair} : <2>
func.func @pair(%q: !attn.buffer<128x64xbf16, #attn.auto, shared>, %k: !attn.buffer<64x64xbf16, #attn.auto, shared>, %s: !s, %more: i1, %done: !attn.mbarriers<2>, %i: i32) {
  attn.elect {
    attn.cluster_leader {
      attn.tcgen05.mma %q, %k, %s accumulate %more {pair} : !attn.buffer<128x64xbf16, #attn.auto, shared>, !attn.buffer<64x64xbf16, #attn.auto, shared>, !s
      attn.tcgen05.commit %done[%i] {ctas = 2, pair} : !attn.mbarriers<2>
    }
  }
  return
}
