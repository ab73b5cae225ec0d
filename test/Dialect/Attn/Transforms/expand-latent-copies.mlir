// RUN: attn-opt %s -attn-expand=chip=sm_90a -split-input-file --remarks-filter='attn.mla' -o /dev/null 2>&1 | FileCheck %s

// Where TMA cannot map the rows of latent keys, or their pages are small, cp.async copies them,
// which a remark says.

// CHECK: remark: [Missed] latent-copies | Category:attn.mla{{.*}}"keys are copied by cp.async, since TMA does not support a stride of 392 bytes in 'k', expected a multiple of 16"
!pool = memref<9x1x16x192xf16, strided<[3136, 3136, 196, 1]>>
!values = memref<9x1x16x128xf16, strided<[3136, 3136, 196, 1]>>
func.func @stride(%q: memref<2x64x1x192xf16>, %k: !pool, %o: memref<2x64x1x128xf16>, %t: memref<2x4xi32>, %n: memref<2xi32>) {
  %v = memref.subview %k[0, 0, 0, 0] [9, 1, 16, 128] [1, 1, 1, 1] : !pool to !values
  attn.attention ins(%q, %k, %v : memref<2x64x1x192xf16>, !pool, !values)
                 outs(%o : memref<2x64x1x128xf16>) pages(%t : memref<2x4xi32>) kv_lengths(%n : memref<2xi32>)
                 {page_size = 16 : i64, rope_dim = 64 : i64, scale = 0.1 : f32,
                  plan = #attn.mla<block_m = 64, block_n = 32, warps_m = 4, warps_n = 2, score = own, softmax = optimistic, wgmma = true>}
  return
}

// -----

// CHECK: remark: [Missed] latent-copies | Category:attn.mla{{.*}}"keys are copied by cp.async, since TMA does not support pages of 8 keys, expected a multiple of 16
!pool = memref<9x1x8x192xf16>
!values = memref<9x1x8x128xf16, strided<[1536, 1536, 192, 1]>>
func.func @pages(%q: memref<2x64x1x192xf16>, %k: !pool, %o: memref<2x64x1x128xf16>, %t: memref<2x4xi32>, %n: memref<2xi32>) {
  %v = memref.subview %k[0, 0, 0, 0] [9, 1, 8, 128] [1, 1, 1, 1] : !pool to !values
  attn.attention ins(%q, %k, %v : memref<2x64x1x192xf16>, !pool, !values)
                 outs(%o : memref<2x64x1x128xf16>) pages(%t : memref<2x4xi32>) kv_lengths(%n : memref<2xi32>)
                 {page_size = 8 : i64, rope_dim = 64 : i64, scale = 0.1 : f32,
                  plan = #attn.mla<block_m = 64, block_n = 32, warps_m = 4, warps_n = 2, score = own, softmax = optimistic, wgmma = true>}
  return
}

// -----

// CHECK-NOT: latent-copies
!pool = memref<9x1x16x192xf16>
!values = memref<9x1x16x128xf16, strided<[3072, 3072, 192, 1]>>
func.func @mapped(%q: memref<2x64x1x192xf16>, %k: !pool, %o: memref<2x64x1x128xf16>, %t: memref<2x4xi32>, %n: memref<2xi32>) {
  %v = memref.subview %k[0, 0, 0, 0] [9, 1, 16, 128] [1, 1, 1, 1] : !pool to !values
  attn.attention ins(%q, %k, %v : memref<2x64x1x192xf16>, !pool, !values)
                 outs(%o : memref<2x64x1x128xf16>) pages(%t : memref<2x4xi32>) kv_lengths(%n : memref<2xi32>)
                 {page_size = 16 : i64, rope_dim = 64 : i64, scale = 0.1 : f32,
                  plan = #attn.mla<block_m = 64, block_n = 32, warps_m = 4, warps_n = 2, score = own, softmax = optimistic, wgmma = true>}
  return
}
