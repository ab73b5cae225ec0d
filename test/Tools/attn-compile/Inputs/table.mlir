func.func @alibi(%q: memref<1x4x100x64xf16>, %o: memref<1x4x100x64xf16>,
                 %slopes: memref<4xf32>) {
  attn.attention ins(%q, %q, %q : memref<1x4x100x64xf16>, memref<1x4x100x64xf16>,
                                  memref<1x4x100x64xf16>)
                 outs(%o : memref<1x4x100x64xf16>) score_mod {
  ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %head = arith.index_cast %h : i32 to index
    %slope = memref.load %slopes[%head] : memref<4xf32>
    %distance = arith.subi %j, %i : i32
    %d = arith.sitofp %distance : i32 to f32
    %bias = arith.mulf %slope, %d : f32
    %r = arith.addf %score, %bias : f32
    attn.yield %r : f32
  }
  return
}
