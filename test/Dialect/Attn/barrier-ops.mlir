// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -mlir-print-op-generic | attn-opt | FileCheck %s
// RUN: attn-opt %s -emit-bytecode | attn-opt | FileCheck %s

// mbarriers, fences, barriers of warps, turns. The forms are those that the
// printer writes: attributes that have their default are not there.

// CHECK-LABEL: func.func @allocate(
func.func @allocate() {
  // CHECK: %[[FULL:.*]].full = attn.mbarrier.alloc {name = "k.full"} : <2>
  %full = attn.mbarrier.alloc {name = "k.full"} : !attn.mbarriers<2>
  // CHECK: %[[PLACED:.*]].empty = attn.mbarrier.alloc {name = "k.empty", offset = 1024 : i64} : <2>
  %placed = attn.mbarrier.alloc {name = "k.empty", offset = 1024 : i64} : !attn.mbarriers<2>
  // CHECK: %[[UNNAMED:.*]] = attn.mbarrier.alloc : <1>
  %unnamed = attn.mbarrier.alloc : !attn.mbarriers<1>
  return
}

// CHECK-LABEL: func.func @initialise(
// CHECK-SAME: %[[FULL:.*]]: !attn.mbarriers<2>
func.func @initialise(%full: !attn.mbarriers<2>) {
  // CHECK: attn.mbarrier.init %[[FULL:.*]] {count = 4 : i64} : <2>
  attn.mbarrier.init %full {count = 4 : i64} : !attn.mbarriers<2>
  // CHECK: attn.mbarrier.fence_init
  attn.mbarrier.fence_init
  return
}

// CHECK-LABEL: func.func @invalidate(
// CHECK-SAME: %[[FULL:.*]]: !attn.mbarriers<2>
func.func @invalidate(%full: !attn.mbarriers<2>) {
  // CHECK: attn.mbarrier.inval %[[FULL]] : <2>
  attn.mbarrier.inval %full : !attn.mbarriers<2>
  return
}

// CHECK-LABEL: func.func @arrive(
// CHECK-SAME: %[[FULL:.*]]: !attn.mbarriers<2>, %[[I:.*]]: i32
func.func @arrive(%full: !attn.mbarriers<2>, %i: i32) {
  // CHECK: attn.mbarrier.expect_tx %[[FULL:.*]][%[[I:.*]]] {bytes = 32768 : i64} : <2>
  attn.mbarrier.expect_tx %full[%i] {bytes = 32768 : i64} : !attn.mbarriers<2>
  // CHECK: attn.mbarrier.expect_tx %[[FULL:.*]][%[[I:.*]]] {bytes = 32768 : i64, ctas = 2 : i64} : <2>
  attn.mbarrier.expect_tx %full[%i] {bytes = 32768 : i64, ctas = 2 : i64} : !attn.mbarriers<2>
  // CHECK: attn.mbarrier.arrive %[[FULL]][%[[I]]] : <2>
  attn.mbarrier.arrive %full[%i] : !attn.mbarriers<2>
  // CHECK: attn.mbarrier.arrive %[[FULL:.*]][%[[I:.*]]] {ctas = 4 : i64} : <2>
  attn.mbarrier.arrive %full[%i] {ctas = 4 : i64} : !attn.mbarriers<2>
  // CHECK: attn.mbarrier.arrive %[[FULL]][%[[I]]] {leader} : <2>
  attn.mbarrier.arrive %full[%i] {leader} : !attn.mbarriers<2>
  return
}

// CHECK-LABEL: func.func @wait(
// CHECK-SAME: %[[FULL:.*]]: !attn.mbarriers<2>, %[[I:.*]]: i32, %[[PARITY:.*]]: i32
func.func @wait(%full: !attn.mbarriers<2>, %i: i32, %parity: i32) {
  // CHECK: attn.mbarrier.wait %[[FULL]][%[[I]]] parity %[[PARITY]] : <2>
  attn.mbarrier.wait %full[%i] parity %parity : !attn.mbarriers<2>
  // CHECK: attn.mbarrier.wait %[[FULL]][%[[I]]] parity %[[PARITY]] {cluster} : <2>
  attn.mbarrier.wait %full[%i] parity %parity {cluster} : !attn.mbarriers<2>
  return
}

// CHECK-LABEL: func.func @fences_and_barriers(
// CHECK-SAME: %[[ID:.*]]: i32
func.func @fences_and_barriers(%id: i32) {
  // CHECK: attn.fence.proxy_async
  attn.fence.proxy_async
  // CHECK: attn.named_barrier %[[ID:.*]] {threads = 128 : i64}
  attn.named_barrier %id {threads = 128 : i64}
  // CHECK: attn.named_barrier %[[ID:.*]] {each_warpgroup, threads = 128 : i64}
  attn.named_barrier %id {each_warpgroup, threads = 128 : i64}
  // CHECK: attn.cluster_barrier
  attn.cluster_barrier
  return
}

// CHECK-LABEL: func.func @copies(
// CHECK-SAME: %[[FULL:.*]]: !attn.mbarriers<2>, %[[I:.*]]: i32
func.func @copies(%full: !attn.mbarriers<2>, %i: i32) {
  // CHECK: attn.cp_async.arrive %[[FULL]][%[[I]]] : <2>
  attn.cp_async.arrive %full[%i] : !attn.mbarriers<2>
  return
}

// CHECK-LABEL: func.func @turns(
func.func @turns() {
  // CHECK: attn.turn.start 1
  attn.turn.start 1
  // CHECK: attn.turn.take 1
  attn.turn.take 1
  // CHECK: attn.turn.pass 1
  attn.turn.pass 1
  return
}

// CHECK-LABEL: func.func @tile_arrive(
// CHECK-SAME: %[[COUNTER:.*]]: !llvm.ptr<1>, %[[COUNT:.*]]: i32
func.func @tile_arrive(%counter: !llvm.ptr<1>, %count: i32) -> i1 {
  // CHECK: %{{.*}} = attn.tile_arrive %[[COUNTER]] of %[[COUNT]]
  %last = attn.tile_arrive %counter of %count
  return %last : i1
}
