func.func @latent(%q: memref<2x16x1x192xbf16>, %k: memref<7x1x16x192xbf16>, %table: memref<2x5xi32>, %n: memref<2xi32>,
                  %gain: memref<16x128xf32>, %o: memref<2x16x1x128xf32>) {
  %v = memref.subview %k[0, 0, 0, 0] [7, 1, 16, 128] [1, 1, 1, 1]
      : memref<7x1x16x192xbf16> to memref<7x1x16x128xbf16, strided<[3072, 3072, 192, 1]>>
  attn.attention ins(%q, %k, %v : memref<2x16x1x192xbf16>, memref<7x1x16x192xbf16>, memref<7x1x16x128xbf16, strided<[3072, 3072, 192, 1]>>)
    outs(%o : memref<2x16x1x128xf32>) pages(%table : memref<2x5xi32>) kv_lengths(%n : memref<2xi32>) out_mod {
    ^bb0(%r: f32, %b: i32, %h: i32, %i: i32, %c: i32):
      %hi = arith.index_cast %h : i32 to index
      %ci = arith.index_cast %c : i32 to index
      %g = memref.load %gain[%hi, %ci] : memref<16x128xf32>
      %f = arith.sitofp %b : i32 to f32
      %x = math.fma %r, %g, %f : f32
      attn.yield %x : f32
    } {page_size = 16 : i64, rope_dim = 64 : i64}
  return
}
