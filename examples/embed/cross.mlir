// Two batch entries without a mask; the values are wider than the keys, and
// fewer keys than a block has.
func.func @cross(%q: tensor<2x3x70x48xbf16>, %k: tensor<2x3x23x48xbf16>, %v: tensor<2x3x23x96xbf16>)
    -> tensor<2x3x70x96xbf16> {
  %o = tensor.empty() : tensor<2x3x70x96xbf16>
  %r = attn.attention ins(%q, %k, %v : tensor<2x3x70x48xbf16>, tensor<2x3x23x48xbf16>, tensor<2x3x23x96xbf16>)
                      outs(%o : tensor<2x3x70x96xbf16>) -> tensor<2x3x70x96xbf16>
  return %r : tensor<2x3x70x96xbf16>
}
