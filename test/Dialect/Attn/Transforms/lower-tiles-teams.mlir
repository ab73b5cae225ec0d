// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-lower-tiles,cse))' | FileCheck %s

// The team is the warp, in a form that is the same in all lanes; its bytes of
// shared memory lie behind those of the team before. Of 4 teams the first two take
// what the other two give, 2048 bytes further on.

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @teams(
  // CHECK-SAME: %[[OUT:.*]]: !llvm.ptr<1>
  gpu.func @teams(%out: !llvm.ptr<1>, %x: f32) kernel attributes {attn.warps = array<i64: 1, 1>, attn.teams = 4 : i64, attn.shared_bytes = 4096 : i64} {
    // CHECK: %[[TEAM:.*]] = nvvm.shfl.sync idx
    // CHECK: %[[SHARED:.*]] = llvm.mlir.addressof @attn_shared
    // CHECK: %[[DISTANCE:.*]] = arith.muli %[[TEAM]], %{{.*}} : i32
    // CHECK: %[[OWN:.*]] = llvm.getelementptr %[[SHARED]][%[[DISTANCE]]]
    %b = attn.alloc {offset = 0 : i64} : !attn.buffer<128xf32, #attn.rows, shared>
    // CHECK: nvvm.bar.warp.sync
    attn.team_barrier
    %t = tensor.splat %x : tensor<16x8xf32, #attn.mma<warps = [1, 1]>>
    // CHECK: %[[BEHIND:.*]] = arith.subi %[[TEAM]], %[[TWO:.*]] : i32
    // CHECK: %[[GIVES:.*]] = arith.cmpi ult, %[[BEHIND]], %[[TWO]]
    // CHECK: scf.if %[[GIVES]]
    // CHECK: llvm.store %{{.*}}, %{{.*}} {alignment = 16 : i64} : vector<4xf32>
    // CHECK: gpu.barrier
    // CHECK: %[[TAKES:.*]] = arith.cmpi ult, %[[TEAM]], %[[TWO]]
    // CHECK: scf.if %[[TAKES]] -> (f32, f32, f32, f32)
    // CHECK: llvm.getelementptr %[[OWN]][2048]
    // CHECK: llvm.load %{{.*}} {alignment = 16 : i64}
    // CHECK: else
    %y = attn.team_take %t via %b from 2 : tensor<16x8xf32, #attn.mma<warps = [1, 1]>> via <128xf32, #attn.rows, shared>
    %c = attn.alloc {offset = 512 : i64} : !attn.buffer<16x8xf32, #attn.rows, shared>
    attn.local_store %y, %c : tensor<16x8xf32, #attn.mma<warps = [1, 1]>>, !attn.buffer<16x8xf32, #attn.rows, shared>
    %i = attn.team_index
    // CHECK: llvm.store %[[TEAM]], %[[OUT]]
    llvm.store %i, %out : i32, !llvm.ptr<1>
    gpu.return
  }
}
