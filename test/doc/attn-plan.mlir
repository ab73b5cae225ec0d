// RUN: attn-opt %s --attn-plan=chip=sm_80 | FileCheck %s

func.func @attention(%q: memref<1x8x300x128xf16>, %k: memref<1x2x300x128xf16>,
                     %v: memref<1x2x300x128xf16>, %o: memref<1x8x300x128xf16>) {
  attn.attention ins(%q, %k, %v : memref<1x8x300x128xf16>, memref<1x2x300x128xf16>, memref<1x2x300x128xf16>)
                 outs(%o : memref<1x8x300x128xf16>) {mask = #attn.mask<kind = causal>}
  return
}

// CHECK: attn.attention
// CHECK-SAME: plan = #attn.split_q<
