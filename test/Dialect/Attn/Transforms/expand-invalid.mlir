// RUN: attn-opt %s -attn-expand=chip=sm_86 -split-input-file -verify-diagnostics

func.func @tensors(%q: tensor<1x8x16x64xf16>, %k: tensor<1x8x16x64xf16>, %v: tensor<1x8x16x64xf16>, %o: tensor<1x8x16x64xf16>) -> tensor<1x8x16x64xf16> {
  // expected-error@+1 {{expected operands on memrefs, got tensors: run one-shot-bufferize first}}
  %r = attn.attention ins(%q, %k, %v : tensor<1x8x16x64xf16>, tensor<1x8x16x64xf16>, tensor<1x8x16x64xf16>)
                 outs(%o : tensor<1x8x16x64xf16>) {plan = #attn.split_q<>} -> tensor<1x8x16x64xf16>
  return %r : tensor<1x8x16x64xf16>
}

// -----

func.func @too_big(%q: memref<1x8x256x256xf16>, %k: memref<1x8x256x256xf16>, %v: memref<1x8x256x256xf16>, %o: memref<1x8x256x256xf16>) {
  // expected-error@+1 {{cannot be computed by plan #attn.split_q<>: does not fit: shared memory 131072 (k 2 x 32768 + v 2 x 32768) exceeds 101376 on sm_86}}
  attn.attention ins(%q, %k, %v : memref<1x8x256x256xf16>, memref<1x8x256x256xf16>, memref<1x8x256x256xf16>)
                 outs(%o : memref<1x8x256x256xf16>) {plan = #attn.split_q<>}
  return
}

// -----

func.func @nested(%q: memref<1x1x8x16xf16>, %k: memref<1x1x8x16xf16>, %v: memref<1x1x8x16xf16>, %o: memref<1x1x8x16xf16>) {
  attn.attention ins(%q, %k, %v : memref<1x1x8x16xf16>, memref<1x1x8x16xf16>, memref<1x1x8x16xf16>)
                 outs(%o : memref<1x1x8x16xf16>)
  score_mod {
  ^bb0(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %c = arith.cmpi eq, %i, %j : i32
    // expected-error@+1 {{expected operations without regions in the kernel's score_mod, mask_mod and out_mod}}
    %x = scf.if %c -> f32 {
      scf.yield %s : f32
    } else {
      %y = arith.addf %s, %s : f32
      scf.yield %y : f32
    }
    attn.yield %x : f32
  } {plan = #attn.split_q<>}
  return
}

// -----

func.func @pointer(%q: memref<1x1x8x16xf16>, %k: memref<1x1x8x16xf16>, %v: memref<1x1x8x16xf16>, %o: memref<1x1x8x16xf16>) {
  attn.attention ins(%q, %k, %v : memref<1x1x8x16xf16>, memref<1x1x8x16xf16>, memref<1x1x8x16xf16>)
                 outs(%o : memref<1x1x8x16xf16>)
  score_mod {
  ^bb0(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %p = llvm.inttoptr %i : i32 to !llvm.ptr
    // expected-error@+1 {{expected memory to be read by memref.load only}}
    %x = llvm.load %p : !llvm.ptr -> f32
    attn.yield %x : f32
  } {plan = #attn.split_q<>}
  return
}

// -----

func.func @view(%q: memref<1x1x8x16xf16>, %k: memref<1x1x8x16xf16>, %v: memref<1x1x8x16xf16>, %o: memref<1x1x8x16xf16>, %m: memref<8xf32>) {
  attn.attention ins(%q, %k, %v : memref<1x1x8x16xf16>, memref<1x1x8x16xf16>, memref<1x1x8x16xf16>)
                 outs(%o : memref<1x1x8x16xf16>)
  score_mod {
  ^bb0(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %c = memref.cast %m : memref<8xf32> to memref<?xf32>
    %index = arith.index_cast %j : i32 to index
    // expected-error@+1 {{expected a read of a memref from outside the attention}}
    %x = memref.load %c[%index] : memref<?xf32>
    attn.yield %x : f32
  } {plan = #attn.split_q<>}
  return
}
