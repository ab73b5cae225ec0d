// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-lower-tile-loops))' | FileCheck %s

gpu.module @kernels {
  gpu.func @kernel(%count: i32) kernel {
    attn.tile_loop %count scheduler strided {
    ^bb0(%tile: i32):
      gpu.printf "%d", %tile : i32
      attn.yield
    }
    gpu.return
  }
}

// CHECK: gpu.func @kernel(%[[COUNT:.*]]: i32)
// CHECK: %[[CTA:.*]] = arith.index_cast %{{.*}} : index to i32
// CHECK: %[[GRID:.*]] = arith.index_cast %{{.*}} : index to i32
// CHECK: scf.for %[[TILE:.*]] = %[[CTA]] to %[[COUNT]] step %[[GRID]]
// CHECK-NEXT: gpu.printf "%d", %[[TILE]]
