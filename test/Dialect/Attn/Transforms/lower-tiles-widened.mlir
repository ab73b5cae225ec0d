// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-lower-tiles))' | FileCheck %s

#acc = #attn.mma<warps = [4, 1]>
#rows = #attn.blocked<per_thread = [1, 16], warps = 4, order = [0, 1]>

gpu.module @kernels [#attn.target<chip = "sm_90a">] {
  // f16 numbers that are widened for a product become f16 again word by word, where
  // each word is stored: never more than two are f32.
  // CHECK-LABEL: gpu.func @words
  // CHECK-NOT: arith.extf
  // CHECK: gpu.barrier
  // CHECK: arith.extf
  // CHECK-NEXT: arith.mulf
  // CHECK: arith.extf
  // CHECK-NEXT: arith.mulf
  // CHECK-NOT: arith.extf
  // CHECK: llvm.fptrunc
  // CHECK-NEXT: llvm.bitcast
  gpu.func @words(%x: f16, %y: f32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %b = attn.alloc {offset = 0 : i64} : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    %t = tensor.splat %x : tensor<64x64xf16, #acc>
    %f = tensor.splat %y : tensor<64x64xf32, #acc>
    %w = arith.extf %t : tensor<64x64xf16, #acc> to tensor<64x64xf32, #acc>
    %p = arith.mulf %w, %f : tensor<64x64xf32, #acc>
    %n = arith.truncf %p : tensor<64x64xf32, #acc> to tensor<64x64xf16, #acc>
    gpu.barrier
    attn.local_store %n, %b : tensor<64x64xf16, #acc>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    gpu.return
  }

  // A column of rows of four numbers: 16 bytes apart, from its first one on.
  // CHECK-LABEL: gpu.func @column
  // CHECK: %[[BASE:.*]] = llvm.getelementptr %{{.*}}[8] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
  // CHECK: llvm.getelementptr %[[BASE]]
  // CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<3> -> f32
  // CHECK-NOT: llvm.load
  // CHECK: gpu.return
  gpu.func @column() kernel attributes {attn.warps = array<i64: 4, 1>} {
    %b = attn.alloc {offset = 0 : i64} : !attn.buffer<16x4xf32, #attn.rows, shared>
    %c = attn.alloc {offset = 256 : i64} : !attn.buffer<64x16xf32, #attn.rows, shared>
    %t = attn.local_load %b column(2) : !attn.buffer<16x4xf32, #attn.rows, shared> -> tensor<16xf32, #attn.slice<dim = 0, parent = #acc>>
    %w = attn.broadcast %t {columns} : tensor<16xf32, #attn.slice<dim = 0, parent = #acc>> -> tensor<64x16xf32, #acc>
    attn.local_store %w, %c : tensor<64x16xf32, #acc>, !attn.buffer<64x16xf32, #attn.rows, shared>
    gpu.return
  }

  // A product that others read too stays where it is.
  // CHECK-LABEL: gpu.func @read_twice
  // CHECK-COUNT-32: arith.extf
  // CHECK: gpu.barrier
  // CHECK-NOT: arith.extf
  // CHECK: gpu.return
  gpu.func @read_twice(%x: f16, %y: f32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %b = attn.alloc {offset = 0 : i64} : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    %c = attn.alloc {offset = 8192 : i64} : !attn.buffer<64x64xf32, #attn.rows, shared>
    %t = tensor.splat %x : tensor<64x64xf16, #acc>
    %f = tensor.splat %y : tensor<64x64xf32, #acc>
    %w = arith.extf %t : tensor<64x64xf16, #acc> to tensor<64x64xf32, #acc>
    %p = arith.mulf %w, %f : tensor<64x64xf32, #acc>
    %n = arith.truncf %p : tensor<64x64xf32, #acc> to tensor<64x64xf16, #acc>
    gpu.barrier
    attn.local_store %n, %b : tensor<64x64xf16, #acc>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    attn.local_store %p, %c : tensor<64x64xf32, #acc>, !attn.buffer<64x64xf32, #attn.rows, shared>
    gpu.return
  }

  // 8-bit floats become pairs of 16 bits: of f16 by one instruction each, of bf16 by way of
  // f32.
  // CHECK-LABEL: gpu.func @narrow
  // CHECK: %[[HALVES:.*]] = nvvm.convert.f8x2.to.f16x2 %{{.*}} : vector<2xi8>(f8E4M3FN) -> vector<2xf16>
  // CHECK-NOT: llvm.fpext
  // CHECK: llvm.store %{{.*}} : vector<8xf16>
  // CHECK: llvm.store %{{.*}} : vector<8xf16>
  // CHECK: %[[HALVES:.*]] = nvvm.convert.f8x2.to.f16x2 %{{.*}} : vector<2xi8>(f8E5M2) -> vector<2xf16>
  // CHECK: %[[WIDE:.*]] = llvm.fpext %{{.*}} : vector<2xf16> to vector<2xf32>
  // CHECK-NEXT: llvm.fptrunc %[[WIDE]] : vector<2xf32> to vector<2xbf16>
  // CHECK: llvm.store %{{.*}} : vector<8xbf16>
  gpu.func @narrow() kernel attributes {attn.warps = array<i64: 4, 1>} {
    %a = attn.alloc {offset = 0 : i64} : !attn.buffer<128x16xf8E4M3FN, #attn.rows, shared>
    %b = attn.alloc {offset = 4096 : i64} : !attn.buffer<128x16xf16, #attn.rows, shared>
    %c = attn.alloc {offset = 8192 : i64} : !attn.buffer<128x16xf8E5M2, #attn.rows, shared>
    %d = attn.alloc {offset = 12288 : i64} : !attn.buffer<128x16xbf16, #attn.rows, shared>
    %e4 = attn.local_load %a : !attn.buffer<128x16xf8E4M3FN, #attn.rows, shared> -> tensor<128x16xf8E4M3FN, #rows>
    %f16 = arith.extf %e4 : tensor<128x16xf8E4M3FN, #rows> to tensor<128x16xf16, #rows>
    attn.local_store %f16, %b : tensor<128x16xf16, #rows>, !attn.buffer<128x16xf16, #attn.rows, shared>
    %e5 = attn.local_load %c : !attn.buffer<128x16xf8E5M2, #attn.rows, shared> -> tensor<128x16xf8E5M2, #rows>
    %bf16 = arith.extf %e5 : tensor<128x16xf8E5M2, #rows> to tensor<128x16xbf16, #rows>
    attn.local_store %bf16, %d : tensor<128x16xbf16, #rows>, !attn.buffer<128x16xbf16, #attn.rows, shared>
    gpu.return
  }

  // Queries in memory, in the order in which ldmatrix gives a thread four columns in
  // a row, beside keys that are widened: the words are the fragments of a.
  // CHECK-LABEL: gpu.func @queries_in_quads
  // CHECK: %[[Q:.*]] = nvvm.ldmatrix
  // CHECK-SAME: layout = #nvvm.mma_layout<row>, num = 4
  // CHECK: %[[WORD:.*]] = llvm.extractvalue %[[Q]][0]
  // CHECK: %[[A:.*]] = llvm.bitcast %[[WORD]] : i32 to vector<2xf16>
  // CHECK: nvvm.ldmatrix
  // CHECK-SAME: layout = #nvvm.mma_layout<row>, num = 4
  // CHECK: %[[LOW:.*]] = nvvm.convert.f8x2.to.f16x2
  // CHECK: %[[HIGH:.*]] = nvvm.convert.f8x2.to.f16x2
  // CHECK: nvvm.mma.sync A[%[[A]], {{.*}}] B[%[[LOW]], %[[HIGH]]]
  gpu.func @queries_in_quads() kernel attributes {attn.warps = array<i64: 4, 1>} {
    %q = attn.alloc {offset = 0 : i64} : !attn.buffer<64x64xf16, #attn.swizzled<span = 128, column_quads = true>, shared>
    %k = attn.alloc {offset = 8192 : i64} : !attn.buffer<32x64xf8E4M3FN, #attn.swizzled<span = 64>, shared>
    %zero = arith.constant dense<0.0> : tensor<64x32xf32, #acc>
    %kt = attn.transpose %k : !attn.buffer<32x64xf8E4M3FN, #attn.swizzled<span = 64>, shared> -> !attn.buffer<64x32xf8E4M3FN, #attn.transposed<#attn.swizzled<span = 64>>, shared>
    %s = attn.mma %q, %kt, %zero : !attn.buffer<64x64xf16, #attn.swizzled<span = 128, column_quads = true>, shared>, !attn.buffer<64x32xf8E4M3FN, #attn.transposed<#attn.swizzled<span = 64>>, shared>, tensor<64x32xf32, #acc>
    gpu.return
  }

  // Probabilities in memory beside values that are widened.
  // CHECK-LABEL: gpu.func @probabilities_in_rows
  // CHECK: nvvm.ldmatrix %{{.*}}layout = #nvvm.mma_layout<row>, num = 4
  // CHECK: nvvm.ldmatrix %{{.*}}layout = #nvvm.mma_layout<col>, num = 4
  // CHECK: nvvm.prmt
  // CHECK: nvvm.mma.sync
  gpu.func @probabilities_in_rows() kernel attributes {attn.warps = array<i64: 4, 1>} {
    %p = attn.alloc {offset = 0 : i64} : !attn.buffer<64x16xf16, #attn.swizzled<span = 32>, shared>
    %v = attn.alloc {offset = 8192 : i64} : !attn.buffer<16x64xf8E5M2, #attn.swizzled<span = 64>, shared>
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #attn.mma<warps = [4, 1], column_quads = true>>
    %o = attn.mma %p, %v, %zero : !attn.buffer<64x16xf16, #attn.swizzled<span = 32>, shared>, !attn.buffer<16x64xf8E5M2, #attn.swizzled<span = 64>, shared>, tensor<64x64xf32, #attn.mma<warps = [4, 1], column_quads = true>>
    gpu.return
  }
}
