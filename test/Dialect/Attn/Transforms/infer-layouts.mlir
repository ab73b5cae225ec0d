// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-infer-layouts))' -split-input-file | FileCheck %s

// Buffers take the widest swizzle that divides their rows; the matrix
// instruction fixes the tiles, and what follows from its result follows it.

// CHECK-LABEL: gpu.func @scores
gpu.module @kernels {
  gpu.func @scores(%g: !attn.global<?x32xf16>, %row: i32) kernel
      attributes {attn.warps = array<i64: 4, 1>} {
    // CHECK: attn.alloc {name = "q"} : <64x64xf16, #attn.swizzled<span = 128>, shared>
    %q = attn.alloc {name = "q"} : !attn.buffer<64x64xf16, #attn.auto, shared>
    // CHECK: attn.alloc {name = "k"} : <2x32x64xf16, #attn.swizzled<span = 128>, shared>
    %k = attn.alloc {name = "k"} : !attn.buffer<2x32x64xf16, #attn.auto, shared>
    // CHECK: attn.slot {{.*}} -> <32x64xf16, #attn.swizzled<span = 128>, shared>
    %slot = attn.slot %k[%row] : !attn.buffer<2x32x64xf16, #attn.auto, shared> -> !attn.buffer<32x64xf16, #attn.auto, shared>
    // CHECK: attn.transpose {{.*}} -> <64x32xf16, #attn.transposed<#attn.swizzled<span = 128>>, shared>
    %kt = attn.transpose %slot : !attn.buffer<32x64xf16, #attn.auto, shared> -> !attn.buffer<64x32xf16, #attn.auto, shared>
    // CHECK: arith.constant dense<0.000000e+00> : tensor<64x32xf32, #attn.mma<warps = [4, 1]>>
    %zero = arith.constant dense<0.0> : tensor<64x32xf32, #attn.auto>
    // CHECK: attn.local_load {{.*}} -> tensor<64x64xf16, #attn.operand<index = 0, parent = #attn.mma<warps = [4, 1]>>>
    %qt = attn.local_load %q : !attn.buffer<64x64xf16, #attn.auto, shared> -> tensor<64x64xf16, #attn.auto>
    %s = attn.mma %qt, %kt, %zero : tensor<64x64xf16, #attn.auto>, !attn.buffer<64x32xf16, #attn.auto, shared>, tensor<64x32xf32, #attn.auto>
    // CHECK: attn.reduce max {{.*}} -> tensor<64xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [4, 1]>>>
    %m = attn.reduce max %s : tensor<64x32xf32, #attn.auto> -> tensor<64xf32, #attn.auto>
    // CHECK: attn.reduce add {{.*}} partial {{.*}} -> tensor<64x4xf32, #attn.partial<parent = #attn.mma<warps = [4, 1]>>>
    %l = attn.reduce add %s partial : tensor<64x32xf32, #attn.auto> -> tensor<64x4xf32, #attn.partial<parent = #attn.auto>>
    %mb = attn.broadcast %m : tensor<64xf32, #attn.auto> -> tensor<64x32xf32, #attn.auto>
    // CHECK: arith.subf {{.*}} : tensor<64x32xf32, #attn.mma<warps = [4, 1]>>
    %d = arith.subf %s, %mb : tensor<64x32xf32, #attn.auto>
    %h = arith.truncf %d : tensor<64x32xf32, #attn.auto> to tensor<64x32xf16, #attn.auto>
    // CHECK-NOT: attn.convert_layout
    // CHECK-NOT: #attn.auto
    attn.global_store %h, %g[%row] : tensor<64x32xf16, #attn.auto>, !attn.global<?x32xf16>
    gpu.return
  }
}

// -----

// A result that becomes the A operand of the next instruction is converted
// there.

// CHECK-LABEL: gpu.func @chained
gpu.module @kernels {
  gpu.func @chained(%v: !attn.buffer<32x64xf16, #attn.swizzled<span = 128>, shared>,
                    %k: !attn.buffer<64x32xf16, #attn.transposed<#attn.swizzled<span = 128>>, shared>,
                    %q: !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>) kernel
      attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant dense<0.0> : tensor<64x32xf32, #attn.auto>
    %acc = arith.constant dense<0.0> : tensor<64x64xf32, #attn.auto>
    %s = attn.mma %q, %k, %zero : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>, !attn.buffer<64x32xf16, #attn.transposed<#attn.swizzled<span = 128>>, shared>, tensor<64x32xf32, #attn.auto>
    %p = arith.truncf %s : tensor<64x32xf32, #attn.auto> to tensor<64x32xf16, #attn.auto>
    // CHECK: %[[P:.*]] = attn.convert_layout {{.*}} : tensor<64x32xf16, #attn.mma<warps = [4, 1]>> -> tensor<64x32xf16, #attn.operand<index = 0, parent = #attn.mma<warps = [4, 1]>>>
    // CHECK: attn.mma %[[P]]
    %o = attn.mma %p, %v, %acc : tensor<64x32xf16, #attn.auto>, !attn.buffer<32x64xf16, #attn.swizzled<span = 128>, shared>, tensor<64x64xf32, #attn.auto>
    gpu.return
  }
}

// -----

// A layout goes around a loop through its carried values.

// CHECK-LABEL: gpu.func @carried
gpu.module @kernels {
  gpu.func @carried(%n: index, %q: !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>,
                    %k: !attn.buffer<64x32xf16, #attn.transposed<#attn.swizzled<span = 128>>, shared>) kernel
      attributes {attn.warps = array<i64: 4, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant dense<0.0> : tensor<64x32xf32, #attn.auto>
    // CHECK: scf.for {{.*}} -> (tensor<64x32xf32, #attn.mma<warps = [4, 1]>>)
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x32xf32, #attn.auto>) {
      %s = attn.mma %q, %k, %acc : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>, !attn.buffer<64x32xf16, #attn.transposed<#attn.swizzled<span = 128>>, shared>, tensor<64x32xf32, #attn.auto>
      scf.yield %s : tensor<64x32xf32, #attn.auto>
    }
    gpu.return
  }
}

// -----

// Written-out layouts stay.

// CHECK-LABEL: gpu.func @written
gpu.module @kernels {
  gpu.func @written(%g: !attn.global<?x64xf32>, %row: i32) kernel
      attributes {attn.warps = array<i64: 4, 1>} {
    %a = attn.global_load %g[%row] : !attn.global<?x64xf32> -> tensor<64x64xf32, #attn.blocked<per_thread = [1, 4], warps = 4, order = [1, 0]>>
    %b = attn.global_load %g[%row] : !attn.global<?x64xf32> -> tensor<64x64xf32, #attn.mma<warps = [4, 1]>>
    // CHECK: attn.convert_layout
    // CHECK-NEXT: attn.exp2
    %c = attn.convert_layout %a : tensor<64x64xf32, #attn.blocked<per_thread = [1, 4], warps = 4, order = [1, 0]>> -> tensor<64x64xf32, #attn.mma<warps = [4, 1]>>
    %d = attn.exp2 %c : tensor<64x64xf32, #attn.mma<warps = [4, 1]>>
    gpu.return
  }
}

// -----

// What TMA copies lies as the tensor map says, wider swizzles or not; the
// result of a wait has the fragments of the kernel's warps; the A operand of
// the next product is converted, which costs nothing.

// CHECK-LABEL: gpu.func @warpgroup
gpu.module @kernels {
  gpu.func @warpgroup(%map: !attn.tensor_map<64x32xf16, swizzle = 64>, %i: i32) kernel
      attributes {attn.warps = array<i64: 4, 1>} {
    // CHECK: attn.alloc : <2x64x64xf16, #attn.swizzled<span = 64>, shared>
    %ring = attn.alloc : !attn.buffer<2x64x64xf16, #attn.auto, shared>
    // CHECK: attn.alloc : <64x64xf16, #attn.swizzled<span = 128>, shared>
    %other = attn.alloc : !attn.buffer<64x64xf16, #attn.auto, shared>
    %full = attn.mbarrier.alloc : !attn.mbarriers<1>
    %k = attn.slot %ring[%i] : !attn.buffer<2x64x64xf16, #attn.auto, shared> -> !attn.buffer<64x64xf16, #attn.auto, shared>
    attn.tma.load %map[%i, %i], %k barrier %full[%i] : !attn.mbarriers<1> : !attn.tensor_map<64x32xf16, swizzle = 64>, !attn.buffer<64x64xf16, #attn.auto, shared>
    %s = attn.wgmma %other, %k : !attn.buffer<64x64xf16, #attn.auto, shared>, !attn.buffer<64x64xf16, #attn.auto, shared> -> !attn.inflight<64x64xf32>
    // CHECK: attn.wgmma.wait {{.*}} -> tensor<64x64xf32, #attn.mma<warps = [4, 1]>>
    %r = attn.wgmma.wait %s {pending = 0} : !attn.inflight<64x64xf32> -> tensor<64x64xf32, #attn.auto>
    // CHECK: %[[P:.*]] = arith.truncf {{.*}} to tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
    %p = arith.truncf %r : tensor<64x64xf32, #attn.auto> to tensor<64x64xf16, #attn.auto>
    // CHECK: %[[C:.*]] = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #attn.mma<warps = [4, 1]>>
    // CHECK: %[[A:.*]] = attn.convert_layout %[[P]] : {{.*}} -> tensor<64x64xf16, #attn.operand<index = 0, parent = #attn.mma<warps = [4, 1]>>>
    %c = arith.constant dense<0.0> : tensor<64x64xf32, #attn.auto>
    // CHECK: attn.wgmma %[[A]], %{{.*}} acc %[[C]]
    %o = attn.wgmma %p, %k acc %c : tensor<64x64xf32, #attn.auto> : tensor<64x64xf16, #attn.auto>, !attn.buffer<64x64xf16, #attn.auto, shared> -> !attn.inflight<64x64xf32>
    attn.wgmma.wait {pending = 0}
    gpu.return
  }

  gpu.func @plain(%map: !attn.tensor_map<64x32xf16, swizzle = 0>, %i: i32) kernel
      attributes {attn.warps = array<i64: 4, 1>} {
    // CHECK-LABEL: gpu.func @plain
    // CHECK: attn.alloc : <64x32xf16, #attn.rows, shared>
    %out = attn.alloc : !attn.buffer<64x32xf16, #attn.auto, shared>
    attn.tma.store %out, %map[%i, %i] : !attn.buffer<64x32xf16, #attn.auto, shared>, !attn.tensor_map<64x32xf16, swizzle = 0>
    gpu.return
  }

  // So does other memory that is taken for it.
  gpu.func @in_place(%map: !attn.tensor_map<64x24xf16, swizzle = 0>, %i: i32) kernel
      attributes {attn.warps = array<i64: 4, 1>} {
    // CHECK-LABEL: gpu.func @in_place
    // CHECK: attn.reinterpret {{.*}} -> <64x24xf16, #attn.rows, shared>
    %q = attn.alloc : !attn.buffer<64x64xf16, #attn.auto, shared>
    %out = attn.reinterpret %q : !attn.buffer<64x64xf16, #attn.auto, shared> -> !attn.buffer<64x24xf16, #attn.auto, shared>
    attn.tma.store %out, %map[%i, %i] : !attn.buffer<64x24xf16, #attn.auto, shared>, !attn.tensor_map<64x24xf16, swizzle = 0>
    gpu.return
  }
}

// -----

// A tile that nothing but its rows fixes takes the layout that they are rows of,
// not the kernel's usual one.

// CHECK-LABEL: gpu.func @rows_first
gpu.module @kernels {
  gpu.func @rows_first(%m: tensor<64xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [2, 2]>>>) kernel
      attributes {attn.warps = array<i64: 4, 1>} {
    // CHECK-NOT: attn.convert_layout
    // CHECK: attn.broadcast {{.*}} -> tensor<64x32xf32, #attn.mma<warps = [2, 2]>>
    %r = attn.exp2 %m : tensor<64xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [2, 2]>>>
    %t = attn.broadcast %r : tensor<64xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [2, 2]>>> -> tensor<64x32xf32, #attn.auto>
    gpu.return
  }
}
