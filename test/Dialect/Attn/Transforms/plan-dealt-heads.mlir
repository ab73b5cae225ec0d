// RUN: attn-opt %s -attn-plan=chip=sm_90a -split-input-file | FileCheck %s

// Where a counter deals tiles, a group of heads has a tile for each CTA: 16 tiles of 4 heads that
// share keys are 64, of two key heads nearly as many as 132 SMs.

// CHECK-LABEL: func.func @several
// CHECK: #attn.ws_wgmma<{{.*}}dynamic = true{{.*}}group_heads = 8>
func.func @several(%q: memref<4x32x2048x128xbf16>, %k: memref<1100x8x64x128xbf16>, %o: memref<4x32x2048x128xbf16>, %t: memref<4x256xi32>, %n: memref<4xi32>) {
  attn.attention ins(%q, %k, %k : memref<4x32x2048x128xbf16>, memref<1100x8x64x128xbf16>, memref<1100x8x64x128xbf16>)
                 outs(%o : memref<4x32x2048x128xbf16>) pages(%t : memref<4x256xi32>) kv_lengths(%n : memref<4xi32>)
                 {page_size = 64 : i64, mask = #attn.mask<kind = causal, align = bottom_right>}
  return
}

// -----

// CHECK-LABEL: func.func @short
// CHECK: #attn.ws_wgmma<{{.*}}dynamic = true{{.*}}group_heads = 32>
func.func @short(%q: memref<8x32x512x128xbf16>, %k: memref<1100x8x64x128xbf16>, %o: memref<8x32x512x128xbf16>, %t: memref<8x128xi32>, %n: memref<8xi32>) {
  attn.attention ins(%q, %k, %k : memref<8x32x512x128xbf16>, memref<1100x8x64x128xbf16>, memref<1100x8x64x128xbf16>)
                 outs(%o : memref<8x32x512x128xbf16>) pages(%t : memref<8x128xi32>) kv_lengths(%n : memref<8xi32>)
                 {page_size = 64 : i64, mask = #attn.mask<kind = causal, align = bottom_right>}
  return
}

// -----

// Blocks are whole pages where these have 64 keys and more: the dense kernel has blocks of 96.

// CHECK-LABEL: func.func @columns_of_64
// CHECK-NOT: block_n
// CHECK: #attn.ws_wgmma<block_m = 192, q_stages = 2
func.func @columns_of_64(%q: memref<4x32x2048x64xbf16>, %k: memref<1100x8x64x64xbf16>, %o: memref<4x32x2048x64xbf16>, %t: memref<4x256xi32>, %n: memref<4xi32>) {
  attn.attention ins(%q, %k, %k : memref<4x32x2048x64xbf16>, memref<1100x8x64x64xbf16>, memref<1100x8x64x64xbf16>)
                 outs(%o : memref<4x32x2048x64xbf16>) pages(%t : memref<4x256xi32>) kv_lengths(%n : memref<4xi32>)
                 {page_size = 64 : i64, mask = #attn.mask<kind = causal, align = bottom_right>}
  return
}
