// RUN: attn-reduce %s --reduction-tree='traversal-mode=0 test=%S/Inputs/has.sh test-arg=%attn_build/bin/attn-opt test-arg=attn.mask<' | FileCheck %s --implicit-check-not=score_mod --implicit-check-not=softcap --implicit-check-not=scale --implicit-check-not=plan

// The bug needs the mask: everything else goes, and the extents shrink.

// CHECK:      func.func @problem(%[[Q:.*]]: memref<1x1x1x1xf16>, %[[K:.*]]: memref<1x1x1x1xf16>, %[[V:.*]]: memref<1x1x1x1xf16>, %[[O:.*]]: memref<1x1x1x1xf16>) {
// CHECK-NEXT:   attn.attention ins(%[[Q]], %[[K]], %[[V]] :
// CHECK-SAME:     outs(%[[O]] : memref<1x1x1x1xf16>) {mask = #attn.mask<kind = causal>}
// CHECK-NEXT:   return

func.func @problem(%q: memref<2x8x1024x128xf16>, %k: memref<2x2x777x128xf16>,
                   %v: memref<2x2x777x64xf16>, %o: memref<2x8x1024x64xf16>,
                   %lse: memref<2x8x1024xf32>, %sinks: memref<8xf32>, %bias: memref<8xf32>) {
  %zero = arith.constant 0 : index
  attn.attention ins(%q, %k, %v : memref<2x8x1024x128xf16>, memref<2x2x777x128xf16>, memref<2x2x777x64xf16>)
                 outs(%o, %lse : memref<2x8x1024x64xf16>, memref<2x8x1024xf32>)
                 sinks(%sinks : memref<8xf32>)
                 score_mod {
  ^bb0(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %x = memref.load %bias[%zero] : memref<8xf32>
    %y = arith.addf %s, %x : f32
    attn.yield %y : f32
  } {mask = #attn.mask<kind = causal>, softcap = 30.0 : f32, scale = 0.1 : f32,
     plan = #attn.split_q<block_m = 64>}
  return
}
