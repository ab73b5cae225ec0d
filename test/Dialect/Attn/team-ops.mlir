// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -mlir-print-op-generic | attn-opt | FileCheck %s
// RUN: attn-opt %s -emit-bytecode | attn-opt | FileCheck %s

// Teams of one warp each: their number, their barrier, and what they give each
// other.

// CHECK-LABEL: func.func @teams(
// CHECK-SAME: attn.teams = 4
func.func @teams(%x: tensor<16x8xf32, #attn.auto>, %m: tensor<16xf32, #attn.auto>, %b: !attn.buffer<256xf32, #attn.auto, shared>) attributes {attn.warps = array<i64: 1, 1>, attn.teams = 4 : i64} {
  // CHECK: attn.team_index
  %t = attn.team_index
  // CHECK: attn.team_barrier
  attn.team_barrier
  // CHECK: attn.team_take %{{.*}}, %{{.*}} via %{{.*}} from 2 : tensor<16x8xf32, #attn.auto>, tensor<16xf32, #attn.auto> via <256xf32, #attn.auto, shared>
  %y:2 = attn.team_take %x, %m via %b from 2 : tensor<16x8xf32, #attn.auto>, tensor<16xf32, #attn.auto> via <256xf32, #attn.auto, shared>
  return
}

// CHECK-LABEL: func.func @share(
func.func @share(%x: tensor<16x32xf32, #attn.auto>, %m: tensor<16xf32, #attn.auto>, %b: !attn.buffer<640xf32, #attn.auto, shared>) attributes {attn.warps = array<i64: 1, 1>, attn.teams = 2 : i64} {
  // CHECK: attn.team_share %{{.*}}, %{{.*}} via %{{.*}} : tensor<16xf32, #attn.auto>, tensor<16x32xf32, #attn.auto> via <640xf32, #attn.auto, shared> -> tensor<16xf32, #attn.auto>, tensor<16x16xf32, #attn.auto>, tensor<16xf32, #attn.auto>, tensor<16x16xf32, #attn.auto>
  %y:4 = attn.team_share %m, %x via %b : tensor<16xf32, #attn.auto>, tensor<16x32xf32, #attn.auto> via <640xf32, #attn.auto, shared> -> tensor<16xf32, #attn.auto>, tensor<16x16xf32, #attn.auto>, tensor<16xf32, #attn.auto>, tensor<16x16xf32, #attn.auto>
  return
}
