// RUN: attn-opt %s | attn-opt | FileCheck %s

// CHECK-LABEL: func.func @deal
// CHECK: attn.deal_run %{{.*}} of 264 from %{{.*}}[64] up to %{{.*}} most 32
func.func @deal(%lengths: !llvm.ptr<1>, %index: i32, %capacity: i32) -> (i32, i32, i32) {
  %sequence, %run, %runs = attn.deal_run %index of 264 from %lengths[64] up to %capacity most 32
  return %sequence, %run, %runs : i32, i32, i32
}
