// One query of eight heads over 4097 keys: eight runs of keys are computed side by
// side, and attn.combine merges what they found. The partial results belong to
// the launch, which has two steps:
//
//   attn-compile examples/split-keys.mlir --chip=sm_80 --verify
func.func @split_keys(%q: memref<1x8x1x128xf16>, %k: memref<1x2x4097x128xf16>,
                      %v: memref<1x2x4097x128xf16>, %o: memref<1x8x1x128xf16>,
                      %lse: memref<1x8x1xf32>) {
  %partial_o = memref.alloc() : memref<8x1x8x1x128xf32>
  %partial_lse = memref.alloc() : memref<8x1x8x1xf32>
  attn.attention ins(%q, %k, %v : memref<1x8x1x128xf16>, memref<1x2x4097x128xf16>, memref<1x2x4097x128xf16>)
                 outs(%partial_o, %partial_lse : memref<8x1x8x1x128xf32>, memref<8x1x8x1xf32>)
                 {kv_splits = 8 : i64}
  attn.combine ins(%partial_o, %partial_lse : memref<8x1x8x1x128xf32>, memref<8x1x8x1xf32>)
               outs(%o, %lse : memref<1x8x1x128xf16>, memref<1x8x1xf32>)
  memref.dealloc %partial_o : memref<8x1x8x1x128xf32>
  memref.dealloc %partial_lse : memref<8x1x8x1xf32>
  return
}
