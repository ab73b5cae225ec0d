// Scales of a row lie four bytes apart, between which others have theirs.
func.func @scales_apart(%q: memref<1x1x20x128xbf16>, %k: memref<1x1x70x128xbf16>, %v: memref<1x1x70x128xbf16>,
                        %o: memref<1x1x20x64xi8>, %lse: memref<1x1x20xf32>,
                        %scales: memref<1x1x20x8xf8E4M3FN, strided<[640, 640, 32, 4]>>) {
  attn.attention ins(%q, %k, %v : memref<1x1x20x128xbf16>, memref<1x1x70x128xbf16>, memref<1x1x70x128xbf16>)
      outs(%o, %lse : memref<1x1x20x64xi8>, memref<1x1x20xf32>)
      out_scales(%scales : memref<1x1x20x8xf8E4M3FN, strided<[640, 640, 32, 4]>>) {out_group = 16 : i64}
  return
}
