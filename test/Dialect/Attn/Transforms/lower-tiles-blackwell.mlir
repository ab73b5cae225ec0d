// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-lower-tiles,canonicalize,cse))' | FileCheck %s

#rows = #attn.blocked<per_thread = [1, 16], warps = 4, order = [1, 0]>
#wide = #attn.blocked<per_thread = [1, 32], warps = 4, order = [1, 0]>

gpu.module @kernels [#attn.target<chip = "sm_100a">] {
  // A commit is an instruction that LLVM moves nothing across.
  // CHECK-LABEL: gpu.func @commit
  // CHECK: nvvm.elect.sync
  // CHECK: %[[B:.*]] = llvm.ptrtoint %{{.*}} : !llvm.ptr<3> to i32
  // CHECK: llvm.inline_asm has_side_effects "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [$0];", "r,~{memory}" %[[B]]
  gpu.func @commit(%i: i32) kernel attributes {known_block_size = array<i32: 128, 1, 1>, attn.warps = array<i64: 4, 1>} {
    %done = attn.mbarrier.alloc {name = "done", offset = 0} : !attn.mbarriers<2>
    attn.elect {
      attn.tcgen05.commit %done[%i] : !attn.mbarriers<2>
    }
    gpu.return
  }

  // Three of 16 by a polynomial: of the first 16 two pairs and of the next ones
  // one, none alone.
  // CHECK-LABEL: gpu.func @powers
  // CHECK-COUNT-6: ex2.approx.ftz.f32
  // CHECK: arith.maximumf
  // CHECK: arith.minimumf
  // CHECK: llvm.inline_asm "add.rm.ftz.f32x2 $0, $1, $2;", "=l,l,l"
  // CHECK-COUNT-3: math.fma {{.*}} : vector<2xf32>
  // CHECK: llvm.inline_asm "mov.b64 {$0, $1}, $2;", "=r,=r,l"
  // CHECK-COUNT-2: arith.shli
  // CHECK: arith.mulf {{.*}} : vector<2xf32>
  // CHECK-COUNT-6: ex2.approx.ftz.f32
  // CHECK: add.rm.ftz.f32x2
  // CHECK-COUNT-14: ex2.approx.ftz.f32
  // CHECK: add.rm.ftz.f32x2
  // CHECK-NOT: add.rm.ftz
  // CHECK-NOT: ex2.approx.ftz.f32
  gpu.func @powers(%x: f32, %p: !llvm.ptr<1>, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant 0 : i32
    %start = arith.constant 0 : i64
    %stride = arith.constant 32 : i64
    %g = attn.global_view %p[%start] rows %n stride %stride {alignment = 16} : !attn.global<?x32xf32>
    %t = attn.global_load %g[%zero] : !attn.global<?x32xf32> -> tensor<128x32xf32, #wide>
    %e = attn.exp2 %t {polynomial = 3} : tensor<128x32xf32, #wide>
    attn.global_store %e, %g[%zero] : tensor<128x32xf32, #wide>, !attn.global<?x32xf32>
    gpu.return
  }

  // Exponents below 128 are held from below alone, and no power is NaN: what is
  // shifted goes to the polynomial's own bits.
  // CHECK-LABEL: gpu.func @bounded
  // CHECK: arith.maximumf
  // CHECK-NOT: arith.minimumf
  // CHECK: %[[F:.*]] = math.fma {{.*}} %cst_{{[0-9]+}} : vector<2xf32>
  // CHECK-NOT: arith.mulf
  // CHECK: %[[SHIFTED:.*]] = arith.shli
  // CHECK: arith.addi %[[SHIFTED]]
  // CHECK-NOT: arith.mulf
  // CHECK: gpu.return
  gpu.func @bounded(%x: f32, %p: !llvm.ptr<1>, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant 0 : i32
    %start = arith.constant 0 : i64
    %stride = arith.constant 16 : i64
    %g = attn.global_view %p[%start] rows %n stride %stride {alignment = 16} : !attn.global<?x16xf32>
    %t = attn.global_load %g[%zero] : !attn.global<?x16xf32> -> tensor<128x16xf32, #rows>
    %e = attn.exp2 %t {polynomial = 2, bounded} : tensor<128x16xf32, #rows>
    attn.global_store %e, %g[%zero] : tensor<128x16xf32, #rows>, !attn.global<?x16xf32>
    gpu.return
  }
}

// Without packed arithmetic pairs are taken one by one.
gpu.module @older [#attn.target<chip = "sm_90a">] {
  // CHECK-LABEL: gpu.func @scalar
  // CHECK-COUNT-2: llvm.nvvm.add.rm.ftz.f
  // CHECK-NOT: vector<2xf32>
  // CHECK: gpu.return
  gpu.func @scalar(%x: f32, %p: !llvm.ptr<1>, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant 0 : i32
    %start = arith.constant 0 : i64
    %stride = arith.constant 16 : i64
    %g = attn.global_view %p[%start] rows %n stride %stride {alignment = 16} : !attn.global<?x16xf32>
    %t = attn.global_load %g[%zero] : !attn.global<?x16xf32> -> tensor<128x16xf32, #rows>
    %e = attn.exp2 %t {polynomial = 2} : tensor<128x16xf32, #rows>
    attn.global_store %e, %g[%zero] : tensor<128x16xf32, #rows>, !attn.global<?x16xf32>
    gpu.return
  }
}
