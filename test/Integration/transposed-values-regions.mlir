// Regions see the keys that columns stand for, whatever their order.

// RUN: attn-compile %s --chip=sm_90a --schedule=ws_wgmma --verify -o %t.ptx | FileCheck %s
// RUN: attn-compile %s --chip=sm_90a --schedule=ws_wgmma --set=key_quads=false --verify -o %t.ptx | FileCheck %s
// RUN: attn-compile %s --chip=sm_90a --schedule=self_load --verify -o %t.ptx | FileCheck %s
// RUN: attn-compile %s --chip=sm_90a --schedule=self_load --set=key_quads=false --verify -o %t.ptx | FileCheck %s
// CHECK: findings: none
// CHECK: {{^}}passed{{$}}

!q = memref<1x2x200x64xf8E4M3FN>
!k = memref<1x2x252x64xf8E4M3FN>
!v = memref<1x2x252x64xf8E4M3FN, strided<[32768, 16384, 1, 256]>>
!o = memref<1x2x200x64xf32>
func.func @alibi(%q: !q, %k: !k, %v: !v, %o: !o, %bias: memref<252xf32>) {
  %c = arith.constant 0.03125 : f32
  %three = arith.constant 3 : i32
  %zero = arith.constant 0 : i32
  attn.attention ins(%q, %k, %v : !q, !k, !v) outs(%o : !o)
  score_mod {
  ^bb0(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %d = arith.subi %j, %i : i32
    %f = arith.sitofp %d : i32 to f32
    %x = math.fma %f, %c, %s : f32
    %at = arith.index_cast %j : i32 to index
    %e = memref.load %bias[%at] : memref<252xf32>
    %y = arith.addf %x, %e : f32
    attn.yield %y : f32
  }
  mask_mod {
  ^bb0(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %r = arith.remui %j, %three : i32
    %keep = arith.cmpi ne, %r, %zero : i32
    attn.yield %keep : i1
  }
  return
}
