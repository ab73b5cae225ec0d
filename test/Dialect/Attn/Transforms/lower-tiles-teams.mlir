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

  // Each of 2 teams writes the registers of its row values and its tile, 16 bytes of
  // a thread at a time, and reads those of both: the row values, and of the tile the
  // 4 registers of its own columns, 512 bytes further on for each team before it.
  // CHECK-LABEL: gpu.func @share(
  gpu.func @share(%out: !llvm.ptr<1>, %x: f32) kernel attributes {attn.warps = array<i64: 1, 1>, attn.teams = 2 : i64, attn.shared_bytes = 4096 : i64} {
    // CHECK: %[[TEAM:.*]] = nvvm.shfl.sync idx
    %b = attn.alloc {offset = 0 : i64} : !attn.buffer<384xf32, #attn.rows, shared>
    // CHECK: %[[OWN:.*]] = llvm.getelementptr %{{.*}}[%{{.*}}]
    %m = tensor.splat %x : tensor<16xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [1, 1]>>>
    %t = tensor.splat %x : tensor<16x16xf32, #attn.mma<warps = [1, 1]>>
    // CHECK-COUNT-3: llvm.store %{{.*}}, %{{.*}} {alignment = 16 : i64}
    // CHECK: gpu.barrier
    // CHECK-NOT: gpu.barrier
    // CHECK: %[[TO_FIRST:.*]] = arith.subi %{{.*}}, %[[TEAM]] : i32
    // CHECK: %[[BYTES:.*]] = arith.muli %[[TO_FIRST]], %{{.*}} : i32
    // CHECK: %[[FIRST:.*]] = llvm.getelementptr %[[OWN]][%[[BYTES]]]
    // CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
    // CHECK: %[[COLUMNS:.*]] = arith.muli %[[TEAM]], %c512_i32 : i32
    // CHECK: llvm.getelementptr %[[FIRST]][%[[COLUMNS]]]
    // CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
    // CHECK-COUNT-2: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
    // CHECK-NOT: llvm.load
    %y:6 = attn.team_share %m, %m, %t via %b : tensor<16xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [1, 1]>>>, tensor<16xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [1, 1]>>>, tensor<16x16xf32, #attn.mma<warps = [1, 1]>> via <384xf32, #attn.rows, shared> -> tensor<16xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [1, 1]>>>, tensor<16xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [1, 1]>>>, tensor<16x8xf32, #attn.mma<warps = [1, 1]>>, tensor<16xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [1, 1]>>>, tensor<16xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [1, 1]>>>, tensor<16x8xf32, #attn.mma<warps = [1, 1]>>
    %z = arith.addf %y#2, %y#5 : tensor<16x8xf32, #attn.mma<warps = [1, 1]>>
    %r = arith.addf %y#0, %y#4 : tensor<16xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [1, 1]>>>
    gpu.return
  }
}
