// RUN: attn-opt %s -attn-plan="chip=sm_90a schedule=ws_pair" -split-input-file -verify-diagnostics
// RUN: not attn-opt %S/Inputs/problem-512.mlir -attn-plan="chip=sm_80 schedule=ws_pair" 2>&1 | FileCheck %s --check-prefix=CHIP
// RUN: not attn-opt %S/Inputs/problem-512.mlir -attn-plan="chip=sm_100a schedule=ws_pair" 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: not attn-opt %S/Inputs/problem-512.mlir -attn-plan="chip=sm_90a schedule=ws_pair set=block_n=128,slice=128,stages=6" 2>&1 | FileCheck %s --check-prefix=SUM
// RUN: not attn-opt %S/Inputs/problem-512.mlir -attn-plan="chip=sm_90a schedule=ws_pair set=epilogue=tma" 2>&1 | FileCheck %s --check-prefix=EPILOGUE
// RUN: not attn-opt %S/Inputs/problem-512.mlir -attn-plan="chip=sm_90a schedule=ws_pair set=softmax=lagged" 2>&1 | FileCheck %s --check-prefix=POLICY

// CHIP: schedule 'ws_pair' does not support sm_80, which has no wgmma, expected sm_90a
// OTHER: schedule 'ws_pair' does not support sm_100a, which has no wgmma, expected sm_90a
// SUM: does not fit: shared memory {{[0-9]+}} (q 4 x 32768 + kv 6 x 16384 + p 16384 + m 512 + l 2048 + barriers 11 x 16) exceeds 232448 on sm_90a
// EPILOGUE: schedule 'ws_pair' does not support the epilogue 'tma', expected 'auto', 'direct' or 'shuffled'
// POLICY: schedule 'ws_pair' does not support the softmax policy 'lagged', expected 'exact', 'threshold' or 'optimistic'

func.func @dim(%q: memref<1x8x256x520xf16>, %o: memref<1x8x256x520xf16>) {
  // expected-error@+1 {{schedule 'ws_pair' does not support a head dimension of 520, expected a multiple of 8 up to 512}}
  attn.attention ins(%q, %q, %q : memref<1x8x256x520xf16>, memref<1x8x256x520xf16>, memref<1x8x256x520xf16>)
                 outs(%o : memref<1x8x256x520xf16>)
  return
}

// -----

func.func @narrow(%q: memref<1x8x256x256xf8E4M3FN>, %o: memref<1x8x256x256xf16>) {
  // expected-error@+1 {{schedule 'ws_pair' does not support 8-bit operands, expected f16 or bf16}}
  attn.attention ins(%q, %q, %q : memref<1x8x256x256xf8E4M3FN>, memref<1x8x256x256xf8E4M3FN>, memref<1x8x256x256xf8E4M3FN>)
                 outs(%o : memref<1x8x256x256xf16>)
  return
}

// -----

func.func @transposed(%q: memref<1x8x256x512xf16>, %v: memref<1x8x256x512xf16, strided<[1048576, 131072, 1, 256]>>, %o: memref<1x8x256x512xf16>) {
  // expected-error@+1 {{schedule 'ws_pair' does not support values whose keys are contiguous}}
  attn.attention ins(%q, %q, %v : memref<1x8x256x512xf16>, memref<1x8x256x512xf16>, memref<1x8x256x512xf16, strided<[1048576, 131072, 1, 256]>>)
                 outs(%o : memref<1x8x256x512xf16>)
  return
}

// -----

func.func @halves(%q: memref<1x8x256x504xf16>, %o: memref<1x8x256x504xf16>) {
  // expected-error@+1 {{schedule 'ws_pair' does not support 504 columns of values, expected a multiple of 16, half of them for each CTA}}
  attn.attention ins(%q, %q, %q : memref<1x8x256x504xf16>, memref<1x8x256x504xf16>, memref<1x8x256x504xf16>)
                 outs(%o : memref<1x8x256x504xf16>)
  return
}
