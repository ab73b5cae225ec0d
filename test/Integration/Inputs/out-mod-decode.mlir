func.func @columns(%q: memref<2x4x1x64xf16>, %k: memref<2x2x90x64xf16>, %n: memref<2xi32>, %o: memref<2x4x1x64xf32>) {
  attn.attention ins(%q, %k, %k : memref<2x4x1x64xf16>, memref<2x2x90x64xf16>, memref<2x2x90x64xf16>)
    outs(%o : memref<2x4x1x64xf32>) kv_lengths(%n : memref<2xi32>) out_mod {
    ^bb0(%r: f32, %b: i32, %h: i32, %i: i32, %c: i32):
      %x = arith.addi %h, %c : i32
      %y = arith.sitofp %x : i32 to f32
      %z = arith.mulf %r, %y : f32
      attn.yield %z : f32
    }
  return
}
