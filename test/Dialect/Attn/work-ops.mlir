// RUN: attn-opt %s | attn-opt | FileCheck %s

// CHECK-LABEL: func.func @deal
// CHECK: attn.deal_run %{{.*}} of 264 from %{{.*}}[64] up to %{{.*}} most 32
func.func @deal(%lengths: !llvm.ptr<1>, %index: i32, %capacity: i32) -> (i32, i32, i32) {
  %sequence, %run, %runs = attn.deal_run %index of 264 from %lengths[64] up to %capacity most 32
  return %sequence, %run, %runs : i32, i32, i32
}

// CHECK-LABEL: func.func @plan
// CHECK: attn.plan_work %{{.*}} of 264 from %{{.*}}[64] up to %{{.*}} most 32 into %{{.*}}
func.func @plan(%lengths: !llvm.ptr<1>, %index: i32, %capacity: i32, %plan: !llvm.ptr<1>) {
  attn.plan_work %index of 264 from %lengths[64] up to %capacity most 32 into %plan
  return
}

// CHECK-LABEL: func.func @pieces
// CHECK: attn.plan_pieces %{{.*}} of 132 from %{{.*}}[64] up to %{{.*}} block 64 start 1 fewest 2 into %{{.*}}
func.func @pieces(%lengths: !llvm.ptr<1>, %index: i32, %capacity: i32, %plan: !llvm.ptr<1>) {
  attn.plan_pieces %index of 132 from %lengths[64] up to %capacity block 64 start 1 fewest 2 into %plan
  return
}
