func.func @problem(%q: memref<1x8x256x512xf16>, %o: memref<1x8x256x512xf16>) {
  attn.attention ins(%q, %q, %q : memref<1x8x256x512xf16>, memref<1x8x256x512xf16>, memref<1x8x256x512xf16>)
                 outs(%o : memref<1x8x256x512xf16>)
  return
}
