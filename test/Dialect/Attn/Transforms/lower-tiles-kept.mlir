// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-select-epilogue,attn-infer-layouts,attn-lower-tiles,cse))' | FileCheck %s
// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-select-epilogue))' | FileCheck %s --check-prefix=SELECT

// What another kernel reads soon is stored in lines that L2 gives up last, by one
// policy for all stores: values of rows, 16 bytes of a thread at a time, and a single
// number. Elements of 16 bits are stored as others are.

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @kept(
  // CHECK: %[[POLICY:.*]] = llvm.inline_asm "createpolicy.fractional.L2::evict_last.b64 $0, 0f3F800000;", "=l" : () -> i64
  // CHECK-NOT: createpolicy
  // CHECK: llvm.inline_asm has_side_effects "st.global.L2::cache_hint.f32 [$0], $1, $2;", "l,f,l,~{memory}" %{{.*}}, %{{.*}}, %[[POLICY]]
  // CHECK: llvm.inline_asm has_side_effects "st.global.L2::cache_hint.v4.f32 [$0], {$1, $2, $3, $4}, $5;", "l,f,f,f,f,l,~{memory}" %{{.*}}, %[[POLICY]]
  // SELECT-LABEL: gpu.func @kept(
  // SELECT-COUNT-2: attn.global_store {{.*}} {attn.kept}
  gpu.func @kept(%x: f32, %p: !llvm.ptr<1>, %off: i64, %n: i32, %row: i32) kernel attributes {attn.warps = array<i64: 1, 1>} {
    %m = tensor.splat %x : tensor<16xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [1, 1]>>>
    %t = tensor.splat %x : tensor<16x32xf32, #attn.mma<warps = [1, 1]>>
    %l = attn.global_view %p[%off] rows %n stride %off : !attn.global<?xf32>
    %g = attn.global_view %p[%off] rows %n stride %off {alignment = 16 : i64} : !attn.global<?x32xf32>
    attn.global_store %m, %l[%row] {attn.kept} : tensor<16xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [1, 1]>>>, !attn.global<?xf32>
    attn.store_result %t, %g[%row] {attn.kept} : tensor<16x32xf32, #attn.mma<warps = [1, 1]>>, !attn.global<?x32xf32>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @number(
  // CHECK: %[[POLICY:.*]] = llvm.inline_asm "createpolicy
  // CHECK-NEXT: llvm.inline_asm has_side_effects "st.global.L2::cache_hint.f32 [$0], $1, $2;", "l,f,l,~{memory}" %arg1, %arg0, %[[POLICY]]
  // CHECK-NOT: llvm.store
  gpu.func @number(%x: f32, %p: !llvm.ptr<1>) kernel attributes {attn.warps = array<i64: 1, 1>} {
    llvm.store %x, %p {attn.kept} : f32, !llvm.ptr<1>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @narrow(
  // CHECK-NOT: createpolicy
  // CHECK: llvm.store
  gpu.func @narrow(%x: f16, %p: !llvm.ptr<1>, %off: i64, %n: i32, %row: i32) kernel attributes {attn.warps = array<i64: 1, 1>} {
    %t = tensor.splat %x : tensor<16x32xf16, #attn.mma<warps = [1, 1]>>
    %g = attn.global_view %p[%off] rows %n stride %off {alignment = 16 : i64} : !attn.global<?x32xf16>
    attn.global_store %t, %g[%row] {attn.kept} : tensor<16x32xf16, #attn.mma<warps = [1, 1]>>, !attn.global<?x32xf16>
    gpu.return
  }
}
