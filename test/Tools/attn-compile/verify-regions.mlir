// RUN: attn-compile %s --verify | FileCheck %s
// RUN: attn-compile %s --debug-lines | FileCheck %s --check-prefix=LINES

// ALiBi and a document mask, with random slopes and documents.
// CHECK: findings: none
// CHECK: passed

// PTX lines map to the regions' operations, and the target does not say debug.
// LINES: .target sm_80{{$}}
// LINES-DAG: .loc [[FILE:[0-9]+]] [[#@LINE + 13]] {{[0-9]+}}
// LINES-DAG: .loc [[FILE]] [[#@LINE + 25]] {{[0-9]+}}
// LINES-DAG: .file [[FILE]] "{{.*}}verify-regions.mlir"

func.func @alibi(%q: memref<1x4x100x64xf16>, %o: memref<1x4x100x64xf16>,
                 %lse: memref<1x4x100xf32>, %slopes: memref<4xf32>, %documents: memref<100xi32>, %factor: f32) {
  %half = arith.constant 0.5 : f32
  attn.attention ins(%q, %q, %q : memref<1x4x100x64xf16>, memref<1x4x100x64xf16>, memref<1x4x100x64xf16>)
                 outs(%o, %lse : memref<1x4x100x64xf16>, memref<1x4x100xf32>)
                 score_mod {
  ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %head = arith.index_cast %h : i32 to index
    %slope = memref.load %slopes[%head] : memref<4xf32>
    %distance = arith.subi %j, %i : i32
    %d = arith.sitofp %distance : i32 to f32
    %s = arith.mulf %slope, %half : f32
    %t = arith.mulf %s, %factor : f32
    %bias = arith.mulf %t, %d : f32
    %r = arith.addf %score, %bias : f32
    attn.yield %r : f32
  } mask_mod {
  ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %qi = arith.index_cast %i : i32 to index
    %kj = arith.index_cast %j : i32 to index
    %dq = memref.load %documents[%qi] : memref<100xi32>
    %dk = memref.load %documents[%kj] : memref<100xi32>
    %keep = arith.cmpi eq, %dq, %dk : i32
    attn.yield %keep : i1
  }
  return
}
