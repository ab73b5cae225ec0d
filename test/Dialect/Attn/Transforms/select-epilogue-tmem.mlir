// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-select-epilogue))' | FileCheck %s
// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-select-epilogue))' --remarks-filter='attn.*' -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-select-epilogue,attn-infer-layouts))' | FileCheck %s --check-prefix=LAYOUT

// Results that were loaded from tensor memory by rows: a thread has a row.

#regs = #attn.tmem_regs<shape_32x32b, warps = [4, 1]>
#quads = #attn.tmem_regs<shape_16x256b, warps = [4, 1]>
!f = !attn.inflight<128x64xf32, #regs>
!g = !attn.inflight<128x64xf32, #quads>
!o = tensor<128x64xf32, #attn.auto>
!r = tensor<128x64xf16, #attn.auto>
!buf = !attn.buffer<128x64xf16, #attn.auto, shared>
!out = !attn.global<?x64xf16>

gpu.module @kernels {
  // Whole sectors: 4 stores of 32 bytes in place of 8 into shared memory, and no
  // barrier, although there is a dead buffer.
  // CHECK-LABEL: gpu.func @sectors
  // CHECK-NOT: attn.local_store
  // CHECK: attn.global_store
  // REMARK: Function=sectors | Remark="the result is direct", direct-stores=4, kind=direct, row-alignment=32, row-bytes=128, scratch-bytes=16384, staged-bytes=16384, staged-stores=8
  // LAYOUT-LABEL: gpu.func @sectors
  // LAYOUT: attn.global_store %{{.*}} : tensor<128x64xf16, #attn.tmem_regs<shape_32x32b, warps = [4, 1]>>
  gpu.func @sectors(%f: !f, %scale: f32, %p: !llvm.ptr<1>, %off: i64, %n: i32, %row: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %q = attn.alloc {name = "q"} : !buf
    %t = attn.tmem.wait %f : !f -> !o
    %s = tensor.splat %scale : !o
    %x = arith.mulf %t, %s : !o
    %r = arith.truncf %x : !o to !r
    %g = attn.global_view %p[%off] rows %n stride %off {alignment = 32 : i64} : !out
    attn.store_result %r, %g[%row] scratch %q : !buf : !r, !out
    gpu.return
  }

  // Rows of half sectors pass through the dead buffer.
  // CHECK-LABEL: gpu.func @half_sectors
  // CHECK: attn.local_store
  // CHECK-NEXT: attn.copy_out
  // REMARK: Function=half_sectors | Remark="the result is staged", direct-stores=8, kind=staged, row-alignment=16
  // LAYOUT-LABEL: gpu.func @half_sectors
  gpu.func @half_sectors(%f: !f, %p: !llvm.ptr<1>, %off: i64, %n: i32, %row: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %q = attn.alloc {name = "q"} : !buf
    %t = attn.tmem.wait %f : !f -> !o
    %r = arith.truncf %t : !o to !r
    %g = attn.global_view %p[%off] rows %n stride %off {alignment = 16 : i64} : !out
    attn.store_result %r, %g[%row] scratch %q : !buf : !r, !out
    gpu.return
  }

  // There is nothing to exchange in a row that one thread has.
  // CHECK-LABEL: gpu.func @no_scratch
  // CHECK-NOT: attn.convert_layout
  // CHECK: attn.global_store
  // REMARK: Function=no_scratch | Remark="the result is direct", direct-stores=8, kind=direct, row-alignment=16
  // LAYOUT-LABEL: gpu.func @no_scratch
  gpu.func @no_scratch(%f: !f, %p: !llvm.ptr<1>, %off: i64, %n: i32, %row: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %t = attn.tmem.wait %f : !f -> !o
    %r = arith.truncf %t : !o to !r
    %g = attn.global_view %p[%off] rows %n stride %off {alignment = 16 : i64} : !out
    attn.store_result %r, %g[%row] : !r, !out
    gpu.return
  }

  // Four lanes share a row here.
  // CHECK-LABEL: gpu.func @quads
  // CHECK: attn.local_store
  // REMARK: Function=quads | Remark="the result is staged", kind=staged, row-alignment=32
  // LAYOUT-LABEL: gpu.func @quads
  gpu.func @quads(%f: !g, %p: !llvm.ptr<1>, %off: i64, %n: i32, %row: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %q = attn.alloc {name = "q"} : !buf
    %t = attn.tmem.wait %f : !g -> !o
    %r = arith.truncf %t : !o to !r
    %g = attn.global_view %p[%off] rows %n stride %off {alignment = 32 : i64} : !out
    attn.store_result %r, %g[%row] scratch %q : !buf : !r, !out
    gpu.return
  }
}
