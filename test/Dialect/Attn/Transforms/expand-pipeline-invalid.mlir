// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-expand-pipeline))' --split-input-file -verify-diagnostics

gpu.module @kernels {
  gpu.func @carried_row(%gk: !attn.global<?x64xf16>, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant 0 : i32
    %k = attn.alloc : !attn.buffer<2x64x64xf16, #attn.auto, shared>
    %r = attn.kv_loop %zero, %zero, %n, %n block 64 stages 2 iter_args(%zero : i32) {
    // expected-note@below {{the carried value is here}}
    ^bb0(%key: i32, %row: i32):
      // expected-error@below {{expected rows that follow from the key index, so that copies can start ahead, got rows that depend on a carried value}}
      %kb = attn.stage %gk[%row], %k : !attn.global<?x64xf16>, !attn.buffer<2x64x64xf16, #attn.auto, shared> -> !attn.buffer<64x64xf16, #attn.auto, shared>
      %next = arith.addi %row, %key : i32
      attn.yield %next : i32
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @loaded_row(%gk: !attn.global<?x64xf16>, %n: i32, %table: memref<?xi32>, %i: index) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant 0 : i32
    %k = attn.alloc : !attn.buffer<2x64x64xf16, #attn.auto, shared>
    attn.kv_loop %zero, %zero, %n, %n block 64 stages 2 {
    ^bb0(%key: i32):
      // expected-note@below {{the op is here}}
      %row = memref.load %table[%i] : memref<?xi32>
      // expected-error@below {{expected rows that follow from the key index, so that copies can start ahead, got rows that depend on an op with effects}}
      %kb = attn.stage %gk[%row], %k : !attn.global<?x64xf16>, !attn.buffer<2x64x64xf16, #attn.auto, shared> -> !attn.buffer<64x64xf16, #attn.auto, shared>
      attn.yield
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @inner_ring(%gk: !attn.global<?x64xf16>, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant 0 : i32
    attn.kv_loop %zero, %zero, %n, %n block 64 stages 2 {
    ^bb0(%key: i32):
      %k = attn.alloc : !attn.buffer<2x64x64xf16, #attn.auto, shared>
      // expected-error@below {{expected a ring from outside the loop}}
      %kb = attn.stage %gk[%key], %k : !attn.global<?x64xf16>, !attn.buffer<2x64x64xf16, #attn.auto, shared> -> !attn.buffer<64x64xf16, #attn.auto, shared>
      attn.yield
    }
    gpu.return
  }
}
