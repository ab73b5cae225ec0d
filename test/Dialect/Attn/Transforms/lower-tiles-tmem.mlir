// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-lower-tiles))' --split-input-file | FileCheck %s

#regs = #attn.tmem_regs<shape_32x32b, warps = [4, 1]>
#quads = #attn.tmem_regs<shape_16x256b, warps = [4, 1]>
#span128 = #attn.swizzled<span = 128>
!q = !attn.buffer<128x32xf16, #attn.swizzled<span = 64>, shared>
!kt = !attn.buffer<32x64xf16, #attn.transposed<#attn.swizzled<span = 64>>, shared>
!k = !attn.buffer<64x32xf16, #attn.swizzled<span = 64>, shared>
!v = !attn.buffer<32x64xf16, #span128, shared>
!slot = !attn.buffer<1xi32, #attn.rows, shared>
!s = !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
!p = !attn.buffer<128x32xf16, #attn.tmem<m = 128>, tmem>
!c = !attn.buffer<128x16xf32, #attn.tmem<m = 128>, tmem>
!ring = !attn.buffer<2x128x64xf32, #attn.tmem<m = 128>, tmem>

gpu.module @kernels [#attn.target<chip = "sm_100a">] {
  // Warp 0 takes the columns and gives up the right to more; the address goes
  // through shared memory. At the end all accesses come before a barrier.
  // CHECK-LABEL: gpu.func @lifetime
  // CHECK: %[[FIRST:.*]] = arith.cmpi eq, %{{.*}}, %c0_i32
  // CHECK: scf.if %[[FIRST]] {
  // CHECK: nvvm.tcgen05.alloc %[[SLOT:.*]], %c256_i32{{.*}} : !llvm.ptr<3>, i32
  // CHECK: nvvm.tcgen05.relinquish_alloc_permit
  // CHECK: gpu.barrier
  // CHECK: %[[BASE:.*]] = llvm.load %[[SLOT]] : !llvm.ptr<3> -> i32
  // CHECK: %[[RING:.*]] = arith.addi %[[BASE]], %c128_i32
  // CHECK: %[[COLUMNS:.*]] = arith.muli %{{.*}}, %c64_i32
  // CHECK: arith.addi %[[RING]], %[[COLUMNS]]
  // CHECK: nvvm.tcgen05.fence <before>
  // CHECK: gpu.barrier
  // CHECK: nvvm.tcgen05.fence <after>
  // CHECK: %[[POINTER:.*]] = llvm.inttoptr %[[BASE]] : i32 to !llvm.ptr<6>
  // CHECK: nvvm.tcgen05.dealloc %[[POINTER]], %c256_i32
  gpu.func @lifetime(%i: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %slot = attn.alloc {offset = 0 : i64} : !slot
    %base = attn.tmem.reserve %slot {columns = 256} : !slot
    %ring = attn.tmem_alloc {column = 128 : i64} : !ring
    %o = attn.slot %ring[%i] : !ring -> !s
    %c = attn.tmem.slice %o {column = 32} : !s -> !c
    attn.tmem.dealloc %base {columns = 256}
    gpu.return
  }

  // All columns start at 0, and nobody reads the address.
  // CHECK-LABEL: gpu.func @all_columns
  // CHECK: nvvm.tcgen05.alloc %{{.*}}, %c512_i32
  // CHECK-NOT: llvm.load
  // CHECK: gpu.return
  gpu.func @all_columns() kernel attributes {attn.warps = array<i64: 4, 1>} {
    %slot = attn.alloc {offset = 0 : i64} : !slot
    %base = attn.tmem.reserve %slot {columns = 512} : !slot
    attn.tmem.dealloc %base {columns = 512}
    gpu.return
  }

  // Warp w reaches the lanes from 32 (w % 4) on. Columns are immediates, and of
  // shapes of 16 lanes there are two for 32 rows: lane 16 is 1048576 further. The
  // wait takes the registers and returns them.
  // CHECK-LABEL: gpu.func @accesses
  // CHECK: %[[PART:.*]] = arith.andi %{{.*}}, %c3_i32
  // CHECK: %[[LANES:.*]] = arith.muli %[[PART]], %c2097152_i32
  // CHECK: llvm.inline_asm has_side_effects "tcgen05.ld.sync.aligned.32x32b.x64.b32 {$0, $1, {{.*}}, $63}, [$64];", "=&f,{{.*}},=&f,r,~{memory}"
  // CHECK: llvm.inline_asm has_side_effects "tcgen05.ld.sync.aligned.16x256b.x2.b32 {$0, $1, $2, $3, $4, $5, $6, $7}, [$8];"
  // CHECK: llvm.inline_asm has_side_effects "tcgen05.ld.sync.aligned.16x256b.x2.b32 {$0, $1, $2, $3, $4, $5, $6, $7}, [$8+1048576];"
  // CHECK: llvm.inline_asm has_side_effects "tcgen05.wait::ld.sync.aligned;", "=&f,{{.*}},0,1,{{.*}},79,~{memory}"
  // CHECK: llvm.inline_asm has_side_effects "tcgen05.st.sync.aligned.16x128b.x2.b32 [$0], {$1, $2, $3, $4};", "r,r,r,r,r,~{memory}"
  // CHECK: llvm.inline_asm has_side_effects "tcgen05.st.sync.aligned.16x128b.x2.b32 [$0+1048576], {$1, $2, $3, $4};"
  // CHECK: llvm.inline_asm has_side_effects "tcgen05.wait::st.sync.aligned;", "~{memory}"
  gpu.func @accesses() kernel attributes {attn.warps = array<i64: 4, 1>} {
    %slot = attn.alloc {offset = 0 : i64} : !slot
    %base = attn.tmem.reserve %slot {columns = 64} : !slot
    %s = attn.tmem_alloc {column = 0 : i64, fields = [#attn.field<"p", 32, 8>]} : !s
    %c = attn.tmem.slice %s {column = 16} : !s -> !c
    %f = attn.tmem.load %s : !s -> !attn.inflight<128x64xf32, #regs>
    %g = attn.tmem.load %c : !c -> !attn.inflight<128x16xf32, #quads>
    %t:2 = attn.tmem.wait %f, %g : !attn.inflight<128x64xf32, #regs>, !attn.inflight<128x16xf32, #quads> -> tensor<128x64xf32, #regs>, tensor<128x16xf32, #quads>
    %r = arith.truncf %t#1 : tensor<128x16xf32, #quads> to tensor<128x16xf16, #quads>
    %p = attn.tmem.field %s "p" : !s -> !attn.buffer<128x16xf16, #attn.tmem<m = 128>, tmem>
    attn.tmem.store %r, %p : tensor<128x16xf16, #quads>, !attn.buffer<128x16xf16, #attn.tmem<m = 128>, tmem>
    attn.tmem.store_wait
    gpu.return
  }

  // Two steps of 16, 32 bytes apart. The descriptors' upper words have the
  // constant of tcgen05 beside the swizzle of 64 bytes; N = 64 and M = 128 stand
  // in the instruction descriptor. A constant false is an immediate. Columns of P
  // are 8 words a step, and V is contiguous along N.
  // CHECK-LABEL: gpu.func @products
  // CHECK: llvm.inline_asm has_side_effects "{\0A.reg .b32 t, i;\0A.reg .b64 da, db;\0Amov.b32 i, 135266320;\0A
  // CHECK-SAME: mov.b64 da, {$1, 2147500064};\0Amov.b64 db, {$2, 2147500064};\0Atcgen05.mma.cta_group::1.kind::f16 [$0], da, db, i, 0;\0A
  // CHECK-SAME: add.s32 t, $1, 2;\0Amov.b64 da, {t, 2147500064};\0Aadd.s32 t, $2, 2;\0Amov.b64 db, {t, 2147500064};\0Atcgen05.mma.cta_group::1.kind::f16 [$0], da, db, i, 1;\0A}", "r,r,r,~{memory}"
  // CHECK: %[[MORE:.*]] = arith.extui
  // CHECK: llvm.inline_asm has_side_effects "{\0A.reg .b32 t, i;\0A.reg .b64 da, db;\0Amov.b32 i, 135331856;\0A.reg .pred p;\0Asetp.ne.b32 p, $3, 0;\0A
  // CHECK-SAME: mov.b64 db, {$2, 1073758272};\0Atcgen05.mma.cta_group::1.kind::f16 [$0], [$1], db, i, p;\0A
  // CHECK-SAME: add.s32 t, $2, 128;\0Amov.b64 db, {t, 1073758272};\0Atcgen05.mma.cta_group::1.kind::f16 [$0], [$1+8], db, i, 1;\0A}", "r,r,r,r,~{memory}"
  gpu.func @products(%more: i1) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %no = arith.constant false
    %slot = attn.alloc {offset = 0 : i64} : !slot
    %q = attn.alloc {offset = 1024 : i64} : !q
    %k = attn.alloc {offset = 9216 : i64} : !k
    %v = attn.alloc {offset = 13312 : i64} : !v
    %base = attn.tmem.reserve %slot {columns = 128} : !slot
    %s = attn.tmem_alloc {column = 0 : i64, fields = [#attn.field<"p", 32, 16>]} : !s
    %o = attn.tmem_alloc {column = 64 : i64} : !s
    %kt = attn.transpose %k : !k -> !kt
    %p = attn.tmem.field %s "p" : !s -> !p
    attn.elect {
      attn.tcgen05.mma %q, %kt, %s accumulate %no : !q, !kt, !s
      attn.tcgen05.mma %p, %v, %o accumulate %more : !p, !v, !s
    }
    gpu.return
  }

  // A contraction that starts with the second step takes that one alone.
  // CHECK-LABEL: gpu.func @back
  // CHECK: llvm.inline_asm has_side_effects
  // CHECK-SAME: add.s32 t, $2, 128;\0Amov.b64 db, {t, 1073758272};\0Atcgen05.mma.cta_group::1.kind::f16 [$0], [$1+8], db, i, 1;\0A}"
  gpu.func @back() kernel attributes {attn.warps = array<i64: 4, 1>} {
    %more = arith.constant true
    %slot = attn.alloc {offset = 0 : i64} : !slot
    %v = attn.alloc {offset = 13312 : i64} : !v
    %base = attn.tmem.reserve %slot {columns = 128} : !slot
    %s = attn.tmem_alloc {column = 0 : i64, fields = [#attn.field<"p", 32, 16>]} : !s
    %o = attn.tmem_alloc {column = 64 : i64} : !s
    %p = attn.tmem.field %s "p" : !s -> !p
    attn.elect {
      attn.tcgen05.mma %p, %v, %o accumulate %more {depth = 16, first = 16} : !p, !v, !s
    }
    gpu.return
  }

  // Neighbours in a thread's row are computed in pairs, and their sums too. A
  // slice is some of the thread's registers.
  // CHECK-LABEL: gpu.func @pairs
  // CHECK-COUNT-32: math.fma %{{.*}} : vector<2xf32>
  // CHECK-NOT: math.fma
  // CHECK-COUNT-7: arith.addf %{{.*}} : vector<2xf32>
  // CHECK: arith.addf %{{.*}} : f32
  // CHECK-NOT: arith.addf
  // CHECK: tcgen05.st.sync.aligned.32x32b.x16.b32
  gpu.func @pairs(%x: f32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %slot = attn.alloc {offset = 0 : i64} : !slot
    %base = attn.tmem.reserve %slot {columns = 64} : !slot
    %s = attn.tmem_alloc {column = 0 : i64} : !s
    %c = attn.tmem.slice %s {column = 48} : !s -> !c
    %f = attn.tmem.load %s : !s -> !attn.inflight<128x64xf32, #regs>
    %t = attn.tmem.wait %f : !attn.inflight<128x64xf32, #regs> -> tensor<128x64xf32, #regs>
    %factor = tensor.splat %x : tensor<128x64xf32, #regs>
    %e = math.fma %t, %factor, %factor : tensor<128x64xf32, #regs>
    %back = attn.slice %e {column = 48} : tensor<128x64xf32, #regs> -> tensor<128x16xf32, #regs>
    %sums = attn.reduce add %back partial : tensor<128x16xf32, #regs> -> tensor<128x1xf32, #attn.partial<parent = #regs>>
    attn.tmem.store %back, %c : tensor<128x16xf32, #regs>, !c
    attn.tmem.store_wait
    gpu.return
  }
}

// -----

// The maximum of each row comes with its load.
#regs = #attn.tmem_regs<shape_32x32b, warps = [4, 1]>
#rows = #attn.slice<dim = 1, parent = #regs>
!slot = !attn.buffer<1xi32, #attn.rows, shared>
!s = !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
gpu.module @kernels [#attn.target<chip = "sm_103a">] {
  // CHECK-LABEL: gpu.func @maxima
  // CHECK: llvm.inline_asm has_side_effects "tcgen05.ld.red.sync.aligned.32x32b.x64.max.f32 {$0, $1, {{.*}}, $63}, $64, [$65];"
  // CHECK: "tcgen05.wait::ld.sync.aligned;", "=&f,{{.*}},0,1,{{.*}},64,~{memory}"
  gpu.func @maxima() kernel attributes {attn.warps = array<i64: 4, 1>} {
    %slot = attn.alloc {offset = 0 : i64} : !slot
    %base = attn.tmem.reserve %slot {columns = 64} : !slot
    %s = attn.tmem_alloc {column = 0 : i64} : !s
    %f, %m = attn.tmem.load %s {reduce = #attn<reduce_kind max>} : !s -> !attn.inflight<128x64xf32, #regs>, !attn.inflight<128xf32, #rows>
    %t, %r = attn.tmem.wait %f, %m : !attn.inflight<128x64xf32, #regs>, !attn.inflight<128xf32, #rows> -> tensor<128x64xf32, #regs>, tensor<128xf32, #rows>
    gpu.return
  }

  // NaN of a row that has one.
  // CHECK-LABEL: gpu.func @nan
  // CHECK: "tcgen05.ld.red.sync.aligned.32x32b.x64.max.NaN.f32 {$0, $1, {{.*}}, $63}, $64, [$65];"
  gpu.func @nan() kernel attributes {attn.warps = array<i64: 4, 1>} {
    %slot = attn.alloc {offset = 0 : i64} : !slot
    %base = attn.tmem.reserve %slot {columns = 64} : !slot
    %s = attn.tmem_alloc {column = 0 : i64} : !s
    %f, %m = attn.tmem.load %s {reduce = #attn<reduce_kind maximum>} : !s -> !attn.inflight<128x64xf32, #regs>, !attn.inflight<128xf32, #rows>
    %t, %r = attn.tmem.wait %f, %m : !attn.inflight<128x64xf32, #regs>, !attn.inflight<128xf32, #rows> -> tensor<128x64xf32, #regs>, tensor<128xf32, #rows>
    gpu.return
  }
}
