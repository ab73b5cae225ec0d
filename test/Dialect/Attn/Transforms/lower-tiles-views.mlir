// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-lower-tiles))' | FileCheck %s

// Views whose rows are not at equal distances.

#acc = #attn.mma<warps = [4, 1]>
#rows = #attn.slice<dim = 1, parent = #acc>
#kv = #attn.swizzled<span = 128>

gpu.module @kernels {
  // The page of each row is looked up; a row that does not exist looks at the
  // sequence's first entry. An id is compared as unsigned, and a copy of a page
  // that is not there has the size 0. K and V of a row share what they look up.
  // CHECK-LABEL: gpu.func @pages
  // CHECK-SAME: %[[N:arg[0-9]+]]: i32, %[[PAGES:.*]]: i32
  // CHECK: %[[EXISTS:.*]] = arith.cmpi slt, %[[POSITION:.*]], %{{.*}} : i32
  // CHECK: %[[PAGE:.*]] = arith.divui %[[POSITION]], %c16_i32
  // CHECK: %[[ENTRY:.*]] = arith.select %[[EXISTS]], %[[PAGE]], %c0_i32
  // CHECK: %[[ID:.*]] = llvm.load %{{.*}} invariant {alignment = 4 : i64} : !llvm.ptr<1> -> i32
  // CHECK: %[[KNOWN:.*]] = arith.cmpi ult, %[[ID]], %{{.*}} : i32
  // CHECK: %[[BOTH:.*]] = arith.andi %[[EXISTS]], %[[KNOWN]]
  // CHECK: %[[WIDE:.*]] = arith.extui %[[ID]] : i32 to i64
  // CHECK: arith.muli %[[WIDE]], %{{.*}} : i64
  // CHECK: arith.remui %[[POSITION]], %c16_i32
  // CHECK: %[[SIZE:.*]] = arith.select %[[BOTH]], %c16_i32{{.*}}, %c0_i32
  // CHECK: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache = cg, %[[SIZE]]
  // CHECK-COUNT-3: nvvm.cp.async.shared.global
  // CHECK-NOT: nvvm.cp.async.shared.global
  gpu.func @pages(%p: !llvm.ptr<1>, %t: !llvm.ptr<1>, %off: i64, %n: i32, %pages: i32, %stride: i64, %row: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %g = attn.paged_view %p[%off] rows %n stride %stride table %t[%off] pages %pages distance %stride {alignment = 16 : i64, page = 16 : i64} : !attn.global<?x64xf16>
    %b = attn.alloc {offset = 0 : i64} : !attn.buffer<64x64xf16, #kv, shared>
    attn.cp_async %g[%row], %b : !attn.global<?x64xf16>, !attn.buffer<64x64xf16, #kv, shared>
    gpu.return
  }

  // Rows of two tables: what is chosen by the row's place, then one entry and
  // one address.
  // CHECK-LABEL: gpu.func @joined
  // CHECK: %[[FRONT:.*]] = arith.cmpi slt, %[[POSITION:.*]], %[[ROWS:arg[0-9]+]] : i32
  // CHECK: %[[BACK:.*]] = arith.subi %[[POSITION]], %[[ROWS]] : i32
  // CHECK: arith.addi %[[BACK]], %{{arg[0-9]+}} : i32
  // CHECK: arith.select %[[FRONT]], %{{.*}} : !llvm.ptr<1>
  // CHECK: llvm.load {{.*}} invariant
  // CHECK: arith.select %[[FRONT]], %{{.*}} : !llvm.ptr<1>
  // CHECK: nvvm.cp.async.shared.global
  gpu.func @joined(%p: !llvm.ptr<1>, %o: !llvm.ptr<1>, %t: !llvm.ptr<1>, %u: !llvm.ptr<1>, %off: i64, %m: i32, %n: i32, %pages: i32, %stride: i64, %skip: i32, %row: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %f = attn.paged_view %o[%off] rows %m stride %stride table %u[%off] pages %pages distance %stride {alignment = 16 : i64, page = 1 : i64} : !attn.global<?x64xf16>
    %g = attn.paged_view %p[%off] rows %n stride %stride table %t[%off] pages %pages distance %stride {alignment = 16 : i64, page = 16 : i64} : !attn.global<?x64xf16>
    %j = attn.joined_view %f, %g[%skip] : !attn.global<?x64xf16>
    %b = attn.alloc {offset = 0 : i64} : !attn.buffer<64x64xf16, #kv, shared>
    attn.cp_async %j[%row], %b : !attn.global<?x64xf16>, !attn.buffer<64x64xf16, #kv, shared>
    gpu.return
  }

  // Where all rows exist only ids are compared.
  // CHECK-LABEL: gpu.func @known_pages
  // CHECK-NOT: arith.cmpi slt
  // CHECK-COUNT-4: arith.cmpi ult
  // CHECK-NOT: arith.cmpi
  gpu.func @known_pages(%p: !llvm.ptr<1>, %t: !llvm.ptr<1>, %off: i64, %n: i32, %pages: i32, %stride: i64, %row: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %g = attn.paged_view %p[%off] rows %n stride %stride table %t[%off] pages %pages distance %stride {alignment = 16 : i64, page = 1 : i64} : !attn.global<?x64xf16>
    %b = attn.alloc {offset = 0 : i64} : !attn.buffer<64x64xf16, #kv, shared>
    attn.cp_async %g[%row], %b {in_bounds} : !attn.global<?x64xf16>, !attn.buffer<64x64xf16, #kv, shared>
    gpu.return
  }

  // Rows of groups: as many members as rows, and for each whole group what it
  // is off from there.
  // CHECK-LABEL: gpu.func @groups
  // CHECK-SAME: %[[MEMBERS:arg[0-9]+]]: i64, %{{.*}}: i32, %[[STRIDE:arg[0-9]+]]: i64
  // CHECK: %[[EXISTS:.*]] = arith.cmpi slt, %[[POSITION:.*]], %{{.*}} : i32
  // CHECK-NOT: arith.remui
  // CHECK: %[[GROUP:.*]] = arith.divui %[[POSITION]], %c3_i32
  // CHECK-NOT: arith.remui
  // CHECK: %[[ROW:.*]] = arith.extui %[[POSITION]] : i32 to i64
  // CHECK: arith.muli %[[ROW]], %[[MEMBERS]] : i64
  // CHECK: %[[OFF:.*]] = arith.muli %[[MEMBERS]], %c3_i64 : i64
  // CHECK: %[[LEFT:.*]] = arith.subi %[[STRIDE]], %[[OFF]] : i64
  // CHECK: %[[WIDE:.*]] = arith.extui %[[GROUP]] : i32 to i64
  // CHECK: arith.muli %[[WIDE]], %[[LEFT]] : i64
  // CHECK: scf.if %[[EXISTS]]
  // CHECK: llvm.store
  gpu.func @groups(%x: f32, %p: !llvm.ptr<1>, %off: i64, %n: i32, %stride: i64, %row: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %g = attn.global_view %p[%off] rows %n stride %stride members %off {group = 3 : i64} : !attn.global<?xf32>
    %t = tensor.splat %x : tensor<64xf32, #rows>
    attn.global_store %t, %g[%row] : tensor<64xf32, #rows>, !attn.global<?xf32>
    gpu.return
  }

  // With `in_bounds` no row is compared with their number: neither rows of groups
  // nor others, in registers or in copies, out or in.
  // CHECK-LABEL: gpu.func @in_bounds
  // CHECK-NOT: arith.cmpi slt
  // CHECK: llvm.load
  // CHECK-NOT: arith.cmpi slt
  // CHECK: llvm.store
  // CHECK-NOT: arith.cmpi slt
  // CHECK-COUNT-4: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache = cg {{:|$}}
  // CHECK-NOT: arith.cmpi slt
  // CHECK-COUNT-4: llvm.store
  // CHECK-NOT: arith.cmpi
  // CHECK: gpu.return
  gpu.func @in_bounds(%p: !llvm.ptr<1>, %off: i64, %n: i32, %stride: i64, %row: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %from = attn.global_view %p[%off] rows %n stride %stride members %off {group = 3 : i64, in_bounds} : !attn.global<?xf32>
    %t = attn.global_load %from[%row] : !attn.global<?xf32> -> tensor<64xf32, #rows>
    %to = attn.global_view %p[%off] rows %n stride %stride {in_bounds} : !attn.global<?xf32>
    attn.global_store %t, %to[%row] : tensor<64xf32, #rows>, !attn.global<?xf32>
    %b = attn.alloc {offset = 0 : i64} : !attn.buffer<64x64xf16, #kv, shared>
    %in = attn.global_view %p[%off] rows %n stride %stride {alignment = 16 : i64, in_bounds} : !attn.global<?x64xf16>
    attn.cp_async %in[%row], %b : !attn.global<?x64xf16>, !attn.buffer<64x64xf16, #kv, shared>
    %out = attn.global_view %p[%off] rows %n stride %stride members %off {alignment = 16 : i64, group = 3 : i64, in_bounds} : !attn.global<?x64xf16>
    attn.copy_out %b, %out[%row] : !attn.buffer<64x64xf16, #kv, shared>, !attn.global<?x64xf16>
    gpu.return
  }

  // Of groups of four the last row does not exist.
  // CHECK-LABEL: gpu.func @present
  // CHECK: %[[EXISTS:.*]] = arith.cmpi slt, %[[POSITION:.*]], %{{.*}} : i32
  // CHECK: %[[MEMBER:.*]] = arith.remui %[[POSITION]], %c4_i32
  // CHECK: %[[PRESENT:.*]] = arith.cmpi ult, %[[MEMBER]], %c3_i32
  // CHECK: %[[BOTH:.*]] = arith.andi %[[EXISTS]], %[[PRESENT]]
  // CHECK: scf.if %[[BOTH]]
  // CHECK: llvm.store
  gpu.func @present(%x: f32, %p: !llvm.ptr<1>, %off: i64, %n: i32, %stride: i64, %row: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %g = attn.global_view %p[%off] rows %n stride %stride members %off {group = 4 : i64, present = 3 : i64} : !attn.global<?xf32>
    %t = tensor.splat %x : tensor<64xf32, #rows>
    attn.global_store %t, %g[%row] : tensor<64xf32, #rows>, !attn.global<?xf32>
    gpu.return
  }

  // Tiles of registers read pages and groups too.
  // CHECK-LABEL: gpu.func @loads
  // CHECK: arith.cmpi ult
  // CHECK: scf.if
  // CHECK: arith.divui
  // CHECK: scf.if
  gpu.func @loads(%p: !llvm.ptr<1>, %off: i64, %n: i32, %stride: i64, %row: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %paged = attn.paged_view %p[%off] rows %n stride %stride table %p[%off] pages %n distance %stride {page = 8 : i64} : !attn.global<?xf32>
    %first = attn.global_load %paged[%row] : !attn.global<?xf32> -> tensor<64xf32, #rows>
    %grouped = attn.global_view %p[%off] rows %n stride %stride members %off {group = 3 : i64} : !attn.global<?xf32>
    %second = attn.global_load %grouped[%row] : !attn.global<?xf32> -> tensor<64xf32, #rows>
    %sum = arith.addf %first, %second : tensor<64xf32, #rows>
    attn.global_store %sum, %grouped[%row] : tensor<64xf32, #rows>, !attn.global<?xf32>
    gpu.return
  }

  // A mask of groups has one bound for each row's query.
  // CHECK-LABEL: gpu.func @mask
  // CHECK: %[[QUERY:.*]] = arith.divui %{{.*}}, %c5_i32
  // CHECK: arith.subi %[[QUERY]], %{{.*}}
  gpu.func @mask(%x: f32, %row: i32, %key: i32, %upper: i32, %p: !llvm.ptr<1>, %off: i64, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = tensor.splat %x : tensor<64x8xf32, #acc>
    %m = attn.apply_mask %s[%row, %key] upper %upper {group = 5 : i64} : tensor<64x8xf32, #acc>
    %g = attn.global_view %p[%off] rows %n stride %off : !attn.global<?x8xf32>
    attn.global_store %m, %g[%row] : tensor<64x8xf32, #acc>, !attn.global<?x8xf32>
    gpu.return
  }

  // Columns of a tile that rows in memory have not are not stored: the lanes of
  // the last 8 columns look where they are.
  // CHECK-LABEL: gpu.func @padding
  // CHECK-COUNT-2: llvm.store
  // CHECK: arith.cmpi slt, %{{.*}}, %c4_i32
  // CHECK: scf.if
  // CHECK: llvm.store
  gpu.func @padding(%x: f32, %row: i32, %p: !llvm.ptr<1>, %off: i64, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %t = tensor.splat %x : tensor<64x24xf32, #acc>
    %g = attn.global_view %p[%off] rows %n stride %off : !attn.global<?x20xf32>
    attn.global_store %t, %g[%row] : tensor<64x24xf32, #acc>, !attn.global<?x20xf32>
    gpu.return
  }
}
