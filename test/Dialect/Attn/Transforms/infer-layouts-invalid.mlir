// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-infer-layouts{assert-trivial=true}))' -split-input-file -verify-diagnostics

// The rows of the tile cannot be dealt to the kernel's warps.
gpu.module @kernels {
  gpu.func @rows(%q: !attn.buffer<32x64xf16, #attn.rows, shared>) kernel
      attributes {attn.warps = array<i64: 4, 1>} {
    // expected-error @below {{cannot give this tile the layout #attn.mma<warps = [4, 1]>: expected m to be a positive multiple of 64, got 32}}
    // expected-note @below {{the layout comes from here}}
    %t = attn.local_load %q : !attn.buffer<32x64xf16, #attn.rows, shared> -> tensor<32x64xf16, #attn.auto>
    gpu.return
  }
}

// -----

// Two written-out layouts meet, and the conversion crosses warps.
gpu.module @kernels {
  gpu.func @moves(%g: !attn.global<?x64xf16>, %row: i32,
                  %k: !attn.buffer<64x32xf16, #attn.transposed<#attn.swizzled<span = 128>>, shared>) kernel
      attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant dense<0.0> : tensor<64x32xf32, #attn.auto>
    // expected-note @below {{the layout #attn.blocked<per_thread = [1, 8], warps = 4, order = [1, 0]> comes from here}}
    %q = attn.global_load %g[%row] : !attn.global<?x64xf16> -> tensor<64x64xf16, #attn.blocked<per_thread = [1, 8], warps = 4, order = [1, 0]>>
    // expected-error @below {{needs a layout conversion that moves data between threads, from #attn.blocked<per_thread = [1, 8], warps = 4, order = [1, 0]> to #attn.operand<index = 0, parent = #attn.mma<warps = [4, 1]>>}}
    // expected-note @below {{the layout #attn.operand<index = 0, parent = #attn.mma<warps = [4, 1]>> is needed here}}
    %s = attn.mma %q, %k, %zero : tensor<64x64xf16, #attn.blocked<per_thread = [1, 8], warps = 4, order = [1, 0]>>, !attn.buffer<64x32xf16, #attn.transposed<#attn.swizzled<span = 128>>, shared>, tensor<64x32xf32, #attn.auto>
    gpu.return
  }
}

// -----

// No instruction has a contraction of 60.
gpu.module @kernels {
  gpu.func @contraction(%g: !attn.global<?x60xf16>, %row: i32,
                        %k: !attn.buffer<60x32xf16, #attn.transposed<#attn.rows>, shared>) kernel
      attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant dense<0.0> : tensor<64x32xf32, #attn.auto>
    %q = attn.global_load %g[%row] : !attn.global<?x60xf16> -> tensor<64x60xf16, #attn.blocked<per_thread = [1, 4], warps = 4, order = [1, 0]>>
    // expected-error @below {{cannot take a value of type 'tensor<64x60xf16, #attn.blocked<per_thread = [1, 4], warps = 4, order = [1, 0]>>' as 'tensor<64x60xf16, #attn.operand<index = 0, parent = #attn.mma<warps = [4, 1]>>>'}}
    %s = attn.mma %q, %k, %zero : tensor<64x60xf16, #attn.blocked<per_thread = [1, 4], warps = 4, order = [1, 0]>>, !attn.buffer<60x32xf16, #attn.transposed<#attn.rows>, shared>, tensor<64x32xf32, #attn.auto>
    gpu.return
  }
}

// -----

// A narrow buffer is padded: it may be too large in its layout alone.
gpu.module @m [#attn.target<chip = "sm_80">] {
  gpu.func @k() kernel attributes {attn.warps = array<i64: 8, 1>, known_block_size = array<i32: 256, 1, 1>} {
    // expected-error @below {{cannot lie in #attn.swizzled<span = 0>: expected a buffer below 16777216 bytes}}
    %q = attn.alloc {name = "q"} : <8388608x1xf16, #attn.auto, shared>
    gpu.return
  }
}

// -----

// Nothing says which warps share the tile.
gpu.module @kernels {
  // expected-error @below {{'gpu.func' op expected 'attn.warps', the grid of warps that shares its tiles, or partitions}}
  gpu.func @no_grid(%g: !attn.global<?x64xf16>, %row: i32) kernel {
    // expected-note @below {{a tile without a layout is here}}
    %q = attn.global_load %g[%row] : !attn.global<?x64xf16> -> tensor<64x64xf16, #attn.auto>
    gpu.return
  }
}
