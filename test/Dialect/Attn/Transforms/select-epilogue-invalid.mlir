// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-select-epilogue))' --split-input-file -verify-diagnostics

gpu.module @kernels {
  gpu.func @rank(%t: tensor<128xf32, #attn.auto>, %g: !attn.global<?xf32>, %row: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    // expected-error@below {{expected a tile of rank 2 for a staged result, got 'tensor<128xf32, #attn.auto>'}}
    attn.store_result %t, %g[%row] {kind = #attn<epilogue_kind staged>} : tensor<128xf32, #attn.auto>, !attn.global<?xf32>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @shuffled(%t: tensor<128x40xf16, #attn.auto>, %p: !llvm.ptr<1>, %off: i64, %n: i32, %row: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %g = attn.global_view %p[%off] rows %n stride %off {alignment = 16 : i64} : !attn.global<?x40xf16>
    // expected-error@below {{expected aligned rows of whole 64 bytes, each in one warp, for a shuffled result, got rows of 80 bytes aligned to 16}}
    attn.store_result %t, %g[%row] {kind = #attn<epilogue_kind shuffled>} : tensor<128x40xf16, #attn.auto>, !attn.global<?x40xf16>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  func.func @no_kernel(%t: tensor<64x64xf16, #attn.auto>, %g: !attn.global<?x64xf16>, %row: i32) {
    // expected-error@below {{expected to stand in a gpu.func}}
    attn.store_result %t, %g[%row] : tensor<64x64xf16, #attn.auto>, !attn.global<?x64xf16>
    return
  }
}

// -----

gpu.module @kernels {
  // expected-error@below {{expected the attribute 'attn.warps' on a kernel in tile IR}}
  gpu.func @no_warps(%t: tensor<64x64xf16, #attn.auto>, %g: !attn.global<?x64xf16>, %row: i32) kernel {
    attn.store_result %t, %g[%row] : tensor<64x64xf16, #attn.auto>, !attn.global<?x64xf16>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @no_partition(%t: tensor<64x64xf16, #attn.auto>, %g: !attn.global<?x64xf16>, %row: i32, %map: !attn.tensor_map<64x64xf16, swizzle = 128>) kernel attributes {attn.warps = array<i64: 4, 1>} {
    // expected-error@below {{expected to stand in a partition to be stored by TMA, got no partition}}
    attn.store_result %t, %g[%row] map %map[%row, %row] : !attn.tensor_map<64x64xf16, swizzle = 128> {kind = #attn<epilogue_kind tma>} : tensor<64x64xf16, #attn.auto>, !attn.global<?x64xf16>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @rows(%x: f16, %g: !attn.global<?x64xf16>, %row: i32, %map: !attn.tensor_map<32x64xf16, swizzle = 128>) kernel {
    // expected-note@below {{the partition is here}}
    attn.warp_specialize
    partition "consumer" warps 8 tiles [8, 1] registers 240 {
      %t = tensor.splat %x : tensor<128x64xf16, #attn.auto>
      // expected-error@below {{expected a map whose boxes have 128 rows in 2 warpgroups, got boxes of 32}}
      attn.store_result %t, %g[%row] map %map[%row, %row] : !attn.tensor_map<32x64xf16, swizzle = 128> {kind = #attn<epilogue_kind tma>} : tensor<128x64xf16, #attn.auto>, !attn.global<?x64xf16>
    }
    partition "producer" warps 4 registers 24 {
    }
    gpu.return
  }
}
