// RUN: attn-opt %s -split-input-file -verify-diagnostics

func.func @count(%b: !attn.mbarriers<2>) {
  // expected-error @below {{expected a count from 1 to 1048575, got 0}}
  attn.mbarrier.init %b {count = 0} : !attn.mbarriers<2>
  return
}

// -----

func.func @bytes(%b: !attn.mbarriers<2>, %i: i32) {
  // expected-error @below {{expected from 0 to 1048575 bytes, got 1048576}}
  attn.mbarrier.expect_tx %b[%i] {bytes = 1048576} : !attn.mbarriers<2>
  return
}

// -----

func.func @threads(%i: i32) {
  // expected-error @below {{expected a positive multiple of 32 threads, got 48}}
  attn.named_barrier %i {threads = 48}
  return
}

// -----

func.func @ctas(%b: !attn.mbarriers<2>, %i: i32) {
  // expected-error @below {{expected a cluster of 2 to 16 CTAs, got 1}}
  attn.mbarrier.arrive %b[%i] {ctas = 1} : !attn.mbarriers<2>
  return
}

// -----

func.func @turn() {
  // expected-error @below {{expected a named barrier from 1 to 15, got 16}}
  attn.turn.take 16
  return
}

// -----

func.func @each(%id: i32) {
  // expected-error @below {{expected the 128 threads of a warpgroup with 'each_warpgroup', got 256}}
  attn.named_barrier %id {threads = 256, each_warpgroup}
  return
}

// -----

func.func @ctas_and_leader(%b: !attn.mbarriers<2>, %i: i32) {
  // expected-error @below {{expected 'ctas' or 'leader', got both}}
  attn.mbarrier.arrive %b[%i] {ctas = 2, leader} : !attn.mbarriers<2>
  return
}

// -----

func.func @expect_ctas_and_leader(%b: !attn.mbarriers<2>, %i: i32) {
  // expected-error @below {{expected 'ctas' or 'leader', got both}}
  attn.mbarrier.expect_tx %b[%i] {bytes = 64, ctas = 2, leader} : !attn.mbarriers<2>
  return
}

// -----

func.func @expect_in_one(%b: !attn.mbarriers<2>, %i: i32) {
  // expected-error @below {{expected a cluster of 2 to 16 CTAs, got 1}}
  attn.mbarrier.expect_tx %b[%i] {bytes = 4, ctas = 1} : !attn.mbarriers<2>
  return
}

// -----

func.func @far() {
  // expected-error @below {{expected an offset from 0 to 16777216, got 2147483648}}
  %b = attn.mbarrier.alloc {offset = 2147483648 : i64} : !attn.mbarriers<2>
  return
}
