// RUN: attn-opt %s --split-input-file --verify-diagnostics

func.func @sequences(%lengths: !llvm.ptr<1>, %index: i32, %capacity: i32) {
  // expected-error @+1 {{'attn.deal_run' op expected at most 256 sequences, got 257}}
  %r:3 = attn.deal_run %index of 300 from %lengths[257] up to %capacity most 32
  return
}

// -----

func.func @runs(%lengths: !llvm.ptr<1>, %index: i32, %capacity: i32) {
  // expected-error @+1 {{'attn.deal_run' op expected more runs than sequences, 64, got 64}}
  %r:3 = attn.deal_run %index of 64 from %lengths[64] up to %capacity most 32
  return
}

// -----

func.func @planned(%lengths: !llvm.ptr<1>, %index: i32, %capacity: i32) {
  // expected-error @+1 {{'attn.plan_work' op expected more runs than sequences, 64, got 40}}
  attn.plan_work %index of 40 from %lengths[64] up to %capacity most 32 into %lengths
  return
}

// -----

func.func @labels_scalar(%ids: memref<i32>, %p: !llvm.ptr<1>, %i: i32) {
  // expected-error @below {{expected a place for each of the keys, got 'memref<i32>'}}
  %x = attn.find_key first %ids from %i to %i like %p from %i to %i : memref<i32>, !llvm.ptr<1> of i32
  return
}

// -----

func.func @labels_indices(%ids: memref<2x300xi32>, %p: !llvm.ptr<1>, %i: i32) {
  // expected-error @below {{expected 1 indices of the queries, got 0}}
  %x = attn.find_key last %p from %i to %i like %ids from %i to %i : !llvm.ptr<1>, memref<2x300xi32> of i32
  return
}

// -----

func.func @labels_type(%ids: memref<300xi64>, %p: !llvm.ptr<1>, %i: i32) {
  // expected-error @below {{expected numbers of type 'i32', got 'memref<300xi64>'}}
  %x = attn.find_key same %ids from %i to %i like %p from %i to %i : memref<300xi64>, !llvm.ptr<1> of i32
  return
}

// -----

func.func @labels_order(%p: !llvm.ptr<1>, %i: i32) {
  // expected-error @below {{expected 'if' beside pointers, and only there}}
  %x = attn.find_key same %p from %i to %i like %p from %i to %i : !llvm.ptr<1>, !llvm.ptr<1> of i32
  return
}

// -----

func.func @pieces(%lengths: !llvm.ptr<1>, %index: i32, %capacity: i32) {
  // expected-error @+1 {{'attn.plan_pieces' op expected at most 1024 sequences, got 1025}}
  attn.plan_pieces %index of 132 from %lengths[1025] up to %capacity block 64 start 1 fewest 2 into %lengths
  return
}

// -----

func.func @tiles_of_many(%ids: !llvm.ptr<1>, %rows: i32, %stride: i64, %count: i32, %plan: !llvm.ptr<1>) {
  // expected-error @below {{attribute 'block_m' failed to satisfy constraint: 64-bit signless integer attribute whose minimum value is 1 whose maximum value is 2147483647}}
  attn.plan_tiles %ids[%rows by %stride, %count] of i32 block_m 4294967424 block_n 64 align 1 mask <kind = none> capacity 256 most 9000 into %plan
  return
}

// -----

func.func @blocks_of_many(%ids: !llvm.ptr<1>, %rows: i32, %stride: i64, %count: i32, %plan: !llvm.ptr<1>) {
  // expected-error @below {{attribute 'most' failed to satisfy constraint: 64-bit signless integer attribute whose minimum value is 0 whose maximum value is 2147483647}}
  attn.plan_tiles %ids[%rows by %stride, %count] of i32 block_m 128 block_n 64 align 1 mask <kind = none> capacity 256 most 4294967296 into %plan
  return
}
