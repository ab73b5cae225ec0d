// RUN: attn-opt %s -pass-pipeline='builtin.module(gpu.module(attn-expand-pipeline))' | FileCheck %s
// RUN: attn-opt %s -pass-pipeline='builtin.module(gpu.module(attn-expand-pipeline,attn-verify-tokens))' -o /dev/null
// RUN: sed 's/first \[16, 64\] second interior/first [48]/' %s | attn-opt -pass-pipeline='builtin.module(gpu.module(attn-expand-pipeline,attn-verify-tokens))' | FileCheck %s --check-prefix=ONE
// RUN: sed 's/first \[16, 64\] second interior/first [0, 64] second right/' %s | attn-opt -pass-pipeline='builtin.module(gpu.module(attn-expand-pipeline,attn-verify-tokens))' | FileCheck %s --check-prefix=NONE
// RUN: sed 's/first \[16, 64\] second interior/pv_behind turns 1 first [16, 64] second interior/; s/scale .scale/& policy<optimistic>/' %s | attn-opt -pass-pipeline='builtin.module(gpu.module(attn-expand-pipeline,attn-verify-tokens))' | FileCheck %s --check-prefix=BEHIND
// RUN: sed 's/first \[16, 64\] second interior/pv_behind first [16, 64] second right/; s/scale .scale/& policy<optimistic>/' %s | attn-opt -pass-pipeline='builtin.module(gpu.module(attn-expand-pipeline,attn-verify-tokens))' | FileCheck %s --check-prefix=APART

!queries = !attn.buffer<128x64xf16, #attn.auto, shared>
!ring = !attn.buffer<2x64x64xf16, #attn.auto, shared>
!slot = !attn.buffer<64x64xf16, #attn.auto, shared>
!tile = tensor<128x64xf32, #attn.auto>
!rows = tensor<128xf32, #attn.auto>
!sums = tensor<128x4xf32, #attn.partial<parent = #attn.auto>>

// The first block has a softmax for each size, under a branch on the warpgroup;
// slots are acquired in front of it and released in it.
// CHECK-LABEL: gpu.func @first
// CHECK: scf.if
// CHECK: %[[KI:.*]], %[[KT:.*]] = attn.channel.acquire %[[K:.*]][%
// CHECK: %[[GROUP:.*]] = attn.warpgroup_index
// CHECK: %[[IS0:.*]] = arith.cmpi slt, %[[GROUP]], %c1
// CHECK: %[[FIRST:.*]]:{{[0-9]+}} = scf.if %[[IS0]]
// CHECK: %[[S0:.*]] = attn.wgmma {{.*}} {columns = 16 : i64} {{.*}} -> <128x16xf32>
// CHECK-NEXT: attn.wgmma.wait %[[S0]] {pending = 0
// CHECK-NEXT: attn.channel.release %[[K]], %[[KT]]
// CHECK: arith.constant dense<2.000000e+00> : tensor<128x16xf32
// CHECK: arith.mulf {{.*}} : tensor<128x16xf32
// CHECK: attn.apply_mask {{.*}} limit {{.*}} tensor<128x16xf32
// CHECK: attn.exp2 {{.*}} tensor<128x16xf32
// CHECK: arith.truncf {{.*}} to tensor<128x16xf16
// CHECK: attn.extend_columns {{.*}} tensor<128x16xf16, #attn.auto> -> tensor<128x64xf16
// CHECK: } else {
// CHECK: attn.wgmma {{.*}} {columns = 64 : i64}
// CHECK: attn.channel.release %[[K]], %[[KT]]
// CHECK: attn.apply_mask
// CHECK-NOT: attn.extend_columns
// The second block, whose masks are known, with PV of the first.
// CHECK: %[[MORE:.*]] = arith.cmpi sgt, %{{.*}}, %c1
// CHECK: scf.if %[[MORE]]
// CHECK: %[[S1:.*]] = attn.wgmma %{{[^{]*}} -> <128x64xf32>
// CHECK: %[[O0:.*]] = scf.if
// CHECK: attn.wgmma {{.*}} acc {{.*}} {depth = 16 : i64}
// CHECK: } else {
// CHECK: attn.wgmma {{.*}} acc
// CHECK-NOT: depth
// CHECK: attn.wgmma.wait %[[S1]] {pending = 1
// CHECK-NOT: attn.apply_mask
// CHECK: attn.exp2
// CHECK: attn.channel.acquire
// CHECK-NEXT: attn.wgmma.wait %[[O0]] {pending = 0
// CHECK: } else {
// CHECK-NEXT: scf.yield
// CHECK: %[[RIGHT:.*]] = arith.maxsi %{{.*}}, %[[TWO:.*]] :
// CHECK: scf.for {{.*}} = %[[TWO]] to %[[RIGHT]]
// CHECK: {attn.phase = #attn<kv_phase right>}
// CHECK: scf.for {{.*}} = %[[RIGHT]] to
// CHECK: {attn.phase = #attn<kv_phase interior>}
// PV of the last block, which may be the first one, goes over all.
// CHECK: attn.wgmma {{.*}} acc
// CHECK-NOT: depth
// CHECK: gpu.return

// One size needs no branch; the second block keeps all masks unless it is said
// that it needs none.
// ONE-NOT: attn.warpgroup_index
// ONE: attn.wgmma {{.*}} {columns = 48 : i64} {{.*}} -> <128x48xf32>
// ONE: attn.extend_columns {{.*}} tensor<128x48xf16
// ONE: scf.if
// ONE: attn.wgmma {{.*}} acc {{.*}} {depth = 48 : i64} : tensor<128x64xf16
// ONE: attn.apply_mask {{.*}} limit {{.*}} tensor<128x64xf32
// ONE: {attn.phase = #attn<kv_phase right>}
// ONE: {attn.phase = #attn<kv_phase interior>}

// A warpgroup without keys hands the slot back and keeps its state; its PV is one
// of zeros.
// NONE: attn.warpgroup_index
// NONE: scf.if
// NONE-NOT: attn.wgmma
// NONE: attn.channel.release
// NONE: } else {
// NONE: attn.wgmma {{.*}} {columns = 64 : i64}
// NONE: attn.warpgroup_index
// NONE: scf.if
// NONE-NEXT: attn.wgmma {{.*}} acc {{.*}} {depth = 16 : i64}
// NONE: attn.apply_mask
// NONE: {attn.phase = #attn<kv_phase right>}

// With PV behind the pairs start with PV of the first block, and the block that
// is left over comes last.
// BEHIND: {attn.phase = #attn<kv_phase right>}
// BEHIND: scf.if
// BEHIND: attn.turn.take 1
// BEHIND: attn.wgmma {{.*}} acc {{.*}} {depth = 16 : i64}
// BEHIND: attn.turn.pass 1
// BEHIND: attn.wgmma.wait {{.*}} {pending = 1
// BEHIND: scf.for {{.*}} step %c2
// BEHIND: {attn.phase = #attn<kv_phase interior>}
// BEHIND: scf.for {{.*}} step %c1
// BEHIND: {attn.phase = #attn<kv_phase interior>}
// BEHIND-NOT: scf.for
// APART: attn.wgmma {{.*}} acc {{.*}} {depth = 16 : i64}
// APART: attn.apply_mask
// APART: {attn.phase = #attn<kv_phase right>}
// APART: arith.andi
// APART: scf.for {{.*}} step %c1
// APART: scf.for {{.*}} step %c2
gpu.module @kernels {
  gpu.func @first(%full: i32, %end: i32, %row: i32, %keys: i32, %scale: f32) kernel attributes {known_block_size = array<i32: 384, 1, 1>} {
    %q = attn.alloc : !queries
    %k = attn.alloc : !ring
    %v = attn.alloc : !ring
    %kc = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    %vc = attn.channel.create {name = "v", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 8 tiles [8, 1] registers 240 {
      %k0 = attn.cursor.start %kc as "consumer" : !attn.channel<2>
      %v0 = attn.cursor.start %vc as "consumer" : !attn.channel<2>
      %zero = arith.constant 0 : i32
      %m = arith.constant dense<0xFF800000> : !rows
      %l = arith.constant dense<0.0> : !sums
      %o = arith.constant dense<0.0> : !tile
      %two = arith.constant dense<2.0> : !tile
      %r:5 = attn.kv_loop %zero, %zero, %full, %end block 64 stages 1 qk_ahead first [16, 64] second interior iter_args(%m, %l, %o, %k0, %v0 : !rows, !sums, !tile, !attn.cursor, !attn.cursor) {
      ^bb0(%key: i32, %m0: !rows, %l0: !sums, %o0: !tile, %k1: !attn.cursor, %v1: !attn.cursor):
        %ki, %kt = attn.channel.acquire %kc[%k1] as "consumer" : !attn.channel<2>
        %ks = attn.slot %k[%ki] : !ring -> !slot
        %t = attn.transpose %ks : !slot -> !slot
        %s0 = attn.wgmma %q, %t : !queries, !slot -> !attn.inflight<128x64xf32>
        %s1 = attn.wgmma.wait %s0 {pending = 0} : !attn.inflight<128x64xf32> -> !tile
        attn.channel.release %kc, %kt as "consumer" : !attn.channel<2>
        %s3 = arith.mulf %s1, %two : !tile
        %s2 = attn.apply_mask %s3[%row, %key] limit %keys : !tile
        %p, %m1, %l1, %o1 = attn.online_softmax %s2, %m0, %l0, %o0 scale %scale : !tile, !rows, !sums, !tile
        %p1 = arith.truncf %p : !tile to tensor<128x64xf16, #attn.auto>
        %vi, %vt = attn.channel.acquire %vc[%v1] as "consumer" : !attn.channel<2>
        %vs = attn.slot %v[%vi] : !ring -> !slot
        %o2 = attn.wgmma %p1, %vs acc %o1 : !tile : tensor<128x64xf16, #attn.auto>, !slot -> !attn.inflight<128x64xf32>
        %o3 = attn.wgmma.wait %o2 {pending = 0} : !attn.inflight<128x64xf32> -> !tile
        attn.channel.release %vc, %vt as "consumer" : !attn.channel<2>
        %k2 = attn.cursor.advance %k1 on %kc : !attn.channel<2>
        %v2 = attn.cursor.advance %v1 on %vc : !attn.channel<2>
        attn.yield %m1, %l1, %o3, %k2, %v2 : !rows, !sums, !tile, !attn.cursor, !attn.cursor
      }
    }
    partition "producer" warps 4 registers 24 {
    }
    gpu.return
  }
}
