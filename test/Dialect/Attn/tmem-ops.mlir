// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -mlir-print-op-generic | attn-opt | FileCheck %s
// RUN: attn-opt %s -emit-bytecode | attn-opt | FileCheck %s

// Tensor memory. What the printer writes stands at the end, op by op.

!s = !attn.buffer<128x128xf32, #attn.tmem<m = 128>, tmem>
!p = !attn.buffer<128x128xbf16, #attn.tmem<m = 128>, tmem>
!ring = !attn.buffer<2x64x64xf32, #attn.tmem<m = 64>, tmem>
!o = !attn.buffer<64x64xf32, #attn.tmem<m = 64>, tmem>
!chunk = !attn.buffer<128x32xf32, #attn.tmem<m = 128>, tmem>
#rows = #attn.tmem_regs<shape_32x32b, warps = [4, 1]>
!flying = !attn.inflight<128x32xf32, #rows>
!maxima = !attn.inflight<128xf32, #attn.slice<dim = 1, parent = #rows>>

func.func @buffers(%i: i32) {
  %s = attn.tmem_alloc {name = "s", column = 128 : i64, fields = [#attn.field<"s", 0, 128>, #attn.field<"p", 64, 64>]} : !s
  %plain = attn.tmem_alloc : !s
  %ring = attn.tmem_alloc {name = "o"} : !ring
  %slot = attn.slot %ring[%i] : !ring -> !o
  %p = attn.tmem.field %s "p" : !s -> !p
  %c = attn.tmem.slice %s {column = 32} : !s -> !chunk
  return
}

func.func @lifetime(%slot: !attn.buffer<1xi32, #attn.rows, shared>) {
  %base = attn.tmem.reserve %slot {columns = 256} : !attn.buffer<1xi32, #attn.rows, shared>
  attn.tmem.dealloc %base {columns = 256}
  return
}

func.func @accesses(%c: !chunk, %o: !o, %p: !p, %r: tensor<128x128xbf16, #rows>) {
  %f = attn.tmem.load %c : !chunk -> !flying
  %g, %max = attn.tmem.load %c {reduce = #attn<reduce_kind max>} : !chunk -> !flying, !maxima
  %t:2 = attn.tmem.wait %f, %g : !flying, !flying -> tensor<128x32xf32, #attn.auto>, tensor<128x32xf32, #rows>
  %m = attn.tmem.wait %max : !maxima -> tensor<128xf32, #attn.slice<dim = 1, parent = #rows>>
  attn.tmem.wait
  attn.tmem.store %r, %p : tensor<128x128xbf16, #rows>, !p
  attn.tmem.store_wait
  return
}

// A warp alone may load and store the lanes that it reaches.
func.func @rare(%big: tensor<128xi1, #attn.slice<dim = 1, parent = #rows>>, %o: !chunk, %factor: tensor<128x32xf32, #rows>) {
  attn.rare any %big : tensor<128xi1, #attn.slice<dim = 1, parent = #rows>> {
    %f = attn.tmem.load %o : !chunk -> !flying
    %t = attn.tmem.wait %f : !flying -> tensor<128x32xf32, #rows>
    %scaled = arith.mulf %t, %factor : tensor<128x32xf32, #rows>
    attn.tmem.store %scaled, %o : tensor<128x32xf32, #rows>, !chunk
    attn.tmem.store_wait
  }
  return
}

// The layouts of each shape, and what derives from them.
func.func private @shapes(
    tensor<64x8xf32, #attn.tmem_regs<shape_16x64b, warps = [4, 1]>>,
    tensor<64x8xf32, #attn.tmem_regs<shape_16x128b, warps = [4, 1]>>,
    tensor<64x8xf32, #attn.tmem_regs<shape_16x256b, warps = [4, 1]>>,
    tensor<64x8xf32, #attn.tmem_regs<shape_16x32bx2, warps = [4, 1]>>,
    tensor<128x1xf32, #attn.partial<parent = #rows>>,
    tensor<64x2xf32, #attn.partial<parent = #attn.tmem_regs<shape_16x64b, warps = [4, 1]>>>,
    tensor<128x4xf32, #attn.partial<parent = #attn.tmem_regs<shape_16x256b, warps = [4, 1]>>>,
    tensor<64xf32, #attn.slice<dim = 1, parent = #attn.tmem_regs<shape_16x32bx2, warps = [4, 1]>>>,
    tensor<24xf32, #attn.slice<dim = 0, parent = #rows>>)

// CHECK-LABEL: @buffers
// CHECK: %{{[^ ,:]+}} = attn.tmem_alloc {column = 128 : i64, fields = [#attn.field<"s", 0, 128>, #attn.field<"p", 64, 64>], name = "s"} : <128x128xf32, #attn.tmem<m = 128>, tmem>
// CHECK: %{{[^ ,:]+}} = attn.tmem_alloc : <128x128xf32, #attn.tmem<m = 128>, tmem>
// CHECK: %{{[^ ,:]+}} = attn.tmem_alloc {name = "o"} : <2x64x64xf32, #attn.tmem<m = 64>, tmem>
// CHECK: %{{[^ ,:]+}} = attn.slot %{{[^ ,:]+}}[%{{[^ ,:]+}}] : <2x64x64xf32, #attn.tmem<m = 64>, tmem> -> <64x64xf32, #attn.tmem<m = 64>, tmem>
// CHECK: %{{[^ ,:]+}} = attn.tmem.field %{{[^ ,:]+}} "p" : <128x128xf32, #attn.tmem<m = 128>, tmem> -> <128x128xbf16, #attn.tmem<m = 128>, tmem>
// CHECK: %{{[^ ,:]+}} = attn.tmem.slice %{{[^ ,:]+}} {column = 32 : i64} : <128x128xf32, #attn.tmem<m = 128>, tmem> -> <128x32xf32, #attn.tmem<m = 128>, tmem>
// CHECK-LABEL: @lifetime
// CHECK: %{{[^ ,:]+}} = attn.tmem.reserve %{{[^ ,:]+}} {columns = 256 : i64} : <1xi32, #attn.rows, shared>
// CHECK: attn.tmem.dealloc %{{[^ ,:]+}} {columns = 256 : i64}
// CHECK-LABEL: @accesses
// CHECK: %{{[^ ,:]+}} = attn.tmem.load %{{[^ ,:]+}} : <128x32xf32, #attn.tmem<m = 128>, tmem> -> <128x32xf32, #attn.tmem_regs<shape_32x32b, warps = [4, 1]>>
// CHECK: %{{[^ ,:]+}}, %{{[^ ,:]+}} = attn.tmem.load %{{[^ ,:]+}} {reduce = #attn<reduce_kind max>} : <128x32xf32, #attn.tmem<m = 128>, tmem> -> <128x32xf32, #attn.tmem_regs<shape_32x32b, warps = [4, 1]>>, !attn.inflight<128xf32, #attn.slice<dim = 1, parent = #attn.tmem_regs<shape_32x32b, warps = [4, 1]>>>
// CHECK: %{{[^ ,:]+}}:2 = attn.tmem.wait %{{[^ ,:]+}}, %{{[^ ,:]+}} : !attn.inflight<128x32xf32, #attn.tmem_regs<shape_32x32b, warps = [4, 1]>>, !attn.inflight<128x32xf32, #attn.tmem_regs<shape_32x32b, warps = [4, 1]>> -> tensor<128x32xf32, #attn.auto>, tensor<128x32xf32, #attn.tmem_regs<shape_32x32b, warps = [4, 1]>>
// CHECK: %{{[^ ,:]+}} = attn.tmem.wait %{{[^ ,:]+}} : !attn.inflight<128xf32, #attn.slice<dim = 1, parent = #attn.tmem_regs<shape_32x32b, warps = [4, 1]>>> -> tensor<128xf32, #attn.slice<dim = 1, parent = #attn.tmem_regs<shape_32x32b, warps = [4, 1]>>>
// CHECK: attn.tmem.wait
// CHECK: attn.tmem.store %{{[^ ,:]+}}, %{{[^ ,:]+}} : tensor<128x128xbf16, #attn.tmem_regs<shape_32x32b, warps = [4, 1]>>, <128x128xbf16, #attn.tmem<m = 128>, tmem>
// CHECK: attn.tmem.store_wait
// CHECK-LABEL: @rare
// CHECK: attn.rare any
// CHECK: attn.tmem.load
// CHECK: attn.tmem.store_wait
// CHECK-LABEL: @shapes
// CHECK-SAME: (tensor<64x8xf32, #attn.tmem_regs<shape_16x64b, warps = [4, 1]>>, tensor<64x8xf32, #attn.tmem_regs<shape_16x128b, warps = [4, 1]>>, tensor<64x8xf32, #attn.tmem_regs<shape_16x256b, warps = [4, 1]>>, tensor<64x8xf32, #attn.tmem_regs<shape_16x32bx2, warps = [4, 1]>>, tensor<128x1xf32, #attn.partial<parent = #attn.tmem_regs<shape_32x32b, warps = [4, 1]>>>, tensor<64x2xf32, #attn.partial<parent = #attn.tmem_regs<shape_16x64b, warps = [4, 1]>>>, tensor<128x4xf32, #attn.partial<parent = #attn.tmem_regs<shape_16x256b, warps = [4, 1]>>>, tensor<64xf32, #attn.slice<dim = 1, parent = #attn.tmem_regs<shape_16x32bx2, warps = [4, 1]>>>, tensor<24xf32, #attn.slice<dim = 0, parent = #attn.tmem_regs<shape_32x32b, warps = [4, 1]>>>)
