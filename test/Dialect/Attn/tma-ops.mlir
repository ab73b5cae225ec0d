// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -mlir-print-op-generic | attn-opt | FileCheck %s
// RUN: attn-opt %s -emit-bytecode | attn-opt | FileCheck %s

// Tensor maps and bulk copies. The forms are those that the printer writes:
// attributes that have their default are not there.

!map = !attn.tensor_map<1x1x128x64xf16, swizzle = 128>
!b = !attn.buffer<128x128xf16, #attn.swizzled<span = 128>, shared>
!two = !attn.buffer<256x128xf16, #attn.swizzled<span = 128>, shared>

// CHECK-LABEL: func.func @encode(
// CHECK-SAME: %[[K:.*]]: memref<1x8x?x128xf16>
func.func @encode(%k: memref<1x8x?x128xf16>) {
  // CHECK: %[[MAP:.*]] = attn.encode_tensor_map %[[K]] : memref<1x8x?x128xf16> -> <1x1x128x64xf16, swizzle = 128>
  %map = attn.encode_tensor_map %k : memref<1x8x?x128xf16> -> !map
  // CHECK: %[[PACKED:.*]] = attn.encode_tensor_map packed %[[K]] : memref<1x8x?x128xf16> -> <1x1x128x64xf16, swizzle = 128>
  %packed = attn.encode_tensor_map packed %k : memref<1x8x?x128xf16> -> !map
  // CHECK: attn.encode_tensor_map bounded %[[K]] : memref<1x8x?x128xf16> -> <1x1x1x128x64xf16, swizzle = 128>
  %bounded = attn.encode_tensor_map bounded %k : memref<1x8x?x128xf16> -> !attn.tensor_map<1x1x1x128x64xf16, swizzle = 128>
  // CHECK: attn.encode_tensor_map by_row %[[K]] : memref<1x8x?x128xf16> -> <1x32x4x64xf16, swizzle = 128>
  %by_row = attn.encode_tensor_map by_row %k : memref<1x8x?x128xf16> -> !attn.tensor_map<1x32x4x64xf16, swizzle = 128>
  // CHECK: attn.encode_tensor_map packed by_row %[[K]] : memref<1x8x?x128xf16> -> <1x32x4x64xf16, swizzle = 128>
  %packed_by_row = attn.encode_tensor_map packed by_row %k : memref<1x8x?x128xf16> -> !attn.tensor_map<1x32x4x64xf16, swizzle = 128>
  return
}

// CHECK-LABEL: func.func @load(
// CHECK-SAME: %[[MAP:.*]]: !attn.tensor_map<1x1x128x64xf16, swizzle = 128>, %[[B:.*]]: !attn.buffer<128x128xf16, #attn.swizzled<span = 128>, shared>, %[[TWO:.*]]: !attn.buffer<256x128xf16, #attn.swizzled<span = 128>, shared>, %[[X:.*]]: i32, %[[TOKEN:.*]]: !attn.token, %[[BARRIERS:.*]]: !attn.mbarriers<2>
func.func @load(%map: !map, %b: !b, %two: !two, %x: i32, %token: !attn.token, %barriers: !attn.mbarriers<2>) {
  // CHECK: attn.tma.prefetch %[[MAP]] : <1x1x128x64xf16, swizzle = 128>
  attn.tma.prefetch %map : !map
  // CHECK: attn.tma.load %[[MAP]][%[[X]], %[[X]], %[[X]], %[[X]]], %[[B]] token %[[TOKEN]] : <1x1x128x64xf16, swizzle = 128>, <128x128xf16, #attn.swizzled<span = 128>, shared>
  attn.tma.load %map[%x, %x, %x, %x], %b token %token : !map, !b
  // CHECK: attn.tma.load %[[MAP]][%[[X]], %[[X]], %[[X]], %[[X]]], %[[B]] barrier %[[BARRIERS]][%[[X]]] : !attn.mbarriers<2> : <1x1x128x64xf16, swizzle = 128>, <128x128xf16, #attn.swizzled<span = 128>, shared>
  attn.tma.load %map[%x, %x, %x, %x], %b barrier %barriers[%x] : !attn.mbarriers<2> : !map, !b
  // CHECK: attn.tma.load %[[MAP:.*]][%[[X:.*]], %[[X]], %[[X]], %[[X]]], %[[TWO:.*]] token %[[TOKEN:.*]] {multicast = 2 : i64} : <1x1x128x64xf16, swizzle = 128>, <256x128xf16, #attn.swizzled<span = 128>, shared>
  attn.tma.load %map[%x, %x, %x, %x], %two token %token {multicast = 2 : i64} : !map, !two
  // CHECK: attn.tma.load %[[MAP:.*]][%[[X:.*]], %[[X]], %[[X]], %[[X]]], %[[TWO:.*]] token %[[TOKEN:.*]] {stacked = 2 : i64} : <1x1x128x64xf16, swizzle = 128>, <256x128xf16, #attn.swizzled<span = 128>, shared>
  attn.tma.load %map[%x, %x, %x, %x], %two token %token {stacked = 2 : i64} : !map, !two
  // CHECK: attn.tma.load %[[MAP]][%[[X]], %[[X]], %[[X]], %[[X]], %[[X]], %[[X]], %[[X]], %[[X]]], %[[TWO]] token %[[TOKEN]] {stacked = 2 : i64}
  attn.tma.load %map[%x, %x, %x, %x, %x, %x, %x, %x], %two token %token {stacked = 2 : i64} : !map, !two
  return
}

// CHECK-LABEL: func.func @spare(
// CHECK-SAME: %[[MAP:.*]]: !attn.tensor_map<1x1x128x64xf16, swizzle = 128>, %[[SPARE:.*]]: !attn.tensor_map<1x32x4x64xf16, swizzle = 128>, %{{.*}}: !attn.buffer<128x128xf16, #attn.swizzled<span = 128>, shared>, %{{.*}}: !attn.buffer<256x128xf16, #attn.swizzled<span = 128>, shared>, %{{.*}}: i32, %[[C:.*]]: i1, %[[D:.*]]: i1
func.func @spare(%map: !map, %spare: !attn.tensor_map<1x32x4x64xf16, swizzle = 128>, %b: !b, %two: !two, %x: i32, %c: i1, %d: i1, %token: !attn.token, %barriers: !attn.mbarriers<2>) {
  // CHECK: attn.tma.load %[[MAP]][{{.*}}], %{{.*}} token %{{.*}} spare %[[SPARE]][%[[C]]] : !attn.tensor_map<1x32x4x64xf16, swizzle = 128> : <1x1x128x64xf16, swizzle = 128>
  attn.tma.load %map[%x, %x, %x, %x], %b token %token spare %spare[%c] : !attn.tensor_map<1x32x4x64xf16, swizzle = 128> : !map, !b
  // CHECK: attn.tma.load %[[MAP]][{{.*}}], %{{.*}} barrier %{{.*}}[%{{.*}}] : !attn.mbarriers<2> spare %[[SPARE]][%[[C]], %[[D]]] : !attn.tensor_map<1x32x4x64xf16, swizzle = 128> {stacked = 2 : i64} : <1x1x128x64xf16, swizzle = 128>
  attn.tma.load %map[%x, %x, %x, %x], %two barrier %barriers[%x] : !attn.mbarriers<2> spare %spare[%c, %d] : !attn.tensor_map<1x32x4x64xf16, swizzle = 128> {stacked = 2 : i64} : !map, !two
  // CHECK: attn.tma.load %[[MAP]][{{.*}}], %{{.*}} token %{{.*}} spare %[[SPARE]][%[[C]]] : !attn.tensor_map<1x32x4x64xf16, swizzle = 128> {multicast = 2 : i64} : <1x1x128x64xf16, swizzle = 128>
  attn.tma.load %map[%x, %x, %x, %x], %two token %token spare %spare[%c] : !attn.tensor_map<1x32x4x64xf16, swizzle = 128> {multicast = 2 : i64} : !map, !two
  return
}

// CHECK-LABEL: func.func @gather(
// CHECK-SAME: %[[MAP:.*]]: !attn.tensor_map<1x64xf16, swizzle = 128>, %[[ROWS:.*]]: !attn.buffer<128xi32, #attn.rows, shared>, %[[B:.*]]: !attn.buffer<128x128xf16, #attn.swizzled<span = 128>, shared>, %[[X:.*]]: i32, %[[TOKEN:.*]]: !attn.token, %[[BARRIERS:.*]]: !attn.mbarriers<2>
func.func @gather(%map: !attn.tensor_map<1x64xf16, swizzle = 128>, %rows: !attn.buffer<128xi32, #attn.rows, shared>, %b: !b, %x: i32, %token: !attn.token, %barriers: !attn.mbarriers<2>) {
  // CHECK: attn.tma.gather %[[MAP]][%[[ROWS]][%[[X]]], %[[X]]], %[[B]] token %[[TOKEN]] : <1x64xf16, swizzle = 128>, <128xi32, #attn.rows, shared>, <128x128xf16, #attn.swizzled<span = 128>, shared>
  attn.tma.gather %map[%rows[%x], %x], %b token %token : !attn.tensor_map<1x64xf16, swizzle = 128>, !attn.buffer<128xi32, #attn.rows, shared>, !b
  // CHECK: attn.tma.gather %[[MAP]][%[[ROWS]][%[[X]]], %[[X]]], %[[B]] barrier %[[BARRIERS]][%[[X]]] : !attn.mbarriers<2> : <1x64xf16, swizzle = 128>
  attn.tma.gather %map[%rows[%x], %x], %b barrier %barriers[%x] : !attn.mbarriers<2> : !attn.tensor_map<1x64xf16, swizzle = 128>, !attn.buffer<128xi32, #attn.rows, shared>, !b
  return
}

// CHECK-LABEL: func.func @store(
// CHECK-SAME: %[[MAP:.*]]: !attn.tensor_map<1x1x128x64xf16, swizzle = 128>, %[[B:.*]]: !attn.buffer<128x128xf16, #attn.swizzled<span = 128>, shared>, %[[TWO:.*]]: !attn.buffer<256x128xf16, #attn.swizzled<span = 128>, shared>, %[[X:.*]]: i32
func.func @store(%map: !map, %b: !b, %two: !two, %x: i32) {
  // CHECK: attn.tma.store %[[B]], %[[MAP]][%[[X]], %[[X]], %[[X]], %[[X]]] : <128x128xf16, #attn.swizzled<span = 128>, shared>, <1x1x128x64xf16, swizzle = 128>
  attn.tma.store %b, %map[%x, %x, %x, %x] : !b, !map
  // CHECK: attn.elect each_warpgroup {
  attn.elect each_warpgroup {
    // CHECK: attn.tma.store %[[TWO:.*]], %[[MAP:.*]][%[[X:.*]], %[[X]], %[[X]], %[[X]]] {warpgroups = 2 : i64} : <256x128xf16, #attn.swizzled<span = 128>, shared>, <1x1x128x64xf16, swizzle = 128>
    attn.tma.store %two, %map[%x, %x, %x, %x] {warpgroups = 2 : i64} : !two, !map
  }
  // CHECK: attn.tma.commit
  attn.tma.commit
  // CHECK: attn.tma.wait {pending = 0 : i64}
  attn.tma.wait {pending = 0 : i64}
  // CHECK: attn.tma.wait {pending = 1 : i64, read}
  attn.tma.wait {pending = 1 : i64, read}
  return
}
