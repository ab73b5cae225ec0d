// RUN: attn-opt %s --attn-plan=chip=sm_90a | FileCheck %s

// Sequences whose lengths may differ get equal runs, where scores have a warpgroup of their own. Of
// 16 heads and many sequences two CTAs share an SM instead. Of 128 heads the scores hold queries in
// registers.

// CHECK-LABEL: func.func @more_heads
// CHECK: attn.attention {{.*}}kv_splits = 18 : i64{{.*}}plan = #attn.mla<block_m = 64, warps_m = 4, warps_n = 2, score = own, softmax = lagged, wgmma = true, dealt_runs = 132>
func.func @more_heads(%q: memref<8x20x1x576xbf16>, %k: memref<13000x1x64x576xbf16>, %o: memref<8x20x1x512xbf16>, %lse: memref<8x20x1xf32>, %table: memref<8x512xi32>, %lengths: memref<8xi32>) {
  %v = memref.subview %k[0, 0, 0, 0] [13000, 1, 64, 512] [1, 1, 1, 1] : memref<13000x1x64x576xbf16> to memref<13000x1x64x512xbf16, strided<[36864, 36864, 576, 1]>>
  attn.attention ins(%q, %k, %v : memref<8x20x1x576xbf16>, memref<13000x1x64x576xbf16>, memref<13000x1x64x512xbf16, strided<[36864, 36864, 576, 1]>>)
                 outs(%o, %lse : memref<8x20x1x512xbf16>, memref<8x20x1xf32>)
                 pages(%table : memref<8x512xi32>) kv_lengths(%lengths : memref<8xi32>) {page_size = 64 : i64, rope_dim = 64 : i64}
  return
}

// CHECK-LABEL: func.func @few
// CHECK: attn.attention {{.*}}kv_splits = 18 : i64{{.*}}plan = #attn.mla<block_m = 64, warps_m = 4, warps_n = 2, score = own, softmax = lagged, wgmma = true, dealt_runs = 132>
func.func @few(%q: memref<8x16x1x576xbf16>, %k: memref<13000x1x64x576xbf16>, %o: memref<8x16x1x512xbf16>, %lse: memref<8x16x1xf32>, %table: memref<8x512xi32>, %lengths: memref<8xi32>) {
  %v = memref.subview %k[0, 0, 0, 0] [13000, 1, 64, 512] [1, 1, 1, 1] : memref<13000x1x64x576xbf16> to memref<13000x1x64x512xbf16, strided<[36864, 36864, 576, 1]>>
  attn.attention ins(%q, %k, %v : memref<8x16x1x576xbf16>, memref<13000x1x64x576xbf16>, memref<13000x1x64x512xbf16, strided<[36864, 36864, 576, 1]>>)
                 outs(%o, %lse : memref<8x16x1x512xbf16>, memref<8x16x1xf32>)
                 pages(%table : memref<8x512xi32>) kv_lengths(%lengths : memref<8xi32>) {page_size = 64 : i64, rope_dim = 64 : i64}
  return
}

// CHECK-LABEL: func.func @many
// CHECK-NOT: kv_splits
// CHECK: plan = #attn.mla<block_n = 32, warps_n = 2, ctas_per_sm = 2>
func.func @many(%q: memref<768x16x1x576xbf16>, %k: memref<13000x1x64x576xbf16>, %o: memref<768x16x1x512xbf16>, %lse: memref<768x16x1xf32>, %table: memref<768x16xi32>, %lengths: memref<768xi32>) {
  %v = memref.subview %k[0, 0, 0, 0] [13000, 1, 64, 512] [1, 1, 1, 1] : memref<13000x1x64x576xbf16> to memref<13000x1x64x512xbf16, strided<[36864, 36864, 576, 1]>>
  attn.attention ins(%q, %k, %v : memref<768x16x1x576xbf16>, memref<13000x1x64x576xbf16>, memref<13000x1x64x512xbf16, strided<[36864, 36864, 576, 1]>>)
                 outs(%o, %lse : memref<768x16x1x512xbf16>, memref<768x16x1xf32>)
                 pages(%table : memref<768x16xi32>) kv_lengths(%lengths : memref<768xi32>) {page_size = 64 : i64, rope_dim = 64 : i64}
  return
}

// CHECK-LABEL: func.func @middle_rows
// CHECK: attn.attention {{.*}}kv_splits = 2 : i64{{.*}}plan = #attn.mla<block_m = 64, warps_m = 4, warps_n = 2, score = own, softmax = lagged, wgmma = true, dealt_runs = 132>
func.func @middle_rows(%q: memref<768x32x1x576xbf16>, %k: memref<13000x1x64x576xbf16>, %o: memref<768x32x1x512xbf16>, %lse: memref<768x32x1xf32>, %table: memref<768x16xi32>, %lengths: memref<768xi32>) {
  %v = memref.subview %k[0, 0, 0, 0] [13000, 1, 64, 512] [1, 1, 1, 1] : memref<13000x1x64x576xbf16> to memref<13000x1x64x512xbf16, strided<[36864, 36864, 576, 1]>>
  attn.attention ins(%q, %k, %v : memref<768x32x1x576xbf16>, memref<13000x1x64x576xbf16>, memref<13000x1x64x512xbf16, strided<[36864, 36864, 576, 1]>>)
                 outs(%o, %lse : memref<768x32x1x512xbf16>, memref<768x32x1xf32>)
                 pages(%table : memref<768x16xi32>) kv_lengths(%lengths : memref<768xi32>) {page_size = 64 : i64, rope_dim = 64 : i64}
  return
}

// CHECK-LABEL: func.func @middle_rows_of_keys
// CHECK: attn.attention {{.*}}kv_splits = 2 : i64{{.*}}plan = #attn.mla<block_m = 64, warps_m = 4, warps_n = 2, score = own, softmax = lagged, wgmma = true, dealt_runs = 132>
func.func @middle_rows_of_keys(%q: memref<768x32x1x576xbf16>, %k: memref<530000x1x1x576xbf16>, %o: memref<768x32x1x512xbf16>, %lse: memref<768x32x1xf32>, %table: memref<768x1024xi32>, %lengths: memref<768xi32>) {
  %v = memref.subview %k[0, 0, 0, 0] [530000, 1, 1, 512] [1, 1, 1, 1] : memref<530000x1x1x576xbf16> to memref<530000x1x1x512xbf16, strided<[576, 576, 576, 1]>>
  attn.attention ins(%q, %k, %v : memref<768x32x1x576xbf16>, memref<530000x1x1x576xbf16>, memref<530000x1x1x512xbf16, strided<[576, 576, 576, 1]>>)
                 outs(%o, %lse : memref<768x32x1x512xbf16>, memref<768x32x1xf32>)
                 pages(%table : memref<768x1024xi32>) kv_lengths(%lengths : memref<768xi32>) {page_size = 1 : i64, rope_dim = 64 : i64}
  return
}

// CHECK-LABEL: func.func @shared
// CHECK: attn.attention {{.*}}kv_splits = 2 : i64{{.*}}plan = #attn.mla<block_m = 64, warps_m = 4, warps_n = 2, q_in_regs = true, score = own, softmax = lagged, wgmma = true, dealt_runs = 66>
func.func @shared(%q: memref<128x128x1x576xbf16>, %k: memref<13000x1x64x576xbf16>, %o: memref<128x128x1x512xbf16>, %lse: memref<128x128x1xf32>, %table: memref<128x64xi32>, %lengths: memref<128xi32>) {
  %v = memref.subview %k[0, 0, 0, 0] [13000, 1, 64, 512] [1, 1, 1, 1] : memref<13000x1x64x576xbf16> to memref<13000x1x64x512xbf16, strided<[36864, 36864, 576, 1]>>
  attn.attention ins(%q, %k, %v : memref<128x128x1x576xbf16>, memref<13000x1x64x576xbf16>, memref<13000x1x64x512xbf16, strided<[36864, 36864, 576, 1]>>)
                 outs(%o, %lse : memref<128x128x1x512xbf16>, memref<128x128x1xf32>)
                 pages(%table : memref<128x64xi32>) kv_lengths(%lengths : memref<128xi32>) {page_size = 64 : i64, rope_dim = 64 : i64}
  return
}

// CHECK-LABEL: func.func @keys
// CHECK: attn.attention {{.*}}kv_splits = 4 : i64{{.*}}plan = #attn.mla<block_m = 64, warps_m = 4, warps_n = 2, score = own, softmax = lagged, wgmma = true, dealt_runs = 132>
func.func @keys(%q: memref<64x16x1x576xbf16>, %k: memref<530000x1x1x576xbf16>, %o: memref<64x16x1x512xbf16>, %lse: memref<64x16x1xf32>, %table: memref<64x8192xi32>, %lengths: memref<64xi32>) {
  %v = memref.subview %k[0, 0, 0, 0] [530000, 1, 1, 512] [1, 1, 1, 1] : memref<530000x1x1x576xbf16> to memref<530000x1x1x512xbf16, strided<[576, 576, 576, 1]>>
  attn.attention ins(%q, %k, %v : memref<64x16x1x576xbf16>, memref<530000x1x1x576xbf16>, memref<530000x1x1x512xbf16, strided<[576, 576, 576, 1]>>)
                 outs(%o, %lse : memref<64x16x1x512xbf16>, memref<64x16x1xf32>)
                 pages(%table : memref<64x8192xi32>) kv_lengths(%lengths : memref<64xi32>) {page_size = 1 : i64, rope_dim = 64 : i64}
  return
}
