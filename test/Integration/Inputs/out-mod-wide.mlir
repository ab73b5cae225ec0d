func.func @wide(%q: memref<1x2x20x528xf16>, %k: memref<1x2x40x528xf16>, %bias: memref<528xf32>, %n: i32,
                %o: memref<1x2x20x528xf16>) {
  attn.attention ins(%q, %k, %k : memref<1x2x20x528xf16>, memref<1x2x40x528xf16>, memref<1x2x40x528xf16>)
    outs(%o : memref<1x2x20x528xf16>) out_mod {
    ^bb0(%r: f32, %b: i32, %h: i32, %i: i32, %c: i32):
      %ci = arith.index_cast %c : i32 to index
      %t = memref.load %bias[%ci] : memref<528xf32>
      %m = arith.addi %n, %i : i32
      %f = arith.sitofp %m : i32 to f32
      %x = math.fma %r, %f, %t : f32
      attn.yield %x : f32
    }
  return
}
