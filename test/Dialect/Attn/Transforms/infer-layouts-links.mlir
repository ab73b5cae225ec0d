// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-infer-layouts))' | FileCheck %s

gpu.module @kernels {
  // A product fixes its accumulator; everything that is linked with it follows,
  // in both directions and through the loop.
  // CHECK-LABEL: gpu.func @attention_step
  gpu.func @attention_step(%k: !attn.buffer<32x64xf16, #attn.auto, shared>, %n: i32)
      kernel attributes {attn.warps = array<i64: 4, 1>} {
    // CHECK-DAG: attn.alloc {name = "q"} : <64x64xf16, #attn.swizzled<span = 128>, shared>
    %q = attn.alloc {name = "q"} : !attn.buffer<64x64xf16, #attn.auto, shared>
    // CHECK-DAG: attn.alloc {name = "narrow"} : <2x64x48xf16, #attn.swizzled<span = 32>, shared>
    %narrow = attn.alloc {name = "narrow"} : !attn.buffer<2x64x48xf16, #attn.auto, shared>
    // CHECK-DAG: attn.alloc {name = "rows"} : <64xf32, #attn.rows, shared>
    %rows = attn.alloc {name = "rows"} : !attn.buffer<64xf32, #attn.auto, shared>
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    // CHECK-DAG: attn.slot {{.*}} -> <64x48xf16, #attn.swizzled<span = 32>, shared>
    %slot = attn.slot %narrow[%zero] : !attn.buffer<2x64x48xf16, #attn.auto, shared> -> !attn.buffer<64x48xf16, #attn.auto, shared>
    %kk = attn.alloc {name = "k"} : !attn.buffer<32x64xf16, #attn.auto, shared>
    // CHECK: attn.transpose {{.*}} -> <64x32xf16, #attn.transposed<#attn.swizzled<span = 128>>, shared>
    %kt = attn.transpose %kk : !attn.buffer<32x64xf16, #attn.auto, shared> -> !attn.buffer<64x32xf16, #attn.auto, shared>
    // CHECK: arith.constant dense<0xFF800000> : tensor<64xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [4, 1]>>>
    %m0 = arith.constant dense<0xFF800000> : tensor<64xf32, #attn.auto>
    %s0 = arith.constant dense<0.0> : tensor<64x32xf32, #attn.auto>
    %l0 = arith.constant dense<0.0> : tensor<64x4xf32, #attn.partial<parent = #attn.auto>>
    // CHECK: scf.for
    // CHECK-SAME: tensor<64xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [4, 1]>>>
    // CHECK-SAME: tensor<64x4xf32, #attn.partial<parent = #attn.mma<warps = [4, 1]>>>
    %r:2 = scf.for %i = %zero to %n step %one iter_args(%m = %m0, %l = %l0) -> (tensor<64xf32, #attn.auto>, tensor<64x4xf32, #attn.partial<parent = #attn.auto>>) : i32 {
      // CHECK: %[[S:.*]] = attn.mma {{.*}} tensor<64x32xf32, #attn.mma<warps = [4, 1]>>
      %s = attn.mma %q, %kt, %s0 : !attn.buffer<64x64xf16, #attn.auto, shared>, !attn.buffer<64x32xf16, #attn.auto, shared>, tensor<64x32xf32, #attn.auto>
      %bm = attn.reduce max %s : tensor<64x32xf32, #attn.auto> -> tensor<64xf32, #attn.auto>
      %m1 = arith.maxnumf %m, %bm : tensor<64xf32, #attn.auto>
      %mb = attn.broadcast %m1 : tensor<64xf32, #attn.auto> -> tensor<64x32xf32, #attn.auto>
      %d = arith.subf %s, %mb : tensor<64x32xf32, #attn.auto>
      %p = attn.exp2 %d : tensor<64x32xf32, #attn.auto>
      // CHECK: attn.reduce add {{.*}} partial
      // CHECK-SAME: -> tensor<64x4xf32, #attn.partial<parent = #attn.mma<warps = [4, 1]>>>
      %lb = attn.reduce add %p partial : tensor<64x32xf32, #attn.auto> -> tensor<64x4xf32, #attn.partial<parent = #attn.auto>>
      %l1 = arith.addf %l, %lb : tensor<64x4xf32, #attn.partial<parent = #attn.auto>>
      scf.yield %m1, %l1 : tensor<64xf32, #attn.auto>, tensor<64x4xf32, #attn.partial<parent = #attn.auto>>
    }
    // CHECK: attn.local_store {{.*}} : tensor<64xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [4, 1]>>>, <64xf32, #attn.rows, shared>
    attn.local_store %r#0, %rows : tensor<64xf32, #attn.auto>, !attn.buffer<64xf32, #attn.auto, shared>
    gpu.return
  }

  // The only conversion is P's renaming to operand fragments; a constant that
  // two products use in different layouts is cloned, not converted.
  // CHECK-LABEL: gpu.func @operand_conversion
  gpu.func @operand_conversion() kernel attributes {attn.warps = array<i64: 4, 1>} {
    %v = attn.alloc {name = "v"} : !attn.buffer<32x64xf16, #attn.auto, shared>
    %p = arith.constant dense<1.0> : tensor<64x32xf16, #attn.auto>
    %o0 = arith.constant dense<0.0> : tensor<64x64xf32, #attn.auto>
    // CHECK-NOT: convert_layout
    %o = attn.mma %p, %v, %o0 : tensor<64x32xf16, #attn.auto>, !attn.buffer<32x64xf16, #attn.auto, shared>, tensor<64x64xf32, #attn.auto>
    %x = arith.constant dense<1.0> : tensor<64x64xf32, #attn.auto>
    %y = arith.mulf %o, %x : tensor<64x64xf32, #attn.auto>
    %h = arith.truncf %y : tensor<64x64xf32, #attn.auto> to tensor<64x64xf16, #attn.auto>
    %w = attn.alloc {name = "w"} : !attn.buffer<64x64xf16, #attn.auto, shared>
    // CHECK: %[[A:.*]] = attn.convert_layout %{{.*}} : tensor<64x64xf16, #attn.mma<warps = [4, 1]>> -> tensor<64x64xf16, #attn.operand<index = 0, parent = #attn.mma<warps = [4, 1]>>>
    // CHECK: attn.mma %[[A]],
    %o2 = attn.mma %h, %w, %o0 : tensor<64x64xf16, #attn.auto>, !attn.buffer<64x64xf16, #attn.auto, shared>, tensor<64x64xf32, #attn.auto>
    gpu.return
  }

  // A layout that the user wrote stays, and a conversion meets the other one.
  // CHECK-LABEL: gpu.func @written_layout
  gpu.func @written_layout(%g: !llvm.ptr<1>, %zero64: i64, %n: i32, %stride: i64)
      kernel attributes {attn.warps = array<i64: 4, 1>} {
    %view = attn.global_view %g[%zero64] rows %n stride %stride : !attn.global<?x64xf32>
    %zero = arith.constant 0 : i32
    %t = attn.global_load %view[%zero] : !attn.global<?x64xf32> -> tensor<64x64xf32, #attn.blocked<per_thread = [1, 4], warps = 4, order = [1, 0]>>
    %a = attn.alloc : !attn.buffer<64x16xf16, #attn.auto, shared>
    %b = attn.alloc : !attn.buffer<16x64xf16, #attn.auto, shared>
    %c = arith.constant dense<0.0> : tensor<64x64xf32, #attn.auto>
    %s = attn.mma %a, %b, %c : !attn.buffer<64x16xf16, #attn.auto, shared>, !attn.buffer<16x64xf16, #attn.auto, shared>, tensor<64x64xf32, #attn.auto>
    // CHECK: %[[T:.*]] = attn.convert_layout {{.*}} tensor<64x64xf32, #attn.blocked<per_thread = [1, 4], warps = 4, order = [1, 0]>> -> tensor<64x64xf32, #attn.mma<warps = [4, 1]>>
    // CHECK: attn.mma %{{.*}}, %{{.*}}, %[[T]]
    %ct = attn.convert_layout %t : tensor<64x64xf32, #attn.blocked<per_thread = [1, 4], warps = 4, order = [1, 0]>> -> tensor<64x64xf32, #attn.auto>
    %s2 = attn.mma %a, %b, %ct : !attn.buffer<64x16xf16, #attn.auto, shared>, !attn.buffer<16x64xf16, #attn.auto, shared>, tensor<64x64xf32, #attn.auto>
    gpu.return
  }
}
