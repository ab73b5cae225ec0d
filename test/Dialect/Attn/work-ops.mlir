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

// CHECK-LABEL: func.func @find
// CHECK: attn.find_key first %{{.*}}[%{{.*}}] from %{{.*}} to %{{.*}} like %{{.*}}[%{{.*}}] from %{{.*}} to %{{.*}} : memref<2x300xi32>, memref<2x300xi32> of i32
// CHECK: attn.in_order %{{.*}}[%{{.*}} by %{{.*}}, %{{.*}}] of i64
// CHECK: attn.find_key same %{{.*}} from %{{.*}} to %{{.*}} like %{{.*}} from %{{.*}} to %{{.*}} if %{{.*}} : !llvm.ptr<1>, !llvm.ptr<1> of i64
func.func @find(%ids: memref<2x300xi32>, %p: !llvm.ptr<1>, %b: index, %i: i32, %n: i64) -> (i32, i32) {
  %x = attn.find_key first %ids[%b] from %i to %i like %ids[%b] from %i to %i : memref<2x300xi32>, memref<2x300xi32> of i32
  %sorted = attn.in_order %p[%i by %n, %i] of i64
  %y = attn.find_key same %p from %i to %i like %p from %i to %i if %sorted : !llvm.ptr<1>, !llvm.ptr<1> of i64
  return %x, %y : i32, i32
}

// CHECK-LABEL: func.func @pieces
// CHECK: attn.plan_pieces %{{.*}} of 132 from %{{.*}}[64] up to %{{.*}} block 64 start 1 fewest 2 into %{{.*}}
func.func @pieces(%lengths: !llvm.ptr<1>, %index: i32, %capacity: i32, %plan: !llvm.ptr<1>) {
  attn.plan_pieces %index of 132 from %lengths[64] up to %capacity block 64 start 1 fewest 2 into %plan
  return
}

// CHECK-LABEL: func.func @tiles
// CHECK: attn.plan_tiles %{{.*}}[%{{.*}} by %{{.*}}, %{{.*}}] of i64 block_m 128 block_n 64 align 64 mask <kind = none> capacity 256 most 4096 into %{{.*}}
// CHECK: attn.plan_tiles {{.*}} align 1 mask <kind = window, left = 64, right = 0> capacity 256 most 9000 into
func.func @tiles(%ids: !llvm.ptr<1>, %rows: i32, %stride: i64, %count: i32, %plan: !llvm.ptr<1>) {
  attn.plan_tiles %ids[%rows by %stride, %count] of i64 block_m 128 block_n 64 align 64 mask <kind = none> capacity 256 most 4096 into %plan
  attn.plan_tiles %ids[%rows by %stride, %count] of i32 block_m 128 block_n 64 align 1 mask <kind = window, left = 64, right = 0> capacity 256 most 9000 into %plan
  return
}
