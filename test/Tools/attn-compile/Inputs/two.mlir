!t = memref<1x2x64x64xf16>

func.func @two(%q: !t, %k: !t, %v: !t, %o: !t, %p: !t) {
  attn.attention ins(%q, %k, %v : !t, !t, !t) outs(%o : !t)
  attn.attention ins(%q, %k, %v : !t, !t, !t) outs(%p : !t)
  return
}
