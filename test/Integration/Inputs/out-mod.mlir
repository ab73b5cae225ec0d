func.func @gated(%q: memref<1x2x70x64xf16>, %o: memref<1x2x70x64xf8E4M3FN>, %gate: memref<2x70x64xf32>) {
  attn.attention ins(%q, %q, %q : memref<1x2x70x64xf16>, memref<1x2x70x64xf16>, memref<1x2x70x64xf16>)
    outs(%o : memref<1x2x70x64xf8E4M3FN>) out_mod {
    ^bb0(%r: f32, %b: i32, %h: i32, %i: i32, %c: i32):
      %half = arith.constant 0.5 : f32
      %hi = arith.index_cast %h : i32 to index
      %ii = arith.index_cast %i : i32 to index
      %ci = arith.index_cast %c : i32 to index
      %g = memref.load %gate[%hi, %ii, %ci] : memref<2x70x64xf32>
      %x = arith.mulf %r, %g : f32
      %y = arith.addf %x, %half : f32
      attn.yield %y : f32
    } {mask = #attn.mask<kind = causal>, out_scale = 40.0 : f32}
  return
}
