// RUN: attn-opt %s -attn-plan="chip=sm_90a schedule=self_load" -split-input-file -verify-diagnostics
// RUN: not attn-opt %S/Inputs/problem.mlir -attn-plan="chip=sm_80 schedule=self_load" 2>&1 | FileCheck %s --check-prefix=CHIP
// RUN: not attn-opt %S/Inputs/problem.mlir -attn-plan="chip=sm_90a schedule=self_load set=block_m=64" 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not attn-opt %S/Inputs/problem.mlir -attn-plan="chip=sm_90a schedule=self_load set=block_n=128,ctas_per_sm=3,v_stages=2" 2>&1 | FileCheck %s --check-prefix=SUM
// RUN: not attn-opt %S/Inputs/problem.mlir -attn-plan="chip=sm_90a schedule=self_load set=qk_ahead=1" 2>&1 | FileCheck %s --check-prefix=BOOL

// CHIP: schedule 'self_load' does not support sm_80, which has no wgmma, expected sm_90a
// NAME: unknown parameter 'block_m' of schedule 'self_load', expected one of block_n, k_stages, v_stages, qk_ahead, ctas_per_sm, softmax, order, group_heads, epilogue
// SUM: does not fit: shared memory {{[0-9]+}} (q 16384 + k 2 x 32768 + v 2 x 32768 + barriers 5 x 16) and 1024 more for each of 3 CTAs exceeds 233472 of an SM or 232448 of a CTA on sm_90a
// BOOL: expected qk_ahead to be true or false, got '1'

func.func @narrow(%q: memref<1x8x256x64xf8E4M3FN>, %o: memref<1x8x256x64xf16>) {
  // expected-error@+1 {{schedule 'self_load' does not support operands of type f8E4M3FN, expected f16 or bf16}}
  attn.attention ins(%q, %q, %q : memref<1x8x256x64xf8E4M3FN>, memref<1x8x256x64xf8E4M3FN>, memref<1x8x256x64xf8E4M3FN>)
                 outs(%o : memref<1x8x256x64xf16>)
  return
}

// -----

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

func.func @batch(%q: memref<?x8x1x64xf16>, %o: memref<?x8x1x64xf16>) {
  // expected-error@+1 {{schedule 'self_load' does not support a batch size that only the launch decides}}
  attn.attention ins(%q, %q, %q : memref<?x8x1x64xf16>, memref<?x8x1x64xf16>, memref<?x8x1x64xf16>)
                 outs(%o : memref<?x8x1x64xf16>)
  return
}
