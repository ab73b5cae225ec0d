// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-lower-tiles))' | FileCheck %s

#acc = #attn.mma<warps = [4, 1]>
#rows = #attn.slice<dim = 1, parent = #acc>
#partial = #attn.partial<parent = #acc>
#a = #attn.operand<index = 0, parent = #acc>
#kv = #attn.swizzled<span = 128>

gpu.module @kernels {
  // 64 x 64 f16 by 128 threads in chunks of 16 bytes: four copies each. Rows
  // may be missing: the source size is then zero.
  // CHECK-LABEL: gpu.func @checked_copy
  // CHECK: %[[EXISTS:.*]] = arith.cmpi slt, %{{.*}}, %[[N:.*]] : i32
  // CHECK: %[[SIZE:.*]] = arith.select %[[EXISTS]], %c16_i32, %c0_i32
  // CHECK-COUNT-4: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache = cg, %{{.*}} :
  // CHECK-NOT: nvvm.cp.async.shared.global
  // CHECK: nvvm.cp.async.commit.group
  // CHECK: nvvm.cp.async.wait.group 1
  gpu.func @checked_copy(%p: !llvm.ptr<1>, %off: i64, %n: i32, %stride: i64, %row: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %g = attn.global_view %p[%off] rows %n stride %stride {alignment = 16 : i64} : !attn.global<?x64xf16>
    %b = attn.alloc {offset = 0 : i64} : !attn.buffer<64x64xf16, #kv, shared>
    attn.cp_async %g[%row], %b : !attn.global<?x64xf16>, !attn.buffer<64x64xf16, #kv, shared>
    attn.cp_async.commit
    attn.cp_async.wait {pending = 1}
    gpu.return
  }

  // CHECK-LABEL: gpu.func @unchecked_copy
  // CHECK-NOT: arith.select
  // CHECK-COUNT-4: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache = cg :
  gpu.func @unchecked_copy(%p: !llvm.ptr<1>, %off: i64, %n: i32, %stride: i64, %row: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %g = attn.global_view %p[%off] rows %n stride %stride {alignment = 16 : i64} : !attn.global<?x64xf16>
    %b = attn.alloc {offset = 0 : i64} : !attn.buffer<64x64xf16, #kv, shared>
    attn.cp_async %g[%row], %b {in_bounds} : !attn.global<?x64xf16>, !attn.buffer<64x64xf16, #kv, shared>
    gpu.return
  }

  // How a loop compares its counter stays.
  // CHECK-LABEL: gpu.func @unsigned_loop
  // CHECK: scf.for unsigned %{{.*}} = %{{.*}} to %{{.*}} step
  // CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step
  gpu.func @unsigned_loop(%n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for unsigned %i = %c0 to %n step %c1 : i32 {
      gpu.barrier
    }
    scf.for %i = %c0 to %n step %c1 : i32 {
      gpu.barrier
    }
    gpu.return
  }

  // 40 columns in rows of 48: the last chunk of a row is padding, zero-filled.
  // CHECK-LABEL: gpu.func @padded_copy
  // CHECK: %[[INSIDE:.*]] = arith.cmpi slt, %{{.*}}, %c{{.*}} : i32
  // CHECK: arith.select
  // CHECK: nvvm.cp.async.shared.global
  gpu.func @padded_copy(%p: !llvm.ptr<1>, %off: i64, %n: i32, %stride: i64, %row: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %g = attn.global_view %p[%off] rows %n stride %stride {alignment = 16 : i64} : !attn.global<?x40xf16>
    %b = attn.alloc {offset = 0 : i64} : !attn.buffer<64x48xf16, #attn.swizzled<span = 32>, shared>
    attn.cp_async %g[%row], %b {in_bounds} : !attn.global<?x40xf16>, !attn.buffer<64x48xf16, #attn.swizzled<span = 32>, shared>
    gpu.return
  }

  // Rows that are aligned to 8 bytes only take chunks of 8.
  // CHECK-LABEL: gpu.func @narrow_copy
  // CHECK-COUNT-8: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 8, cache = ca :
  gpu.func @narrow_copy(%p: !llvm.ptr<1>, %off: i64, %n: i32, %stride: i64, %row: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %g = attn.global_view %p[%off] rows %n stride %stride {alignment = 8 : i64} : !attn.global<?x64xf16>
    %b = attn.alloc {offset = 0 : i64} : !attn.buffer<64x64xf16, #kv, shared>
    attn.cp_async %g[%row], %b {in_bounds} : !attn.global<?x64xf16>, !attn.buffer<64x64xf16, #kv, shared>
    gpu.return
  }

  // Of 96 threads a power of two copies, the others nothing.
  // CHECK-LABEL: gpu.func @idle_threads
  // CHECK: %[[SOME:.*]] = arith.constant 64 : i32
  // CHECK-NEXT: %[[ACTIVE:.*]] = arith.cmpi ult, %{{.*}}, %[[SOME]] : i32
  // CHECK-NEXT: scf.if %[[ACTIVE]] {
  // CHECK-COUNT-8: nvvm.cp.async.shared.global
  // CHECK-NOT: nvvm.cp.async.shared.global
  // CHECK: gpu.return
  gpu.func @idle_threads(%p: !llvm.ptr<1>, %off: i64, %n: i32, %stride: i64, %row: i32) kernel attributes {attn.warps = array<i64: 3, 1>} {
    %g = attn.global_view %p[%off] rows %n stride %stride {alignment = 16 : i64} : !attn.global<?x64xf16>
    %b = attn.alloc {offset = 0 : i64} : !attn.buffer<64x64xf16, #kv, shared>
    attn.cp_async %g[%row], %b {in_bounds} : !attn.global<?x64xf16>, !attn.buffer<64x64xf16, #kv, shared>
    gpu.return
  }

  // One warp row of 16 x 64 x 64: 32 instructions, 4 ldmatrix for A, 16 for B.
  // K is read transposed through its view (no .trans), V with .trans.
  // CHECK-LABEL: gpu.func @product_k
  // CHECK-NOT: layout = #nvvm.mma_layout<col>, num
  // CHECK: nvvm.mma.sync
  // CHECK-SAME: shape = #nvvm.shape<m = 16, n = 8, k = 16>
  gpu.func @product_k(%c: f32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %q = attn.alloc {offset = 0 : i64} : !attn.buffer<64x64xf16, #kv, shared>
    %k = attn.alloc {offset = 8192 : i64} : !attn.buffer<64x64xf16, #kv, shared>
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
    %kt = attn.transpose %k : !attn.buffer<64x64xf16, #kv, shared> -> !attn.buffer<64x64xf16, #attn.transposed<#kv>, shared>
    %s = attn.mma %q, %kt, %zero : !attn.buffer<64x64xf16, #kv, shared>, !attn.buffer<64x64xf16, #attn.transposed<#kv>, shared>, tensor<64x64xf32, #acc>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @product_v
  // CHECK: nvvm.ldmatrix
  // CHECK-SAME: layout = #nvvm.mma_layout<col>, num = 4
  // CHECK: nvvm.mma.sync
  // CHECK-SAME: multiplicandAPtxType = #nvvm.mma_type<bf16>
  gpu.func @product_v() kernel attributes {attn.warps = array<i64: 4, 1>} {
    %v = attn.alloc {offset = 0 : i64} : !attn.buffer<32x64xbf16, #kv, shared>
    %p = arith.constant dense<1.0> : tensor<64x32xbf16, #a>
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
    %o = attn.mma %p, %v, %zero : tensor<64x32xbf16, #a>, !attn.buffer<32x64xbf16, #kv, shared>, tensor<64x64xf32, #acc>
    gpu.return
  }

  // Keys of 8 bits: a word is the fragment of a k-step, by two conversions.
  // CHECK-LABEL: gpu.func @product_narrow_k
  // CHECK: %[[LOADED:.*]] = nvvm.ldmatrix
  // CHECK-SAME: layout = #nvvm.mma_layout<row>, num = 4
  // CHECK: %[[WORD:.*]] = llvm.extractvalue %[[LOADED]][0]
  // CHECK-NOT: nvvm.prmt
  // CHECK: %[[PAIRS:.*]] = llvm.bitcast %[[WORD]] : i32 to vector<2xi16>
  // CHECK: %[[LOW:.*]] = nvvm.convert.f8x2.to.f16x2 %{{.*}} : vector<2xi8>(f8E4M3FN)
  // CHECK: %[[HIGH:.*]] = nvvm.convert.f8x2.to.f16x2 %{{.*}} : vector<2xi8>(f8E4M3FN)
  // CHECK: nvvm.mma.sync A[{{.*}}] B[%[[LOW]], %[[HIGH]]]
  gpu.func @product_narrow_k() kernel attributes {attn.warps = array<i64: 4, 1>} {
    %k = attn.alloc {offset = 0 : i64} : !attn.buffer<32x64xf8E4M3FN, #attn.swizzled<span = 64>, shared>
    %q = arith.constant dense<1.0> : tensor<64x64xf16, #attn.operand<index = 0, parent = #acc, depth_quads = true>>
    %zero = arith.constant dense<0.0> : tensor<64x32xf32, #acc>
    %kt = attn.transpose %k : !attn.buffer<32x64xf8E4M3FN, #attn.swizzled<span = 64>, shared> -> !attn.buffer<64x32xf8E4M3FN, #attn.transposed<#attn.swizzled<span = 64>>, shared>
    %s = attn.mma %q, %kt, %zero : tensor<64x64xf16, #attn.operand<index = 0, parent = #acc, depth_quads = true>>, !attn.buffer<64x32xf8E4M3FN, #attn.transposed<#attn.swizzled<span = 64>>, shared>, tensor<64x32xf32, #acc>
    gpu.return
  }

  // Values of 8 bits: two words are the fragments of even and of odd columns.
  // CHECK-LABEL: gpu.func @product_narrow_v
  // CHECK: nvvm.ldmatrix
  // CHECK-SAME: layout = #nvvm.mma_layout<col>, num = 4
  // CHECK: %[[FIRST:.*]] = nvvm.prmt
  // CHECK: %[[EVEN:.*]] = nvvm.convert.f8x2.to.f16x2 %{{.*}} : vector<2xi8>(f8E5M2)
  // CHECK: %[[ODD:.*]] = nvvm.convert.f8x2.to.f16x2 %{{.*}} : vector<2xi8>(f8E5M2)
  // CHECK: nvvm.mma.sync A[{{.*}}] B[%[[EVEN]], %{{.*}}]
  // CHECK: nvvm.mma.sync A[{{.*}}] B[%[[ODD]], %{{.*}}]
  gpu.func @product_narrow_v() kernel attributes {attn.warps = array<i64: 4, 1>} {
    %v = attn.alloc {offset = 0 : i64} : !attn.buffer<16x64xf8E5M2, #attn.swizzled<span = 64>, shared>
    %p = arith.constant dense<1.0> : tensor<64x16xf16, #a>
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #attn.mma<warps = [4, 1], column_quads = true>>
    %o = attn.mma %p, %v, %zero : tensor<64x16xf16, #a>, !attn.buffer<16x64xf8E5M2, #attn.swizzled<span = 64>, shared>, tensor<64x64xf32, #attn.mma<warps = [4, 1], column_quads = true>>
    gpu.return
  }

  // Two warps along the columns have all 32 keys and two of four k-steps each: 8
  // instructions for 16 rows.
  // CHECK-LABEL: gpu.func @product_depth
  // CHECK-COUNT-8: nvvm.mma.sync
  // CHECK-NOT: nvvm.mma.sync
  gpu.func @product_depth() kernel attributes {attn.warps = array<i64: 4, 2>} {
    %q = attn.alloc {offset = 0 : i64} : !attn.buffer<64x64xf16, #kv, shared>
    %k = attn.alloc {offset = 8192 : i64} : !attn.buffer<32x64xf16, #kv, shared>
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #attn.mma<warps = [4, 2], column_runs = true>>
    %kt = attn.transpose %k : !attn.buffer<32x64xf16, #kv, shared> -> !attn.buffer<64x32xf16, #attn.transposed<#kv>, shared>
    %s = attn.mma %q, %kt, %zero {depth_parts = 2} : !attn.buffer<64x64xf16, #kv, shared>, !attn.buffer<64x32xf16, #attn.transposed<#kv>, shared>, tensor<64x64xf32, #attn.mma<warps = [4, 2], column_runs = true>>
    gpu.return
  }

  // Sums of f16 start at zero, pass from k-step to k-step, and are added at the end.
  // CHECK-LABEL: gpu.func @product_sums
  // CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<2xf16>
  // CHECK: %[[FIRST:.*]] = nvvm.mma.sync A[{{.*}}] B[{{.*}}] C[%[[ZERO]], %[[ZERO]]]
  // CHECK: %[[SUM:.*]] = llvm.extractvalue %[[FIRST]][0]
  // CHECK: %[[LAST:.*]] = nvvm.mma.sync A[{{.*}}] B[{{.*}}] C[%[[SUM]],
  // CHECK-NOT: nvvm.mma.sync
  // CHECK: llvm.fpext %{{.*}} : vector<2xf16> to vector<2xf32>
  // CHECK-COUNT-4: arith.addf %{{.*}} : f32
  gpu.func @product_sums() kernel attributes {attn.warps = array<i64: 4, 1>} {
    %b = attn.alloc {offset = 4096 : i64} : !attn.buffer<32x8xf16, #attn.rows, shared>
    %p = arith.constant dense<1.0> : tensor<64x32xf16, #a>
    %one = arith.constant dense<1.0> : tensor<64x8xf32, #acc>
    %o = attn.mma %p, %b, %one {f16_sums} : tensor<64x32xf16, #a>, !attn.buffer<32x8xf16, #attn.rows, shared>, tensor<64x8xf32, #acc>
    gpu.return
  }

  // Two rows a thread, each shared by four lanes: two butterflies for each row.
  // CHECK-LABEL: gpu.func @row_maximum
  // CHECK-COUNT-30: arith.maxnumf
  // CHECK: nvvm.shfl.sync bfly
  // CHECK-COUNT-3: nvvm.shfl.sync bfly
  // CHECK-NOT: nvvm.shfl.sync
  gpu.func @row_maximum(%x: f32, %p: !llvm.ptr<1>, %off: i64, %n: i32, %stride: i64, %row: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %g = attn.global_view %p[%off] rows %n stride %stride : !attn.global<?xf32>
    %t = tensor.splat %x : tensor<64x64xf32, #acc>
    %m = attn.reduce max %t : tensor<64x64xf32, #acc> -> tensor<64xf32, #rows>
    attn.global_store %m, %g[%row] : tensor<64xf32, #rows>, !attn.global<?xf32>
    gpu.return
  }

  // Partial sums stay in their threads; only their end is exchanged. What only
  // that needs of the thread is computed behind the loop, from an index that is
  // read again.
  // CHECK-LABEL: gpu.func @partial_sums
  // CHECK-NOT: nvvm.shfl
  // CHECK-NOT: tid.x
  // CHECK: scf.for
  // CHECK: arith.addf
  // CHECK: scf.yield
  // CHECK: llvm.inline_asm has_side_effects {{.*}}"mov.u32 $0, %tid.x;", "=r"
  // CHECK-COUNT-4: nvvm.shfl.sync bfly
  gpu.func @partial_sums(%x: f32, %n: i32) kernel attributes {attn.renew_entry, attn.warps = array<i64: 4, 1>} {
    %b = attn.alloc {offset = 0 : i64} : !attn.buffer<64xf32, #attn.rows, shared>
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %l0 = arith.constant dense<0.0> : tensor<64x4xf32, #partial>
    %t = tensor.splat %x : tensor<64x16xf32, #acc>
    %l = scf.for %i = %zero to %n step %one iter_args(%l1 = %l0) -> (tensor<64x4xf32, #partial>) : i32 {
      %s = attn.reduce add %t partial : tensor<64x16xf32, #acc> -> tensor<64x4xf32, #partial>
      %l2 = arith.addf %l1, %s : tensor<64x4xf32, #partial>
      scf.yield %l2 : tensor<64x4xf32, #partial>
    }
    %sum = attn.reduce add %l : tensor<64x4xf32, #partial> -> tensor<64xf32, #rows>
    attn.local_store %sum, %b : tensor<64xf32, #rows>, !attn.buffer<64xf32, #attn.rows, shared>
    gpu.return
  }

  // One bound for each of a thread's two rows, in which limit and band are
  // fused; one comparison for each of its eight elements.
  // CHECK-LABEL: gpu.func @mask
  // CHECK: arith.minsi
  // CHECK-COUNT-2: arith.cmpi slt
  // CHECK: arith.minsi
  // CHECK-COUNT-6: arith.cmpi slt
  // CHECK-NOT: {{minsi|cmpi}}
  gpu.func @mask(%x: f32, %row: i32, %column: i32, %limit: i32, %upper: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %t = tensor.splat %x : tensor<64x16xf32, #acc>
    %m = attn.apply_mask %t[%row, %column] limit %limit upper %upper : tensor<64x16xf32, #acc>
    gpu.return
  }

  // The lane with the column gives it to the three others of the row.
  // CHECK-LABEL: gpu.func @column
  // CHECK: %[[THIRD:.*]] = arith.addi %{{.*}}, %c2_i32
  // CHECK-COUNT-2: nvvm.shfl.sync idx %{{.*}}, %{{.*}}, %[[THIRD]], %{{.*}} : f32 -> f32
  // CHECK-NOT: nvvm.shfl
  // CHECK: llvm.nvvm.ex2.approx.ftz.f32
  gpu.func @column(%x: f32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %t = tensor.splat %x : tensor<64x4xf32, #partial>
    %c = attn.column %t {column = 2} : tensor<64x4xf32, #partial> -> tensor<64xf32, #rows>
    %e = attn.exp2 %c : tensor<64xf32, #rows>
    gpu.return
  }

  // The region, once for each of four elements, with its indices.
  // CHECK-LABEL: gpu.func @scalar_region
  // CHECK-COUNT-4: arith.sitofp
  // CHECK-NOT: arith.sitofp
  // CHECK: llvm.nvvm.ex2.approx.ftz.f32
  gpu.func @scalar_region(%x: f32, %row: i32, %column: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %t = tensor.splat %x : tensor<64x8xf32, #acc>
    %r = attn.map_elements %t[%row, %column] : tensor<64x8xf32, #acc> {
    ^bb0(%e: f32, %i: i32, %j: i32):
      %d = arith.subi %j, %i : i32
      %f = arith.sitofp %d : i32 to f32
      %g = math.fma %e, %f, %e : f32
      attn.yield %g : f32
    }
    %e = attn.exp2 %r : tensor<64x8xf32, #acc>
    gpu.return
  }

  // An accumulator is the A operand of the next product: nothing moves.
  // CHECK-LABEL: gpu.func @accumulator_to_operand
  // CHECK-NOT: nvvm.shfl
  // CHECK-COUNT-4: llvm.fptrunc %{{.*}} : vector<2xf32> to vector<2xf16>
  // CHECK: gpu.return
  gpu.func @accumulator_to_operand(%x: f32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %t = tensor.splat %x : tensor<64x16xf32, #acc>
    %h = arith.truncf %t : tensor<64x16xf32, #acc> to tensor<64x16xf16, #acc>
    %p = attn.convert_layout %h : tensor<64x16xf16, #acc> -> tensor<64x16xf16, #a>
    gpu.return
  }

  // Only rows that exist are stored, by one of the four lanes that hold a copy.
  // CHECK-LABEL: gpu.func @store_rows
  // CHECK: %[[FIRST:.*]] = arith.cmpi eq
  // CHECK: scf.if %[[FIRST]]
  // CHECK: scf.if
  // CHECK: llvm.store %{{.*}} {alignment = 4 : i64} : f32, !llvm.ptr<1>
  gpu.func @store_rows(%x: f32, %p: !llvm.ptr<1>, %off: i64, %n: i32, %stride: i64, %row: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %g = attn.global_view %p[%off] rows %n stride %stride : !attn.global<?xf32>
    %t = tensor.splat %x : tensor<64xf32, #rows>
    attn.global_store %t, %g[%row] : tensor<64xf32, #rows>, !attn.global<?xf32>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @copy_out
  // CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
  gpu.func @copy_out(%p: !llvm.ptr<1>, %off: i64, %n: i32, %stride: i64, %row: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %g = attn.global_view %p[%off] rows %n stride %stride {alignment = 16 : i64} : !attn.global<?x64xf16>
    %b = attn.alloc {offset = 0 : i64} : !attn.buffer<64x64xf16, #kv, shared>
    attn.copy_out %b, %g[%row] : !attn.buffer<64x64xf16, #kv, shared>, !attn.global<?x64xf16>
    gpu.return
  }

  // tanh is built from exp2 and a reciprocal; log2 is one instruction.
  // CHECK-LABEL: gpu.func @approximate
  // CHECK: llvm.nvvm.ex2.approx.ftz.f32
  // CHECK: llvm.nvvm.rcp.approx.ftz.f
  // CHECK: llvm.nvvm.lg2.approx.ftz.f
  // CHECK-NOT: math.tanh
  gpu.func @approximate(%x: f32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %t = tensor.splat %x : tensor<64x8xf32, #acc>
    %h = math.tanh %t : tensor<64x8xf32, #acc>
    %l = math.log2 %h : tensor<64x8xf32, #acc>
    gpu.return
  }

  // One vote of the warp on what its threads found.
  // The warpgroup decides as one, at a barrier of its own.
  // CHECK-LABEL: gpu.func @rare_path_of_warpgroups
  // CHECK: %[[MINE:.*]] = arith.ori
  // CHECK: %[[ID:.*]] = arith.addi %{{.*}}, %c3_i32
  // CHECK: %[[TAKEN:.*]] = llvm.call_intrinsic "llvm.nvvm.barrier.cta.red.or.count"(%[[ID]], %c128_i32, %{{.*}})
  // CHECK: scf.if %[[TAKEN]] -> (f32, f32, f32, f32)
  gpu.func @rare_path_of_warpgroups(%x: f32, %c: i1) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %t = tensor.splat %x : tensor<64x8xf32, #acc>
    %b = tensor.splat %c : tensor<64x8xi1, #acc>
    %r = attn.rare any %b default(%t : tensor<64x8xf32, #acc>) {barrier = 3 : i64, each_warpgroup} : tensor<64x8xi1, #acc> {
      %y = arith.mulf %t, %t : tensor<64x8xf32, #acc>
      attn.yield %y : tensor<64x8xf32, #acc>
    }
    gpu.return
  }

  // CHECK-LABEL: gpu.func @rare_path
  // CHECK: %[[MINE:.*]] = arith.ori
  // CHECK: %[[TAKEN:.*]] = nvvm.vote.sync any %{{.*}}, %
  // CHECK: scf.if %[[TAKEN]] -> (f32, f32, f32, f32)
  gpu.func @rare_path(%x: f32, %c: i1) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %t = tensor.splat %x : tensor<64x8xf32, #acc>
    %b = tensor.splat %c : tensor<64x8xi1, #acc>
    %r = attn.rare any %b default(%t : tensor<64x8xf32, #acc>) : tensor<64x8xi1, #acc> {
      %y = arith.mulf %t, %t : tensor<64x8xf32, #acc>
      attn.yield %y : tensor<64x8xf32, #acc>
    }
    gpu.return
  }
}
