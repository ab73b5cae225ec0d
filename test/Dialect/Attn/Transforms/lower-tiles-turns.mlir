// RUN: attn-opt %s -pass-pipeline='builtin.module(gpu.module(attn-lower-tiles))' | FileCheck %s
// RUN: sed 's/warps 8 tiles .8/warps 4 tiles [4/; s/384/256/' %s | attn-opt -pass-pipeline='builtin.module(gpu.module(attn-lower-tiles))' | FileCheck %s --check-prefix=ONE

// Each warpgroup has a barrier of its own, at which it meets the one before;
// the last one gives the first turn. One warpgroup needs no turns.
// CHECK-LABEL: gpu.func @turns
// CHECK: %[[WARP:.*]] = nvvm.shfl
// CHECK: %[[GROUP:.*]] = arith.shrui %[[WARP]]
// CHECK: %[[OWN:.*]] = arith.addi %[[GROUP]]
// CHECK: %[[NEXT:.*]] = arith.select
// CHECK: scf.if
// CHECK: %[[FIRST:.*]] = arith.constant 2 : i32
// CHECK: llvm.call_intrinsic "llvm.nvvm.barrier.cta.arrive.count"(%[[FIRST]], %c256
// CHECK: llvm.call_intrinsic "llvm.nvvm.barrier.cta.sync.count"(%{{.*}}, %c256
// CHECK: llvm.call_intrinsic "llvm.nvvm.barrier.cta.arrive.count"(%[[NEXT]], %c256
// ONE-LABEL: gpu.func @turns
// ONE-NOT: llvm.nvvm.barrier
gpu.module @kernels {
  gpu.func @turns() kernel attributes {known_block_size = array<i32: 384, 1, 1>, nvvm.minctasm = 1 : i32} {
    attn.warp_specialize
    partition "consumer" warps 8 tiles [8, 1] registers 240 {
      attn.turn.start 2
      attn.turn.take 2
      attn.turn.pass 2
    }
    partition "producer" warps 4 registers 24 {
    }
    gpu.return
  }
}
