// RUN: attn-test-opt %s --pass-pipeline='builtin.module(gpu.module(attn-infer-layouts))' | FileCheck %s

// Ops of another dialect: the pass asks interfaces.

!map = !attn.tensor_map<64x32xf16, swizzle = 64>
!auto = !attn.buffer<64x64xf16, #attn.auto, shared>
gpu.module @kernels {
  // The buffer lies as the boxes do, not with the widest swizzle.
  // CHECK-LABEL: gpu.func @layout
  // CHECK:         attn.alloc {name = "k"} : <64x64xf16, #attn.swizzled<span = 64>, shared>
  gpu.func @layout(%map: !map, %t: !attn.token) attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant 0 : i32
    %slot = attn.alloc {name = "k"} : !auto
    test_attn.bulk_fill %map[%zero, %zero], %slot token %t : !map, !auto
    gpu.return
  }

  // A product's operand and its tile behind the wait.
  // CHECK-LABEL: gpu.func @product
  // CHECK:         attn.convert_layout %{{.*}} -> {{.*}}#attn.operand<index = 0
  // CHECK:         test_attn.product
  // CHECK:         test_attn.product_wait {{.*}} -> tensor<64x64xf32, #attn.mma<warps = [4, 1]>>
  gpu.func @product(%b: !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>) attributes {attn.warps = array<i64: 4, 1>} {
    %p = attn.local_load %b : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared> -> tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
    %s = test_attn.product %p, %b : tensor<64x64xf16, #attn.mma<warps = [4, 1]>>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.inflight<64x64xf32>
    %r = test_attn.product_wait %s {pending = 0} : !attn.inflight<64x64xf32> -> tensor<64x64xf32, #attn.auto>
    gpu.return
  }

  // Tiles keep their layout through any region that says how control flows.
  // CHECK-LABEL: gpu.func @regions
  // CHECK:         scf.index_switch %{{.*}} -> tensor<64x64xf32, #attn.mma<warps = [4, 1]>>
  // CHECK:         scf.while {{.*}} : (tensor<64x64xf32, #attn.mma<warps = [4, 1]>>) -> tensor<64x64xf32, #attn.mma<warps = [4, 1]>>
  // CHECK-NOT:     attn.convert_layout
  // CHECK:         gpu.return
  gpu.func @regions(%x: tensor<64x64xf32, #attn.mma<warps = [4, 1]>>, %i: index, %c: i1) attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #attn.auto>
    %y = arith.addf %zero, %zero : tensor<64x64xf32, #attn.auto>
    %s = scf.index_switch %i -> tensor<64x64xf32, #attn.auto>
    case 1 {
      scf.yield %y : tensor<64x64xf32, #attn.auto>
    }
    default {
      scf.yield %zero : tensor<64x64xf32, #attn.auto>
    }
    %w = scf.while (%a = %s) : (tensor<64x64xf32, #attn.auto>) -> tensor<64x64xf32, #attn.auto> {
      scf.condition(%c) %a : tensor<64x64xf32, #attn.auto>
    } do {
    ^bb0(%a: tensor<64x64xf32, #attn.auto>):
      %n = arith.mulf %a, %a : tensor<64x64xf32, #attn.auto>
      scf.yield %n : tensor<64x64xf32, #attn.auto>
    }
    gpu.return
  }
}
