// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -mlir-print-op-generic | attn-opt | FileCheck %s
// RUN: attn-opt %s -emit-bytecode | attn-opt | FileCheck %s

// Buffers in shared memory, their views, and what reads and writes them. The
// forms are those that the printer writes: attributes that have their
// default are not there.

!ring = !attn.buffer<2x64x128xf16, #attn.swizzled<span = 128>, shared>
!slot = !attn.buffer<64x128xf16, #attn.swizzled<span = 128>, shared>
!words = !attn.buffer<2xi32, #attn.rows, shared>

// CHECK-LABEL: func.func @allocate(
func.func @allocate() {
  // CHECK: %[[PLAIN:.*]] = attn.alloc : <64x128xf16, #attn.auto, shared>
  %plain = attn.alloc : !attn.buffer<64x128xf16, #attn.auto, shared>
  // CHECK: %[[NAMED:.*]] = attn.alloc {name = "k"} : <2x64x128xf16, #attn.swizzled<span = 128>, shared>
  %named = attn.alloc {name = "k"} : !ring
  // CHECK: %[[PLACED:.*]] = attn.alloc {name = "o", offset = 4096 : i64, overlay = "q"} : <64x128xf16, #attn.swizzled<span = 128>, shared>
  %placed = attn.alloc {name = "o", offset = 4096 : i64, overlay = "q"} : !slot
  return
}

// CHECK-LABEL: func.func @views(
// CHECK-SAME: %[[RING:.*]]: !attn.buffer<2x64x128xf16, #attn.swizzled<span = 128>, shared>, %[[I:.*]]: i32
func.func @views(%ring: !ring, %i: i32) {
  // CHECK: %[[SLOT:.*]] = attn.slot %[[RING]][%[[I]]] : <2x64x128xf16, #attn.swizzled<span = 128>, shared> -> <64x128xf16, #attn.swizzled<span = 128>, shared>
  %slot = attn.slot %ring[%i] : !ring -> !slot
  // CHECK: %[[AHEAD:.*]] = attn.slot %[[RING]][%[[I]]] {distance = 1 : i64} : <2x64x128xf16, #attn.swizzled<span = 128>, shared> -> <64x128xf16, #attn.swizzled<span = 128>, shared>
  %ahead = attn.slot %ring[%i] {distance = 1 : i64} : !ring -> !slot
  // CHECK: %[[TRANSPOSED:.*]] = attn.transpose %[[SLOT]] : <64x128xf16, #attn.swizzled<span = 128>, shared> -> <128x64xf16, #attn.transposed<#attn.swizzled<span = 128>>, shared>
  %transposed = attn.transpose %slot : !slot -> !attn.buffer<128x64xf16, #attn.transposed<#attn.swizzled<span = 128>>, shared>
  // CHECK: %[[HALF:.*]] = attn.reinterpret %[[SLOT]] : <64x128xf16, #attn.swizzled<span = 128>, shared> -> <64x64xf16, #attn.swizzled<span = 128>, shared>
  %half = attn.reinterpret %slot : !slot -> !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
  return
}

// CHECK-LABEL: func.func @tiles(
// CHECK-SAME: %[[SLOT:.*]]: !attn.buffer<64x128xf16, #attn.swizzled<span = 128>, shared>
func.func @tiles(%slot: !slot) {
  // CHECK: %[[T:.*]] = attn.local_load %[[SLOT]] : <64x128xf16, #attn.swizzled<span = 128>, shared> -> tensor<64x128xf16, #attn.auto>
  %t = attn.local_load %slot : !slot -> tensor<64x128xf16, #attn.auto>
  // CHECK: attn.local_store %[[T]], %[[SLOT]] : tensor<64x128xf16, #attn.auto>, <64x128xf16, #attn.swizzled<span = 128>, shared>
  attn.local_store %t, %slot : tensor<64x128xf16, #attn.auto>, !slot
  return
}

// CHECK-LABEL: func.func @column(
func.func @column(%slot: !attn.buffer<64x4xf32, #attn.rows, shared>) {
  // CHECK: attn.local_load %{{.*}} column(2) : <64x4xf32, #attn.rows, shared> -> tensor<64xf32, #attn.auto>
  %t = attn.local_load %slot column(2) : !attn.buffer<64x4xf32, #attn.rows, shared> -> tensor<64xf32, #attn.auto>
  return
}

// CHECK-LABEL: func.func @scalars(
// CHECK-SAME: %[[WORDS:.*]]: !attn.buffer<2xi32, #attn.rows, shared>, %[[I:.*]]: i32, %[[TOKEN:.*]]: !attn.token, %[[BARRIERS:.*]]: !attn.mbarriers<2>
func.func @scalars(%words: !words, %i: i32, %token: !attn.token, %barriers: !attn.mbarriers<2>) {
  // CHECK: %[[X:.*]] = attn.scalar_load %[[WORDS]][%[[I]]] : <2xi32, #attn.rows, shared>
  %x = attn.scalar_load %words[%i] : !words
  // CHECK: attn.elect {
  attn.elect {
    // CHECK: attn.scalar_store %[[X]], %[[WORDS]][%[[I]]] : <2xi32, #attn.rows, shared>
    attn.scalar_store %x, %words[%i] : !words
    // CHECK: attn.scalar_send %[[X]], %[[WORDS]][%[[I]]] token %[[TOKEN]] : <2xi32, #attn.rows, shared>
    attn.scalar_send %x, %words[%i] token %token : !words
    // CHECK: attn.scalar_send %[[X:.*]], %[[WORDS:.*]][%[[I:.*]]] barrier %[[BARRIERS:.*]][%[[I]]] : !attn.mbarriers<2> {ctas = 2 : i64} : <2xi32, #attn.rows, shared>
    attn.scalar_send %x, %words[%i] barrier %barriers[%i] : !attn.mbarriers<2> {ctas = 2 : i64} : !words
  }
  return
}

// CHECK-LABEL: func.func @sends(
// CHECK-SAME: %[[T:.*]]: tensor<64x32xf32, #attn.auto>, %[[B:.*]]: !attn.buffer<64x32xf32, #attn.auto, shared>, %[[TOKEN:.*]]: !attn.token, %[[BARRIERS:.*]]: !attn.mbarriers<2>, %[[I:.*]]: i32
func.func @sends(%t: tensor<64x32xf32, #attn.auto>, %b: !attn.buffer<64x32xf32, #attn.auto, shared>, %token: !attn.token, %barriers: !attn.mbarriers<2>, %i: i32) {
  // CHECK: attn.local_send %[[T]], %[[B]] token %[[TOKEN]] : tensor<64x32xf32, #attn.auto>, <64x32xf32, #attn.auto, shared>
  attn.local_send %t, %b token %token : tensor<64x32xf32, #attn.auto>, !attn.buffer<64x32xf32, #attn.auto, shared>
  // CHECK: attn.local_send %[[T]], %[[B]] barrier %[[BARRIERS]][%[[I]]] : !attn.mbarriers<2> : tensor<64x32xf32, #attn.auto>, <64x32xf32, #attn.auto, shared>
  attn.local_send %t, %b barrier %barriers[%i] : !attn.mbarriers<2> : tensor<64x32xf32, #attn.auto>, !attn.buffer<64x32xf32, #attn.auto, shared>
  return
}

!responses = !attn.buffer<2xi128, #attn.rows, shared>
// CHECK-LABEL: func.func @clusters
func.func @clusters(%responses: !responses, %i: i32, %token: !attn.token, %barriers: !attn.mbarriers<2>) -> i32 {
  attn.elect {
    // CHECK: attn.cluster_request %{{.*}}[%{{.*}}] token %{{.*}} : <2xi128, #attn.rows, shared>
    attn.cluster_request %responses[%i] token %token : !responses
    // CHECK: attn.cluster_request %{{.*}}[%{{.*}}] barrier %{{.*}}[%{{.*}}] : !attn.mbarriers<2> {ctas = 2 : i64} : <2xi128, #attn.rows, shared>
    attn.cluster_request %responses[%i] barrier %barriers[%i] : !attn.mbarriers<2> {ctas = 2 : i64} : !responses
  }
  // CHECK: attn.cluster_response %{{.*}}[%{{.*}}] none %{{.*}} : <2xi128, #attn.rows, shared>
  %next = attn.cluster_response %responses[%i] none %i : !responses
  return %next : i32
}
