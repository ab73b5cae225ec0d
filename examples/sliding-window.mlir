// A sliding window of 64 keys with a softcap, on bf16 tensors in (batch,
// sequence, heads, dim) order: the same op, other strides.
//
//   attn-compile examples/sliding-window.mlir --chip=sm_80 --verify

!qkv = memref<2x4x200x64xbf16, strided<[51200, 64, 256, 1]>>
func.func @sliding_window(%q: !qkv, %k: !qkv, %v: !qkv, %o: !qkv) {
  attn.attention ins(%q, %k, %v : !qkv, !qkv, !qkv) outs(%o : !qkv)
                 {mask = #attn.mask<kind = window, left = 63, right = 0>, softcap = 30.0 : f32}
  return
}
