// RUN: attn-opt %s -split-input-file -verify-diagnostics

!a = !attn.buffer<128x64xf16, #attn.auto, shared>
!b = !attn.buffer<64x64xf16, #attn.auto, shared>
!d = !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
func.func @thread(%a: !a, %b: !b, %d: !d, %more: i1) {
  // expected-error @below {{expected an attn.elect around it, whose thread starts the product}}
  attn.tcgen05.mma %a, %b, %d accumulate %more : !a, !b, !d
  return
}

// -----

!a = !attn.buffer<2x128x64xf16, #attn.auto, shared>
!b = !attn.buffer<64x64xf16, #attn.auto, shared>
!d = !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
func.func @rank(%a: !a, %b: !b, %d: !d, %more: i1) {
  attn.elect {
    // expected-error @below {{expected 'a' of rank 2, got rank 3}}
    attn.tcgen05.mma %a, %b, %d accumulate %more : !a, !b, !d
  }
  return
}

// -----

!a = !attn.buffer<128x64xf16, #attn.auto, shared>
!b = !attn.buffer<128x64xf16, #attn.tmem<m = 128>, tmem>
!d = !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
func.func @tensor_b(%a: !a, %b: !b, %d: !d, %more: i1) {
  attn.elect {
    // expected-error @below {{expected 'b' in shared memory, got '!attn.buffer<128x64xf16, #attn.tmem<m = 128>, tmem>'}}
    attn.tcgen05.mma %a, %b, %d accumulate %more : !a, !b, !d
  }
  return
}

// -----

!a = !attn.buffer<128x64xf16, #attn.auto, shared>
!b = !attn.buffer<64x64xf16, #attn.auto, shared>
!d = !attn.buffer<128x64xf32, #attn.auto, shared>
func.func @shared_d(%a: !a, %b: !b, %d: !d, %more: i1) {
  attn.elect {
    // expected-error @below {{expected a buffer in tensor memory with its layout, got '!attn.buffer<128x64xf32, #attn.auto, shared>'}}
    attn.tcgen05.mma %a, %b, %d accumulate %more : !a, !b, !d
  }
  return
}

// -----

!a = !attn.buffer<128x32xf16, #attn.auto, shared>
!b = !attn.buffer<64x64xf16, #attn.auto, shared>
!d = !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
func.func @contraction(%a: !a, %b: !b, %d: !d, %more: i1) {
  attn.elect {
    // expected-error @below {{expected the contraction extents of 'a' and 'b' to agree, got 32 and 64}}
    attn.tcgen05.mma %a, %b, %d accumulate %more : !a, !b, !d
  }
  return
}

// -----

!a = !attn.buffer<128x32xf16, #attn.auto, shared>
!b = !attn.buffer<64x64xf16, #attn.auto, shared>
!d = !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
func.func @depth(%a: !a, %b: !b, %d: !d, %more: i1) {
  attn.elect {
    // expected-error @below {{expected a depth from 1 to the contraction extents 32 and 64, got 48}}
    attn.tcgen05.mma %a, %b, %d accumulate %more {depth = 48} : !a, !b, !d
  }
  return
}

// -----

!a = !attn.buffer<128x64xf16, #attn.auto, shared>
!b = !attn.buffer<64x64xf16, #attn.auto, shared>
!d = !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
func.func @behind(%a: !a, %b: !b, %d: !d, %more: i1) {
  attn.elect {
    // expected-error @below {{expected a depth from 1 to the contraction extents 64 and 64, got 48 from 32 on}}
    attn.tcgen05.mma %a, %b, %d accumulate %more {depth = 48, first = 32} : !a, !b, !d
  }
  return
}

// -----

!a = !attn.buffer<128x64xf16, #attn.auto, shared>
!b = !attn.buffer<64x64xf16, #attn.auto, shared>
!d = !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
func.func @step(%a: !a, %b: !b, %d: !d, %more: i1) {
  attn.elect {
    // expected-error @below {{expected 'first' to be a multiple of 16 from 0 on, got 8}}
    attn.tcgen05.mma %a, %b, %d accumulate %more {depth = 16, first = 8} : !a, !b, !d
  }
  return
}

// -----

!a = !attn.buffer<128x64xf16, #attn.auto, shared>
!b = !attn.buffer<64x64xf16, #attn.auto, shared>
!d = !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
func.func @unlimited(%a: !a, %b: !b, %d: !d, %more: i1) {
  attn.elect {
    // expected-error @below {{expected a depth beside 'first', got none}}
    attn.tcgen05.mma %a, %b, %d accumulate %more {first = 16} : !a, !b, !d
  }
  return
}

// -----

!a = !attn.buffer<128x64xf16, #attn.auto, shared>
!b = !attn.buffer<64x32xf16, #attn.auto, shared>
!d = !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
func.func @accumulator(%a: !a, %b: !b, %d: !d, %more: i1) {
  attn.elect {
    // expected-error @below {{expected an accumulator of 128 x 32, got 128 x 64}}
    attn.tcgen05.mma %a, %b, %d accumulate %more : !a, !b, !d
  }
  return
}

// -----

!a = !attn.buffer<128x64xf16, #attn.auto, shared>
!b = !attn.buffer<64x64xbf16, #attn.auto, shared>
!d = !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
func.func @types(%a: !a, %b: !b, %d: !d, %more: i1) {
  attn.elect {
    // expected-error @below {{expected operands of f16, of bf16, or of 8-bit floats, and an accumulator of f32, got 'f16', 'bf16' and 'f32'}}
    attn.tcgen05.mma %a, %b, %d accumulate %more : !a, !b, !d
  }
  return
}

// -----

!a = !attn.buffer<128x64xf16, #attn.auto, shared>
!b = !attn.buffer<64x8xf16, #attn.auto, shared>
!d = !attn.buffer<128x8xf32, #attn.tmem<m = 128>, tmem>
func.func @columns(%a: !a, %b: !b, %d: !d, %more: i1) {
  attn.elect {
    // expected-error @below {{expected N in steps of 16 for M = 128, got 8; the nearest is 16}}
    attn.tcgen05.mma %a, %b, %d accumulate %more : !a, !b, !d
  }
  return
}

// -----

!a = !attn.buffer<128x24xf16, #attn.auto, shared>
!b = !attn.buffer<24x64xf16, #attn.auto, shared>
!d = !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
func.func @step(%a: !a, %b: !b, %d: !d, %more: i1) {
  attn.elect {
    // expected-error @below {{expected K in steps of 16 for M = 128, got 24; the nearest are 16 and 32}}
    attn.tcgen05.mma %a, %b, %d accumulate %more : !a, !b, !d
  }
  return
}

// -----

func.func @thread(%done: !attn.mbarriers<2>, %i: i32) {
  // expected-error @below {{expected to stand in an attn.elect, since a commit is for what its thread has started}}
  attn.tcgen05.commit %done[%i] : !attn.mbarriers<2>
  return
}

// -----

!a = !attn.buffer<128x64xf16, #attn.auto, shared>
!b = !attn.buffer<64x64xf16, #attn.auto, shared>
!d = !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
func.func @far_depth(%a: !a, %b: !b, %d: !d, %more: i1) {
  attn.elect {
    // expected-error @below {{expected a depth from 1 to the contraction extents 64 and 64, got 9223372036854775807 from 16 on}}
    attn.tcgen05.mma %a, %b, %d accumulate %more {depth = 9223372036854775807, first = 16} : !a, !b, !d
  }
  return
}

// -----

!a = !attn.buffer<128x64xf16, #attn.auto, shared>
!b = !attn.buffer<64x64xf16, #attn.auto, shared>
!d = !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
func.func @far_start(%a: !a, %b: !b, %d: !d, %more: i1) {
  attn.elect {
    // expected-error @below {{expected 'first' to be a multiple of 16 from 0 on, got -9223372036854775807}}
    attn.tcgen05.mma %a, %b, %d accumulate %more {first = 9223372036854775809} : !a, !b, !d
  }
  return
}

// -----

!a = !attn.buffer<128x64xf16, #attn.auto, shared>
!b = !attn.buffer<64x64xf16, #attn.auto, shared>
!d = !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
func.func @pair_columns(%a: !a, %b: !b, %d: !d, %more: i1) {
  attn.elect {
    // expected-error @below {{expected an accumulator of 128 x 128, got 128 x 64}}
    attn.tcgen05.mma %a, %b, %d accumulate %more {pair} : !a, !b, !d
  }
  return
}

// -----

!a = !attn.buffer<64x64xf16, #attn.auto, shared>
!b = !attn.buffer<64x64xf16, #attn.auto, shared>
!d = !attn.buffer<64x128xf32, #attn.tmem<m = 64>, tmem>
func.func @pair_rows(%a: !a, %b: !b, %d: !d, %more: i1) {
  attn.elect {
    // expected-error @below {{expected an accumulator in halves for 64 rows in each CTA of a pair, got '!attn.buffer<64x128xf32, #attn.tmem<m = 64>, tmem>'}}
    attn.tcgen05.mma %a, %b, %d accumulate %more {pair} : !a, !b, !d
  }
  return
}

// -----

!a = !attn.buffer<64x64xf16, #attn.auto, shared>
!b = !attn.buffer<64x128xf16, #attn.auto, shared>
!d = !attn.buffer<64x128xf32, #attn.tmem<m = 64, halves = true>, tmem>
func.func @halves_of_one(%a: !a, %b: !b, %d: !d, %more: i1) {
  attn.elect {
    // expected-error @below {{expected an accumulator without halves but for 64 rows in each CTA of a pair, got '!attn.buffer<64x128xf32, #attn.tmem<m = 64, halves = true>, tmem>'}}
    attn.tcgen05.mma %a, %b, %d accumulate %more : !a, !b, !d
  }
  return
}

// -----

!a = !attn.buffer<64x64xf16, #attn.tmem<m = 64>, tmem>
!b = !attn.buffer<64x64xf16, #attn.auto, shared>
!d = !attn.buffer<64x128xf32, #attn.tmem<m = 64, halves = true>, tmem>
func.func @halves_of_tensor(%a: !a, %b: !b, %d: !d, %more: i1) {
  attn.elect {
    // expected-error @below {{expected 'a' in shared memory for 64 rows in each CTA of a pair, got '!attn.buffer<64x64xf16, #attn.tmem<m = 64>, tmem>'}}
    attn.tcgen05.mma %a, %b, %d accumulate %more {pair} : !a, !b, !d
  }
  return
}

// -----

!a = !attn.buffer<128x64xf16, #attn.auto, shared>
!b = !attn.buffer<64x12xf16, #attn.auto, shared>
!d = !attn.buffer<128x24xf32, #attn.tmem<m = 128>, tmem>
func.func @pair_step(%a: !a, %b: !b, %d: !d, %more: i1) {
  attn.elect {
    // expected-error @below {{expected N in steps of 16 for M = 256, got 24; the nearest are 16 and 32}}
    attn.tcgen05.mma %a, %b, %d accumulate %more {pair} : !a, !b, !d
  }
  return
}

// -----

!a = !attn.buffer<128x64xf16, #attn.auto, shared>
!b = !attn.buffer<64x144xf16, #attn.auto, shared>
!d = !attn.buffer<128x288xf32, #attn.tmem<m = 128>, tmem>
func.func @pair_wide(%a: !a, %b: !b, %d: !d, %more: i1) {
  attn.elect {
    // expected-error @below {{expected at most 256 columns in a product of a pair, got 288}}
    attn.tcgen05.mma %a, %b, %d accumulate %more {pair} : !a, !b, !d
  }
  return
}

// -----

func.func @commit_to_one(%done: !attn.mbarriers<2>, %i: i32) {
  attn.elect {
    // expected-error @below {{expected a cluster of 2 to 16 CTAs, got 1}}
    attn.tcgen05.commit %done[%i] {ctas = 1} : !attn.mbarriers<2>
  }
  return
}
