// RUN: attn-opt %s --attn-plan="chip=sm_90a" --split-input-file --verify-diagnostics | FileCheck %s

// A row's partial results of f16 have one scale, or one for each group of columns that the plan
// stores on its own: two slices of the results of `score = own`, none of others. The launch's
// own buffer has the groups of the plan that is taken, a caller's is as it is.

// CHECK-LABEL: func.func @launch
// CHECK: memref.alloc() : memref<4x1x128x1x2xf32>
// CHECK: attn.attention {{.*}} out_scales(%{{.*}} : memref<4x1x128x1x2xf32>)
// CHECK-SAME: score = own
// CHECK: attn.combine {{.*}} scales(%{{.*}} : memref<4x1x128x1x2xf32>)
func.func @launch(%q: memref<1x128x1x576xbf16>, %k: memref<9x1x64x576xbf16>, %v: memref<9x1x64x512xbf16, strided<[36864, 36864, 576, 1]>>,
                  %t: memref<1x8xi32>, %n: memref<1xi32>, %o: memref<1x128x1x512xbf16>) {
  %po = memref.alloc() : memref<4x1x128x1x512xf16>
  %pl = memref.alloc() : memref<4x1x128x1xf32>
  %ps = memref.alloc() : memref<4x1x128x1x1xf32>
  attn.attention ins(%q, %k, %v : memref<1x128x1x576xbf16>, memref<9x1x64x576xbf16>, memref<9x1x64x512xbf16, strided<[36864, 36864, 576, 1]>>)
                 outs(%po, %pl : memref<4x1x128x1x512xf16>, memref<4x1x128x1xf32>)
                 pages(%t : memref<1x8xi32>) kv_lengths(%n : memref<1xi32>)
                 out_scales(%ps : memref<4x1x128x1x1xf32>) {kv_splits = 4, page_size = 64, rope_dim = 64}
  attn.combine ins(%po, %pl : memref<4x1x128x1x512xf16>, memref<4x1x128x1xf32>)
               scales(%ps : memref<4x1x128x1x1xf32>) outs(%o : memref<1x128x1x512xbf16>)
  return
}

// -----

// CHECK-LABEL: func.func @caller
// CHECK: attn.attention {{.*}} out_scales(%{{.*}} : memref<4x1x128x1x1xf32>)
// CHECK-SAME: score = own
func.func @caller(%q: memref<1x128x1x576xbf16>, %k: memref<9x1x64x576xbf16>, %v: memref<9x1x64x512xbf16, strided<[36864, 36864, 576, 1]>>,
                  %t: memref<1x8xi32>, %n: memref<1xi32>, %po: memref<4x1x128x1x512xf16>, %pl: memref<4x1x128x1xf32>, %ps: memref<4x1x128x1x1xf32>) {
  attn.attention ins(%q, %k, %v : memref<1x128x1x576xbf16>, memref<9x1x64x576xbf16>, memref<9x1x64x512xbf16, strided<[36864, 36864, 576, 1]>>)
                 outs(%po, %pl : memref<4x1x128x1x512xf16>, memref<4x1x128x1xf32>)
                 pages(%t : memref<1x8xi32>) kv_lengths(%n : memref<1xi32>)
                 out_scales(%ps : memref<4x1x128x1x1xf32>) {kv_splits = 4, page_size = 64, rope_dim = 64}
  return
}

// -----

func.func @slices(%q: memref<1x128x1x576xbf16>, %k: memref<9x1x64x576xbf16>, %v: memref<9x1x64x512xbf16, strided<[36864, 36864, 576, 1]>>,
                  %t: memref<1x8xi32>, %n: memref<1xi32>, %po: memref<4x1x128x1x512xf16>, %pl: memref<4x1x128x1xf32>, %ps: memref<4x1x128x1x8xf32>) {
  // expected-error @below {{expected partial results of f16 with 1 or 2 groups of columns in each row that have a scale, got 8 groups}}
  attn.attention ins(%q, %k, %v : memref<1x128x1x576xbf16>, memref<9x1x64x576xbf16>, memref<9x1x64x512xbf16, strided<[36864, 36864, 576, 1]>>)
                 outs(%po, %pl : memref<4x1x128x1x512xf16>, memref<4x1x128x1xf32>)
                 pages(%t : memref<1x8xi32>) kv_lengths(%n : memref<1xi32>)
                 out_scales(%ps : memref<4x1x128x1x8xf32>)
                 {kv_splits = 4, page_size = 64, rope_dim = 64, plan = #attn.mla<block_m = 64, block_n = 64, warps_m = 4, warps_n = 2, stages = 2, wgmma = true, score = own, softmax = lagged, pack_heads = true>}
  return
}

// -----

func.func @whole(%q: memref<2x8x1x64xf16>, %k: memref<2x2x300x64xf16>, %po: memref<3x2x8x1x64xf16>, %pl: memref<3x2x8x1xf32>, %ps: memref<3x2x8x1x2xf32>) {
  // expected-error @below {{expected partial results of f16 with one group of columns in each row that has a scale, got 2 groups}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x64xf16>, memref<2x2x300x64xf16>, memref<2x2x300x64xf16>)
                 outs(%po, %pl : memref<3x2x8x1x64xf16>, memref<3x2x8x1xf32>)
                 out_scales(%ps : memref<3x2x8x1x2xf32>) {kv_splits = 3, plan = #attn.split_q<>}
  return
}
