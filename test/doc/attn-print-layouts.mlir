// RUN: attn-opt %s --attn-print-layouts -o /dev/null | FileCheck %s

func.func private @fragments(tensor<16x8xf32, #attn.mma<warps = [1, 1]>>)

// CHECK:      tile 16x8xf32, #attn.mma<warps = [1, 1]>
// CHECK-NEXT: {register: [0,1] [8,0]; lane: [0,2] [0,4] [1,0] [2,0] [4,0]
// CHECK-NEXT:    |      0      1      2      3      4      5      6      7
// CHECK-NEXT: ---+--------------------------------------------------------
// CHECK-NEXT:  0 |  T0:r0  T0:r1  T1:r0  T1:r1  T2:r0  T2:r1  T3:r0  T3:r1
// CHECK-NEXT:  1 |  T4:r0  T4:r1  T5:r0  T5:r1  T6:r0  T6:r1  T7:r0  T7:r1
