// One row of a tile sees keys, and the rows of two tiles together would walk more blocks than one of
// them: a block that neither needs is a product's all the same, since nothing else orders its loads.

// RUN: attn-compile %s --chip=sm_100a --require-proof --verify -o %t.ptx | FileCheck %s
// CHECK: findings: none
// CHECK: {{^}}passed{{$}}

func.func @one_row(%q: memref<1x2x256x64xbf16>, %k: memref<1x2x256x64xbf16>, %v: memref<1x2x256x64xbf16>, %o: memref<1x2x256x64xbf16>, %lse: memref<1x2x256xf32>) {
  attn.attention ins(%q, %k, %v : memref<1x2x256x64xbf16>, memref<1x2x256x64xbf16>, memref<1x2x256x64xbf16>) outs(%o, %lse : memref<1x2x256x64xbf16>, memref<1x2x256xf32>) mask_mod {
    ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %row = arith.constant 117 : i32
    %isRow = arith.cmpi eq, %i, %row : i32
    %isSeen = arith.cmpi sle, %j, %i : i32
    %keep = arith.andi %isRow, %isSeen : i1
    attn.yield %keep : i1
  } {mask = #attn.mask<kind = window, align = bottom_right, left = 31>, plan = #attn.ws_tmem<block_n = 64, kv_stages = 6, softmax = threshold, polynomial = 6, p_beside = true, p_parts = true, own_blocks = true, order = longest_first, epilogue = staged>}
  return
}
