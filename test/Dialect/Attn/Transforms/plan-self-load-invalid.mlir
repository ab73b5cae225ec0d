// RUN: attn-opt %s -attn-plan="chip=sm_90a schedule=self_load" -split-input-file -verify-diagnostics
// RUN: not attn-opt %S/Inputs/problem.mlir -attn-plan="chip=sm_80 schedule=self_load" 2>&1 | FileCheck %s --check-prefix=CHIP
// RUN: not attn-opt %S/Inputs/problem.mlir -attn-plan="chip=sm_90a schedule=self_load set=block_m=64" 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not attn-opt %S/Inputs/problem.mlir -attn-plan="chip=sm_90a schedule=self_load set=block_n=128,ctas_per_sm=3,v_stages=2" 2>&1 | FileCheck %s --check-prefix=SUM
// RUN: not attn-opt %S/Inputs/problem.mlir -attn-plan="chip=sm_90a schedule=self_load set=qk_ahead=1" 2>&1 | FileCheck %s --check-prefix=BOOL

// CHIP: schedule 'self_load' does not support sm_80, which has no wgmma, expected sm_90a
// NAME: unknown parameter 'block_m' of schedule 'self_load', expected one of block_n, k_stages, v_stages, qk_ahead, ctas_per_sm, key_quads, softmax, order, group_heads, epilogue
// SUM: does not fit: shared memory {{[0-9]+}} (q 16384 + k 2 x 32768 + v 2 x 32768 + barriers 5 x 16) and 1024 more for each of 3 CTAs exceeds 233472 of an SM or 232448 of a CTA on sm_90a
// BOOL: expected qk_ahead to be true or false, got '1'

func.func @policy(%q: memref<1x8x256x64xf16>, %o: memref<1x8x256x64xf16>) {
  // expected-error@+1 {{schedule 'self_load' does not support the softmax policy 'lagged', expected 'exact', 'threshold' or 'optimistic'}}
  attn.attention ins(%q, %q, %q : memref<1x8x256x64xf16>, memref<1x8x256x64xf16>, memref<1x8x256x64xf16>)
                 outs(%o : memref<1x8x256x64xf16>) {plan = #attn.self_load<softmax = lagged>}
  return
}

// -----

func.func @ahead(%q: memref<1x8x256x64xf16>, %o: memref<1x8x256x64xf16>) {
  // expected-error@+1 {{qk_ahead needs 2 slots of K and of V, got 2 and 1}}
  attn.attention ins(%q, %q, %q : memref<1x8x256x64xf16>, memref<1x8x256x64xf16>, memref<1x8x256x64xf16>)
                 outs(%o : memref<1x8x256x64xf16>) {plan = #attn.self_load<v_stages = 1, qk_ahead = true>}
  return
}

// -----

// Results have memory of their own.
func.func @results(%q: memref<1x8x256x64xf16>, %o: memref<1x8x256x64xf32>) {
  // expected-error@+1 {{does not fit: shared memory 90192 (q 8192 + k 2 x 16384 + v 2 x 16384 + barriers 5 x 16 + o 16384) and 1024 more for each of 3 CTAs exceeds 233472 of an SM or 232448 of a CTA on sm_90a}}
  attn.attention ins(%q, %q, %q : memref<1x8x256x64xf16>, memref<1x8x256x64xf16>, memref<1x8x256x64xf16>)
                 outs(%o : memref<1x8x256x64xf32>) {plan = #attn.self_load<block_n = 128, ctas_per_sm = 3, epilogue = tma>}
  return
}

// -----

// Four CTAs would fit without the bytes that each of them needs beside its own.
func.func @reserved(%q: memref<1x8x256x64xf16>, %o: memref<1x8x256x64xf16>) {
  // expected-error@+1 {{does not fit: shared memory 57424 (q 8192 + k 2 x 12288 + v 2 x 12288 + barriers 5 x 16) and 1024 more for each of 4 CTAs exceeds 233472 of an SM or 232448 of a CTA on sm_90a}}
  attn.attention ins(%q, %q, %q : memref<1x8x256x64xf16>, memref<1x8x256x64xf16>, memref<1x8x256x64xf16>)
                 outs(%o : memref<1x8x256x64xf16>) {plan = #attn.self_load<block_n = 96, ctas_per_sm = 4>}
  return
}

// -----

// The depth of a matrix instruction.
func.func @narrow_block(%q: memref<1x8x256x64xf8E4M3FN>, %o: memref<1x8x256x64xbf16>) {
  // expected-error@+1 {{8-bit operands need block_n to be a multiple of 32, got 80}}
  attn.attention ins(%q, %q, %q : memref<1x8x256x64xf8E4M3FN>, memref<1x8x256x64xf8E4M3FN>, memref<1x8x256x64xf8E4M3FN>)
                 outs(%o : memref<1x8x256x64xbf16>) {plan = #attn.self_load<block_n = 80>}
  return
}

// -----

func.func @narrow_share(%q: memref<1x8x256x32xf8E5M2>, %o: memref<1x8x256x32xbf16>) {
  // expected-error@+1 {{expected 4 warps to share 96 x 32 elements in pieces of 32 x 16}}
  attn.attention ins(%q, %q, %q : memref<1x8x256x32xf8E5M2>, memref<1x8x256x32xf8E5M2>, memref<1x8x256x32xf8E5M2>)
                 outs(%o : memref<1x8x256x32xbf16>) {plan = #attn.self_load<block_n = 96>}
  return
}

// -----

func.func @narrow_dim(%q: memref<1x8x256x264xf8E4M3FN>, %o: memref<1x8x256x264xbf16>) {
  // expected-error@+1 {{schedule 'self_load' does not support a head dimension of 264, expected a multiple of 8 up to 256}}
  attn.attention ins(%q, %q, %q : memref<1x8x256x264xf8E4M3FN>, memref<1x8x256x264xf8E4M3FN>, memref<1x8x256x264xf8E4M3FN>)
                 outs(%o : memref<1x8x256x264xbf16>)
  return
}

// -----

func.func @narrow_stride(%q: memref<1x8x256x72xf8E4M3FN>, %o: memref<1x8x256x72xbf16>) {
  // expected-error@+1 {{schedule 'self_load' does not support a stride of 72 bytes in 'q', expected a multiple of 16}}
  attn.attention ins(%q, %q, %q : memref<1x8x256x72xf8E4M3FN>, memref<1x8x256x72xf8E4M3FN>, memref<1x8x256x72xf8E4M3FN>)
                 outs(%o : memref<1x8x256x72xbf16>)
  return
}

// -----

// Transposed values have a buffer of their own.
func.func @transposed_sum(%q: memref<1x8x256x128xf8E4M3FN>, %o: memref<1x8x256x128xbf16>) {
  // expected-error@+1 {{does not fit: shared memory 90192 (q 8192 + k 2 x 16384 + v 2 x 16384 + vt 16384 + barriers 5 x 16) and 1024 more for each of 3 CTAs exceeds 233472 of an SM or 232448 of a CTA on sm_90a}}
  attn.attention ins(%q, %q, %q : memref<1x8x256x128xf8E4M3FN>, memref<1x8x256x128xf8E4M3FN>, memref<1x8x256x128xf8E4M3FN>)
                 outs(%o : memref<1x8x256x128xbf16>) {plan = #attn.self_load<block_n = 128, ctas_per_sm = 3>}
  return
}

// -----

func.func @quads(%q: memref<1x8x256x64xf8E4M3FN>, %o: memref<1x8x256x64xf16>) {
  // expected-error@+1 {{key_quads needs 8-bit operands and a stride of 1 along the keys of 'v'}}
  attn.attention ins(%q, %q, %q : memref<1x8x256x64xf8E4M3FN>, memref<1x8x256x64xf8E4M3FN>, memref<1x8x256x64xf8E4M3FN>)
                 outs(%o : memref<1x8x256x64xf16>) {plan = #attn.self_load<key_quads = true>}
  return
}

// -----

func.func @transposed_packed(%q: memref<1x8x256x64xf8E4M3FN>, %v: memref<1x8x256x64xf8E4M3FN, strided<[131072, 16384, 1, 256]>>, %o: memref<1x8x256x64xf16>, %c: memref<3xi32>) {
  // expected-error@+1 {{schedule 'self_load' does not support packed sequences with keys that are contiguous in 'v', which TMA reads from multiples of 16 bytes on only}}
  attn.attention ins(%q, %q, %v : memref<1x8x256x64xf8E4M3FN>, memref<1x8x256x64xf8E4M3FN>, memref<1x8x256x64xf8E4M3FN, strided<[131072, 16384, 1, 256]>>)
                 outs(%o : memref<1x8x256x64xf16>)
                 cu_seqlens(%c, %c : memref<3xi32>, memref<3xi32>) {max_seqlen_q = 256 : i64}
  return
}
