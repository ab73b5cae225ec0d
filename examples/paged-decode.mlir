// One query of eight heads for each of four sequences, whose keys lie in pages of 16
// that a table names. Sequences are as long as %lengths says; what lies behind a
// length, and pages that no sequence has, may hold anything:
//
//   attn-compile examples/paged-decode.mlir --chip=sm_80 --verify
func.func @paged_decode(%q: memref<4x8x1x128xf16>, %k: memref<40x2x16x128xf16>,
                        %v: memref<40x2x16x128xf16>, %o: memref<4x8x1x128xf16>,
                        %lse: memref<4x8x1xf32>, %pages: memref<4x9xi32>,
                        %lengths: memref<4xi32>) {
  attn.attention ins(%q, %k, %v : memref<4x8x1x128xf16>, memref<40x2x16x128xf16>, memref<40x2x16x128xf16>)
                 outs(%o, %lse : memref<4x8x1x128xf16>, memref<4x8x1xf32>)
                 pages(%pages : memref<4x9xi32>) kv_lengths(%lengths : memref<4xi32>)
                 {page_size = 16 : i64}
  return
}
