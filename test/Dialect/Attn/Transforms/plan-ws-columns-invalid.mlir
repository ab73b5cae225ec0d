// RUN: attn-opt %s -attn-plan="chip=sm_90a schedule=ws_columns" -split-input-file -verify-diagnostics
// RUN: not attn-opt %S/Inputs/problem-512.mlir -attn-plan="chip=sm_80 schedule=ws_columns" 2>&1 | FileCheck %s --check-prefix=CHIP
// RUN: not attn-opt %S/Inputs/problem-512.mlir -attn-plan="chip=sm_90a schedule=ws_columns set=block_n=128,k_stages=8" 2>&1 | FileCheck %s --check-prefix=SUM
// RUN: not attn-opt %S/Inputs/problem-512.mlir -attn-plan="chip=sm_90a schedule=ws_columns set=softmax_columns=128" 2>&1 | FileCheck %s --check-prefix=SPLIT
// RUN: not attn-opt %S/Inputs/problem-512.mlir -attn-plan="chip=sm_90a schedule=ws_columns set=cluster=4,block_n=80" 2>&1 | FileCheck %s --check-prefix=CLUSTER
// RUN: not attn-opt %S/Inputs/problem-512.mlir -attn-plan="chip=sm_90a schedule=ws_columns set=epilogue=tma" 2>&1 | FileCheck %s --check-prefix=EPILOGUE
// RUN: not attn-opt %S/Inputs/problem-512.mlir -attn-plan="chip=sm_90a schedule=ws_columns set=softmax=lagged" 2>&1 | FileCheck %s --check-prefix=POLICY
// RUN: not attn-opt %S/Inputs/problem-512.mlir -attn-plan="chip=sm_100a schedule=ws_columns set=cluster=2,depth_ctas=2" 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: not attn-opt %S/Inputs/problem-512.mlir -attn-plan="chip=sm_90a schedule=ws_columns set=cluster=1,depth_ctas=2" 2>&1 | FileCheck %s --check-prefix=PAIR

// CHIP: schedule 'ws_columns' does not support sm_80, which has no wgmma, expected sm_90a
// OTHER: schedule 'ws_columns' does not support sm_100a, which has no wgmma, expected sm_90a
// PAIR: has no such plan of schedule 'ws_columns': expected cluster = 2 with depth_ctas = 2, got 1
// SUM: does not fit: shared memory {{[0-9]+}} (q 8 x 8192 + k 8 x 16384 + v {{[0-9]}} x 16384 + w {{[0-9]}} x 16384 + p 16384 + factor 256 + scale 256 + barriers {{[0-9]+}} x 16) exceeds 232448 on sm_90a
// SPLIT: softmax_columns = 128 leaves 384 of 512 columns to the other warpgroup, expected 1 to 320
// CLUSTER: cluster = 4 needs block_n to be a multiple of 32, got 80
// EPILOGUE: schedule 'ws_columns' does not support the epilogue 'tma', expected 'auto', 'direct' or 'shuffled'
// POLICY: schedule 'ws_columns' does not support the softmax policy 'lagged', expected 'exact', 'threshold' or 'optimistic'

func.func @dim(%q: memref<1x8x256x1032xf16>, %o: memref<1x8x256x1032xf16>) {
  // expected-error@+1 {{schedule 'ws_columns' does not support a head dimension of 1032, expected a multiple of 8 up to 1024}}
  attn.attention ins(%q, %q, %q : memref<1x8x256x1032xf16>, memref<1x8x256x1032xf16>, memref<1x8x256x1032xf16>)
                 outs(%o : memref<1x8x256x1032xf16>)
  return
}

// -----

func.func @narrow(%q: memref<1x8x256x256xf8E4M3FN>, %o: memref<1x8x256x256xf16>) {
  // expected-error@+1 {{schedule 'ws_columns' does not support 8-bit operands, expected f16 or bf16}}
  attn.attention ins(%q, %q, %q : memref<1x8x256x256xf8E4M3FN>, memref<1x8x256x256xf8E4M3FN>, memref<1x8x256x256xf8E4M3FN>)
                 outs(%o : memref<1x8x256x256xf16>)
  return
}

// -----

func.func @transposed(%q: memref<1x8x256x512xf16>, %v: memref<1x8x256x512xf16, strided<[1048576, 131072, 1, 256]>>, %o: memref<1x8x256x512xf16>) {
  // expected-error@+1 {{schedule 'ws_columns' does not support values whose keys are contiguous}}
  attn.attention ins(%q, %q, %v : memref<1x8x256x512xf16>, memref<1x8x256x512xf16>, memref<1x8x256x512xf16, strided<[1048576, 131072, 1, 256]>>)
                 outs(%o : memref<1x8x256x512xf16>)
  return
}
