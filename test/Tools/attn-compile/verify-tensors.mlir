// RUN: attn-compile %s --verify | FileCheck %s

// A problem on tensors is bufferized first.
// CHECK: passed
func.func @tensors(%q: tensor<1x4x65x64xf16>, %k: tensor<1x2x65x64xf16>) -> (tensor<1x4x65x64xf16>, tensor<1x4x65xf32>) {
  %o = tensor.empty() : tensor<1x4x65x64xf16>
  %lse = tensor.empty() : tensor<1x4x65xf32>
  %r:2 = attn.attention ins(%q, %k, %k : tensor<1x4x65x64xf16>, tensor<1x2x65x64xf16>, tensor<1x2x65x64xf16>)
                        outs(%o, %lse : tensor<1x4x65x64xf16>, tensor<1x4x65xf32>)
                        {mask = #attn.mask<kind = causal>} -> tensor<1x4x65x64xf16>, tensor<1x4x65xf32>
  return %r#0, %r#1 : tensor<1x4x65x64xf16>, tensor<1x4x65xf32>
}
