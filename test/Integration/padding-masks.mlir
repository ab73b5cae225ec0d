// A mask_mod that a tensor of keys decides: the lanes of a warp ask for a key each and tell each
// other, in the layouts of mma.sync, of wgmma with keys in the order of quads, and of tensor
// memory, for keys that are no multiple of a block. Beside it stands a condition on the query.

// DEFINE: %{verify} = attn-compile %s --verify -o %t.ptx
// RUN: %{verify} --chip=sm_80 --schedule=split_q | FileCheck %s
// RUN: FileCheck %s --check-prefix=PTX --input-file=%t.ptx
// RUN: %{verify} --chip=sm_90a --schedule=ws_wgmma --set=block_n=128 | FileCheck %s
// RUN: FileCheck %s --check-prefix=PTX --input-file=%t.ptx
// RUN: %{verify} --chip=sm_100a --schedule=ws_tmem --require-proof | FileCheck %s
// RUN: FileCheck %s --check-prefix=PTX --input-file=%t.ptx

// CHECK: relative error: {{.*}}, accepted
// PTX: vote.sync.ballot.b32
func.func @padded(%q: memref<2x2x150x64xf16>, %k: memref<2x2x300x64xf16>, %v: memref<2x2x300x64xf16>, %o: memref<2x2x150x64xf16>, %keys: memref<2x300xf32>) {
  attn.attention ins(%q, %k, %v : memref<2x2x150x64xf16>, memref<2x2x300x64xf16>, memref<2x2x300x64xf16>) outs(%o : memref<2x2x150x64xf16>) mask_mod {
  ^bb0(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %bi = arith.index_cast %b : i32 to index
    %ji = arith.index_cast %j : i32 to index
    %x = memref.load %keys[%bi, %ji] : memref<2x300xf32>
    %zero = arith.constant 0.0 : f32
    %counts = arith.cmpf olt, %x, %zero : f32
    %three = arith.constant 3 : i32
    %sum = arith.addi %i, %j : i32
    %rest = arith.remui %sum, %three : i32
    %two = arith.constant 2 : i32
    %other = arith.cmpi slt, %rest, %two : i32
    %keep = arith.andi %counts, %other : i1
    attn.yield %keep : i1
  }
  return
}
