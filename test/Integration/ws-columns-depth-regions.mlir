// RUN: attn-compile %s --chip=sm_90a --schedule=ws_columns --set=block_n=32 -o %t.ptx --verify --require-proof | FileCheck %s
// RUN: %python %S/Inputs/unused-loads.py %t.ptx | FileCheck %s --check-prefix=USED
// RUN: sed 's,mask_mod,score_mod, ; s,%result : i1,%number : f32,' %s > %t.mlir
// RUN: attn-compile %t.mlir --chip=sm_90a --schedule=ws_columns --set=block_n=32 -o %t.ptx --verify --require-proof | FileCheck %s

// Scores that come from the other CTA are used before their slot is handed
// back, but for those that the mask leaves out.

// CHECK: findings: none
// USED: {{[1-9][0-9]*}} loads, {{[1-9][0-9]*}} arrivals, 0 behind unused loads

!rows = memref<1x2x70x640xbf16>
!keys = memref<1x2x100x640xbf16>

func.func @f(%q: !rows, %k: !keys, %v: !keys, %o: !rows) {
  attn.attention ins(%q, %k, %v : !rows, !keys, !keys) outs(%o : !rows) mask_mod {
  ^bb0(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %three = arith.constant 3 : i32
    %sum = arith.addi %i, %j : i32
    %rest = arith.remsi %sum, %three : i32
    %result = arith.cmpi ne, %rest, %h : i32
    %bias = arith.sitofp %rest : i32 to f32
    %number = arith.mulf %s, %bias : f32
    attn.yield %result : i1
  }
    {mask = #attn.mask<kind = causal, align = bottom_right>}
  return
}
