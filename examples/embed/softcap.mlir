// A problem that two_pass does not compute.
func.func @softcap(%q: tensor<1x2x32x64xf16>) -> tensor<1x2x32x64xf16> {
  %o = tensor.empty() : tensor<1x2x32x64xf16>
  %r = attn.attention ins(%q, %q, %q : tensor<1x2x32x64xf16>, tensor<1x2x32x64xf16>, tensor<1x2x32x64xf16>)
                      outs(%o : tensor<1x2x32x64xf16>) {softcap = 30.0 : f32} -> tensor<1x2x32x64xf16>
  return %r : tensor<1x2x32x64xf16>
}
