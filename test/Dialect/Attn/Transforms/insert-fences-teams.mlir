// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-insert-fences))' | FileCheck %s

// Buffers are a team's own: what needs a barrier needs one of the team. A team
// that takes over tiles waits for the others in the op itself.

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @teams(
  gpu.func @teams(%x: tensor<16x16xf16, #attn.mma<warps = [1, 1]>>, %m: tensor<16x8xf32, #attn.mma<warps = [1, 1]>>) kernel attributes {attn.warps = array<i64: 1, 1>, attn.teams = 4 : i64, attn.shared_bytes = 2048 : i64} {
    %a = attn.alloc {name = "a", offset = 0 : i64} : !attn.buffer<16x16xf16, #attn.rows, shared>
    // CHECK: attn.local_store
    attn.local_store %x, %a : tensor<16x16xf16, #attn.mma<warps = [1, 1]>>, !attn.buffer<16x16xf16, #attn.rows, shared>
    // CHECK-NEXT: attn.team_barrier
    // CHECK-NEXT: attn.local_load
    %y = attn.local_load %a : !attn.buffer<16x16xf16, #attn.rows, shared> -> tensor<16x16xf16, #attn.mma<warps = [1, 1]>>
    %b = attn.alloc {name = "b", offset = 0 : i64} : !attn.buffer<128xf32, #attn.rows, shared>
    // CHECK: attn.team_barrier
    // CHECK-NEXT: attn.team_take
    %n = attn.team_take %m via %b from 2 : tensor<16x8xf32, #attn.mma<warps = [1, 1]>> via <128xf32, #attn.rows, shared>
    // CHECK-NOT: gpu.barrier
    gpu.return
  }
}
