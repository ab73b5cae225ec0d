// RUN: attn-opt %s -attn-expand=chip=sm_90a -split-input-file --remarks-filter='attn.ws-wgmma' -o %t.mlir 2>%t.remarks
// RUN: FileCheck %s < %t.mlir
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks

// Which keys of a first block are multiplied.

// The diagonal: 64 keys less for the first of two warpgroups. Four tiles of 128
// rows walk 10 blocks, and a quarter of each first one is left out.
// CHECK-LABEL: func.func @causal
// CHECK: attn.kv_loop {{.*}} qk_ahead first [64, 128] second interior
// REMARK: [Passed] first-block
// REMARK-SAME: block=128, keys="64,128", saved-percent=10.0
func.func @causal(%q: memref<1x8x512x64xf16>, %o: memref<1x8x512x64xf16>) {
  attn.attention ins(%q, %q, %q : memref<1x8x512x64xf16>, memref<1x8x512x64xf16>, memref<1x8x512x64xf16>)
                 outs(%o : memref<1x8x512x64xf16>) {mask = #attn.mask<kind = causal>, plan = #attn.ws_wgmma<first_block = auto>}
  return
}

// -----

// Nothing for the first warpgroup; the second block needs the right mask.
// CHECK-LABEL: func.func @two_blocks
// CHECK: attn.kv_loop {{.*}} first [0, 64] second right
// REMARK: block=64, keys="0,64", saved-percent=10.0
func.func @two_blocks(%q: memref<1x8x512x64xf16>, %o: memref<1x8x512x64xf16>) {
  attn.attention ins(%q, %q, %q : memref<1x8x512x64xf16>, memref<1x8x512x64xf16>, memref<1x8x512x64xf16>)
                 outs(%o : memref<1x8x512x64xf16>) {mask = #attn.mask<kind = causal>, plan = #attn.ws_wgmma<block_n = 64, first_block = auto>}
  return
}

// -----

// The diagonal is 32 keys further right: the first block has 32 keys for the
// second warpgroup and none for the first, in tiles that do not end before.
// CHECK-LABEL: func.func @offset
// CHECK: attn.kv_loop {{.*}} first [0, 32] second right
func.func @offset(%q: memref<1x8x256x64xf16>, %k: memref<1x8x416x64xf16>, %o: memref<1x8x256x64xf16>) {
  attn.attention ins(%q, %k, %k : memref<1x8x256x64xf16>, memref<1x8x416x64xf16>, memref<1x8x416x64xf16>)
                 outs(%o : memref<1x8x256x64xf16>) {mask = #attn.mask<kind = causal, align = bottom_right>, plan = #attn.ws_wgmma<first_block = auto>}
  return
}

// -----

// Blocks that divide no tile: the largest need of all tiles.
// CHECK-LABEL: func.func @three
// CHECK: attn.kv_loop {{.*}} first [0, 48, 112] second right
func.func @three(%q: memref<1x8x3840x64xf16>, %o: memref<1x8x3840x64xf16>) {
  attn.attention ins(%q, %q, %q : memref<1x8x3840x64xf16>, memref<1x8x3840x64xf16>, memref<1x8x3840x64xf16>)
                 outs(%o : memref<1x8x3840x64xf16>) {mask = #attn.mask<kind = causal>, plan = #attn.ws_wgmma<block_m = 192, block_n = 112, first_block = auto>}
  return
}

// -----

// The end of the keys, whatever the number of queries: 1024 = 12 x 80 + 64.
// CHECK-LABEL: func.func @tail
// CHECK: attn.kv_loop {{.*}} first [64, 64] second interior
// REMARK: block=80, keys="64,64", saved-percent=1.5
func.func @tail(%q: memref<1x8x?x64xf16>, %k: memref<1x8x1024x64xf16>, %o: memref<1x8x?x64xf16>) {
  attn.attention ins(%q, %k, %k : memref<1x8x?x64xf16>, memref<1x8x1024x64xf16>, memref<1x8x1024x64xf16>)
                 outs(%o : memref<1x8x?x64xf16>) {plan = #attn.ws_wgmma<block_n = 80, first_block = auto>}
  return
}

// -----

// A tile of one row ends behind that row: 3 of 6 blocks are first ones.
// CHECK-LABEL: func.func @one_row
// CHECK: attn.kv_loop {{.*}} qk_ahead first [64, 128] second interior
// REMARK: block=128, keys="64,128", saved-percent=12.5
func.func @one_row(%q: memref<1x8x257x64xf16>, %o: memref<1x8x257x64xf16>) {
  attn.attention ins(%q, %q, %q : memref<1x8x257x64xf16>, memref<1x8x257x64xf16>, memref<1x8x257x64xf16>)
                 outs(%o : memref<1x8x257x64xf16>) {mask = #attn.mask<kind = causal>, plan = #attn.ws_wgmma<first_block = auto>}
  return
}

// -----

// 8-bit operands: multiples of 32.
// CHECK-LABEL: func.func @narrow
// CHECK: attn.kv_loop {{.*}} first [64, 64] second interior
func.func @narrow(%q: memref<1x8x256x64xf8E4M3FN>, %k: memref<1x8x300x64xf8E4M3FN>, %o: memref<1x8x256x64xf16>) {
  attn.attention ins(%q, %k, %k : memref<1x8x256x64xf8E4M3FN>, memref<1x8x300x64xf8E4M3FN>, memref<1x8x300x64xf8E4M3FN>)
                 outs(%o : memref<1x8x256x64xf16>) {plan = #attn.ws_wgmma<first_block = auto>}
  return
}

// -----

// Blocks larger than tiles: the second one needs the right mask in some tiles and
// not in others, so that it keeps all masks.
// CHECK-LABEL: func.func @mixed
// CHECK: attn.kv_loop {{.*}} first [96, 160] iter_args
func.func @mixed(%q: memref<1x8x512x64xf16>, %o: memref<1x8x512x64xf16>) {
  attn.attention ins(%q, %q, %q : memref<1x8x512x64xf16>, memref<1x8x512x64xf16>, memref<1x8x512x64xf16>)
                 outs(%o : memref<1x8x512x64xf16>) {mask = #attn.mask<kind = causal>, plan = #attn.ws_wgmma<block_n = 176, first_block = auto>}
  return
}

// -----

// A window: the second block needs the left mask in all tiles. A warpgroup ends
// where its own rows' window begins, and hands the slots before that back.
// CHECK-LABEL: func.func @window
// CHECK: %[[GROUP:.*]] = attn.warpgroup_index
// CHECK: %[[OFFSET:.*]] = arith.muli %[[GROUP]], %{{.*}}
// CHECK: arith.addi %{{.*}}, %[[OFFSET]]
// CHECK: %[[SKIPPED:.*]] = arith.subi %[[BEGIN:.*]], %{{.*}} : i32
// CHECK: attn.kv_loop %[[BEGIN]], {{.*}} first [64, 128] second left
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[SKIPPED]]
// CHECK-NEXT: attn.channel.acquire
// REMARK: [Passed] last-block
// REMARK-SAME: block=128, rows=64
func.func @window(%q: memref<1x8x512x64xf16>, %o: memref<1x8x512x64xf16>) {
  attn.attention ins(%q, %q, %q : memref<1x8x512x64xf16>, memref<1x8x512x64xf16>, memref<1x8x512x64xf16>)
                 outs(%o : memref<1x8x512x64xf16>) {mask = #attn.mask<kind = window, left = 96, right = 0>, plan = #attn.ws_wgmma<first_block = auto>}
  return
}

// -----

// Warpgroups that take turns meet in every block, and whole blocks are asked for:
// all end at the tile's first block.
// CHECK-LABEL: func.func @turns
// CHECK-NOT: attn.warpgroup_index
// CHECK-LABEL: func.func @whole
// CHECK-NOT: attn.warpgroup_index
func.func @turns(%q: memref<1x8x512x64xf16>, %o: memref<1x8x512x64xf16>) {
  attn.attention ins(%q, %q, %q : memref<1x8x512x64xf16>, memref<1x8x512x64xf16>, memref<1x8x512x64xf16>)
                 outs(%o : memref<1x8x512x64xf16>) {mask = #attn.mask<kind = window, left = 96, right = 0>, plan = #attn.ws_wgmma<turns = true, first_block = auto>}
  return
}
func.func @whole(%q: memref<1x8x512x64xf16>, %o: memref<1x8x512x64xf16>) {
  attn.attention ins(%q, %q, %q : memref<1x8x512x64xf16>, memref<1x8x512x64xf16>, memref<1x8x512x64xf16>)
                 outs(%o : memref<1x8x512x64xf16>) {mask = #attn.mask<kind = window, left = 96, right = 0>, plan = #attn.ws_wgmma<first_block = whole>}
  return
}

// -----

// Packed sequences, lengths that the launch decides, blocks that all warpgroups
// need whole, and keys in another order.
// REMARK-COUNT-4: [Missed] first-block
// CHECK-LABEL: func.func @packed
// CHECK: attn.kv_loop
// CHECK-NOT: first [
func.func @packed(%q: memref<1x8x512x64xf16>, %s: memref<5xi32>, %o: memref<1x8x512x64xf16>) {
  attn.attention ins(%q, %q, %q : memref<1x8x512x64xf16>, memref<1x8x512x64xf16>, memref<1x8x512x64xf16>)
                 outs(%o : memref<1x8x512x64xf16>) cu_seqlens(%s, %s : memref<5xi32>, memref<5xi32>) {max_seqlen_q = 512 : i64, mask = #attn.mask<kind = causal>, plan = #attn.ws_wgmma<first_block = auto>}
  return
}

// -----

func.func @unknown(%q: memref<1x8x?x64xf16>, %k: memref<1x8x512x64xf16>, %o: memref<1x8x?x64xf16>) {
  attn.attention ins(%q, %k, %k : memref<1x8x?x64xf16>, memref<1x8x512x64xf16>, memref<1x8x512x64xf16>)
                 outs(%o : memref<1x8x?x64xf16>) {mask = #attn.mask<kind = causal>, plan = #attn.ws_wgmma<first_block = auto>}
  return
}

// -----

func.func @whole(%q: memref<1x8x512x64xf16>, %o: memref<1x8x512x64xf16>) {
  attn.attention ins(%q, %q, %q : memref<1x8x512x64xf16>, memref<1x8x512x64xf16>, memref<1x8x512x64xf16>)
                 outs(%o : memref<1x8x512x64xf16>) {plan = #attn.ws_wgmma<first_block = auto>}
  return
}

// -----

func.func @quads(%q: memref<1x8x256x64xf8E4M3FN>, %k: memref<1x8x304x64xf8E4M3FN>, %v: memref<1x8x304x64xf8E4M3FN, strided<[155648, 19456, 1, 304]>>, %o: memref<1x8x256x64xf16>) {
  attn.attention ins(%q, %k, %v : memref<1x8x256x64xf8E4M3FN>, memref<1x8x304x64xf8E4M3FN>, memref<1x8x304x64xf8E4M3FN, strided<[155648, 19456, 1, 304]>>)
                 outs(%o : memref<1x8x256x64xf16>) {plan = #attn.ws_wgmma<key_quads = true, first_block = auto>}
  return
}
