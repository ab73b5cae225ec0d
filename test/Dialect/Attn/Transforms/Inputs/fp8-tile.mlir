gpu.module @kernels [#attn.target<chip = "sm_80">] {
  gpu.func @kernel(%a: tensor<64x32xf8E4M3FN, #attn.auto>, %b: tensor<32x16xf8E4M3FN, #attn.auto>,
                   %c: tensor<64x16xf32, #attn.auto>, %g: !attn.global<?x16xf32>, %row: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = attn.mma %a, %b, %c : tensor<64x32xf8E4M3FN, #attn.auto>, tensor<32x16xf8E4M3FN, #attn.auto>, tensor<64x16xf32, #attn.auto>
    attn.global_store %s, %g[%row] : tensor<64x16xf32, #attn.auto>, !attn.global<?x16xf32>
    gpu.return
  }
}
