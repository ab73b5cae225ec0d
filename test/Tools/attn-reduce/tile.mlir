// RUN: attn-reduce %s --reduction-tree='traversal-mode=0 test=%S/Inputs/mma.sh test-arg=%attn_build/bin/attn-opt' | FileCheck %s --implicit-check-not=exp2 --implicit-check-not=arith.mulf --implicit-check-not=global_store

// The bug needs a product in a loop over keys: the loop loses its masked phases
// and its second stage, the elementwise ops vanish, the store too.

// CHECK: attn.alloc : <1x32x64xf16
// CHECK: attn.kv_loop %[[BEGIN:[^,]*]], %[[BEGIN]], %[[END:[^,]*]], %[[END]] block 32 stages 1
// CHECK: attn.mma

gpu.module @kernels {
  gpu.func @kernel(%gk: !attn.global<?x64xf16>, %go: !attn.global<?x32xf32>, %n: i32, %m: i32,
                   %q: tensor<64x64xf16, #attn.auto>, %s0: tensor<64x32xf32, #attn.auto>) kernel
      attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant 0 : i32
    %ring = attn.alloc : !attn.buffer<2x32x64xf16, #attn.auto, shared>
    %r = attn.kv_loop %zero, %zero, %m, %n block 32 stages 2 iter_args(%s0 : tensor<64x32xf32, #attn.auto>) {
    ^bb0(%key: i32, %acc: tensor<64x32xf32, #attn.auto>):
      %k = attn.stage %gk[%key], %ring : !attn.global<?x64xf16>, !attn.buffer<2x32x64xf16, #attn.auto, shared> -> !attn.buffer<32x64xf16, #attn.auto, shared>
      %kt = attn.transpose %k : !attn.buffer<32x64xf16, #attn.auto, shared> -> !attn.buffer<64x32xf16, #attn.auto, shared>
      %s = attn.mma %q, %kt, %acc : tensor<64x64xf16, #attn.auto>, !attn.buffer<64x32xf16, #attn.auto, shared>, tensor<64x32xf32, #attn.auto>
      %e = attn.exp2 %s : tensor<64x32xf32, #attn.auto>
      %x = arith.mulf %e, %s : tensor<64x32xf32, #attn.auto>
      attn.yield %x : tensor<64x32xf32, #attn.auto>
    }
    attn.global_store %r, %go[%zero] : tensor<64x32xf32, #attn.auto>, !attn.global<?x32xf32>
    gpu.return
  }
}
