// Causal attention with grouped heads: 8 query heads share 2 key heads.
//
//   attn-compile examples/causal-gqa.mlir --chip=sm_80 --verify
//   attn-compile examples/causal-gqa.mlir --chip=sm_80 -o kernel.ptx --launch-out=kernel.json

func.func @causal_gqa(%q: memref<1x8x300x128xf16>, %k: memref<1x2x300x128xf16>,
                      %v: memref<1x2x300x128xf16>, %o: memref<1x8x300x128xf16>,
                      %lse: memref<1x8x300xf32>) {
  attn.attention ins(%q, %k, %v : memref<1x8x300x128xf16>, memref<1x2x300x128xf16>, memref<1x2x300x128xf16>)
                 outs(%o, %lse : memref<1x8x300x128xf16>, memref<1x8x300xf32>)
                 {mask = #attn.mask<kind = causal>}
  return
}
