// RUN: attn-opt %s -pass-pipeline='builtin.module(gpu.module(attn-expand-pipeline))' | FileCheck %s
// RUN: attn-opt %s -pass-pipeline='builtin.module(gpu.module(attn-expand-pipeline,attn-verify-tokens))' -o /dev/null

!ring = !attn.buffer<2x64x64xf16, #attn.auto, shared>
!slot = !attn.buffer<64x64xf16, #attn.auto, shared>
!tile = tensor<64x64xf32, #attn.auto>
!rows = tensor<64xf32, #attn.auto>
!sums = tensor<64x4xf32, #attn.partial<parent = #attn.auto>>

// PV of a block stays in flight over the whole softmax of the next one: blocks
// without a mask go in pairs, behind one that makes their number odd, and only
// the rare path waits for PV. The slot that PV has read is released with the
// wait for the next QK but one.
// CHECK-LABEL: gpu.func @rotate
// CHECK: {attn.phase = #attn<kv_phase right>}
// CHECK: %[[ODD:.*]] = arith.andi
// CHECK: scf.for
// CHECK: {attn.phase = #attn<kv_phase interior>}
// CHECK: arith.cmpi slt
// CHECK: scf.if
// The state: scores ready, PV in flight, the token of its slot.
// CHECK: %[[S0:.*]] = attn.wgmma %
// CHECK: attn.channel.acquire %{{.*}}[%{{.*}}] as "consumer"
// CHECK: %[[O0:.*]] = attn.wgmma {{.*}} acc
// CHECK: attn.wgmma.wait %[[S0]] {pending = 1
// CHECK: scf.for {{.*}} step %c2{{[^ ]*}} iter_args({{.*}} %[[O:[^ ]*]] = %[[O0]], %[[T:.*]] = %{{.*}}) ->
// CHECK-NOT: attn.wgmma.wait
// CHECK: attn.exp2
// CHECK: arith.truncf
// CHECK: attn.rare any {{.*}}, %[[O]] : {{.*}} {each_warpgroup}
// CHECK-NEXT: attn.wgmma.wait %[[O]] {pending = 0
// CHECK: attn.wgmma.resume
// CHECK: attn.turn.take 1
// CHECK: attn.channel.acquire
// CHECK: %[[S1:.*]] = attn.wgmma %
// CHECK: %[[V1:.*]], %[[T1:.*]] = attn.channel.acquire
// CHECK: %[[O1:.*]] = attn.wgmma {{.*}} acc
// CHECK-NEXT: attn.turn.pass 1
// CHECK-NEXT: attn.wgmma.wait %[[S1]] {pending = 1
// CHECK-NEXT: attn.channel.release
// CHECK-NEXT: attn.channel.release %{{.*}}, %[[T]] as
// CHECK-NOT: attn.wgmma.wait
// CHECK: attn.rare any {{.*}}, %[[O1]] : {{.*}} {each_warpgroup}
// CHECK: %[[S2:.*]] = attn.wgmma %
// CHECK: attn.wgmma.wait %[[S2]] {pending = 1
// CHECK: attn.channel.release %{{.*}}, %[[T1]] as
// CHECK: {attn.phase = #attn<kv_phase interior>}
// The last block waits for PV, since others may follow that take its sum ready.
// CHECK: attn.wgmma.wait {{.*}} {pending = 0
// CHECK: attn.channel.release
// CHECK: } else {
gpu.module @kernels {
  gpu.func @rotate(%full: i32, %end: i32, %row: i32, %keys: i32, %scale: f32) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %q = attn.alloc : !slot
    %k = attn.alloc : !ring
    %v = attn.alloc : !ring
    %kc = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    %vc = attn.channel.create {name = "v", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 240 {
      %k0 = attn.cursor.start %kc as "consumer" : !attn.channel<2>
      %v0 = attn.cursor.start %vc as "consumer" : !attn.channel<2>
      %zero = arith.constant 0 : i32
      %m = arith.constant dense<0xFF800000> : !rows
      %l = arith.constant dense<0.0> : !sums
      %o = arith.constant dense<0.0> : !tile
      %r:5 = attn.kv_loop %zero, %zero, %full, %end block 64 stages 1 qk_ahead pv_behind turns 1 iter_args(%m, %l, %o, %k0, %v0 : !rows, !sums, !tile, !attn.cursor, !attn.cursor) {
      ^bb0(%key: i32, %m0: !rows, %l0: !sums, %o0: !tile, %k1: !attn.cursor, %v1: !attn.cursor):
        %ki, %kt = attn.channel.acquire %kc[%k1] as "consumer" : !attn.channel<2>
        %ks = attn.slot %k[%ki] : !ring -> !slot
        %t = attn.transpose %ks : !slot -> !slot
        %s0 = attn.wgmma %q, %t : !slot, !slot -> !attn.inflight<64x64xf32>
        %s1 = attn.wgmma.wait %s0 {pending = 0} : !attn.inflight<64x64xf32> -> !tile
        attn.channel.release %kc, %kt as "consumer" : !attn.channel<2>
        %s2 = attn.apply_mask %s1[%row, %key] limit %keys : !tile
        %p, %m1, %l1, %o1 = attn.online_softmax %s2, %m0, %l0, %o0 scale %scale policy<optimistic> : !tile, !rows, !sums, !tile
        %p1 = arith.truncf %p : !tile to tensor<64x64xf16, #attn.auto>
        %vi, %vt = attn.channel.acquire %vc[%v1] as "consumer" : !attn.channel<2>
        %vs = attn.slot %v[%vi] : !ring -> !slot
        %o2 = attn.wgmma %p1, %vs acc %o1 : !tile : tensor<64x64xf16, #attn.auto>, !slot -> !attn.inflight<64x64xf32>
        %o3 = attn.wgmma.wait %o2 {pending = 0} : !attn.inflight<64x64xf32> -> !tile
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
