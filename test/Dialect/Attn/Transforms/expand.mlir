// RUN: attn-opt %s -attn-plan="set=block_m=64,block_n=64,warps=4,stages=2,order=row_major" -attn-expand -attn-expand-arithmetic -split-input-file | FileCheck %s

// The plain kernel: constants everywhere, no sizes among the parameters.
// CHECK-LABEL: func.func @dense
// CHECK: gpu.launch_func @dense_kernels::@attn_fwd
// CHECK: gpu.module @dense_kernels [#attn.target<chip = "sm_80">]
// CHECK: gpu.func @attn_fwd(%[[Q:.*]]: !llvm.ptr<1>, %[[K:.*]]: !llvm.ptr<1>, %[[V:.*]]: !llvm.ptr<1>, %[[O:.*]]: !llvm.ptr<1>, %[[LSE:.*]]: !llvm.ptr<1>) kernel attributes
// CHECK-SAME: #attn.launch<chip = "sm_80"
// CHECK-SAME: grid = ["ceildiv(q.dim2, 64)", "q.dim1", "q.dim0"]
// CHECK-SAME: block = [128, 1, 1]
// CHECK-SAME: args = [{kind = "pointer", tensor = "q"}, {kind = "pointer", tensor = "k"}, {kind = "pointer", tensor = "v"}, {kind = "pointer", tensor = "o"}, {kind = "pointer", tensor = "lse"}]
// CHECK-SAME: mask = {kind = "none"}
// CHECK-SAME: attn.warps = array<i64: 4, 1>
// CHECK-SAME: known_block_size = array<i32: 128, 1, 1>
// CHECK-SAME: nvvm.minctasm = 1 : i32
// Four query heads share a key head.
// CHECK: %[[GROUP:.*]] = arith.constant 4 : i32
// CHECK: arith.divui %{{.*}}, %[[GROUP]] : i32
// CHECK: attn.global_view %[[Q]][%{{.*}}] rows %{{.*}} stride %{{.*}} {alignment = 16 : i64} : <?x40xf16>
// CHECK: attn.global_view %[[LSE]][%{{.*}}] {{.*}} : <?xf32>
// 40 columns are 48 in shared memory: whole k-steps of 16.
// CHECK: %[[QB:.*]] = attn.alloc {name = "q"} : <64x48xf16
// CHECK: attn.cp_async %{{.*}}, %[[QB]]
// CHECK: %[[QT:.*]] = attn.local_load %[[QB]]
// The scale holds log2 e; a block is QK, mask, softmax and PV.
// CHECK: %[[SCALE:.*]] = arith.constant 0.228
// CHECK: attn.kv_loop {{.*}} block 64 stages 2 iter_args
// CHECK: ^bb0(%[[KEY:.*]]: i32,
// CHECK: %[[KS:.*]] = attn.stage %{{.*}}[%[[KEY]]]
// CHECK: %[[KT:.*]] = attn.transpose %[[KS]]
// CHECK: %[[S:.*]] = attn.mma %[[QT]], %[[KT]]
// CHECK: %[[MASKED:.*]] = attn.apply_mask %[[S]][%{{.*}}, %[[KEY]]] limit %{{[^ ]*}} : tensor<64x64xf32, #attn.auto>
// CHECK: %[[PT:.*]], %{{.*}}, %{{.*}}, %[[ACC:.*]] = attn.online_softmax %[[MASKED]], {{.*}} scale %[[SCALE]]
// CHECK: %[[P16:.*]] = arith.truncf %[[PT]]
// CHECK: %[[VS:.*]] = attn.stage
// CHECK: attn.mma %[[P16]], %[[VS]], %[[ACC]]
// CHECK: attn.store_result
func.func @dense(%q: memref<2x8x300x40xf16>, %k: memref<2x2x300x40xf16>, %v: memref<2x2x300x40xf16>, %o: memref<2x8x300x40xf16>, %lse: memref<2x8x300xf32>) {
  attn.attention ins(%q, %k, %v : memref<2x8x300x40xf16>, memref<2x2x300x40xf16>, memref<2x2x300x40xf16>)
                 outs(%o, %lse : memref<2x8x300x40xf16>, memref<2x8x300xf32>)
  return
}

// -----

// Causal masks and windows give the band's bounds; packed sequences read their
// lengths, and tiles beyond a short one do nothing. Q stays in shared memory.
// CHECK-LABEL: gpu.module @packed_kernels
// CHECK: grid = ["ceildiv(100, 64)", "q.dim1", "(cu_seqlens_q.dim0 - 1)"]
// CHECK-SAME: tensor = "cu_seqlens_q"
// CHECK-SAME: mask = {align = "bottom_right", kind = "window", left = 20 : i64, right = 3 : i64}
// CHECK-SAME: max_seqlen_q = 100
// CHECK-SAME: varlen = true
// CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> i32
// CHECK: %[[IN:.*]] = arith.cmpi slt
// CHECK: scf.if %[[IN]] {
// CHECK: attn.kv_loop
// CHECK: attn.mma %{{.*}}, %{{.*}}, %{{.*}} : !attn.buffer<64x64xf16, #attn.auto, shared>
// CHECK: attn.apply_mask {{.*}} limit %{{.*}} lower %{{.*}} upper %{{.*}} :
func.func @packed(%q: memref<1x2x300x64xf16>, %k: memref<1x2x300x64xf16>, %v: memref<1x2x300x64xf16>, %o: memref<1x2x300x64xf16>, %cq: memref<4xi32>, %ck: memref<4xi32>) {
  attn.attention ins(%q, %k, %v : memref<1x2x300x64xf16>, memref<1x2x300x64xf16>, memref<1x2x300x64xf16>)
                 outs(%o : memref<1x2x300x64xf16>) cu_seqlens(%cq, %ck : memref<4xi32>, memref<4xi32>)
                 {max_seqlen_q = 100 : i64, mask = #attn.mask<kind = window, align = bottom_right, left = 20, right = 3>, plan = #attn.split_q<q_in_regs = false>}
  return
}

// -----

// What the launch decides: sizes in i32, strides in i64, behind the pointers.
// CHECK-LABEL: func.func @dynamic
// CHECK: memref.extract_strided_metadata
// CHECK: gpu.module @dynamic_kernels
// CHECK: gpu.func @attn_fwd({{.*}}, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i64, %{{.*}}: i64, %{{.*}}: i64) kernel
// CHECK-SAME: shape = array<i64: -1, 8, -1, 64>, strides = array<i64: -1, -1, -1, 1>
// CHECK-SAME: {dim = 2 : i64, kind = "size", tensor = "q", type = "i32"}, {dim = 2 : i64, kind = "size", tensor = "k", type = "i32"}, {dim = 0 : i64, kind = "stride", tensor = "q", type = "i64"}
func.func @dynamic(%q: memref<?x8x?x64xf16, strided<[?, ?, ?, 1], offset: ?>>, %k: memref<2x8x?x64xf16, strided<[65536, 8192, 64, 1]>>, %v: memref<2x8x?x64xf16, strided<[65536, 8192, 64, 1]>>, %o: memref<2x8x?x64xf16, strided<[65536, 8192, 64, 1]>>) {
  attn.attention ins(%q, %k, %v : memref<?x8x?x64xf16, strided<[?, ?, ?, 1], offset: ?>>, memref<2x8x?x64xf16, strided<[65536, 8192, 64, 1]>>, memref<2x8x?x64xf16, strided<[65536, 8192, 64, 1]>>)
                 outs(%o : memref<2x8x?x64xf16, strided<[65536, 8192, 64, 1]>>)
  return
}

// -----

// Regions become one scalar function of the score. Reads become loads of global
// memory at clamped indices; constants are cloned, scalars are parameters.
// CHECK-LABEL: gpu.module @regions_kernels
// CHECK: {kind = "pointer", tensor = "capture0"}, {kind = "scalar", name = "scalar0", type = "f32"}
// CHECK-SAME: mask_mod = true
// CHECK-SAME: score_mod = true
// CHECK: attn.mma
// CHECK: arith.mulf %{{.*}}, %{{.*}} : tensor<64x64xf32, #attn.auto>
// CHECK: attn.map_elements
// CHECK: ^bb0(%[[X:.*]]: f32, %{{.*}}: i32, %[[J:.*]]: i32):
// CHECK: arith.minsi %[[J]],
// CHECK: llvm.getelementptr
// CHECK: llvm.load
// CHECK: arith.select %{{.*}}, %{{.*}}, %{{.*}} : f32
// CHECK: attn.yield
// CHECK: attn.apply_mask
func.func @regions(%q: memref<1x2x300x64xf16>, %k: memref<1x2x300x64xf16>, %v: memref<1x2x300x64xf16>, %o: memref<1x2x300x64xf16>, %bias: memref<300xf32>, %c: f32) {
  %limit = arith.constant 7 : i32
  attn.attention ins(%q, %k, %v : memref<1x2x300x64xf16>, memref<1x2x300x64xf16>, memref<1x2x300x64xf16>)
                 outs(%o : memref<1x2x300x64xf16>)
  score_mod {
  ^bb0(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %index = arith.index_cast %j : i32 to index
    %x = memref.load %bias[%index] : memref<300xf32>
    %y = math.fma %x, %c, %s : f32
    attn.yield %y : f32
  } mask_mod {
  ^bb0(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %keep = arith.cmpi sge, %j, %limit : i32
    attn.yield %keep : i1
  }
  return
}

// -----

// A softcap works on scaled scores; sinks join after the loop.
// CHECK-LABEL: gpu.module @sinks_kernels
// CHECK: %[[SCALE:.*]] = arith.constant 1.44269502 : f32
// CHECK: attn.mma
// CHECK: math.tanh
// CHECK: attn.online_softmax {{.*}} scale %[[SCALE]]
// CHECK: attn.reduce add
// CHECK: tensor.splat
// CHECK: arith.maximumf
// CHECK: attn.exp2
func.func @sinks(%q: memref<1x2x300x64xbf16>, %k: memref<1x2x300x64xbf16>, %v: memref<1x2x300x64xbf16>, %o: memref<1x2x300x64xbf16>, %sinks: memref<2xf32>) {
  attn.attention ins(%q, %k, %v : memref<1x2x300x64xbf16>, memref<1x2x300x64xbf16>, memref<1x2x300x64xbf16>)
                 outs(%o : memref<1x2x300x64xbf16>) sinks(%sinks : memref<2xf32>) {softcap = 30.0 : f32}
  return
}
