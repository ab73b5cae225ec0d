// The range of scores holds for what a score_mod returns, under every policy.
// RUN: attn-compile %s --set=softmax=exact --verify --lose-bets=false | FileCheck %s
// RUN: attn-compile %s --set=softmax=threshold --verify --lose-bets=false | FileCheck %s
// RUN: attn-compile %s --set=softmax=optimistic --verify --lose-bets=false | FileCheck %s
// RUN: attn-compile %s --chip=sm_90a --schedule=ws_wgmma --set=block_m=64,block_n=64 --verify --lose-bets=false | FileCheck %s
// RUN: attn-compile %s --chip=sm_90a --schedule=self_load --verify --lose-bets=false | FileCheck %s
// CHECK: findings: none
// CHECK: passed

!q = memref<1x1x64x16xf16>
!k = memref<1x1x200x16xf16>

func.func @large(%q: !q, %k: !k, %v: !k, %o: !q) {
  attn.attention ins(%q, %k, %v : !q, !k, !k) outs(%o : !q)
                 score_mod {
                 ^bb0(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32):
                   %many = arith.constant 3.6e7 : f32
                   %r = arith.mulf %s, %many : f32
                   attn.yield %r : f32
                 }
                 {scale = 0.25 : f32}
  return
}
