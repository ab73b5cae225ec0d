// RUN: attn-opt %s -split-input-file -verify-diagnostics

func.func @thread(%done: !attn.mbarriers<2>, %i: i32) {
  // expected-error @below {{expected to stand in an attn.elect, since a commit is for what its thread has started}}
  attn.tcgen05.commit %done[%i] : !attn.mbarriers<2>
  return
}
