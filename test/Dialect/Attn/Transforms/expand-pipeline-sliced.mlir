// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-expand-pipeline,canonicalize,cse))' --split-input-file | FileCheck %s
// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-expand-pipeline))' --split-input-file --remarks-filter='attn.*' -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// Three slices of a block take turns in a ring of two slots: the fourth step of a
// round has no copies. Each step waits for its own slice, starts the copies of the
// next one, which is that of the next block behind the last one, and commits.

// REMARK: kv-loop | Category:attn.expand-pipeline | Function=slices | {{.*}}groups-in-flight=1, phases=interior, stages=2, steps=4

// CHECK-LABEL: gpu.func @slices
// CHECK-SAME: %[[K0:arg[0-9]+]]: !attn.global<?x64xf16>, %[[K1:arg[0-9]+]]: !attn.global<?x32xf16>, %[[GV:arg[0-9]+]]: !attn.global<?x64xf16>
// CHECK: scf.if
// CHECK:   %[[S:.*]] = attn.slot %ring[%c0_i32]
// CHECK:   attn.cp_async %[[K0]][%{{.*}}], %[[S]] {in_bounds}
// CHECK: attn.cp_async.commit
// CHECK: scf.for
// CHECK:   %[[KEY:.*]] = arith.muli
// CHECK:   %[[MORE:.*]] = arith.cmpi slt
// CHECK:   %[[NEXT:.*]] = arith.subi %[[KEY]], %c32_i32
// CHECK:   attn.cp_async.wait {pending = 0 : i64}
// CHECK:   %[[ODD:.*]] = attn.slot %ring[%c1_i32]
// CHECK:   attn.cp_async %[[K1]][%[[KEY]]], %[[ODD]] {in_bounds}
// CHECK:   attn.cp_async.commit
// CHECK:   %[[EVEN:.*]] = attn.slot %ring[%c0_i32]
// CHECK:   %[[T0:.*]] = attn.transpose %[[EVEN]]
// CHECK:   attn.mma %q0, %[[T0]]
// CHECK:   attn.cp_async.wait {pending = 0 : i64}
// CHECK:   attn.cp_async %[[GV]][%[[KEY]]], %[[EVEN]] {in_bounds}
// CHECK:   attn.cp_async.commit
// CHECK:   %[[T1:.*]] = attn.transpose %[[ODD]]
// CHECK:   attn.mma %q1, %[[T1]]
// CHECK:   attn.cp_async.wait {pending = 0 : i64}
// CHECK-NEXT: attn.cp_async.commit
// CHECK:   attn.mma %{{.*}}, %[[EVEN]]
// CHECK:   scf.if %[[MORE]]
// CHECK:     attn.cp_async %[[K0]][%[[NEXT]]], %[[EVEN]] {in_bounds}
// CHECK:   attn.cp_async.commit
// CHECK: attn.cp_async.wait {pending = 0 : i64}
gpu.module @kernels {
  gpu.func @slices(%k0: !attn.global<?x64xf16>, %k1: !attn.global<?x32xf16>, %gv: !attn.global<?x64xf16>, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant 0 : i32
    %q0 = attn.alloc {name = "q0"} : !attn.buffer<64x64xf16, #attn.auto, shared>
    %q1 = attn.alloc {name = "q1"} : !attn.buffer<64x64xf16, #attn.auto, shared>
    %ring = attn.alloc {name = "ring"} : !attn.buffer<2x32x64xf16, #attn.auto, shared>
    %s0 = arith.constant dense<0.0> : tensor<64x32xf32, #attn.auto>
    %o0 = arith.constant dense<0.0> : tensor<64x64xf32, #attn.auto>
    %o = attn.kv_loop %zero, %zero, %n, %n block 32 stages 2 iter_args(%o0 : tensor<64x64xf32, #attn.auto>) {
    ^bb0(%key: i32, %oi: tensor<64x64xf32, #attn.auto>):
      %a = attn.stage %k0[%key], %ring : !attn.global<?x64xf16>, !attn.buffer<2x32x64xf16, #attn.auto, shared> -> !attn.buffer<32x64xf16, #attn.auto, shared>
      %at = attn.transpose %a : !attn.buffer<32x64xf16, #attn.auto, shared> -> !attn.buffer<64x32xf16, #attn.auto, shared>
      %s1 = attn.mma %q0, %at, %s0 : !attn.buffer<64x64xf16, #attn.auto, shared>, !attn.buffer<64x32xf16, #attn.auto, shared>, tensor<64x32xf32, #attn.auto>
      %b = attn.stage %k1[%key], %ring : !attn.global<?x32xf16>, !attn.buffer<2x32x64xf16, #attn.auto, shared> -> !attn.buffer<32x64xf16, #attn.auto, shared>
      %bt = attn.transpose %b : !attn.buffer<32x64xf16, #attn.auto, shared> -> !attn.buffer<64x32xf16, #attn.auto, shared>
      %s2 = attn.mma %q1, %bt, %s1 : !attn.buffer<64x64xf16, #attn.auto, shared>, !attn.buffer<64x32xf16, #attn.auto, shared>, tensor<64x32xf32, #attn.auto>
      %p = arith.truncf %s2 : tensor<64x32xf32, #attn.auto> to tensor<64x32xf16, #attn.auto>
      %v = attn.stage %gv[%key], %ring : !attn.global<?x64xf16>, !attn.buffer<2x32x64xf16, #attn.auto, shared> -> !attn.buffer<32x64xf16, #attn.auto, shared>
      %o1 = attn.mma %p, %v, %oi : tensor<64x32xf16, #attn.auto>, !attn.buffer<32x64xf16, #attn.auto, shared>, tensor<64x64xf32, #attn.auto>
      attn.yield %o1 : tensor<64x64xf32, #attn.auto>
    }
    %keep = attn.reduce max %o : tensor<64x64xf32, #attn.auto> -> tensor<64xf32, #attn.auto>
    %dest = attn.alloc {name = "dest"} : !attn.buffer<64xf32, #attn.auto, shared>
    attn.local_store %keep, %dest : tensor<64xf32, #attn.auto>, !attn.buffer<64xf32, #attn.auto, shared>
    gpu.return
  }
}

// -----

// Stages with no access between them are one step, here of two rings; with three
// slots one group stays pending. The last step is empty.

// REMARK: kv-loop | Category:attn.expand-pipeline | Function=pairs | {{.*}}groups-in-flight=2, phases=interior, stages=3, steps=3

// CHECK-LABEL: gpu.func @pairs
// CHECK-SAME: %[[GQ:arg[0-9]+]]: !attn.global<?x64xf16>, %[[GK:arg[0-9]+]]: !attn.global<?x64xf16>, %[[ROW:arg[0-9]+]]: i32
// CHECK: scf.if
// CHECK:   attn.cp_async %[[GK]][%{{.*}}], %{{.*}} {in_bounds}
// CHECK:   attn.cp_async %[[GQ]][%[[ROW]]], %{{.*}} :
// CHECK: attn.cp_async.commit
// CHECK: scf.if
// CHECK: attn.cp_async.commit
// CHECK: scf.for
// CHECK:   attn.cp_async.wait {pending = 1 : i64}
// CHECK-NEXT: attn.cp_async.commit
// CHECK:   attn.mma
// CHECK:   attn.cp_async.wait {pending = 1 : i64}
// CHECK:   scf.if
// CHECK:   attn.cp_async.commit
// CHECK:   attn.mma
// CHECK:   scf.if
// CHECK:   attn.cp_async.commit
// CHECK-NEXT: }
gpu.module @kernels {
  gpu.func @pairs(%gq: !attn.global<?x64xf16>, %gk: !attn.global<?x64xf16>, %row: i32, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant 0 : i32
    %q = attn.alloc {name = "q"} : !attn.buffer<3x64x64xf16, #attn.auto, shared>
    %k = attn.alloc {name = "k"} : !attn.buffer<3x32x64xf16, #attn.auto, shared>
    %s0 = arith.constant dense<0.0> : tensor<64x32xf32, #attn.auto>
    attn.kv_loop %zero, %zero, %n, %n block 32 stages 3 {
    ^bb0(%key: i32):
      %a = attn.stage %gk[%key], %k : !attn.global<?x64xf16>, !attn.buffer<3x32x64xf16, #attn.auto, shared> -> !attn.buffer<32x64xf16, #attn.auto, shared>
      %qa = attn.stage %gq[%row], %q : !attn.global<?x64xf16>, !attn.buffer<3x64x64xf16, #attn.auto, shared> -> !attn.buffer<64x64xf16, #attn.auto, shared>
      %at = attn.transpose %a : !attn.buffer<32x64xf16, #attn.auto, shared> -> !attn.buffer<64x32xf16, #attn.auto, shared>
      %s1 = attn.mma %qa, %at, %s0 : !attn.buffer<64x64xf16, #attn.auto, shared>, !attn.buffer<64x32xf16, #attn.auto, shared>, tensor<64x32xf32, #attn.auto>
      %b = attn.stage %gk[%key], %k : !attn.global<?x64xf16>, !attn.buffer<3x32x64xf16, #attn.auto, shared> -> !attn.buffer<32x64xf16, #attn.auto, shared>
      %qb = attn.stage %gq[%row], %q : !attn.global<?x64xf16>, !attn.buffer<3x64x64xf16, #attn.auto, shared> -> !attn.buffer<64x64xf16, #attn.auto, shared>
      %bt = attn.transpose %b : !attn.buffer<32x64xf16, #attn.auto, shared> -> !attn.buffer<64x32xf16, #attn.auto, shared>
      %s2 = attn.mma %qb, %bt, %s1 : !attn.buffer<64x64xf16, #attn.auto, shared>, !attn.buffer<64x32xf16, #attn.auto, shared>, tensor<64x32xf32, #attn.auto>
      %m = attn.reduce max %s2 : tensor<64x32xf32, #attn.auto> -> tensor<64xf32, #attn.auto>
      %dest = attn.alloc {name = "dest"} : !attn.buffer<64xf32, #attn.auto, shared>
      attn.local_store %m, %dest : tensor<64xf32, #attn.auto>, !attn.buffer<64xf32, #attn.auto, shared>
      attn.yield
    }
    gpu.return
  }
}

// -----

// A ring of one slot: each step copies to it what it computes from, and waits.
// CHECK-LABEL: gpu.func @one_slot
// CHECK-SAME: %[[GK:arg[0-9]+]]: !attn.global<?x64xf16>, %[[GV:arg[0-9]+]]: !attn.global<?x64xf16>
// CHECK-NOT: attn.cp_async %
// CHECK: scf.for
// CHECK:   attn.cp_async %[[GK]][%{{.*}}], %[[SLOT:.*]] {in_bounds}
// CHECK-NEXT: attn.cp_async.commit
// CHECK-NEXT: attn.cp_async.wait {pending = 0 : i64}
// CHECK:   %[[K:.*]] = attn.local_load %[[SLOT]]
// CHECK:   attn.cp_async %[[GV]][%{{.*}}], %[[SLOT]] {in_bounds}
// CHECK-NEXT: attn.cp_async.commit
// CHECK-NEXT: attn.cp_async.wait {pending = 0 : i64}
// CHECK:   attn.local_load %[[SLOT]]
gpu.module @kernels {
  gpu.func @one_slot(%gk: !attn.global<?x64xf16>, %gv: !attn.global<?x64xf16>, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant 0 : i32
    %ring = attn.alloc : !attn.buffer<1x64x64xf16, #attn.auto, shared>
    %init = arith.constant dense<0.0> : tensor<64x64xf16, #attn.auto>
    %sum = attn.kv_loop %zero, %zero, %n, %n block 64 stages 1 iter_args(%init : tensor<64x64xf16, #attn.auto>) {
    ^bb0(%key: i32, %acc: tensor<64x64xf16, #attn.auto>):
      %a = attn.stage %gk[%key], %ring : !attn.global<?x64xf16>, !attn.buffer<1x64x64xf16, #attn.auto, shared> -> !attn.buffer<64x64xf16, #attn.auto, shared>
      %ta = attn.local_load %a : !attn.buffer<64x64xf16, #attn.auto, shared> -> tensor<64x64xf16, #attn.auto>
      %b = attn.stage %gv[%key], %ring : !attn.global<?x64xf16>, !attn.buffer<1x64x64xf16, #attn.auto, shared> -> !attn.buffer<64x64xf16, #attn.auto, shared>
      %tb = attn.local_load %b : !attn.buffer<64x64xf16, #attn.auto, shared> -> tensor<64x64xf16, #attn.auto>
      %next = arith.addf %ta, %tb : tensor<64x64xf16, #attn.auto>
      %all = arith.addf %next, %acc : tensor<64x64xf16, #attn.auto>
      attn.yield %all : tensor<64x64xf16, #attn.auto>
    }
    %dest = attn.alloc {name = "dest"} : !attn.buffer<64x64xf16, #attn.auto, shared>
    attn.local_store %sum, %dest : tensor<64x64xf16, #attn.auto>, !attn.buffer<64x64xf16, #attn.auto, shared>
    gpu.return
  }
}
