// Lengths and strides that only the launch decides: rows of K keep their order.

// RUN: attn-compile %s --chip=sm_90a --size=q.dim2=200 --size=k.dim2=336 --verify -o %t.ptx | FileCheck %s
// RUN: attn-compile %s --chip=sm_90a --size=q.dim2=200 --size=k.dim2=333 --size=v.stride3=352 --size=v.stride1=22528 --size=v.stride0=45056 --verify -o %t.ptx | FileCheck %s
// RUN: attn-compile %s --chip=sm_90a --schedule=self_load --size=q.dim2=200 --size=k.dim2=336 --verify -o %t.ptx | FileCheck %s
// CHECK: findings: none
// CHECK: {{^}}passed{{$}}

// RUN: not attn-compile %s --chip=sm_90a --size=q.dim2=200 --size=k.dim2=333 --verify -o %t.ptx 2>&1 | FileCheck %s --check-prefix=STRIDE
// STRIDE: tensor "v": its tensor map expects strides of a multiple of 16 bytes below 2^40, got 333 elements

!q = memref<1x2x?x64xf8E4M3FN>
!v = memref<1x2x?x64xf8E4M3FN, strided<[?, ?, 1, ?]>>
func.func @dynamic(%q: !q, %k: !q, %v: !v, %o: memref<1x2x?x64xbf16>) {
  attn.attention ins(%q, %k, %v : !q, !q, !v) outs(%o : memref<1x2x?x64xbf16>)
                 {mask = #attn.mask<kind = causal, align = bottom_right>}
  return
}
