func.func @problem(%q: memref<1x8x256x128xf16>, %k: memref<1x8x256x128xf16>, %v: memref<1x8x256x128xf16>, %o: memref<1x8x256x128xf16>) {
  attn.attention ins(%q, %k, %v : memref<1x8x256x128xf16>, memref<1x8x256x128xf16>, memref<1x8x256x128xf16>)
                 outs(%o : memref<1x8x256x128xf16>)
  return
}
