// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-lower-tiles))' | FileCheck %s

#acc = #attn.mma<warps = [8, 1]>
#four = #attn.mma<warps = [4, 1]>
#rows = #attn.slice<dim = 1, parent = #four>
#a = #attn.operand<index = 0, parent = #acc>
#span64 = #attn.swizzled<span = 64>
#span128 = #attn.swizzled<span = 128>

gpu.module @kernels {
  // The first 32 columns of 64: the instruction has fewer columns, operands lie
  // as before.
  // CHECK-LABEL: gpu.func @columns
  // CHECK: wgmma.fence.sync.aligned;\0Amov.b64 da, {$16, 2147483680};\0Amov.b64 db, {$17, 2147483680};\0A
  // CHECK-SAME: wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {$0, {{.*}}, $15}, da, db, 0, 1, 1, 0, 0;\0A
  gpu.func @columns() kernel attributes {attn.warps = array<i64: 8, 1>} {
    %q = attn.alloc {offset = 0 : i64} : !attn.buffer<128x32xf16, #span64, shared>
    %k = attn.alloc {offset = 8192 : i64} : !attn.buffer<64x32xf16, #span64, shared>
    %kt = attn.transpose %k : !attn.buffer<64x32xf16, #span64, shared> -> !attn.buffer<32x64xf16, #attn.transposed<#span64>, shared>
    %s = attn.wgmma %q, %kt {columns = 32 : i64} : !attn.buffer<128x32xf16, #span64, shared>, !attn.buffer<32x64xf16, #attn.transposed<#span64>, shared> -> !attn.inflight<128x32xf32>
    %r = attn.wgmma.wait %s {pending = 0} : !attn.inflight<128x32xf32> -> tensor<128x32xf32, #acc>
    gpu.return
  }

  // The first 16 of 48 rows of V and columns of P: one step, with four registers
  // of twelve.
  // CHECK-LABEL: gpu.func @depth
  // CHECK: wgmma.fence.sync.aligned;\0Amov.b64 db, {$132, 1073741888};\0A
  // CHECK-SAME: wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {$0, {{.*}}, $63}, {$128, $129, $130, $131}, db, 1, 1, 1, 1;\0A
  // CHECK-SAME: wgmma.commit_group
  gpu.func @depth(%x: f16, %y: f32) kernel attributes {attn.warps = array<i64: 8, 1>} {
    %v = attn.alloc {offset = 0 : i64} : !attn.buffer<48x128xf16, #span128, shared>
    %p = tensor.splat %x : tensor<128x48xf16, #a>
    %c = tensor.splat %y : tensor<128x128xf32, #acc>
    %s = attn.wgmma %p, %v acc %c : tensor<128x128xf32, #acc> {depth = 16 : i64} : tensor<128x48xf16, #a>, !attn.buffer<48x128xf16, #span128, shared> -> !attn.inflight<128x128xf32>
    %r = attn.wgmma.wait %s {pending = 0} : !attn.inflight<128x128xf32> -> tensor<128x128xf32, #acc>
    gpu.return
  }

  // The partition's warps count from 4.
  // CHECK-LABEL: gpu.func @index
  // CHECK: %[[WARP:.*]] = nvvm.shfl
  // CHECK: %[[OWN:.*]] = arith.subi %[[WARP]], %c4
  // CHECK: %[[GROUP:.*]] = arith.shrui %[[OWN]], %c2
  // CHECK: arith.cmpi slt, %[[GROUP]], %c1
  gpu.func @index() kernel attributes {known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 1 : i32} {
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 240 {
    }
    partition "producer" warps 4 registers 24 {
      %w = attn.warpgroup_index
      %one = arith.constant 1 : i32
      %is = arith.cmpi slt, %w, %one : i32
      scf.if %is {
        attn.cp_async.commit
      }
    }
    gpu.return
  }

  // The source's registers come first, then zeros.
  // CHECK-LABEL: gpu.func @extend
  // CHECK: %[[P:.*]]:4 = scf.if
  // CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<2xf16>
  // CHECK: scf.yield %[[X:.*]], %[[X]], %[[ZERO]], %[[ZERO]] :
  // CHECK: } else {
  gpu.func @extend(%x: f16, %c: i1) kernel attributes {attn.warps = array<i64: 8, 1>} {
    %p = tensor.splat %x : tensor<128x8xf16, #acc>
    %q = tensor.splat %x : tensor<128x16xf16, #acc>
    %r = scf.if %c -> tensor<128x16xf16, #acc> {
      %e = attn.extend_columns %p : tensor<128x8xf16, #acc> -> tensor<128x16xf16, #acc>
      scf.yield %e : tensor<128x16xf16, #acc>
    } else {
      scf.yield %q : tensor<128x16xf16, #acc>
    }
    gpu.return
  }

  // Where rows repeat, the source's registers lie among those of the result.
  // CHECK-LABEL: gpu.func @extend_rows
  // CHECK: %[[P:.*]]:8 = scf.if
  // CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<2xf16>
  // CHECK: scf.yield %[[X:.*]], %[[X]], %[[ZERO]], %[[ZERO]], %[[X]], %[[X]], %[[ZERO]], %[[ZERO]] :
  // CHECK: } else {
  gpu.func @extend_rows(%x: f16, %c: i1) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %p = tensor.splat %x : tensor<128x8xf16, #four>
    %q = tensor.splat %x : tensor<128x16xf16, #four>
    %r = scf.if %c -> tensor<128x16xf16, #four> {
      %e = attn.extend_columns %p : tensor<128x8xf16, #four> -> tensor<128x16xf16, #four>
      scf.yield %e : tensor<128x16xf16, #four>
    } else {
      scf.yield %q : tensor<128x16xf16, #four>
    }
    gpu.return
  }

  // A quotient that may be approximate is a product with an inverse that is.
  // CHECK-LABEL: gpu.func @quotients
  // CHECK-COUNT-3: llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"
  // CHECK-NEXT: arith.mulf
  // CHECK: arith.divf
  gpu.func @quotients(%x: f32, %y: f32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %one = arith.constant dense<1.0> : tensor<64xf32, #rows>
    %a = tensor.splat %x : tensor<64xf32, #rows>
    %b = tensor.splat %y : tensor<64xf32, #rows>
    %p = arith.divf %one, %b fastmath<afn> : tensor<64xf32, #rows>
    %q = arith.divf %a, %b fastmath<afn> : tensor<64xf32, #rows>
    %r = arith.divf %a, %b : tensor<64xf32, #rows>
    gpu.return
  }
}
