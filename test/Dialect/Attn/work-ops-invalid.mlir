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

func.func @pieces(%lengths: !llvm.ptr<1>, %index: i32, %capacity: i32) {
  // expected-error @+1 {{'attn.plan_pieces' op expected at most 1024 sequences, got 1025}}
  attn.plan_pieces %index of 132 from %lengths[1025] up to %capacity block 64 start 1 fewest 2 into %lengths
  return
}
