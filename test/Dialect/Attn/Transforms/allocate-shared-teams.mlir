// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-allocate-shared{chip=sm_80}))' -split-input-file -verify-diagnostics | FileCheck %s

// An allocation stands for one buffer in each team: offsets are those in a team's
// bytes, which start at a multiple of what the strictest buffer asks for.

gpu.module @kernels {
  // CHECK: gpu.func @teams({{.*}}attn.shared_bytes = 6144 : i64
  gpu.func @teams(%x: tensor<16x16xf16, #attn.mma<warps = [1, 1]>>) kernel attributes {attn.warps = array<i64: 1, 1>, attn.teams = 4 : i64} {
    // CHECK: attn.alloc {name = "a", offset = 1024
    %a = attn.alloc {name = "a"} : !attn.buffer<16x16xf16, #attn.rows, shared>
    // CHECK: attn.alloc {name = "b", offset = 0
    %b = attn.alloc {name = "b"} : !attn.buffer<32x16xf16, #attn.rows, shared>
    attn.local_store %x, %a : tensor<16x16xf16, #attn.mma<warps = [1, 1]>>, !attn.buffer<16x16xf16, #attn.rows, shared>
    %y = attn.local_load %b : !attn.buffer<32x16xf16, #attn.rows, shared> -> tensor<32x16xf16, #attn.mma<warps = [1, 1]>>
    %z = attn.local_load %a : !attn.buffer<16x16xf16, #attn.rows, shared> -> tensor<16x16xf16, #attn.mma<warps = [1, 1]>>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @below {{shared memory does not fit: expected at most 166912 bytes on sm_80, got 262144 (16 teams with a 16384)}}
  gpu.func @many(%x: tensor<64x128xf16, #attn.mma<warps = [1, 1]>>) kernel attributes {attn.warps = array<i64: 1, 1>, attn.teams = 16 : i64} {
    %a = attn.alloc {name = "a"} : !attn.buffer<64x128xf16, #attn.rows, shared>
    attn.local_store %x, %a : tensor<64x128xf16, #attn.mma<warps = [1, 1]>>, !attn.buffer<64x128xf16, #attn.rows, shared>
    %z = attn.local_load %a : !attn.buffer<64x128xf16, #attn.rows, shared> -> tensor<64x128xf16, #attn.mma<warps = [1, 1]>>
    gpu.return
  }
}
