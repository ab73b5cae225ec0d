// RUN: attn-opt %s -attn-plan="chip=sm_89" -split-input-file -verify-diagnostics

// What kernels on cp.async do not take of 8-bit queries, keys and values.

func.func @block(%q: memref<1x2x64x64xf8E5M2>, %o: memref<1x2x64x64xbf16>) {
  // expected-error@+1 {{8-bit operands need parts of blocks of multiples of 32 keys, got 16}}
  attn.attention ins(%q, %q, %q : memref<1x2x64x64xf8E5M2>, memref<1x2x64x64xf8E5M2>, memref<1x2x64x64xf8E5M2>)
                 outs(%o : memref<1x2x64x64xbf16>) {plan = #attn.split_q<block_n = 32, parts = 2>}
  return
}

// -----

func.func @decoded_block(%q: memref<1x2x1x64xf8E4M3FN>, %k: memref<1x2x64x64xf8E4M3FN>, %o: memref<1x2x1x64xbf16>) {
  // expected-error@+1 {{8-bit operands need parts of blocks of multiples of 32 keys, got 16}}
  attn.attention ins(%q, %k, %k : memref<1x2x1x64xf8E4M3FN>, memref<1x2x64x64xf8E4M3FN>, memref<1x2x64x64xf8E4M3FN>)
                 outs(%o : memref<1x2x1x64xbf16>) {plan = #attn.decode<block_n = 16>}
  return
}

// -----

func.func @sums(%q: memref<1x2x64x64xf8E4M3FN>, %o: memref<1x2x64x64xbf16>) {
  // expected-error@+1 {{expected operands of f16 for accumulate_o = f16, got f8E4M3FN}}
  attn.attention ins(%q, %q, %q : memref<1x2x64x64xf8E4M3FN>, memref<1x2x64x64xf8E4M3FN>, memref<1x2x64x64xf8E4M3FN>)
                 outs(%o : memref<1x2x64x64xbf16>) {plan = #attn.split_q<accumulate_o = f16>}
  return
}

// -----

func.func @transposed(%q: memref<1x2x64x64xf8E4M3FN>, %v: memref<1x2x64x64xf8E4M3FN, strided<[8192, 4096, 1, 64]>>, %o: memref<1x2x64x64xbf16>) {
  // expected-error@+1 {{schedule 'split_q' does not support 'v' whose keys are contiguous, expected a stride of 1 along the head dimension}}
  attn.attention ins(%q, %q, %v : memref<1x2x64x64xf8E4M3FN>, memref<1x2x64x64xf8E4M3FN>, memref<1x2x64x64xf8E4M3FN, strided<[8192, 4096, 1, 64]>>)
                 outs(%o : memref<1x2x64x64xbf16>) {plan = #attn.split_q<>}
  return
}

// -----

!odd = memref<2x1x2x64x16xf32, strided<[2176, 2176, 1088, 17, 1]>>
func.func @odd_rows(%po: !odd, %pl: memref<2x1x2x64xf32>, %o: memref<1x2x64x8xi8>, %s: memref<1x2x64x1xf8E4M3FN>) {
  // expected-error @below {{merged results of 4 bits need pairs of columns, expected rows of partial results at multiples of 8 bytes}}
  attn.combine ins(%po, %pl : !odd, memref<2x1x2x64xf32>)
               outs(%o, %s : memref<1x2x64x8xi8>, memref<1x2x64x1xf8E4M3FN>) {out_group = 16 : i64}
  return
}

// -----

// Some teams still read what others have handed them.
func.func @staged_teams(%q: memref<1x4x1x64xf16>, %k: memref<1x1x90x64xf16>, %o: memref<1x4x1x64xf16>) {
  // expected-error@+1 {{expected the epilogue 'auto', 'direct' or 'shuffled' with teams that divide keys, got 'staged'}}
  attn.attention ins(%q, %k, %k : memref<1x4x1x64xf16>, memref<1x1x90x64xf16>, memref<1x1x90x64xf16>) outs(%o : memref<1x4x1x64xf16>)
    {plan = #attn.decode<warps = 2, epilogue = staged>}
  return
}
