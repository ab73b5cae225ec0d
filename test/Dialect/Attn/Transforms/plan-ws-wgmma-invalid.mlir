// RUN: attn-opt %s -attn-plan="chip=sm_90a schedule=ws_wgmma" -split-input-file -verify-diagnostics
// RUN: not attn-opt %S/Inputs/problem.mlir -attn-plan="chip=sm_86 schedule=ws_wgmma" 2>&1 | FileCheck %s --check-prefix=CHIP
// RUN: not attn-opt %S/Inputs/problem.mlir -attn-plan="chip=sm_90a schedule=ws_wgmma set=warps=4" 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not attn-opt %S/Inputs/problem.mlir -attn-plan="chip=sm_90a schedule=ws_wgmma set=block_m=128,block_n=256,q_stages=4" 2>&1 | FileCheck %s --check-prefix=SUM
// RUN: not attn-opt %S/Inputs/problem.mlir -attn-plan="chip=sm_90a schedule=ws_wgmma set=qk_ahead=maybe" 2>&1 | FileCheck %s --check-prefix=BOOL
// RUN: not attn-opt %S/Inputs/problem.mlir -attn-plan="chip=sm_90a schedule=ws_wgmma set=first_block=half" 2>&1 | FileCheck %s --check-prefix=FIRST

// CHIP: schedule 'ws_wgmma' does not support sm_86, which has no wgmma, expected sm_90a
// NAME: unknown parameter 'warps' of schedule 'ws_wgmma', expected one of block_m, block_n, q_stages, k_stages, v_stages, qk_ahead, pv_behind, turns, cluster, key_quads, dynamic, softmax, order, group_heads, epilogue, first_block
// SUM: does not fit: shared memory {{[0-9]+}} (q 4 x 32768 + k {{[23]}} x 65536 + v 2 x 65536 + barriers {{[89]}} x 16) exceeds 232448 on sm_90a
// FIRST: expected first_block to be one of whole, auto, got 'half'
// BOOL: expected qk_ahead to be true or false, got 'maybe'

// A counter whose tiles the producers of a cluster read too, for which one more
// mbarrier in each slot is needed.
func.func @dealt(%q: memref<1x8x256x64xf16>, %o: memref<1x8x256x64xf16>) {
  // expected-error-re@+1 {{does not fit: shared memory {{.*}} (q 16384 + k 7 x 16384 + v 7 x 16384 + barriers 15 x 16 + tile 2 x 32) exceeds 232448 on sm_90a}}
  attn.attention ins(%q, %q, %q : memref<1x8x256x64xf16>, memref<1x8x256x64xf16>, memref<1x8x256x64xf16>)
                 outs(%o : memref<1x8x256x64xf16>) {plan = #attn.ws_wgmma<k_stages = 7, v_stages = 7, cluster = 2, dynamic = true>}
  return
}

// -----

// Results that go through memory of their own, since the queries' is too small,
// and what a counter needs.
func.func @results(%q: memref<1x8x256x64xf16>, %o: memref<1x8x256x64xf32>) {
  // expected-error-re@+1 {{does not fit: shared memory {{.*}} (q 16384 + k 6 x 16384 + v 6 x 16384 + barriers 13 x 16 + tile 2 x 24 + o 32768) exceeds 232448 on sm_90a}}
  attn.attention ins(%q, %q, %q : memref<1x8x256x64xf16>, memref<1x8x256x64xf16>, memref<1x8x256x64xf16>)
                 outs(%o : memref<1x8x256x64xf32>) {plan = #attn.ws_wgmma<k_stages = 6, v_stages = 6, dynamic = true, epilogue = tma>}
  return
}

// -----

func.func @policy(%q: memref<1x8x256x64xf16>, %o: memref<1x8x256x64xf16>) {
  // expected-error@+1 {{schedule 'ws_wgmma' does not support the softmax policy 'lagged', expected 'exact', 'threshold' or 'optimistic'}}
  attn.attention ins(%q, %q, %q : memref<1x8x256x64xf16>, memref<1x8x256x64xf16>, memref<1x8x256x64xf16>)
                 outs(%o : memref<1x8x256x64xf16>) {plan = #attn.ws_wgmma<softmax = lagged>}
  return
}

// -----

func.func @ahead(%q: memref<1x8x256x64xf16>, %o: memref<1x8x256x64xf16>) {
  // expected-error@+1 {{qk_ahead needs 2 slots of K and of V, got 1 and 2}}
  attn.attention ins(%q, %q, %q : memref<1x8x256x64xf16>, memref<1x8x256x64xf16>, memref<1x8x256x64xf16>)
                 outs(%o : memref<1x8x256x64xf16>) {plan = #attn.ws_wgmma<k_stages = 1>}
  return
}

// -----

// TMA needs strides of whole 16 bytes: rows of 72 bytes are none.
func.func @strides(%q: memref<1x8x256x64xf16>, %k: memref<1x8x256x64xf16, strided<[139264, 17408, 68, 1]>>, %o: memref<1x8x256x64xf16>) {
  // expected-error@+1 {{schedule 'ws_wgmma' does not support a stride of 136 bytes in 'k', expected a multiple of 16}}
  attn.attention ins(%q, %k, %q : memref<1x8x256x64xf16>, memref<1x8x256x64xf16, strided<[139264, 17408, 68, 1]>>, memref<1x8x256x64xf16>)
                 outs(%o : memref<1x8x256x64xf16>)
  return
}

// -----

// Each CTA of a cluster loads whole 8 rows of a block.
func.func @parts(%q: memref<1x8x256x64xf16>, %o: memref<1x8x256x64xf16>) {
  // expected-error@+1 {{cluster = 4 needs block_n to be a multiple of 32, got 80}}
  attn.attention ins(%q, %q, %q : memref<1x8x256x64xf16>, memref<1x8x256x64xf16>, memref<1x8x256x64xf16>)
                 outs(%o : memref<1x8x256x64xf16>) {plan = #attn.ws_wgmma<block_n = 80, cluster = 4>}
  return
}

// -----

func.func @paged(%q: memref<2x8x1x64xf16>, %k: memref<9x8x8x64xf16>, %o: memref<2x8x1x64xf16>, %pages: memref<2x4xi32>) {
  // expected-error@+1 {{schedule 'ws_wgmma' does not support pages of 8 keys, expected a multiple of 16; others are copied by cp.async, as 'split_q' does}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x64xf16>, memref<9x8x8x64xf16>, memref<9x8x8x64xf16>)
                 outs(%o : memref<2x8x1x64xf16>) pages(%pages : memref<2x4xi32>) {page_size = 8 : i64}
  return
}

// -----

func.func @large_pages(%q: memref<2x8x1x64xf16>, %k: memref<9x8x131072x64xf16>, %o: memref<2x8x1x64xf16>, %pages: memref<2x4xi32>) {
  // expected-error@+1 {{schedule 'ws_wgmma' does not support pages of 131072 keys, expected at most 65536}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x64xf16>, memref<9x8x131072x64xf16>, memref<9x8x131072x64xf16>)
                 outs(%o : memref<2x8x1x64xf16>) pages(%pages : memref<2x4xi32>) {page_size = 131072 : i64}
  return
}

// -----

func.func @clusters(%q: memref<2x8x1x64xf16>, %k: memref<9x8x64x64xf16>, %o: memref<2x8x1x64xf16>, %pages: memref<2x4xi32>) {
  // expected-error@+1 {{pages or lengths of the keys need cluster = 1, got 2}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x64xf16>, memref<9x8x64x64xf16>, memref<9x8x64x64xf16>)
                 outs(%o : memref<2x8x1x64xf16>) pages(%pages : memref<2x4xi32>) {page_size = 64 : i64, plan = #attn.ws_wgmma<cluster = 2>}
  return
}

// -----

!turned = memref<2x8x16x64xf16, strided<[8192, 1024, 1, 16]>>
func.func @lengths(%q: memref<2x8x1x64xf16>, %k: memref<2x8x16x64xf16>, %v: !turned, %o: memref<2x8x1x64xf16>, %n: memref<2xi32>) {
  // expected-error@+1 {{schedule 'ws_wgmma' does not support pages or lengths of the keys with keys that are contiguous in 'v'}}
  attn.attention ins(%q, %k, %v : memref<2x8x1x64xf16>, memref<2x8x16x64xf16>, !turned)
                 outs(%o : memref<2x8x1x64xf16>) kv_lengths(%n : memref<2xi32>) {plan = #attn.ws_wgmma<>}
  return
}

// -----

func.func @splits(%q: memref<2x8x1x64xf16>, %k: memref<2x8x16x64xf16>, %o: memref<3x2x8x1x64xf32>, %lse: memref<3x2x8x1xf32>) {
  // expected-error@+1 {{expected order = row_major and CTAs of one tile with runs of keys, got longest_first and 1}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x64xf16>, memref<2x8x16x64xf16>, memref<2x8x16x64xf16>)
                 outs(%o, %lse : memref<3x2x8x1x64xf32>, memref<3x2x8x1xf32>) {kv_splits = 3 : i64, plan = #attn.ws_wgmma<order = longest_first>}
  return
}

// -----

func.func @shared_splits(%q: memref<2x8x1x64xf16>, %k: memref<2x8x16x64xf16>, %o: memref<3x2x8x1x64xf32>, %lse: memref<3x2x8x1xf32>) {
  // expected-error@+1 {{expected order = row_major and CTAs of one tile with runs of keys, got row_major and 2}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x64xf16>, memref<2x8x16x64xf16>, memref<2x8x16x64xf16>)
                 outs(%o, %lse : memref<3x2x8x1x64xf32>, memref<3x2x8x1xf32>) {kv_splits = 3 : i64, plan = #attn.ws_wgmma<cluster = 2>}
  return
}

// -----

func.func @tall(%q: memref<2x128x1x64xf16>, %k: memref<2x1x16x64xf16>, %o: memref<2x128x1x64xf16>) {
  // expected-error@+1 {{expected block_m to be 64 or 128 with pack_heads and queries of 128 rows, got 192}}
  attn.attention ins(%q, %k, %k : memref<2x128x1x64xf16>, memref<2x1x16x64xf16>, memref<2x1x16x64xf16>)
                 outs(%o : memref<2x128x1x64xf16>) {plan = #attn.ws_wgmma<pack_heads = true, block_m = 192>}
  return
}

// -----

func.func @packed(%q: memref<2x8x1x64xf16>, %k: memref<2x8x16x64xf16>, %o: memref<2x8x1x64xf16>) {
  // expected-error@+1 {{expected groups of 2 to 256 heads for pack_heads, got 8 query heads and 8 key heads}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x64xf16>, memref<2x8x16x64xf16>, memref<2x8x16x64xf16>)
                 outs(%o : memref<2x8x1x64xf16>) {plan = #attn.ws_wgmma<pack_heads = true>}
  return
}

// -----

func.func @latent(%q: memref<2x8x1x96xf16>, %k: memref<2x1x16x96xf16>, %v: memref<2x1x16x64xf16>, %o: memref<2x8x1x64xf16>) {
  // expected-error@+1 {{schedule 'ws_wgmma' does not support the absorbed latent form ('rope_dim')}}
  attn.attention ins(%q, %k, %v : memref<2x8x1x96xf16>, memref<2x1x16x96xf16>, memref<2x1x16x64xf16>)
                 outs(%o : memref<2x8x1x64xf16>) {rope_dim = 32 : i64}
  return
}

// -----

func.func @head_dim(%q: memref<2x8x1x36xf16>, %o: memref<2x8x1x36xf16>) {
  // expected-error@+1 {{has no legal plan on sm_90a: expected a head dimension that is a multiple of 8, got 36: pad q, k and v with zeros to 40 columns and keep the scale}}
  attn.attention ins(%q, %q, %q : memref<2x8x1x36xf16>, memref<2x8x1x36xf16>, memref<2x8x1x36xf16>)
                 outs(%o : memref<2x8x1x36xf16>)
  return
}

// -----

func.func @no_keys(%q: memref<1x1x8x16xf16>, %k: memref<1x1x0x16xf16>, %o: memref<1x1x8x16xf16>) {
  // expected-error@+1 {{schedule 'ws_wgmma' does not support 0 keys}}
  attn.attention ins(%q, %k, %k : memref<1x1x8x16xf16>, memref<1x1x0x16xf16>, memref<1x1x0x16xf16>)
                 outs(%o : memref<1x1x8x16xf16>)
  return
}

// -----

func.func @lengths(%q: memref<1x1x1x16xf16>, %k: memref<1x1x536870912x16xf16>, %o: memref<1x1x1x16xf16>) {
  // expected-error@+1 {{schedule 'ws_wgmma' does not support 536870912 keys, expected fewer than 536870912}}
  attn.attention ins(%q, %k, %k : memref<1x1x1x16xf16>, memref<1x1x536870912x16xf16>, memref<1x1x536870912x16xf16>)
                 outs(%o : memref<1x1x1x16xf16>)
  return
}

// -----

func.func @stride(%q: memref<1x1x8x16xf16>, %k: memref<1x1x8x16xf16, strided<[171, 171, 20, 1]>>, %o: memref<1x1x8x16xf16>) {
  // expected-error@+1 {{schedule 'ws_wgmma' does not support a stride of 342 bytes in 'k', expected a multiple of 16}}
  attn.attention ins(%q, %k, %q : memref<1x1x8x16xf16>, memref<1x1x8x16xf16, strided<[171, 171, 20, 1]>>, memref<1x1x8x16xf16>)
                 outs(%o : memref<1x1x8x16xf16>)
  return
}

// -----

func.func @alignment(%q: memref<1x1x8x16xf16>, %k: memref<1x1x8x16xf16, strided<[128, 128, 16, 1], offset: 4>>, %o: memref<1x1x8x16xf16>) {
  // expected-error@+1 {{schedule 'ws_wgmma' does not support rows of 'k' that start at multiples of 8 bytes, expected 16}}
  attn.attention ins(%q, %k, %q : memref<1x1x8x16xf16>, memref<1x1x8x16xf16, strided<[128, 128, 16, 1], offset: 4>>, memref<1x1x8x16xf16>)
                 outs(%o : memref<1x1x8x16xf16>)
  return
}

// -----

func.func @narrow_block(%q: memref<1x8x256x64xf8E4M3FN>, %o: memref<1x8x256x64xbf16>) {
  // expected-error@+1 {{8-bit operands need block_n to be a multiple of 32, got 80}}
  attn.attention ins(%q, %q, %q : memref<1x8x256x64xf8E4M3FN>, memref<1x8x256x64xf8E4M3FN>, memref<1x8x256x64xf8E4M3FN>)
                 outs(%o : memref<1x8x256x64xbf16>) {plan = #attn.ws_wgmma<block_n = 80>}
  return
}

// -----

func.func @narrow_cluster(%q: memref<1x8x256x64xf8E4M3FN>, %o: memref<1x8x256x64xbf16>) {
  // expected-error@+1 {{8-bit operands need cluster = 1, got 2}}
  attn.attention ins(%q, %q, %q : memref<1x8x256x64xf8E4M3FN>, memref<1x8x256x64xf8E4M3FN>, memref<1x8x256x64xf8E4M3FN>)
                 outs(%o : memref<1x8x256x64xbf16>) {plan = #attn.ws_wgmma<cluster = 2>}
  return
}

// -----

func.func @narrow_share(%q: memref<1x8x256x32xf8E4M3FN>, %o: memref<1x8x256x32xbf16>) {
  // expected-error@+1 {{expected 4 warps to share 96 x 32 elements in pieces of 32 x 16}}
  attn.attention ins(%q, %q, %q : memref<1x8x256x32xf8E4M3FN>, memref<1x8x256x32xf8E4M3FN>, memref<1x8x256x32xf8E4M3FN>)
                 outs(%o : memref<1x8x256x32xbf16>) {plan = #attn.ws_wgmma<block_n = 96>}
  return
}

// -----

// Rows of K in fours are for P that is the operand of V as it lies.
func.func @quads(%q: memref<1x8x256x64xf8E4M3FN>, %o: memref<1x8x256x64xf16>) {
  // expected-error@+1 {{key_quads needs 8-bit operands and a stride of 1 along the keys of 'v'}}
  attn.attention ins(%q, %q, %q : memref<1x8x256x64xf8E4M3FN>, memref<1x8x256x64xf8E4M3FN>, memref<1x8x256x64xf8E4M3FN>)
                 outs(%o : memref<1x8x256x64xf16>) {plan = #attn.ws_wgmma<key_quads = true>}
  return
}

// -----

func.func @quads_keys(%q: memref<1x8x254x64xf8E4M3FN>, %v: memref<1x8x254x64xf8E4M3FN, strided<[131072, 16384, 1, 256]>>, %o: memref<1x8x254x64xf16>) {
  // expected-error@+1 {{key_quads needs a number of keys that is a known multiple of 4, got 254}}
  attn.attention ins(%q, %q, %v : memref<1x8x254x64xf8E4M3FN>, memref<1x8x254x64xf8E4M3FN>, memref<1x8x254x64xf8E4M3FN, strided<[131072, 16384, 1, 256]>>)
                 outs(%o : memref<1x8x254x64xf16>) {plan = #attn.ws_wgmma<key_quads = true>}
  return
}

// -----

func.func @quads_dynamic(%q: memref<1x8x?x64xf8E4M3FN>, %v: memref<1x8x?x64xf8E4M3FN, strided<[?, ?, 1, ?]>>, %o: memref<1x8x?x64xf16>) {
  // expected-error@+1 {{key_quads needs a number of keys that is a known multiple of 4, got a dynamic one}}
  attn.attention ins(%q, %q, %v : memref<1x8x?x64xf8E4M3FN>, memref<1x8x?x64xf8E4M3FN>, memref<1x8x?x64xf8E4M3FN, strided<[?, ?, 1, ?]>>)
                 outs(%o : memref<1x8x?x64xf16>) {plan = #attn.ws_wgmma<key_quads = true>}
  return
}

// -----

func.func @wide_transposed_packed(%q: memref<1x8x256x64xf16>, %v: memref<1x8x256x64xf16, strided<[131072, 16384, 1, 256]>>, %o: memref<1x8x256x64xf16>, %c: memref<3xi32>) {
  // expected-error@+1 {{schedule 'ws_wgmma' does not support packed sequences with keys that are contiguous in 'v', which TMA reads from multiples of 16 bytes on only}}
  attn.attention ins(%q, %q, %v : memref<1x8x256x64xf16>, memref<1x8x256x64xf16>, memref<1x8x256x64xf16, strided<[131072, 16384, 1, 256]>>)
                 outs(%o : memref<1x8x256x64xf16>)
                 cu_seqlens(%c, %c : memref<3xi32>, memref<3xi32>)
                 {max_seqlen_q = 200 : i64}
  return
}

// -----

func.func @wide_transposed_quads(%q: memref<1x8x256x64xf16>, %v: memref<1x8x256x64xf16, strided<[131072, 16384, 1, 256]>>, %o: memref<1x8x256x64xf16>) {
  // expected-error@+1 {{key_quads needs 8-bit operands and a stride of 1 along the keys of 'v'}}
  attn.attention ins(%q, %q, %v : memref<1x8x256x64xf16>, memref<1x8x256x64xf16>, memref<1x8x256x64xf16, strided<[131072, 16384, 1, 256]>>)
                 outs(%o : memref<1x8x256x64xf16>) {plan = #attn.ws_wgmma<key_quads = true>}
  return
}

// -----

func.func @transposed_stride(%q: memref<1x8x256x64xf8E4M3FN>, %v: memref<1x8x256x64xf8E4M3FN, strided<[132096, 16512, 1, 258]>>, %o: memref<1x8x256x64xf16>) {
  // expected-error@+1 {{schedule 'ws_wgmma' does not support a stride of 258 bytes in 'v', expected a multiple of 16}}
  attn.attention ins(%q, %q, %v : memref<1x8x256x64xf8E4M3FN>, memref<1x8x256x64xf8E4M3FN>, memref<1x8x256x64xf8E4M3FN, strided<[132096, 16512, 1, 258]>>)
                 outs(%o : memref<1x8x256x64xf16>)
  return
}

// -----

func.func @transposed_packed(%q: memref<1x8x256x64xf8E4M3FN>, %v: memref<1x8x256x64xf8E4M3FN, strided<[131072, 16384, 1, 256]>>, %o: memref<1x8x256x64xf16>, %c: memref<3xi32>) {
  // expected-error@+1 {{schedule 'ws_wgmma' does not support packed sequences with keys that are contiguous in 'v', which TMA reads from multiples of 16 bytes on only}}
  attn.attention ins(%q, %q, %v : memref<1x8x256x64xf8E4M3FN>, memref<1x8x256x64xf8E4M3FN>, memref<1x8x256x64xf8E4M3FN, strided<[131072, 16384, 1, 256]>>)
                 outs(%o : memref<1x8x256x64xf16>)
                 cu_seqlens(%c, %c : memref<3xi32>, memref<3xi32>)
                 {max_seqlen_q = 200 : i64}
  return
}
