// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-materialize-scratch))' --split-input-file -verify-diagnostics

#acc = #attn.mma<warps = [4, 1]>
gpu.module @kernels {
  gpu.func @source(%t: tensor<128x64xf16, #attn.auto>) kernel attributes {attn.warps = array<i64: 4, 1>} {
    // expected-error@below {{has a source without a layout: }}
    %r = attn.convert_layout %t : tensor<128x64xf16, #attn.auto> -> tensor<128x64xf16, #acc>
    gpu.return
  }
}

// -----

#acc = #attn.mma<warps = [4, 1]>
gpu.module @kernels {
  gpu.func @result(%t: tensor<128x64xf16, #acc>) kernel attributes {attn.warps = array<i64: 4, 1>} {
    // expected-error@below {{has a result without a layout: }}
    %r = attn.convert_layout %t : tensor<128x64xf16, #acc> -> tensor<128x64xf16, #attn.auto>
    gpu.return
  }
}

// -----

#acc = #attn.mma<warps = [4, 1]>
#eight = #attn.mma<warps = [8, 1]>
gpu.module @kernels {
  gpu.func @warps(%t: tensor<128x64xf16, #acc>) kernel attributes {attn.warps = array<i64: 4, 1>} {
    // expected-error@below {{cannot be carried out: }}
    %r = attn.convert_layout %t : tensor<128x64xf16, #acc> -> tensor<128x64xf16, #eight>
    gpu.return
  }
}

// -----

#acc = #attn.mma<warps = [2, 2]>
gpu.module @kernels {
  gpu.func @columns(%t: tensor<128x64xf32, #acc>) kernel attributes {attn.warps = array<i64: 2, 2>} {
    // expected-error@below {{expected the columns of a row in one warp, got 2 warps in 'tensor<128x64xf32, #attn.mma<warps = [2, 2]>>'}}
    %r = attn.reduce max %t : tensor<128x64xf32, #acc> -> tensor<128xf32, #attn.slice<dim = 1, parent = #acc>>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @reduced(%t: tensor<128x64xf32, #attn.auto>) kernel attributes {attn.warps = array<i64: 2, 2>} {
    // expected-error@below {{has a source without a layout: }}
    %r = attn.reduce max %t : tensor<128x64xf32, #attn.auto> -> tensor<128xf32, #attn.auto>
    gpu.return
  }
}
