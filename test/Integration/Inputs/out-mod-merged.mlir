func.func @merged(%q: memref<2x4x1x64xf16>, %k: memref<2x2x90x64xf16>, %bias: memref<64xf32>, %gain: memref<4xf32>,
                  %o: memref<2x4x1x64xf16>) {
  %po = memref.alloc() : memref<3x2x4x1x64xf32>
  %pl = memref.alloc() : memref<3x2x4x1xf32>
  attn.attention ins(%q, %k, %k : memref<2x4x1x64xf16>, memref<2x2x90x64xf16>, memref<2x2x90x64xf16>)
    outs(%po, %pl : memref<3x2x4x1x64xf32>, memref<3x2x4x1xf32>) score_mod {
    ^bb0(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32):
      %hi = arith.index_cast %h : i32 to index
      %g = memref.load %gain[%hi] : memref<4xf32>
      %x = arith.addf %s, %g : f32
      attn.yield %x : f32
    } {kv_splits = 3 : i64}
  attn.combine ins(%po, %pl : memref<3x2x4x1x64xf32>, memref<3x2x4x1xf32>) outs(%o : memref<2x4x1x64xf16>)
    out_mod {
    ^bb0(%r: f32, %b: i32, %h: i32, %i: i32, %c: i32):
      %hi = arith.index_cast %h : i32 to index
      %ci = arith.index_cast %c : i32 to index
      %g = memref.load %gain[%hi] : memref<4xf32>
      %t = memref.load %bias[%ci] : memref<64xf32>
      %x = math.fma %r, %g, %t : f32
      attn.yield %x : f32
    }
  return
}
