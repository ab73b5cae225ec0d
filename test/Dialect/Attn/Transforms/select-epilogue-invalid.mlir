// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-select-epilogue))' --split-input-file -verify-diagnostics

gpu.module @kernels {
  gpu.func @rank(%t: tensor<128xf32, #attn.auto>, %g: !attn.global<?xf32>, %row: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    // expected-error@below {{expected a tile of rank 2 for a staged result, got 'tensor<128xf32, #attn.auto>'}}
    attn.store_result %t, %g[%row] {kind = #attn<epilogue_kind staged>} : tensor<128xf32, #attn.auto>, !attn.global<?xf32>
    gpu.return
  }
}
