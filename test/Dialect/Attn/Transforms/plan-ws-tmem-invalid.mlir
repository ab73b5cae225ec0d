// RUN: attn-opt %s -attn-plan="chip=sm_100a schedule=ws_tmem" -split-input-file -verify-diagnostics
// RUN: not attn-opt %S/Inputs/problem.mlir -attn-plan="chip=sm_90a schedule=ws_tmem" 2>&1 | FileCheck %s --check-prefix=CHIP
// RUN: not attn-opt %S/Inputs/problem.mlir -attn-plan="chip=sm_103a schedule=ws_tmem set=kv_stages=20" 2>&1 | FileCheck %s --check-prefix=SUM
// RUN: not attn-opt %S/Inputs/problem.mlir -attn-plan="chip=sm_100f schedule=ws_tmem set=block_n=192" 2>&1 | FileCheck %s --check-prefix=BLOCK
// RUN: not attn-opt %S/Inputs/problem.mlir -attn-plan="chip=sm_100a schedule=ws_tmem set=kv_stages=1" 2>&1 | FileCheck %s --check-prefix=STAGES
// RUN: not attn-opt %S/Inputs/problem.mlir -attn-plan="chip=sm_100a schedule=ws_tmem set=polynomial=17" 2>&1 | FileCheck %s --check-prefix=POLYNOMIAL
// RUN: not attn-opt %S/Inputs/problem.mlir -attn-plan="chip=sm_100a schedule=ws_tmem set=group_heads=-1" 2>&1 | FileCheck %s --check-prefix=GROUP
// RUN: not attn-opt %S/Inputs/problem.mlir -attn-plan="chip=sm_100a schedule=ws_tmem set=p_beside=true,block_n=128" 2>&1 | FileCheck %s --check-prefix=BESIDE
// RUN: not attn-opt %S/Inputs/problem.mlir -attn-plan="chip=sm_100a schedule=ws_tmem set=o_halves=true,epilogue=direct" 2>&1 | FileCheck %s --check-prefix=HALVES

// HALVES: expected the epilogue 'staged' or 'tma' with o_halves, got 'direct'
// CHIP: schedule 'ws_tmem' does not support sm_90a, which has no tcgen05, expected sm_100a, sm_100f or sm_103a
// SUM: does not fit: shared memory {{[0-9]+}} (q 2 x {{[0-9]+}} + kv 20 x {{[0-9]+}} + barriers {{[0-9]+}} x 8 + o 2 x {{[0-9]+}}) exceeds 232448 on sm_103a
// BLOCK: expected block_n to be a multiple of 16 up to 128, or 256 with pair and tiles = 1, got 192
// STAGES: expected kv_stages from 2 to 32, got 1
// POLYNOMIAL: expected polynomial from 0 to 16, got 17
// BESIDE: schedule 'ws_tmem' does not support 640 (s 2 x 128 + p 2 x 64 + o 2 x 128) columns of tensor memory, expected up to 512
// GROUP: expected group_heads not to be negative, got -1

func.func @columns(%q: memref<1x8x256x192xf16>, %o: memref<1x8x256x192xf16>) {
  // expected-error@+1 {{schedule 'ws_tmem' does not support 576 (s 2 x 96 + o 2 x 192) columns of tensor memory, expected up to 512}}
  attn.attention ins(%q, %q, %q : memref<1x8x256x192xf16>, memref<1x8x256x192xf16>, memref<1x8x256x192xf16>)
                 outs(%o : memref<1x8x256x192xf16>) {plan = #attn.ws_tmem<block_n = 96, kv_stages = 2, epilogue = direct>}
  return
}

// -----

func.func @slices(%q: memref<1x8x256x256xf16>, %o: memref<1x8x256x256xf16>) {
  // expected-error@+1 {{does not fit: shared memory 262944 (q 4 x 16384 + k 6 x 16384 + v 6 x 16384 + barriers 36 x 8 + factors 128 x 4) exceeds 232448 on sm_100a}}
  attn.attention ins(%q, %q, %q : memref<1x8x256x256xf16>, memref<1x8x256x256xf16>, memref<1x8x256x256xf16>)
                 outs(%o : memref<1x8x256x256xf16>) {plan = #attn.ws_tmem<tiles = 1, kv_stages = 6, epilogue = direct>}
  return
}

// -----

func.func @slots(%q: memref<1x8x256x192xf16>, %v: memref<1x8x256x128xf16>, %o: memref<1x8x256x128xf16>) {
  // expected-error@+1 {{does not fit: shared memory 282784 (q 2 x 49152 + k 3 x 36864 + v 3 x 24576 + barriers 20 x 8) exceeds 232448 on sm_100a}}
  attn.attention ins(%q, %q, %v : memref<1x8x256x192xf16>, memref<1x8x256x192xf16>, memref<1x8x256x128xf16>)
                 outs(%o : memref<1x8x256x128xf16>) {plan = #attn.ws_tmem<block_n = 96, epilogue = direct>}
  return
}

// -----

func.func @no_keys(%q: memref<1x8x256x64xf16>, %k: memref<1x8x0x64xf16>, %o: memref<1x8x256x64xf16>) {
  // expected-error@+1 {{schedule 'ws_tmem' does not support 0 keys}}
  attn.attention ins(%q, %k, %k : memref<1x8x256x64xf16>, memref<1x8x0x64xf16>, memref<1x8x0x64xf16>)
                 outs(%o : memref<1x8x256x64xf16>)
  return
}

// -----

func.func @transposed(%q: memref<1x8x256x64xf16>, %v: memref<1x8x256x64xf16, strided<[131072, 16384, 1, 256]>>, %o: memref<1x8x256x64xf16>) {
  // expected-error@+1 {{schedule 'ws_tmem' does not support values whose keys are contiguous}}
  attn.attention ins(%q, %q, %v : memref<1x8x256x64xf16>, memref<1x8x256x64xf16>, memref<1x8x256x64xf16, strided<[131072, 16384, 1, 256]>>)
                 outs(%o : memref<1x8x256x64xf16>)
  return
}

// -----

func.func @strides(%q: memref<1x8x256x64xf16>, %k: memref<1x8x256x64xf16, strided<[139264, 17408, 68, 1]>>, %o: memref<1x8x256x64xf16>) {
  // expected-error@+1 {{schedule 'ws_tmem' does not support a stride of 136 bytes in 'k', expected a multiple of 16}}
  attn.attention ins(%q, %k, %q : memref<1x8x256x64xf16>, memref<1x8x256x64xf16, strided<[139264, 17408, 68, 1]>>, memref<1x8x256x64xf16>)
                 outs(%o : memref<1x8x256x64xf16>)
  return
}

// -----

func.func @epilogue(%q: memref<1x8x256x64xf16>, %o: memref<1x8x256x64xf16>) {
  // expected-error@+1 {{schedule 'ws_tmem' does not support the epilogue 'shuffled', expected 'auto', 'direct', 'staged' or 'tma'}}
  attn.attention ins(%q, %q, %q : memref<1x8x256x64xf16>, memref<1x8x256x64xf16>, memref<1x8x256x64xf16>)
                 outs(%o : memref<1x8x256x64xf16>) {plan = #attn.ws_tmem<epilogue = shuffled>}
  return
}

// -----

func.func @unaligned(%q: memref<1x8x256x64xf16>, %o: memref<1x8x256x64xf16, strided<[133120, 16640, 65, 1]>>) {
  // expected-error@+1 {{schedule 'ws_tmem' does not support the epilogue 'tma' with a stride of 130 bytes in 'o', expected a multiple of 16}}
  attn.attention ins(%q, %q, %q : memref<1x8x256x64xf16>, memref<1x8x256x64xf16>, memref<1x8x256x64xf16>)
                 outs(%o : memref<1x8x256x64xf16, strided<[133120, 16640, 65, 1]>>) {plan = #attn.ws_tmem<epilogue = tma>}
  return
}

// -----

func.func @halves(%q: memref<1x8x256x64xf16>, %v: memref<1x8x256x24xf16>, %o: memref<1x8x256x24xf16>) {
  // expected-error@+1 {{schedule 'ws_tmem' does not support o_halves with results of 48 bytes a row, expected a multiple of 32}}
  attn.attention ins(%q, %q, %v : memref<1x8x256x64xf16>, memref<1x8x256x64xf16>, memref<1x8x256x24xf16>)
                 outs(%o : memref<1x8x256x24xf16>) {plan = #attn.ws_tmem<epilogue = staged, o_halves = true>}
  return
}

// -----

// TMA would store the next group's rows.
func.func @group_of_three(%q: memref<1x6x256x64xf16>, %k: memref<1x2x256x64xf16>, %o: memref<1x6x256x64xf16>) {
  // expected-error@+1 {{schedule 'ws_tmem' does not support the epilogue 'tma' with packed groups of 3 heads, expected a power of two}}
  attn.attention ins(%q, %k, %k : memref<1x6x256x64xf16>, memref<1x2x256x64xf16>, memref<1x2x256x64xf16>)
                 outs(%o : memref<1x6x256x64xf16>) {plan = #attn.ws_tmem<pack_heads = true, epilogue = tma>}
  return
}

// -----

func.func @head_groups(%q: memref<1x4x256x64xf16>, %k: memref<1x2x256x64xf16>, %o: memref<1x4x256x64xf16>) {
  // expected-error@+1 {{expected group_heads to be 0 with pack_heads, got 2}}
  attn.attention ins(%q, %k, %k : memref<1x4x256x64xf16>, memref<1x2x256x64xf16>, memref<1x2x256x64xf16>)
                 outs(%o : memref<1x4x256x64xf16>) {plan = #attn.ws_tmem<order = longest_first, group_heads = 2, pack_heads = true>}
  return
}

// -----

func.func @no_groups(%q: memref<1x4x256x64xf16>, %o: memref<1x4x256x64xf16>) {
  // expected-error@+1 {{expected groups of 2 to 256 heads for pack_heads, got 4 query heads and 4 key heads}}
  attn.attention ins(%q, %q, %q : memref<1x4x256x64xf16>, memref<1x4x256x64xf16>, memref<1x4x256x64xf16>)
                 outs(%o : memref<1x4x256x64xf16>) {plan = #attn.ws_tmem<pack_heads = true>}
  return
}

// -----

func.func @narrow_bets(%q: memref<1x8x256x64xf8E4M3FN>, %o: memref<1x8x256x64xbf16>) {
  // expected-error@+1 {{schedule 'ws_tmem' does not support the softmax policy 'optimistic' with 8-bit operands, expected 'exact', 'threshold' or 'lagged'}}
  attn.attention ins(%q, %q, %q : memref<1x8x256x64xf8E4M3FN>, memref<1x8x256x64xf8E4M3FN>, memref<1x8x256x64xf8E4M3FN>)
                 outs(%o : memref<1x8x256x64xbf16>) {plan = #attn.ws_tmem<softmax = optimistic>}
  return
}

// -----

func.func @narrow_block(%q: memref<1x8x256x64xf8E5M2>, %o: memref<1x8x256x64xbf16>) {
  // expected-error@+1 {{8-bit operands need parts of blocks of multiples of 32 keys, got 48}}
  attn.attention ins(%q, %q, %q : memref<1x8x256x64xf8E5M2>, memref<1x8x256x64xf8E5M2>, memref<1x8x256x64xf8E5M2>)
                 outs(%o : memref<1x8x256x64xbf16>) {plan = #attn.ws_tmem<block_n = 48>}
  return
}

// -----

func.func @narrow_tile(%q: memref<1x8x256x256xf8E4M3FN>, %o: memref<1x8x256x256xbf16>) {
  // expected-error@+1 {{schedule 'ws_tmem' does not support 8-bit operands with tiles = 1, expected 2}}
  attn.attention ins(%q, %q, %q : memref<1x8x256x256xf8E4M3FN>, memref<1x8x256x256xf8E4M3FN>, memref<1x8x256x256xf8E4M3FN>)
                 outs(%o : memref<1x8x256x256xbf16>) {plan = #attn.ws_tmem<tiles = 1, kv_stages = 6, epilogue = direct>}
  return
}

// -----

func.func @pair(%q: memref<1x8x256x64xf16>, %v: memref<1x8x256x48xf16>, %o: memref<1x8x256x48xf16>) {
  // expected-error@+1 {{schedule 'ws_tmem' does not support pair with values of 48 columns, expected a multiple of 32, or pair = false}}
  attn.attention ins(%q, %q, %v : memref<1x8x256x64xf16>, memref<1x8x256x64xf16>, memref<1x8x256x48xf16>)
                 outs(%o : memref<1x8x256x48xf16>) {plan = #attn.ws_tmem<pair = true>}
  return
}

// -----

func.func @one_ring(%q: memref<1x8x256x192xf16>, %v: memref<1x8x256x128xf16>, %o: memref<1x8x256x128xf16>) {
  // expected-error@+1 {{schedule 'ws_tmem' does not support one_ring with keys of 192 columns and values of 128, expected as many}}
  attn.attention ins(%q, %q, %v : memref<1x8x256x192xf16>, memref<1x8x256x192xf16>, memref<1x8x256x128xf16>)
                 outs(%o : memref<1x8x256x128xf16>) {plan = #attn.ws_tmem<pair = true, one_ring = true>}
  return
}

// -----

// In one ring, slots have keys and values by turns.

func.func @one_ring_slots(%q: memref<1x8x256x128xf16>, %o: memref<1x8x256x128xf16>) {
  // expected-error@+1 {{does not fit: shared memory 246000 (q 2 x 32768 + kv 11 x 16384 + barriers 30 x 8) exceeds 232448 on sm_100a}}
  attn.attention ins(%q, %q, %q : memref<1x8x256x128xf16>, memref<1x8x256x128xf16>, memref<1x8x256x128xf16>)
                 outs(%o : memref<1x8x256x128xf16>) {plan = #attn.ws_tmem<kv_stages = 11, epilogue = direct, pair = true, one_ring = true>}
  return
}

// -----

// Each CTA of a pair has half of the keys of a slot and half of the columns of values.

func.func @halves(%q: memref<1x8x256x192xf16>, %v: memref<1x8x256x128xf16>, %o: memref<1x8x256x128xf16>) {
  // expected-error@+1 {{does not fit: shared memory 262336 (q 2 x 49152 + k 4 x 24576 + v 4 x 16384 + barriers 24 x 8) exceeds 232448 on sm_100a}}
  attn.attention ins(%q, %q, %v : memref<1x8x256x192xf16>, memref<1x8x256x192xf16>, memref<1x8x256x128xf16>)
                 outs(%o : memref<1x8x256x128xf16>) {plan = #attn.ws_tmem<kv_stages = 4, epilogue = direct, pair = true>}
  return
}

// -----

func.func @wide_tiles(%q: memref<1x8x256x512xf16>, %k: memref<1x8x256x512xf16>, %v: memref<1x8x256x64xf16>, %o: memref<1x8x256x64xf16>) {
  // expected-error@+1 {{schedule 'ws_tmem' does not support a head dimension of 512 with tiles = 2, expected 1}}
  attn.attention ins(%q, %k, %v : memref<1x8x256x512xf16>, memref<1x8x256x512xf16>, memref<1x8x256x64xf16>)
                 outs(%o : memref<1x8x256x64xf16>) {plan = #attn.ws_tmem<block_n = 64>}
  return
}

// -----

func.func @wide_blocks(%q: memref<1x8x256x512xf16>, %k: memref<1x8x256x512xf16>, %v: memref<1x8x256x512xf16>, %o: memref<1x8x256x512xf16>) {
  // expected-error@+1 {{schedule 'ws_tmem' does not support block_n = 96 with values of 256 columns in a CTA, expected a multiple of 64}}
  attn.attention ins(%q, %k, %v : memref<1x8x256x512xf16>, memref<1x8x256x512xf16>, memref<1x8x256x512xf16>)
                 outs(%o : memref<1x8x256x512xf16>) {plan = #attn.ws_tmem<tiles = 1, block_n = 96, value_ctas = 2, epilogue = direct>}
  return
}

// -----

func.func @wide_results(%q: memref<1x8x256x512xf16>, %k: memref<1x8x256x512xf16>, %v: memref<1x8x256x512xf16>, %o: memref<1x8x256x512xf16>) {
  // expected-error@+1 {{schedule 'ws_tmem' does not support 768 (s 2 x 128 + o 512) columns of tensor memory, expected up to 512}}
  attn.attention ins(%q, %k, %v : memref<1x8x256x512xf16>, memref<1x8x256x512xf16>, memref<1x8x256x512xf16>)
                 outs(%o : memref<1x8x256x512xf16>) {plan = #attn.ws_tmem<tiles = 1, epilogue = direct>}
  return
}

// -----

func.func @wide_odd(%q: memref<1x8x256x264xf16>, %k: memref<1x8x256x264xf16>, %v: memref<1x8x256x264xf16>, %o: memref<1x8x256x264xf16>) {
  // expected-error@+1 {{schedule 'ws_tmem' does not support value_ctas = 2 with a value dimension of 264, expected a multiple of 16}}
  attn.attention ins(%q, %k, %v : memref<1x8x256x264xf16>, memref<1x8x256x264xf16>, memref<1x8x256x264xf16>)
                 outs(%o : memref<1x8x256x264xf16>) {plan = #attn.ws_tmem<tiles = 1, value_ctas = 2, epilogue = direct>}
  return
}

// -----

func.func @wide_slots(%q: memref<1x8x256x576xf16>, %k: memref<1x8x256x576xf16>, %v: memref<1x8x256x512xf16>, %o: memref<1x8x256x512xf16>) {
  // expected-error@+1 {{does not fit: shared memory 246464 (q 9 x 16384 + kv 6 x 16384 + barriers 24 x 8 + factors 128 x 4) exceeds 232448 on sm_100a}}
  attn.attention ins(%q, %k, %v : memref<1x8x256x576xf16>, memref<1x8x256x576xf16>, memref<1x8x256x512xf16>)
                 outs(%o : memref<1x8x256x512xf16>) {plan = #attn.ws_tmem<tiles = 1, kv_stages = 6, value_ctas = 2, epilogue = direct>}
  return
}

// -----

func.func @widest(%q: memref<1x8x256x648xf16>, %k: memref<1x8x256x648xf16>, %v: memref<1x8x256x64xf16>, %o: memref<1x8x256x64xf16>) {
  // expected-error@+1 {{schedule 'ws_tmem' does not support a head dimension of 648, expected a multiple of 8 up to 640}}
  attn.attention ins(%q, %k, %v : memref<1x8x256x648xf16>, memref<1x8x256x648xf16>, memref<1x8x256x64xf16>)
                 outs(%o : memref<1x8x256x64xf16>) {plan = #attn.ws_tmem<tiles = 1, epilogue = direct>}
  return
}

// -----

// Rows of keys are gathered by one number for each, in both tensors of a pool.

func.func @pool_order(%q: memref<2x8x64x64xf16>, %k: memref<30x2x16x64xf16>, %t: memref<2x9xi32>, %n: memref<2xi32>,
    %ak: memref<50x2x4x64xf16>, %av: memref<50x2x4x64xf16, strided<[512, 64, 128, 1]>>, %at: memref<2x40xi32>, %an: memref<2xi32>) {
  // expected-error@+1 {{schedule 'ws_tmem' does not support pages of 4 keys of 'added_v' in another order than those of 'added_k'}}
  attn.attention ins(%q, %k, %k : memref<2x8x64x64xf16>, memref<30x2x16x64xf16>, memref<30x2x16x64xf16>)
    outs(%q : memref<2x8x64x64xf16>) pages(%t : memref<2x9xi32>) kv_lengths(%n : memref<2xi32>)
    added(%ak, %av, %at, %an : memref<50x2x4x64xf16>, memref<50x2x4x64xf16, strided<[512, 64, 128, 1]>>, memref<2x40xi32>, memref<2xi32>)
    {page_size = 16, added_page_size = 4}
  return
}

// -----

func.func @pool_pitch(%q: memref<2x8x64x64xf16>, %k: memref<30x2x16x64xf16>, %t: memref<2x9xi32>, %n: memref<2xi32>,
    %ak: memref<50x2x4x64xf16, strided<[544, 256, 64, 1]>>, %av: memref<50x2x4x64xf16>, %at: memref<2x40xi32>, %an: memref<2xi32>) {
  // expected-error@+1 {{schedule 'ws_tmem' does not support pages of 4 keys of 'added_k' whose strides are multiples of 32 elements, expected one of at least 64}}
  attn.attention ins(%q, %k, %k : memref<2x8x64x64xf16>, memref<30x2x16x64xf16>, memref<30x2x16x64xf16>)
    outs(%q : memref<2x8x64x64xf16>) pages(%t : memref<2x9xi32>) kv_lengths(%n : memref<2xi32>)
    added(%ak, %av, %at, %an : memref<50x2x4x64xf16, strided<[544, 256, 64, 1]>>, memref<50x2x4x64xf16>, memref<2x40xi32>, memref<2xi32>)
    {page_size = 16, added_page_size = 4}
  return
}

// -----

func.func @pool_rows(%q: memref<2x8x64x64xf16>, %k: memref<30x2x16x64xf16>, %t: memref<2x9xi32>, %n: memref<2xi32>,
    %ak: memref<67108864x2x4x64xf16>, %av: memref<67108864x2x4x64xf16>, %at: memref<2x40xi32>, %an: memref<2xi32>) {
  // expected-error@+1 {{schedule 'ws_tmem' does not support pages of 4 keys of 'added_k' with 536870912 rows or more}}
  attn.attention ins(%q, %k, %k : memref<2x8x64x64xf16>, memref<30x2x16x64xf16>, memref<30x2x16x64xf16>)
    outs(%q : memref<2x8x64x64xf16>) pages(%t : memref<2x9xi32>) kv_lengths(%n : memref<2xi32>)
    added(%ak, %av, %at, %an : memref<67108864x2x4x64xf16>, memref<67108864x2x4x64xf16>, memref<2x40xi32>, memref<2xi32>)
    {page_size = 16, added_page_size = 4}
  return
}
