// DEFINE: %{check} = test-attn-check-locations
// RUN: attn-test-opt %s --pass-pipeline='builtin.module(%{check}, attn-read-masks, %{check}, attn-plan{chip=sm_80}, attn-expand{chip=sm_80}, %{check}, attn-expand-arithmetic, %{check}, gpu.module( \
// RUN:   attn-expand-pipeline, %{check}, attn-select-epilogue, %{check}, attn-infer-layouts, %{check}, attn-materialize-scratch, %{check}, \
// RUN:   attn-allocate-shared, attn-insert-fences, %{check}, attn-lower-tiles, %{check}, cse, convert-attn-to-nvvm, %{check}))' -o /dev/null

// Every op that a pass makes has the location of what it comes from: lines of
// PTX lead back to the problem.

#causal = #attn.mask<kind = window, align = bottom_right, left = 100, right = 0>

func.func @masked(%q: memref<1x4x300x64xf16>, %k: memref<1x2x?x64xf16>, %v: memref<1x2x?x40xf16>,
                  %o: memref<1x4x300x40xf16>, %lse: memref<1x4x300xf32>, %sinks: memref<4xf32>,
                  %bias: memref<4xf32>) {
  attn.attention ins(%q, %k, %v : memref<1x4x300x64xf16>, memref<1x2x?x64xf16>, memref<1x2x?x40xf16>)
                 outs(%o, %lse : memref<1x4x300x40xf16>, memref<1x4x300xf32>)
                 sinks(%sinks : memref<4xf32>)
                 score_mod {
  ^bb0(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %index = arith.index_cast %h : i32 to index
    %x = memref.load %bias[%index] : memref<4xf32>
    %y = arith.addf %s, %x : f32
    attn.yield %y : f32
  } mask_mod {
  ^bb0(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %keep = arith.cmpi slt, %j, %i : i32
    attn.yield %keep : i1
  } {mask = #causal, softcap = 20.0 : f32}
  return
}

func.func @varlen(%q: memref<1x4x300x64xbf16>, %k: memref<1x4x300x64xbf16>, %v: memref<1x4x300x64xbf16>,
                  %o: memref<1x4x300x64xbf16>, %cu: memref<4xi32>) {
  attn.attention ins(%q, %k, %v : memref<1x4x300x64xbf16>, memref<1x4x300x64xbf16>, memref<1x4x300x64xbf16>)
                 outs(%o : memref<1x4x300x64xbf16>)
                 cu_seqlens(%cu, %cu : memref<4xi32>, memref<4xi32>) {max_seqlen_q = 200}
  return
}
