// What another compiler holds: tensors in, tensors out.
func.func @causal_gqa(%q: tensor<1x4x100x64xf16>, %k: tensor<1x2x150x64xf16>, %v: tensor<1x2x150x64xf16>)
    -> (tensor<1x4x100x64xf16>, tensor<1x4x100xf32>) {
  %o = tensor.empty() : tensor<1x4x100x64xf16>
  %lse = tensor.empty() : tensor<1x4x100xf32>
  %r:2 = attn.attention ins(%q, %k, %v : tensor<1x4x100x64xf16>, tensor<1x2x150x64xf16>, tensor<1x2x150x64xf16>)
                        outs(%o, %lse : tensor<1x4x100x64xf16>, tensor<1x4x100xf32>)
                        {mask = #attn.mask<kind = causal, align = bottom_right>}
                        -> tensor<1x4x100x64xf16>, tensor<1x4x100xf32>
  return %r#0, %r#1 : tensor<1x4x100x64xf16>, tensor<1x4x100xf32>
}
