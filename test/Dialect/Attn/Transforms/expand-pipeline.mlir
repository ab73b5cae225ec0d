// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-expand-pipeline,canonicalize,cse))' --split-input-file | FileCheck %s
// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-expand-pipeline))' --split-input-file --remarks-filter='attn.*' -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// Two stages: copies run one block ahead, in one group. Only the first block
// executed may lack rows. The phases are chained: values and slot pass on.

// REMARK: kv-loop | Category:attn.expand-pipeline | Function=two_stages | {{.*}}copies-ahead=1, groups-in-flight=1, phases="right,interior,left", stages=2

// CHECK-LABEL: gpu.func @two_stages
// CHECK-SAME: %[[GK:arg[0-9]+]]: !attn.global<?x64xf16>, %[[GV:arg[0-9]+]]: !attn.global<?x64xf16>
// CHECK: %[[TRIPS:.*]] = arith.subi %[[END:.*]], %[[BEGIN:.*]] : i32
// CHECK: %[[LAST:.*]] = arith.subi %[[END]], %c1_i32
// CHECK: %[[SOME:.*]] = arith.cmpi sgt, %[[TRIPS]], %c0_i32
// CHECK: %[[FIRST:.*]] = arith.muli %[[LAST]], %c32_i32
// CHECK: scf.if %[[SOME]] {
// CHECK:   %[[K0:.*]] = attn.slot %k[%c0_i32] :
// CHECK:   attn.cp_async %[[GK]][%[[FIRST]]], %[[K0]] :
// CHECK:   %[[V0:.*]] = attn.slot %v[%c0_i32] :
// CHECK:   attn.cp_async %[[GV]][%[[FIRST]]], %[[V0]] :
// CHECK: }
// CHECK: attn.cp_async.commit
// CHECK: %[[RIGHT:.*]] = arith.subi %[[END]], %[[FULLEND:.*]] : i32
// CHECK: %[[INTERIOR:.*]] = arith.subi %[[END]], %[[FULLBEGIN:.*]] : i32
// CHECK: %[[R:.*]]:4 = scf.for %[[T:.*]] = %c0_i32 to %[[RIGHT]] step %c1_i32 iter_args({{.*}}, %[[SLOT:.*]] = %c0_i32)
// CHECK:   %[[BLOCK:.*]] = arith.subi %[[LAST]], %[[T]]
// CHECK:   %[[KEY:.*]] = arith.muli %[[BLOCK]], %c32_i32
// CHECK:   %[[TNEXT:.*]] = arith.addi %[[T]], %c1_i32
// CHECK:   %[[NEXTKEY:.*]] = arith.subi %[[KEY]], %c32_i32
// CHECK:   attn.cp_async.wait {pending = 0 : i64}
// CHECK:   %[[MORE:.*]] = arith.cmpi slt, %[[TNEXT]], %[[TRIPS]]
// CHECK:   %[[NEXTSLOT:.*]] = arith.xori %[[SLOT]], %c1_i32
// CHECK:   scf.if %[[MORE]] {
// CHECK:     %[[K1:.*]] = attn.slot %k[%[[NEXTSLOT]]] {distance = 1 : i64}
// CHECK:     attn.cp_async %[[GK]][%[[NEXTKEY]]], %[[K1]] {in_bounds}
// CHECK:     %[[V1:.*]] = attn.slot %v[%[[NEXTSLOT]]] {distance = 1 : i64}
// CHECK:     attn.cp_async %[[GV]][%[[NEXTKEY]]], %[[V1]] {in_bounds}
// CHECK:   }
// CHECK:   attn.cp_async.commit
// CHECK:   %[[K:.*]] = attn.slot %k[%[[SLOT]]] {distance = 0 : i64}
// CHECK:   %[[V:.*]] = attn.slot %v[%[[SLOT]]] {distance = 0 : i64}
// CHECK:   %[[KT:.*]] = attn.transpose %[[K]]
// CHECK:   %[[S:.*]] = attn.mma %q, %[[KT]]
// CHECK:   attn.apply_mask %[[S]][%c0_i32, %[[KEY]]] limit %{{.*}} lower %{{.*}} upper %{{.*}} :
// CHECK:   %[[O:.*]] = attn.mma %{{.*}}, %[[V]]
// CHECK:   scf.yield %{{.*}}, %{{.*}}, %[[O]], %[[NEXTSLOT]]
// CHECK: } {attn.phase = #attn<kv_phase right>}
// CHECK: %[[I:.*]]:4 = scf.for %{{.*}} = %[[RIGHT]] to %[[INTERIOR]] step %c1_i32 iter_args({{.*}} = %[[R]]#0, {{.*}} = %[[R]]#1, {{.*}} = %[[R]]#2, {{.*}} = %[[R]]#3)
// CHECK-NOT: attn.apply_mask
// CHECK: } {attn.phase = #attn<kv_phase interior>}
// CHECK: scf.for %{{.*}} = %[[INTERIOR]] to %[[TRIPS]] step %c1_i32 iter_args({{.*}} = %[[I]]#3)
// CHECK:   attn.apply_mask %{{.*}}[%c0_i32, %{{.*}}] lower %{{[^ ]*}} :
// CHECK: } {attn.phase = #attn<kv_phase left>}
// CHECK-NEXT: attn.cp_async.wait {pending = 0 : i64}
gpu.module @kernels {
  gpu.func @two_stages(%gk: !attn.global<?x64xf16>, %gv: !attn.global<?x64xf16>, %begin: i32, %full_begin: i32, %full_end: i32, %end: i32, %nk: i32, %lower: i32, %upper: i32, %scale: f32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %r0 = arith.constant 0 : i32
    %q = attn.alloc {name = "q"} : !attn.buffer<64x64xf16, #attn.auto, shared>
    %k = attn.alloc {name = "k"} : !attn.buffer<2x32x64xf16, #attn.auto, shared>
    %v = attn.alloc {name = "v"} : !attn.buffer<2x32x64xf16, #attn.auto, shared>
    %m0 = arith.constant dense<0xFF800000> : tensor<64xf32, #attn.auto>
    %l0 = arith.constant dense<0.0> : tensor<64x4xf32, #attn.partial<parent = #attn.auto>>
    %s0 = arith.constant dense<0.0> : tensor<64x32xf32, #attn.auto>
    %o0 = arith.constant dense<0.0> : tensor<64x64xf32, #attn.auto>
    %m, %l, %o = attn.kv_loop %begin, %full_begin, %full_end, %end block 32 stages 2 iter_args(%m0, %l0, %o0 : tensor<64xf32, #attn.auto>, tensor<64x4xf32, #attn.partial<parent = #attn.auto>>, tensor<64x64xf32, #attn.auto>) {
    ^bb0(%key: i32, %mi: tensor<64xf32, #attn.auto>, %li: tensor<64x4xf32, #attn.partial<parent = #attn.auto>>, %oi: tensor<64x64xf32, #attn.auto>):
      %kb = attn.stage %gk[%key], %k : !attn.global<?x64xf16>, !attn.buffer<2x32x64xf16, #attn.auto, shared> -> !attn.buffer<32x64xf16, #attn.auto, shared>
      %vb = attn.stage %gv[%key], %v : !attn.global<?x64xf16>, !attn.buffer<2x32x64xf16, #attn.auto, shared> -> !attn.buffer<32x64xf16, #attn.auto, shared>
      %kt = attn.transpose %kb : !attn.buffer<32x64xf16, #attn.auto, shared> -> !attn.buffer<64x32xf16, #attn.auto, shared>
      %s = attn.mma %q, %kt, %s0 : !attn.buffer<64x64xf16, #attn.auto, shared>, !attn.buffer<64x32xf16, #attn.auto, shared>, tensor<64x32xf32, #attn.auto>
      %sm = attn.apply_mask %s[%r0, %key] limit %nk lower %lower upper %upper : tensor<64x32xf32, #attn.auto>
      %p, %m1, %l1, %o1 = attn.online_softmax %sm, %mi, %li, %oi scale %scale : tensor<64x32xf32, #attn.auto>, tensor<64xf32, #attn.auto>, tensor<64x4xf32, #attn.partial<parent = #attn.auto>>, tensor<64x64xf32, #attn.auto>
      %ph = arith.truncf %p : tensor<64x32xf32, #attn.auto> to tensor<64x32xf16, #attn.auto>
      %o2 = attn.mma %ph, %vb, %o1 : tensor<64x32xf16, #attn.auto>, !attn.buffer<32x64xf16, #attn.auto, shared>, tensor<64x64xf32, #attn.auto>
      attn.yield %m1, %l1, %o2 : tensor<64xf32, #attn.auto>, tensor<64x4xf32, #attn.partial<parent = #attn.auto>>, tensor<64x64xf32, #attn.auto>
    }
    %keep = attn.reduce max %o : tensor<64x64xf32, #attn.auto> -> tensor<64xf32, #attn.auto>
    %dest = attn.alloc {name = "dest"} : !attn.buffer<64xf32, #attn.auto, shared>
    attn.local_store %keep, %dest : tensor<64xf32, #attn.auto>, !attn.buffer<64xf32, #attn.auto, shared>
    gpu.return
  }
}

// -----

// One stage: K and V are in separate groups, each copied while the other one is
// in use. V of the first block may lack rows in the phase `right` only.

// REMARK: kv-loop | Category:attn.expand-pipeline | Function=one_stage | {{.*}}copies-ahead=0, groups-in-flight=1, phases="right,interior", stages=1

// CHECK-LABEL: gpu.func @one_stage
// CHECK: scf.if
// CHECK:   attn.cp_async %arg0[%{{.*}}], %{{[a-z0-9_]+}} : <?x64xf16>
// CHECK-NOT: attn.cp_async %arg1
// CHECK: }
// CHECK: attn.cp_async.commit
// CHECK: scf.for
// CHECK:   attn.cp_async.wait {pending = 0 : i64}
// CHECK:   attn.cp_async %arg1[%[[KEY:.*]]], %{{[a-z0-9_]+}} : <?x64xf16>
// CHECK:   attn.cp_async.commit
// CHECK:   %[[S:.*]] = attn.mma
// CHECK:   attn.cp_async.wait {pending = 0 : i64}
// CHECK:   scf.if
// CHECK:     attn.cp_async %arg0[%{{.*}}], %{{.*}} {in_bounds}
// CHECK:   }
// CHECK:   attn.cp_async.commit
// CHECK:   attn.apply_mask %[[S]][%c0_i32, %[[KEY]]] limit
// CHECK:   attn.mma
// CHECK: } {attn.phase = #attn<kv_phase right>}
// CHECK: scf.for
// CHECK:   attn.cp_async.wait {pending = 0 : i64}
// CHECK:   attn.cp_async %arg1[%{{.*}}], %{{.*}} {in_bounds}
// CHECK: } {attn.phase = #attn<kv_phase interior>}
// CHECK-NOT: scf.for
// CHECK: attn.cp_async.wait {pending = 0 : i64}
gpu.module @kernels {
  gpu.func @one_stage(%gk: !attn.global<?x64xf16>, %gv: !attn.global<?x64xf16>, %begin: i32, %full_end: i32, %end: i32, %nk: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %r0 = arith.constant 0 : i32
    %scale = arith.constant 0.18 : f32
    %q = attn.alloc {name = "q"} : !attn.buffer<64x64xf16, #attn.auto, shared>
    %k = attn.alloc {name = "k"} : !attn.buffer<1x64x64xf16, #attn.auto, shared>
    %v = attn.alloc {name = "v"} : !attn.buffer<1x64x64xf16, #attn.auto, shared>
    %m0 = arith.constant dense<0xFF800000> : tensor<64xf32, #attn.auto>
    %l0 = arith.constant dense<0.0> : tensor<64x4xf32, #attn.partial<parent = #attn.auto>>
    %o0 = arith.constant dense<0.0> : tensor<64x64xf32, #attn.auto>
    %m, %l, %o = attn.kv_loop %begin, %begin, %full_end, %end block 64 stages 1 iter_args(%m0, %l0, %o0 : tensor<64xf32, #attn.auto>, tensor<64x4xf32, #attn.partial<parent = #attn.auto>>, tensor<64x64xf32, #attn.auto>) {
    ^bb0(%key: i32, %mi: tensor<64xf32, #attn.auto>, %li: tensor<64x4xf32, #attn.partial<parent = #attn.auto>>, %oi: tensor<64x64xf32, #attn.auto>):
      %kb = attn.stage %gk[%key], %k : !attn.global<?x64xf16>, !attn.buffer<1x64x64xf16, #attn.auto, shared> -> !attn.buffer<64x64xf16, #attn.auto, shared>
      %vb = attn.stage %gv[%key], %v : !attn.global<?x64xf16>, !attn.buffer<1x64x64xf16, #attn.auto, shared> -> !attn.buffer<64x64xf16, #attn.auto, shared>
      %kt = attn.transpose %kb : !attn.buffer<64x64xf16, #attn.auto, shared> -> !attn.buffer<64x64xf16, #attn.auto, shared>
      %s = attn.mma %q, %kt, %o0 : !attn.buffer<64x64xf16, #attn.auto, shared>, !attn.buffer<64x64xf16, #attn.auto, shared>, tensor<64x64xf32, #attn.auto>
      %sm = attn.apply_mask %s[%r0, %key] limit %nk : tensor<64x64xf32, #attn.auto>
      %p, %m1, %l1, %o1 = attn.online_softmax %sm, %mi, %li, %oi scale %scale : tensor<64x64xf32, #attn.auto>, tensor<64xf32, #attn.auto>, tensor<64x4xf32, #attn.partial<parent = #attn.auto>>, tensor<64x64xf32, #attn.auto>
      %ph = arith.truncf %p : tensor<64x64xf32, #attn.auto> to tensor<64x64xf16, #attn.auto>
      %o2 = attn.mma %ph, %vb, %o1 : tensor<64x64xf16, #attn.auto>, !attn.buffer<64x64xf16, #attn.auto, shared>, tensor<64x64xf32, #attn.auto>
      attn.yield %m1, %l1, %o2 : tensor<64xf32, #attn.auto>, tensor<64x4xf32, #attn.partial<parent = #attn.auto>>, tensor<64x64xf32, #attn.auto>
    }
    %dest = attn.alloc {name = "dest"} : !attn.buffer<64x64xf32, #attn.auto, shared>
    attn.local_store %o, %dest : tensor<64x64xf32, #attn.auto>, !attn.buffer<64x64xf32, #attn.auto, shared>
    gpu.return
  }
}

// -----

// Three stages: two groups in flight, a ring that wraps by a select, and rows
// computed from the key by ops of the body.

// REMARK: kv-loop | Category:attn.expand-pipeline | Function=three_stages | {{.*}}copies-ahead=2, groups-in-flight=2, phases=interior, stages=3

// CHECK-LABEL: gpu.func @three_stages
// CHECK: scf.if
// CHECK:   %[[ROW0:.*]] = arith.addi %{{.*}}, %arg2
// CHECK:   attn.slot %k[%c0_i32] :
// CHECK:   attn.cp_async %arg0[%[[ROW0]]], %{{[a-z0-9_]+}} : <?x64xf16>
// CHECK: attn.cp_async.commit
// CHECK: arith.cmpi sgt, %{{.*}}, %c1_i32
// CHECK: scf.if
// CHECK:   attn.slot %k[%c1_i32] :
// CHECK: attn.cp_async.commit
// CHECK: scf.for %{{.*}} iter_args(%{{.*}} = %{{.*}}, %[[SLOT:.*]] = %c0_i32)
// CHECK:   attn.cp_async.wait {pending = 1 : i64}
// CHECK:   %[[SUM:.*]] = arith.addi %[[SLOT]], %c2_i32
// CHECK:   %[[WRAPS:.*]] = arith.cmpi sge, %[[SUM]], %c3_i32
// CHECK:   %[[LESS:.*]] = arith.addi %[[SLOT]], %c-1_i32
// CHECK:   %[[AHEAD:.*]] = arith.select %[[WRAPS]], %[[LESS]], %[[SUM]]
// CHECK:   scf.if
// CHECK:     %[[ROW:.*]] = arith.addi %{{.*}}, %arg2
// CHECK:     attn.slot %k[%[[AHEAD]]] {distance = 2 : i64}
// CHECK:     attn.cp_async %arg0[%[[ROW]]], %{{[a-z0-9_]+}} : <?x64xf16>
gpu.module @kernels {
  gpu.func @three_stages(%gk: !attn.global<?x64xf16>, %n: i32, %first_row: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant 0 : i32
    %k = attn.alloc {name = "k"} : !attn.buffer<3x64x64xf16, #attn.auto, shared>
    %t0 = arith.constant dense<0.0> : tensor<64x64xf16, #attn.auto>
    %r = attn.kv_loop %zero, %zero, %n, %n block 64 stages 3 iter_args(%t0 : tensor<64x64xf16, #attn.auto>) {
    ^bb0(%key: i32, %acc: tensor<64x64xf16, #attn.auto>):
      %row = arith.addi %key, %first_row : i32
      %kb = attn.stage %gk[%row], %k : !attn.global<?x64xf16>, !attn.buffer<3x64x64xf16, #attn.auto, shared> -> !attn.buffer<64x64xf16, #attn.auto, shared>
      %t = attn.local_load %kb : !attn.buffer<64x64xf16, #attn.auto, shared> -> tensor<64x64xf16, #attn.auto>
      %sum = arith.addf %acc, %t : tensor<64x64xf16, #attn.auto>
      attn.yield %sum : tensor<64x64xf16, #attn.auto>
    }
    %dest = attn.alloc {name = "dest"} : !attn.buffer<64x64xf16, #attn.auto, shared>
    attn.local_store %r, %dest : tensor<64x64xf16, #attn.auto>, !attn.buffer<64x64xf16, #attn.auto, shared>
    gpu.return
  }
}

// -----

// K and V in one buffer: nothing is late, and the next copy waits for the last
// read.

// CHECK-LABEL: gpu.func @one_stage_shared
// CHECK: scf.for
// CHECK:   attn.cp_async.wait {pending = 0 : i64}
// CHECK-NOT: attn.cp_async %
// CHECK:   attn.local_load
// CHECK:   attn.local_load
// CHECK:   scf.if
// CHECK:     attn.cp_async %arg0
// CHECK:   attn.cp_async.commit
// CHECK:   scf.yield
gpu.module @kernels {
  gpu.func @one_stage_shared(%gk: !attn.global<?x64xf16>, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant 0 : i32
    %k = attn.alloc {name = "k"} : !attn.buffer<1x64x64xf16, #attn.auto, shared>
    %t0 = arith.constant dense<0.0> : tensor<64x64xf16, #attn.auto>
    %r = attn.kv_loop %zero, %zero, %n, %n block 64 stages 1 iter_args(%t0 : tensor<64x64xf16, #attn.auto>) {
    ^bb0(%key: i32, %acc: tensor<64x64xf16, #attn.auto>):
      %kb = attn.stage %gk[%key], %k : !attn.global<?x64xf16>, !attn.buffer<1x64x64xf16, #attn.auto, shared> -> !attn.buffer<64x64xf16, #attn.auto, shared>
      %t = attn.local_load %kb : !attn.buffer<64x64xf16, #attn.auto, shared> -> tensor<64x64xf16, #attn.auto>
      %sum = arith.addf %acc, %t : tensor<64x64xf16, #attn.auto>
      %kt = attn.transpose %kb : !attn.buffer<64x64xf16, #attn.auto, shared> -> !attn.buffer<64x64xf16, #attn.auto, shared>
      %u = attn.local_load %kt : !attn.buffer<64x64xf16, #attn.auto, shared> -> tensor<64x64xf16, #attn.auto>
      %product = arith.mulf %sum, %u : tensor<64x64xf16, #attn.auto>
      attn.yield %product : tensor<64x64xf16, #attn.auto>
    }
    %dest = attn.alloc {name = "dest"} : !attn.buffer<64x64xf16, #attn.auto, shared>
    attn.local_store %r, %dest : tensor<64x64xf16, #attn.auto>, !attn.buffer<64x64xf16, #attn.auto, shared>
    gpu.return
  }
}

// -----

// The softmax's formula, with the bound that stands for the test against -inf,
// and without it where keys are promised.

// CHECK-LABEL: gpu.func @softmax
// CHECK-DAG: %[[LEAST:.*]] = arith.constant dense<-3.40282347E+38> : tensor<64xf32, #attn.auto>
// CHECK: %[[RM:.*]] = attn.reduce max %[[S:.*]] :
// CHECK: %[[ROWX:.*]] = tensor.splat %[[X:.*]] : tensor<64xf32, #attn.auto>
// CHECK: %[[SCALED:.*]] = arith.mulf %[[RM]], %[[ROWX]]
// CHECK: %[[GROWN:.*]] = arith.maxnumf %[[M:.*]], %[[SCALED]]
// CHECK: %[[M1:.*]] = arith.maxnumf %[[GROWN]], %[[LEAST]]
// CHECK: %[[XS:.*]] = tensor.splat %[[X]] : tensor<64x32xf32, #attn.auto>
// CHECK: %[[N:.*]] = arith.negf %[[M1]]
// CHECK: %[[NS:.*]] = attn.broadcast %[[N]]
// CHECK: %[[E:.*]] = math.fma %[[S]], %[[XS]], %[[NS]]
// CHECK: %[[P:.*]] = attn.exp2 %[[E]]
// CHECK: %[[D:.*]] = arith.subf %[[M]], %[[M1]]
// CHECK: %[[F:.*]] = attn.exp2 %[[D]]
// CHECK: %[[SUMS:.*]] = attn.reduce add %[[P]] partial
// CHECK: %[[FL:.*]] = attn.broadcast %[[F]] : tensor<64xf32, #attn.auto> -> tensor<64x4xf32, #attn.partial<parent = #attn.auto>>
// CHECK: math.fma %{{.*}}, %[[FL]], %[[SUMS]]
// CHECK: %[[FO:.*]] = attn.broadcast %[[F]] : tensor<64xf32, #attn.auto> -> tensor<64x16xf32, #attn.auto>
// CHECK: arith.mulf %{{.*}}, %[[FO]]
// CHECK-LABEL: gpu.func @softmax_finite
// CHECK: arith.maxnumf
// CHECK-NOT: arith.maxnumf
// CHECK: gpu.return
gpu.module @kernels {
  gpu.func @softmax(%bs: !attn.buffer<64x32xf32, #attn.auto, shared>, %bm: !attn.buffer<64xf32, #attn.auto, shared>, %bl: !attn.buffer<64x4xf32, #attn.auto, shared>, %bo: !attn.buffer<64x16xf32, #attn.auto, shared>, %x: f32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = attn.local_load %bs : !attn.buffer<64x32xf32, #attn.auto, shared> -> tensor<64x32xf32, #attn.auto>
    %m = attn.local_load %bm : !attn.buffer<64xf32, #attn.auto, shared> -> tensor<64xf32, #attn.auto>
    %l = attn.local_load %bl : !attn.buffer<64x4xf32, #attn.auto, shared> -> tensor<64x4xf32, #attn.partial<parent = #attn.auto>>
    %o = attn.local_load %bo : !attn.buffer<64x16xf32, #attn.auto, shared> -> tensor<64x16xf32, #attn.auto>
    %p, %m1, %l1, %o1 = attn.online_softmax %s, %m, %l, %o scale %x : tensor<64x32xf32, #attn.auto>, tensor<64xf32, #attn.auto>, tensor<64x4xf32, #attn.partial<parent = #attn.auto>>, tensor<64x16xf32, #attn.auto>
    attn.local_store %p, %bs : tensor<64x32xf32, #attn.auto>, !attn.buffer<64x32xf32, #attn.auto, shared>
    attn.local_store %m1, %bm : tensor<64xf32, #attn.auto>, !attn.buffer<64xf32, #attn.auto, shared>
    attn.local_store %l1, %bl : tensor<64x4xf32, #attn.partial<parent = #attn.auto>>, !attn.buffer<64x4xf32, #attn.auto, shared>
    attn.local_store %o1, %bo : tensor<64x16xf32, #attn.auto>, !attn.buffer<64x16xf32, #attn.auto, shared>
    gpu.return
  }
  gpu.func @softmax_finite(%bs: !attn.buffer<64x32xf32, #attn.auto, shared>, %bm: !attn.buffer<64xf32, #attn.auto, shared>, %bl: !attn.buffer<64x4xf32, #attn.auto, shared>, %bo: !attn.buffer<64x16xf32, #attn.auto, shared>, %x: f32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = attn.local_load %bs : !attn.buffer<64x32xf32, #attn.auto, shared> -> tensor<64x32xf32, #attn.auto>
    %m = attn.local_load %bm : !attn.buffer<64xf32, #attn.auto, shared> -> tensor<64xf32, #attn.auto>
    %l = attn.local_load %bl : !attn.buffer<64x4xf32, #attn.auto, shared> -> tensor<64x4xf32, #attn.partial<parent = #attn.auto>>
    %o = attn.local_load %bo : !attn.buffer<64x16xf32, #attn.auto, shared> -> tensor<64x16xf32, #attn.auto>
    %p, %m1, %l1, %o1 = attn.online_softmax %s, %m, %l, %o scale %x {finite} : tensor<64x32xf32, #attn.auto>, tensor<64xf32, #attn.auto>, tensor<64x4xf32, #attn.partial<parent = #attn.auto>>, tensor<64x16xf32, #attn.auto>
    attn.local_store %p, %bs : tensor<64x32xf32, #attn.auto>, !attn.buffer<64x32xf32, #attn.auto, shared>
    gpu.return
  }
}

// -----

// Rows at a constant distance from the first key exist where the block's rows
// do, if they end with the block.

// CHECK-LABEL: gpu.func @parts
// CHECK: scf.for
// CHECK: scf.if
// CHECK:   %[[SECOND:.*]] = arith.addi %{{.*}}, %c-16_i32
// CHECK:   attn.cp_async %{{.*}}[%[[SECOND]]], %{{.*}} {in_bounds}
// CHECK:   %[[LATE:.*]] = arith.addi %{{.*}}, %c-8_i32
// CHECK:   attn.cp_async %{{.*}}[%[[LATE]]], %{{[^ ]*}} : <?x64xf16>
gpu.module @kernels {
  gpu.func @parts(%gk: !attn.global<?x64xf16>, %n: i32, %sum: f32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant 0 : i32
    %distance = arith.constant 16 : i32
    %beyond = arith.constant 24 : i32
    %ring = attn.alloc {name = "ring"} : !attn.buffer<2x16x64xf16, #attn.auto, shared>
    %far = attn.alloc {name = "far"} : !attn.buffer<2x16x64xf16, #attn.auto, shared>
    %r = attn.kv_loop %zero, %zero, %n, %n block 32 stages 2 iter_args(%sum : f32) {
    ^bb0(%key: i32, %s: f32):
      %row = arith.addi %key, %distance : i32
      %a = attn.stage %gk[%row], %ring : !attn.global<?x64xf16>, !attn.buffer<2x16x64xf16, #attn.auto, shared> -> !attn.buffer<16x64xf16, #attn.auto, shared>
      %other = arith.addi %key, %beyond : i32
      %b = attn.stage %gk[%other], %far : !attn.global<?x64xf16>, !attn.buffer<2x16x64xf16, #attn.auto, shared> -> !attn.buffer<16x64xf16, #attn.auto, shared>
      attn.yield %s : f32
    }
    gpu.return
  }
}
