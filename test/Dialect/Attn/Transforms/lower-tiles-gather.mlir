// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-lower-tiles,canonicalize,cse))' | FileCheck %s

// Rows that lie apart: threads compute their numbers, and one starts a copy of
// each four of them and each span of columns.

!map = !attn.tensor_map<1x64xf16, swizzle = 128>
!rows = !attn.buffer<32xi32, #attn.rows, shared>
!tile = !attn.buffer<32x128xf16, #attn.swizzled<span = 128>, shared>

gpu.module @kernels [#attn.target<chip = "sm_100a">] {
  // CHECK-LABEL: gpu.func @gather
  // CHECK-DAG: %[[FOUR:.*]] = arith.constant 4 : i32
  // CHECK-DAG: %[[SPAN:.*]] = arith.constant 128 : i32
  // CHECK: scf.for %[[ROW:.*]] = %{{.*}} to %{{.*}} step %{{.*}}
  // CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
  // CHECK: arith.muli %[[ROW]], %[[SPAN]]
  // CHECK-COUNT-8: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %{{.*}}, %{{.*}}, box[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] {mode = #nvvm.tma_load_mode<tile_gather4>}
  // CHECK-NOT: nvvm.cp.async.bulk
  gpu.func @gather(%map: !map, %i: i32) kernel attributes {known_block_size = array<i32: 128, 1, 1>, attn.warps = array<i64: 4, 1>} {
    %full = attn.mbarrier.alloc {name = "full", offset = 12288} : !attn.mbarriers<1>
    %rows = attn.alloc {offset = 8192 : i64} : !rows
    %b = attn.alloc {offset = 0 : i64} : !tile
    attn.elect {
      attn.tma.gather %map[%rows[%i], %i], %b barrier %full[%i] : !attn.mbarriers<1> : !map, !rows, !tile
    }
    gpu.return
  }

  // Rows behind the last one look at its entry of the table; they and those of
  // pages outside of the pool have the number -1.
  // CHECK-LABEL: gpu.func @page_rows
  // CHECK-SAME: (%[[TABLE:.*]]: !llvm.ptr<1>, %{{.*}}: i64, %[[FIRST:.*]]: i32, %[[N:.*]]: i32, %[[PAGES:.*]]: i32, %[[OFFSET:.*]]: i32)
  // CHECK-DAG: %[[NONE:.*]] = arith.constant -1 : i32
  // CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : i32
  // CHECK: %[[LAST:.*]] = arith.subi %[[N]], %[[ONE]]
  // CHECK: scf.for %[[I:.*]] =
  // CHECK: %[[ROW:.*]] = arith.addi %[[FIRST]], %[[I]]
  // CHECK: %[[READ:.*]] = arith.minui %[[ROW]], %[[LAST]]
  // CHECK: arith.divui %[[READ]], %{{.*}}
  // CHECK: %[[ID:.*]] = llvm.load %{{.*}} invariant {alignment = 4 : i64} : !llvm.ptr<1> -> i32
  // CHECK-DAG: arith.cmpi ult, %[[ROW]], %[[N]]
  // CHECK-DAG: arith.cmpi ult, %[[ID]], %[[PAGES]]
  // CHECK: %[[NUMBER:.*]] = arith.select %{{.*}}, %{{.*}}, %[[NONE]]
  // CHECK: llvm.store %[[NUMBER]], %{{.*}} {alignment = 4 : i64} : i32, !llvm.ptr<3>
  gpu.func @page_rows(%table: !llvm.ptr<1>, %entry: i64, %first: i32, %n: i32, %pages: i32, %offset: i32) kernel attributes {known_block_size = array<i32: 128, 1, 1>, attn.warps = array<i64: 4, 1>} {
    %rows = attn.alloc {offset = 0 : i64} : !rows
    attn.page_rows %table[%entry], %first rows %n pages %pages offset %offset, %rows {distance = 16 : i64, page = 8 : i64, stride = 2 : i64} : !rows
    gpu.return
  }
}
