// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-lower-tiles))' | FileCheck %s

#acc = #attn.mma<warps = [8, 1]>
#acc4 = #attn.mma<warps = [4, 1]>
#a = #attn.operand<index = 0, parent = #acc>
#span64 = #attn.swizzled<span = 64>
#span128 = #attn.swizzled<span = 128>
!map = !attn.tensor_map<1x64x64xf16, swizzle = 128>

gpu.module @kernels {
  // Q (128 x 32) by K (64 x 32) from a ring: two steps of 16, 32 bytes apart.
  // Warpgroup g starts 64 rows of 64 bytes, 256 units of 16 bytes, further.
  // The swizzle of 64 bytes is 2 in the upper bits, 8 rows are 512 bytes.
  // CHECK-LABEL: gpu.func @qk
  // CHECK-DAG: %[[THREAD:.*]] = nvvm.read.ptx.sreg.tid.x
  // CHECK-DAG: %[[WARP:.*]] = arith.shrui %[[THREAD]], %c5_i32
  // CHECK: %[[UNIFORM:.*]] = nvvm.shfl.sync idx %c-1_i32{{.*}}, %[[WARP]], %c0_i32{{.*}}, %c31_i32
  // CHECK: arith.shrui %[[UNIFORM]], %c2_i32
  // CHECK: arith.muli %{{.*}}, %c256_i32
  // CHECK: arith.muli %{{.*}}, %c256_i32
  // CHECK: %[[S:.*]] = llvm.inline_asm has_side_effects "{\0A.reg .b32 t;\0A.reg .b64 da, db;\0Awgmma.fence.sync.aligned;\0A
  // CHECK-SAME: mov.b64 da, {$32, 2147483680};\0Amov.b64 db, {$33, 2147483680};\0A
  // CHECK-SAME: wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {$0, $1, {{.*}}, $31}, da, db, 0, 1, 1, 0, 0;\0A
  // CHECK-SAME: add.s32 t, $32, 2;\0Amov.b64 da, {t, 2147483680};\0Aadd.s32 t, $33, 2;\0Amov.b64 db, {t, 2147483680};\0A
  // CHECK-SAME: wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {$0, $1, {{.*}}, $31}, da, db, 1, 1, 1, 0, 0;\0A
  // CHECK-SAME: wgmma.commit_group.sync.aligned;\0A}", "=&f,{{.*}},r,r,~{memory}"
  // CHECK: llvm.inline_asm has_side_effects "wgmma.wait_group.sync.aligned 0;", "=&f,{{.*}},0,1,2,{{.*}},31,~{memory}" %
  gpu.func @qk(%slot: i32) kernel attributes {attn.warps = array<i64: 8, 1>} {
    %q = attn.alloc {offset = 0 : i64} : !attn.buffer<128x32xf16, #span64, shared>
    %ring = attn.alloc {offset = 8192 : i64} : !attn.buffer<2x64x32xf16, #span64, shared>
    %k = attn.slot %ring[%slot] : !attn.buffer<2x64x32xf16, #span64, shared> -> !attn.buffer<64x32xf16, #span64, shared>
    %kt = attn.transpose %k : !attn.buffer<64x32xf16, #span64, shared> -> !attn.buffer<32x64xf16, #attn.transposed<#span64>, shared>
    %s = attn.wgmma %q, %kt : !attn.buffer<128x32xf16, #span64, shared>, !attn.buffer<32x64xf16, #attn.transposed<#span64>, shared> -> !attn.inflight<128x64xf32>
    %r = attn.wgmma.wait %s {pending = 0} : !attn.inflight<128x64xf32> -> tensor<128x64xf32, #acc>
    gpu.return
  }

  // P (128 x 32) in registers by V (32 x 128): V is contiguous along N, the
  // transpose bit is set, spans of 64 columns are 4096 bytes apart. Registers
  // in flight are carried by the loop, and the wait leaves one group pending.
  // CHECK-LABEL: gpu.func @pv
  // CHECK: %[[O:.*]]:64 = scf.for
  // CHECK: %[[NEXT:.*]] = llvm.inline_asm has_side_effects
  // CHECK-SAME: {$136, 1073741888};\0A
  // CHECK-SAME: wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {$0, {{.*}}, $63}, {$128, $129, $130, $131}, db, 1, 1, 1, 1;\0A
  // CHECK-SAME: add.s32 t, $136, 128;\0A
  // CHECK-SAME: {$132, $133, $134, $135}, db, 1, 1, 1, 1;\0A
  // CHECK-SAME: ,0,1,{{.*}},63,r,r,r,r,r,r,r,r,r,~{memory}"
  // CHECK: llvm.inline_asm has_side_effects "wgmma.wait_group.sync.aligned 1;", "~{memory}" : () -> ()
  // CHECK: scf.yield
  // CHECK: llvm.inline_asm has_side_effects "wgmma.wait_group.sync.aligned 0;", "=&f,{{.*}}" %[[O]]#0, %[[O]]#1,
  gpu.func @pv(%n: i32, %x: bf16) kernel attributes {attn.warps = array<i64: 8, 1>} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %v = attn.alloc {offset = 0 : i64} : !attn.buffer<32x128xbf16, #span128, shared>
    %p = tensor.splat %x : tensor<128x32xbf16, #a>
    %none = arith.constant dense<0.0> : tensor<128x128xf32, #acc>
    %first = attn.wgmma %p, %v acc %none : tensor<128x128xf32, #acc> : tensor<128x32xbf16, #a>, !attn.buffer<32x128xbf16, #span128, shared> -> !attn.inflight<128x128xf32>
    %o = scf.for %j = %zero to %n step %one iter_args(%acc = %first) -> (!attn.inflight<128x128xf32>) : i32 {
      %next = attn.wgmma %p, %v acc %acc : !attn.inflight<128x128xf32> : tensor<128x32xbf16, #a>, !attn.buffer<32x128xbf16, #span128, shared> -> !attn.inflight<128x128xf32>
      attn.wgmma.wait {pending = 1}
      scf.yield %next : !attn.inflight<128x128xf32>
    }
    %r = attn.wgmma.wait %o {pending = 0} : !attn.inflight<128x128xf32> -> tensor<128x128xf32, #acc>
    gpu.return
  }

  // 320 columns by two instructions a step, of 192 and 128 columns: the second
  // one starts three spans of 64 columns (2048 bytes each) behind the first.
  // CHECK-LABEL: gpu.func @wide
  // CHECK: llvm.inline_asm has_side_effects
  // CHECK-SAME: mov.b64 db, {$164, 1073741888};\0A
  // CHECK-SAME: wgmma.mma_async.sync.aligned.m64n192k16.f32.bf16.bf16 {$0, {{.*}}, $95}, {$160, $161, $162, $163}, db, 0, 1, 1, 1;\0A
  // CHECK-SAME: add.s32 t, $164, 384;\0Amov.b64 db, {t, 1073741888};\0A
  // CHECK-SAME: wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {$96, {{.*}}, $159}, {$160, $161, $162, $163}, db, 0, 1, 1, 1;\0A
  // CHECK-SAME: wgmma.commit_group
  gpu.func @wide(%x: bf16) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %v = attn.alloc {offset = 0 : i64} : !attn.buffer<16x320xbf16, #span128, shared>
    %p = tensor.splat %x : tensor<64x16xbf16, #attn.operand<index = 0, parent = #attn.mma<warps = [4, 1]>>>
    %o = attn.wgmma %p, %v : tensor<64x16xbf16, #attn.operand<index = 0, parent = #attn.mma<warps = [4, 1]>>>, !attn.buffer<16x320xbf16, #span128, shared> -> !attn.inflight<64x320xf32>
    %r = attn.wgmma.wait %o {pending = 0} : !attn.inflight<64x320xf32> -> tensor<64x320xf32, #attn.mma<warps = [4, 1]>>
    gpu.return
  }

  // One instruction for each span of 64 columns; coordinates innermost first.
  // CHECK-LABEL: gpu.func @copies
  // CHECK-SAME: %[[PARAMETER:.*]]: !attn.tensor_map<1x64x64xf16, swizzle = 128>, %[[H:.*]]: i32, %[[ROW:.*]]: i32)
  // CHECK: %[[MAP:.*]] = builtin.unrealized_conversion_cast %[[PARAMETER]]
  // CHECK: nvvm.prefetch tensormap, %[[MAP]]
  // CHECK: nvvm.mbarrier.arrive.expect_tx %[[BAR:.*]], %c16384_i32{{.*}} : !llvm.ptr<3>, i32
  // CHECK: %[[ADDRESS:.*]] = llvm.ptrtoint %[[BUFFER:.*]] : !llvm.ptr<3> to i32
  // CHECK: %[[CLUSTER:.*]] = llvm.inttoptr %[[ADDRESS]] : i32 to !llvm.ptr<7>
  // CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %[[CLUSTER]], %[[MAP]], %{{.*}}, box[%c0_i32{{.*}}, %[[ROW]], %[[H]]] : !llvm.ptr<7>, !llvm.ptr
  // CHECK: llvm.getelementptr %[[BUFFER]][8192]
  // CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[MAP]], %{{.*}}, box[%{{.*}}, %[[ROW]], %[[H]]]
  // CHECK-NOT: nvvm.cp.async.bulk.tensor.shared.cluster.global
  // CHECK: nvvm.cp.async.bulk.tensor.global.shared.cta %[[MAP]], %[[BUFFER]], box[%c0_i32{{.*}}, %[[ROW]], %[[H]]]
  // CHECK: nvvm.cp.async.bulk.tensor.global.shared.cta
  // CHECK: nvvm.cp.async.bulk.commit.group
  // CHECK: nvvm.cp.async.bulk.wait_group 1 {read}
  // CHECK: nvvm.cp.async.bulk.wait_group 0{{$}}
  gpu.func @copies(%map: !map, %head: i32, %row: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %full = attn.mbarrier.alloc {offset = 16384 : i64} : !attn.mbarriers<2>
    %b = attn.alloc {offset = 0 : i64} : !attn.buffer<64x128xf16, #span128, shared>
    attn.tma.prefetch %map : !map
    attn.mbarrier.expect_tx %full[%one] {bytes = 16384} : !attn.mbarriers<2>
    attn.tma.load %map[%head, %row, %zero], %b barrier %full[%one] : !attn.mbarriers<2> : !map, !attn.buffer<64x128xf16, #span128, shared>
    attn.tma.store %b, %map[%head, %row, %zero] : !attn.buffer<64x128xf16, #span128, shared>, !map
    attn.tma.commit
    attn.tma.wait {pending = 1, read}
    attn.tma.wait {pending = 0}
    gpu.return
  }

  // CHECK-LABEL: gpu.func @barriers
  // CHECK: %[[FIRST:.*]] = llvm.getelementptr %{{.*}}[64] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
  // CHECK: nvvm.mbarrier.init %[[FIRST]], %c8_i32
  // CHECK: %[[SECOND:.*]] = llvm.getelementptr %[[FIRST]][8]
  // CHECK: nvvm.mbarrier.init %[[SECOND]], %c8_i32
  // CHECK: nvvm.fence.mbarrier.init
  // CHECK: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
  // CHECK: %[[AT:.*]] = llvm.getelementptr %[[FIRST]][%[[I:.*]]] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
  // CHECK: scf.while
  // CHECK:   %[[DONE:.*]] = nvvm.mbarrier.try_wait %[[AT]], %[[PARITY:.*]] : !llvm.ptr<3>, i32 -> i1
  // CHECK:   %[[AGAIN:.*]] = arith.xori %[[DONE]], %true
  // CHECK:   scf.condition(%[[AGAIN]])
  // CHECK: nvvm.bar.warp.sync %c-1_i32
  // CHECK: %[[LANE0:.*]] = arith.cmpi ult, %{{.*}}, %c1_i32
  // CHECK: scf.if %[[LANE0]] {
  // CHECK:   nvvm.mbarrier.arrive %{{.*}} : !llvm.ptr<3>
  // CHECK: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
  // CHECK: llvm.call_intrinsic "llvm.nvvm.barrier.cta.sync.count"(%[[ID:.*]], %c128_i32{{.*}}) : (i32, i32) -> ()
  gpu.func @barriers(%i: i32, %parity: i32, %id: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %b = attn.mbarrier.alloc {offset = 64 : i64} : !attn.mbarriers<2>
    attn.mbarrier.init %b {count = 8} : !attn.mbarriers<2>
    attn.mbarrier.fence_init
    attn.mbarrier.wait %b[%i] parity %parity : !attn.mbarriers<2>
    attn.mbarrier.arrive %b[%i] : !attn.mbarriers<2>
    attn.fence.proxy_async
    attn.named_barrier %id {threads = 128}
    gpu.return
  }

  // CHECK-LABEL: gpu.func @invalidate
  // CHECK: %[[FIRST:.*]] = llvm.getelementptr %{{.*}}[64] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
  // CHECK: nvvm.mbarrier.inval %[[FIRST]] : !llvm.ptr<3>
  // CHECK: %[[SECOND:.*]] = llvm.getelementptr %[[FIRST]][8]
  // CHECK: nvvm.mbarrier.inval %[[SECOND]] : !llvm.ptr<3>
  gpu.func @invalidate() kernel attributes {attn.warps = array<i64: 4, 1>} {
    %b = attn.mbarrier.alloc {offset = 64 : i64} : !attn.mbarriers<2>
    attn.mbarrier.inval %b : !attn.mbarriers<2>
    gpu.return
  }

  // 512 threads start with 128 registers each: two partitions change that.
  // The elected thread is one of the partition's first warp, and stands for
  // its warp when it arrives.
  // CHECK-LABEL: gpu.func @partitions
  // CHECK: %[[OWN:.*]] = nvvm.shfl.sync idx
  // CHECK: cf.switch %[[OWN]] : i32, [
  // CHECK-NEXT: default: ^[[PRODUCER:bb[0-9]+]],
  // CHECK-NEXT: 0: ^[[CONSUMER:bb[0-9]+]],
  // CHECK: 7: ^[[CONSUMER]],
  // CHECK-NEXT: 8: ^[[HELPER:bb[0-9]+]],
  // CHECK: 11: ^[[HELPER]]
  // CHECK-NEXT: ]
  // CHECK: ^[[CONSUMER]]:
  // CHECK-NEXT: nvvm.setmaxregister increase 168
  // CHECK: nvvm.bar.warp.sync
  // CHECK: cf.br ^[[END:bb[0-9]+]]
  // CHECK: ^[[HELPER]]:
  // CHECK-NOT: nvvm.setmaxregister
  // CHECK: nvvm.mbarrier.arrive
  // CHECK: cf.br ^[[END]]
  // CHECK: ^[[PRODUCER]]:
  // CHECK-NEXT: nvvm.setmaxregister decrease 48
  // CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[OWN]], %c12_i32
  // CHECK: scf.if %[[FIRST]] {
  // CHECK:   %[[ELECTED:.*]] = nvvm.elect.sync -> i1
  // CHECK:   scf.if %[[ELECTED]] {
  // CHECK-NOT: nvvm.bar.warp.sync
  // CHECK:     nvvm.mbarrier.arrive
  // CHECK: cf.br ^[[END]]
  // CHECK: ^[[END]]:
  // CHECK-NEXT: gpu.return
  gpu.func @partitions(%i: i32) kernel attributes {known_block_size = array<i32: 512, 1, 1>, nvvm.minctasm = 1 : i32} {
    %b = attn.mbarrier.alloc {offset = 64 : i64} : !attn.mbarriers<2>
    attn.warp_specialize
    partition "consumer" warps 8 tiles [8, 1] registers 168 {
      attn.mbarrier.arrive %b[%i] : !attn.mbarriers<2>
    }
    partition "helper" warps 4 registers 128 {
      attn.mbarrier.arrive %b[%i] : !attn.mbarriers<2>
    }
    partition "producer" warps 4 registers 48 {
      attn.elect {
        attn.mbarrier.arrive %b[%i] : !attn.mbarriers<2>
      }
    }
    gpu.return
  }

  // Two partitions with tiles, each in a grid of its own that starts where the
  // partition does; a warpgroup that three partitions share sets its registers
  // once, in front of a switch of its own. The rows of a warp are those of its
  // number in the partition: the low bits of its number in the CTA where the
  // partition starts at a multiple of its warps.
  // CHECK-LABEL: gpu.func @grids
  // CHECK: %[[THREAD:.*]] = nvvm.read.ptx.sreg.tid.x
  // CHECK: %[[WARP:.*]] = arith.shrui %[[THREAD]], %c5_i32
  // CHECK: %[[OWN:.*]] = nvvm.shfl.sync idx %{{.*}}, %[[WARP]]
  // CHECK: arith.andi %[[WARP]], %c3_i32
  // CHECK: %[[IN2:.*]] = arith.subi %[[WARP]], %c9_i32
  // CHECK: arith.andi %[[IN2]], %c1_i32
  // CHECK: cf.switch %[[OWN]] : i32, [
  // CHECK-NEXT: default: ^[[SHARED:bb[0-9]+]],
  // CHECK: ^[[SHARED]]:
  // CHECK-NEXT: nvvm.setmaxregister decrease 40
  // CHECK-NEXT: cf.switch %[[OWN]] : i32, [
  // CHECK-NEXT: default: ^[[LOAD:bb[0-9]+]],
  // CHECK-NEXT: 8: ^[[MMA:bb[0-9]+]],
  // CHECK-NEXT: 9: ^[[SUM:bb[0-9]+]],
  // CHECK-NEXT: 10: ^[[SUM]]
  // CHECK-NEXT: ]
  // CHECK: ^[[MMA]]:
  // CHECK-NEXT: gpu.barrier
  // CHECK-NOT: nvvm.setmaxregister
  // CHECK: ^[[LOAD]]:
  gpu.func @grids(%x: f32, %p: !llvm.ptr<1>, %off: i64, %n: i32, %stride: i64) kernel attributes {known_block_size = array<i32: 384, 1, 1>, nvvm.minctasm = 1 : i32} {
    %g = attn.global_view %p[%off] rows %n stride %stride : !attn.global<?x8xf32>
    %zero = arith.constant 0 : i32
    attn.warp_specialize
    partition "left" warps 4 tiles [4, 1] registers 168 {
      %t = tensor.splat %x : tensor<64x8xf32, #attn.mma<warps = [4, 1]>>
      attn.global_store %t, %g[%zero] : tensor<64x8xf32, #attn.mma<warps = [4, 1]>>, !attn.global<?x8xf32>
    }
    partition "right" warps 4 tiles [4, 1] registers 168 {
      %t = tensor.splat %x : tensor<64x8xf32, #attn.mma<warps = [4, 1]>>
      attn.global_store %t, %g[%zero] : tensor<64x8xf32, #attn.mma<warps = [4, 1]>>, !attn.global<?x8xf32>
    }
    partition "mma" warps 1 registers 40 {
      gpu.barrier
    }
    partition "sum" warps 2 tiles [2, 1] registers 40 {
      %t = tensor.splat %x : tensor<32x8xf32, #attn.mma<warps = [2, 1]>>
      attn.global_store %t, %g[%zero] : tensor<32x8xf32, #attn.mma<warps = [2, 1]>>, !attn.global<?x8xf32>
    }
    partition "load" warps 1 registers 40 {
    }
    gpu.return
  }

  // A partition that is the whole CTA keeps what the kernel starts with, which is
  // more than a thread can have.
  // CHECK-LABEL: gpu.func @alone
  // CHECK-NOT: nvvm.setmaxregister
  // CHECK: nvvm.mbarrier.arrive
  gpu.func @alone(%i: i32) kernel attributes {known_block_size = array<i32: 128, 1, 1>, nvvm.minctasm = 1 : i32} {
    %b = attn.mbarrier.alloc {offset = 64 : i64} : !attn.mbarriers<2>
    attn.warp_specialize
    partition "all" warps 4 tiles [4, 1] registers 256 {
      attn.mbarrier.arrive %b[%i] : !attn.mbarriers<2>
    }
    gpu.return
  }

  // What a kernel does not state follows from its partitions: threads, and registers
  // of one CTA on an SM.
  // CHECK-LABEL: gpu.func @defaults
  // CHECK-SAME: known_block_size = array<i32: 256, 1, 1>
  // CHECK-SAME: nvvm.minctasm = 1 : i32
  // CHECK: nvvm.setmaxregister decrease 24
  gpu.func @defaults() kernel {
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 256 {
    }
    partition "producer" warps 4 registers 24 {
    }
    gpu.return
  }

  // Where tiles are, all lanes of the first warp wait, and the instructions that
  // start a load have a predicate.
  // CHECK-LABEL: gpu.func @elected
  // CHECK: %[[FIRST:.*]] = arith.cmpi eq
  // CHECK-NEXT: scf.if %[[FIRST]] {
  // CHECK: scf.while
  // CHECK: nvvm.mbarrier.try_wait
  // CHECK: %[[ELECTED:.*]] = nvvm.elect.sync -> i1
  // CHECK-NOT: scf.if
  // CHECK: llvm.inline_asm has_side_effects "@$0 mbarrier.arrive.expect_tx.shared.b64 _, [$1], $2;", "b,r,r,~{memory}" %[[ELECTED]],
  // CHECK: llvm.inline_asm has_side_effects "@$0 cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [$1], [$2, {$3, $4, $5}], [$6];", "b,r,l,r,r,r,r,~{memory}" %[[ELECTED]],
  // CHECK: llvm.inline_asm has_side_effects "@$0 cp.async.bulk.tensor.3d
  // CHECK-NOT: nvvm.cp.async.bulk
  gpu.func @elected(%map: !map, %i: i32, %parity: i32) kernel attributes {known_block_size = array<i32: 128, 1, 1>, nvvm.minctasm = 1 : i32} {
    %full = attn.mbarrier.alloc {offset = 64 : i64} : !attn.mbarriers<2>
    %empty = attn.mbarrier.alloc {offset = 80 : i64} : !attn.mbarriers<2>
    %b = attn.alloc {offset = 1024 : i64} : !attn.buffer<64x128xf16, #span128, shared>
    attn.warp_specialize
    partition "all" warps 4 tiles [4, 1] registers 256 {
      attn.elect {
        attn.mbarrier.wait %empty[%i] parity %parity : !attn.mbarriers<2>
        attn.mbarrier.expect_tx %full[%i] {bytes = 16384} : !attn.mbarriers<2>
        attn.tma.load %map[%i, %i, %i], %b barrier %full[%i] : !attn.mbarriers<2> : !map, !attn.buffer<64x128xf16, #span128, shared>
      }
    }
    gpu.return
  }

  // A bound on registers goes before the number of CTAs on an SM.
  // CHECK-LABEL: gpu.func @bounded
  // CHECK: nvvm.setmaxregister increase 104
  // CHECK: nvvm.setmaxregister decrease 40
  gpu.func @bounded() kernel attributes {known_block_size = array<i32: 256, 1, 1>, nvvm.maxnreg = 79 : i32, nvvm.minctasm = 1 : i32} {
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 104 {
    }
    partition "producer" warps 4 registers 40 {
    }
    gpu.return
  }
}

// Fragments are stored as matrices where all targets can: four of 8 x 8 by one
// instruction. A target without it stores words.

gpu.module @matrices [#attn.target<chip = "sm_90a">, #attn.target<chip = "sm_100a">] {
  // CHECK-LABEL: gpu.func @store_matrices
  // CHECK-COUNT-4: nvvm.stmatrix %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {{.*}} layout = #nvvm.mma_layout<row>
  // CHECK-NOT: nvvm.stmatrix
  // CHECK-NOT: llvm.store
  // CHECK: gpu.return
  gpu.func @store_matrices(%x: f16) kernel attributes {attn.warps = array<i64: 8, 1>} {
    %b = attn.alloc {offset = 0 : i64} : !attn.buffer<128x64xf16, #span128, shared>
    %t = tensor.splat %x : tensor<128x64xf16, #acc>
    attn.local_store %t, %b : tensor<128x64xf16, #acc>, !attn.buffer<128x64xf16, #span128, shared>
    gpu.return
  }

  // Two warps hold copies of a row operand: one of them stores words.
  // CHECK-LABEL: gpu.func @store_copies
  // CHECK-NOT: nvvm.stmatrix
  // CHECK: llvm.store
  gpu.func @store_copies(%x: f16) kernel attributes {attn.warps = array<i64: 4, 2>} {
    %b = attn.alloc {offset = 0 : i64} : !attn.buffer<64x64xf16, #span128, shared>
    %t = tensor.splat %x : tensor<64x64xf16, #attn.operand<index = 0, parent = #attn.mma<warps = [4, 2]>>>
    attn.local_store %t, %b : tensor<64x64xf16, #attn.operand<index = 0, parent = #attn.mma<warps = [4, 2]>>>, !attn.buffer<64x64xf16, #span128, shared>
    gpu.return
  }
}

gpu.module @words [#attn.target<chip = "sm_90a">, #attn.target<chip = "sm_89">] {
  // CHECK-LABEL: gpu.func @store_words
  // CHECK-NOT: nvvm.stmatrix
  // CHECK: llvm.store
  gpu.func @store_words(%x: f16) kernel attributes {attn.warps = array<i64: 8, 1>} {
    %b = attn.alloc {offset = 0 : i64} : !attn.buffer<128x64xf16, #span128, shared>
    %t = tensor.splat %x : tensor<128x64xf16, #acc>
    attn.local_store %t, %b : tensor<128x64xf16, #acc>, !attn.buffer<128x64xf16, #span128, shared>
    gpu.return
  }

  // Units 0 and 1 of 8 columns become the first word of operand a: registers
  // 0, 1 of both for row l / 4, registers 2, 3 for the row 8 below.
  // CHECK-LABEL: gpu.func @narrow
  // CHECK-SAME: (%[[X:[^:]*]]: f32
  // CHECK: %[[P:.*]]:16 = scf.for {{.*}} -> (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)
  // CHECK: nvvm.convert.f32x2.to.f8x2 %[[P]]#1, %[[P]]#0
  // CHECK: nvvm.convert.f32x2.to.f8x2 %[[P]]#5, %[[P]]#4
  // CHECK: nvvm.convert.f32x2.to.f8x2 %[[P]]#3, %[[P]]#2
  // CHECK: nvvm.convert.f32x2.to.f8x2 %[[P]]#7, %[[P]]#6
  // CHECK: nvvm.convert.f32x2.to.f8x2 %[[P]]#9, %[[P]]#8
  gpu.func @narrow(%x: f32, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %vt = attn.alloc {offset = 0 : i64} : !attn.buffer<64x32xf8E4M3FN, #attn.swizzled<span = 32>, shared>
    %v = attn.transpose %vt : !attn.buffer<64x32xf8E4M3FN, #attn.swizzled<span = 32>, shared> -> !attn.buffer<32x64xf8E4M3FN, #attn.transposed<#attn.swizzled<span = 32>>, shared>
    %first = tensor.splat %x : tensor<64x32xf32, #acc4>
    %p = scf.for %j = %zero to %n step %one iter_args(%s = %first) -> (tensor<64x32xf32, #acc4>) : i32 {
      %twice = arith.addf %s, %s : tensor<64x32xf32, #acc4>
      scf.yield %twice : tensor<64x32xf32, #acc4>
    }
    %a = attn.narrow_operand %p : tensor<64x32xf32, #acc4> -> tensor<64x32xf8E4M3FN, #attn.operand<index = 0, parent = #acc4>>
    %o = attn.wgmma %a, %v : tensor<64x32xf8E4M3FN, #attn.operand<index = 0, parent = #acc4>>, !attn.buffer<32x64xf8E4M3FN, #attn.transposed<#attn.swizzled<span = 32>>, shared> -> !attn.inflight<64x64xf32>
    %r = attn.wgmma.wait %o {pending = 0} : !attn.inflight<64x64xf32> -> tensor<64x64xf32, #acc4>
    gpu.return
  }

  // Units of 8 columns at the same place in both halves: registers 0, 1 of units
  // 0 and 2, then of units 1 and 3.
  // CHECK-LABEL: gpu.func @narrow_quads
  // CHECK: %[[P:.*]]:16 = scf.for
  // CHECK: nvvm.convert.f32x2.to.f8x2 %[[P]]#1, %[[P]]#0
  // CHECK: nvvm.convert.f32x2.to.f8x2 %[[P]]#9, %[[P]]#8
  // CHECK: nvvm.convert.f32x2.to.f8x2 %[[P]]#3, %[[P]]#2
  // CHECK: nvvm.convert.f32x2.to.f8x2 %[[P]]#11, %[[P]]#10
  // CHECK: nvvm.convert.f32x2.to.f8x2 %[[P]]#5, %[[P]]#4
  // CHECK-NOT: nvvm.shfl
  // CHECK: gpu.return
  gpu.func @narrow_quads(%x: f32, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %first = tensor.splat %x : tensor<64x32xf32, #acc4>
    %p = scf.for %j = %zero to %n step %one iter_args(%s = %first) -> (tensor<64x32xf32, #acc4>) : i32 {
      %twice = arith.addf %s, %s : tensor<64x32xf32, #acc4>
      scf.yield %twice : tensor<64x32xf32, #acc4>
    }
    %a = attn.narrow_operand %p {order = #attn<key_order quads>} : tensor<64x32xf32, #acc4> -> tensor<64x32xf8E4M3FN, #attn.operand<index = 0, parent = #acc4>>
    gpu.return
  }

  // Two words are exchanged by two shuffles. Even threads give lower halves
  // first (0x5410 = 21520), odd ones upper halves (0x7632 = 30258); threads 2 and
  // 3 of four get the later columns first (0x1054 = 4180, 0x3276 = 12918).
  // CHECK-LABEL: gpu.func @narrow_plain
  // CHECK: %[[GIVE:.*]] = arith.select %[[EVEN:.*]], %c21520_i32{{.*}}, %c30258_i32
  // CHECK: %[[GIVE2:.*]] = arith.select %[[EVEN]], %c30258_i32{{.*}}, %c21520_i32
  // CHECK: %[[TAKE:.*]] = arith.select %[[FIRST:.*]], %c21520_i32{{.*}}, %c4180_i32
  // CHECK: %[[TAKE2:.*]] = arith.select %[[FIRST]], %c30258_i32{{.*}}, %c12918_i32
  // CHECK: %[[A:.*]] = nvvm.prmt <default> %[[GIVE]], %[[X:.*]], %[[Y:.*]] : i32
  // CHECK: %[[S:.*]] = nvvm.shfl.sync idx %{{.*}}, %[[A]]
  // CHECK: %[[B:.*]] = nvvm.prmt <default> %[[GIVE2]], %[[X]], %[[Y]] : i32
  // CHECK: %[[T:.*]] = nvvm.shfl.sync idx %{{.*}}, %[[B]]
  // CHECK: nvvm.prmt <default> %[[TAKE]], %[[S]], %[[T]]
  // CHECK: nvvm.prmt <default> %[[TAKE2]], %[[S]], %[[T]]
  // CHECK-COUNT-2: nvvm.shfl
  // CHECK-NOT: nvvm.shfl
  // CHECK: gpu.return
  gpu.func @narrow_plain(%x: f32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %p = tensor.splat %x : tensor<64x32xf32, #acc4>
    %a = attn.narrow_operand %p {order = #attn<key_order plain>} : tensor<64x32xf32, #acc4> -> tensor<64x32xf8E4M3FN, #attn.operand<index = 0, parent = #acc4>>
    gpu.return
  }

  // A thread's first columns are 4 (l % 4) apart, and its registers' keys are
  // 0, 1 of the first unit of 8 columns, 16, 17 of the second one, and 2, 3 of
  // the first one of the other half.
  // CHECK-LABEL: gpu.func @mask_quads
  // CHECK: %[[T:.*]] = arith.andi %{{.*}}, %c3_i32_0
  // CHECK: arith.shli %[[T]], %c2_i32
  // CHECK: arith.cmpi slt, %c0_i32
  // CHECK: arith.cmpi slt, %c1_i32
  // CHECK: arith.cmpi slt, %c0_i32
  // CHECK: arith.cmpi slt, %c1_i32
  // CHECK: arith.cmpi slt, %c16_i32
  // CHECK: arith.cmpi slt, %c17_i32
  // CHECK: arith.cmpi slt, %c16_i32
  // CHECK: arith.cmpi slt, %c17_i32
  // CHECK: arith.cmpi slt, %c2_i32
  // CHECK: arith.cmpi slt, %c3_i32
  gpu.func @mask_quads(%x: f32, %i: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = tensor.splat %x : tensor<64x32xf32, #acc4>
    %r = attn.apply_mask %s[%i, %i] limit %i {quads} : tensor<64x32xf32, #acc4>
    gpu.return
  }

  // Two boxes of 16 x 2 rows, 4 KB apart, at 0 and 2 along the dimension of 4.
  // CHECK-LABEL: gpu.func @stacked
  // CHECK-SAME: %[[B:[^:]*]]: i32, %[[ROW:[^:]*]]: i32
  // CHECK: %[[FIRST:.*]] = arith.addi %[[B]], %{{.*}} : i32
  // CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %{{.*}}, %{{.*}}, box[%[[B]], %[[FIRST]], %[[ROW]]]
  // CHECK: %[[TWO:.*]] = arith.constant 2 : i32
  // CHECK: %[[SECOND:.*]] = arith.addi %[[B]], %[[TWO]] : i32
  // CHECK: llvm.getelementptr %{{.*}}[4096]
  // CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %{{.*}}, %{{.*}}, box[%[[B]], %[[SECOND]], %[[ROW]]]
  gpu.func @stacked(%map: !attn.tensor_map<16x2x128xf8E4M3FN, swizzle = 128>, %b: i32, %row: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %full = attn.mbarrier.alloc {offset = 16384 : i64} : !attn.mbarriers<1>
    %k = attn.alloc {offset = 0 : i64} : !attn.buffer<64x128xf8E4M3FN, #attn.swizzled<span = 128>, shared>
    attn.elect {
      attn.tma.load %map[%row, %b, %b], %k barrier %full[%b] : !attn.mbarriers<1> {stacked = 2} : !attn.tensor_map<16x2x128xf8E4M3FN, swizzle = 128>, !attn.buffer<64x128xf8E4M3FN, #attn.swizzled<span = 128>, shared>
    }
    gpu.return
  }

  // The same two boxes, each at coordinates of its own.
  // CHECK-LABEL: gpu.func @apart
  // CHECK-SAME: %[[B:[^:]*]]: i32, %[[ROW:[^:]*]]: i32
  // CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %{{.*}}, %{{.*}}, box[%[[B]], %[[B]], %[[ROW]]]
  // CHECK: llvm.getelementptr %{{.*}}[4096]
  // CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %{{.*}}, %{{.*}}, box[%[[ROW]], %[[B]], %[[B]]]
  gpu.func @apart(%map: !attn.tensor_map<16x2x128xf8E4M3FN, swizzle = 128>, %b: i32, %row: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %full = attn.mbarrier.alloc {offset = 16384 : i64} : !attn.mbarriers<1>
    %k = attn.alloc {offset = 0 : i64} : !attn.buffer<64x128xf8E4M3FN, #attn.swizzled<span = 128>, shared>
    attn.elect {
      attn.tma.load %map[%row, %b, %b, %b, %b, %row], %k barrier %full[%b] : !attn.mbarriers<1> {stacked = 2} : !attn.tensor_map<16x2x128xf8E4M3FN, swizzle = 128>, !attn.buffer<64x128xf8E4M3FN, #attn.swizzled<span = 128>, shared>
    }
    gpu.return
  }

  // Each box is of either map, as its condition says.
  // CHECK-LABEL: gpu.func @spare
  // CHECK-DAG: %[[MAP:.*]] = builtin.unrealized_conversion_cast %{{.*}} : !attn.tensor_map<16x2x128xf8E4M3FN, swizzle = 128> to !llvm.ptr
  // CHECK-DAG: %[[SPARE:.*]] = builtin.unrealized_conversion_cast %{{.*}} : !attn.tensor_map<8x4x128xf8E4M3FN, swizzle = 128> to !llvm.ptr
  // CHECK: scf.if %[[C:.*]] {
  // CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %[[TO:.*]], %[[SPARE]], %{{.*}}, box[
  // CHECK: } else {
  // CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %[[TO]], %[[MAP]], %{{.*}}, box[
  // CHECK: scf.if %[[D:.*]] {
  // CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %[[BELOW:.*]], %[[SPARE]], %{{.*}}, box[
  // CHECK: } else {
  // CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %[[BELOW]], %[[MAP]], %{{.*}}, box[
  gpu.func @spare(%map: !attn.tensor_map<16x2x128xf8E4M3FN, swizzle = 128>, %spare: !attn.tensor_map<8x4x128xf8E4M3FN, swizzle = 128>, %b: i32, %c: i1, %d: i1) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %full = attn.mbarrier.alloc {offset = 16384 : i64} : !attn.mbarriers<1>
    %k = attn.alloc {offset = 0 : i64} : !attn.buffer<64x128xf8E4M3FN, #attn.swizzled<span = 128>, shared>
    attn.elect {
      attn.tma.load %map[%b, %b, %b, %b, %b, %b], %k barrier %full[%b] : !attn.mbarriers<1> spare %spare[%c, %d] : !attn.tensor_map<8x4x128xf8E4M3FN, swizzle = 128> {stacked = 2} : !attn.tensor_map<16x2x128xf8E4M3FN, swizzle = 128>, !attn.buffer<64x128xf8E4M3FN, #attn.swizzled<span = 128>, shared>
    }
    gpu.return
  }

  // 64 x 64 bytes, 16 columns for each of four warps: two pieces of 32 x 16.
  // The lower half of the lanes stores even columns first (0x6420 = 25632), the
  // upper half odd ones (0x7531 = 30001).
  // CHECK-LABEL: gpu.func @transposed
  // CHECK-DAG: %[[EVEN:.*]] = arith.constant 25632 : i32
  // CHECK-DAG: %[[ODD:.*]] = arith.constant 30001 : i32
  // CHECK-DAG: %[[FIRST:.*]] = arith.select %[[LOWER:.*]], %[[EVEN]], %[[ODD]]
  // CHECK-DAG: %[[SECOND:.*]] = arith.select %[[LOWER]], %[[ODD]], %[[EVEN]]
  // CHECK: %[[L:.*]] = nvvm.ldmatrix %{{.*}} {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<col>, num = 4
  // CHECK: %[[A:.*]] = llvm.extractvalue %[[L]][0]
  // CHECK: %[[B:.*]] = llvm.extractvalue %[[L]][1]
  // CHECK: nvvm.prmt <default> %[[FIRST]], %[[A]], %[[B]]
  // CHECK: nvvm.prmt <default> %[[SECOND]], %[[A]], %[[B]]
  // CHECK-COUNT-2: nvvm.prmt
  // CHECK: nvvm.stmatrix {{.*}} layout = #nvvm.mma_layout<row>
  // CHECK: nvvm.ldmatrix
  // CHECK: nvvm.stmatrix
  // CHECK-NOT: nvvm.ldmatrix
  gpu.func @transposed() kernel attributes {attn.warps = array<i64: 4, 1>} {
    %v = attn.alloc {offset = 0 : i64} : !attn.buffer<64x64xf8E4M3FN, #span64, shared>
    %vt = attn.alloc {offset = 4096 : i64} : !attn.buffer<64x64xf8E4M3FN, #span64, shared>
    attn.local_transpose %v, %vt : !attn.buffer<64x64xf8E4M3FN, #span64, shared>, !attn.buffer<64x64xf8E4M3FN, #span64, shared>
    gpu.return
  }
}

gpu.module @groups [#attn.target<chip = "sm_90a">] {
  // One thread of each warpgroup, whose barrier and rows follow from its number.
  // CHECK-LABEL: gpu.func @warpgroups
  // CHECK: %[[OWN:.*]] = nvvm.shfl.sync idx
  // CHECK: %[[GROUP:.*]] = arith.shrui %[[OWN]], %c2_i32
  // CHECK: nvvm.setmaxregister increase 240
  // CHECK: %[[ID:.*]] = arith.addi %c3_i32{{.*}}, %[[GROUP]]
  // CHECK: llvm.call_intrinsic "llvm.nvvm.barrier.cta.sync.count"(%[[ID]], %c128_i32{{.*}})
  // CHECK: %[[WITHIN:.*]] = arith.andi %[[OWN]], %c3_i32
  // CHECK: arith.cmpi eq, %[[WITHIN]], %c0_i32
  // CHECK: nvvm.elect.sync
  // CHECK: %[[ROWS:.*]] = arith.muli %[[GROUP]], %c64_i32
  // CHECK: %[[ROW:.*]] = arith.addi %{{.*}}, %[[ROWS]]
  // CHECK: %[[BYTES:.*]] = arith.muli %[[GROUP]], %c8192_i32
  // CHECK: %[[PART:.*]] = llvm.getelementptr %{{.*}}[%[[BYTES]]]
  // CHECK: nvvm.cp.async.bulk.tensor.global.shared.cta %{{.*}}, %[[PART]], box[%{{.*}}, %[[ROW]], %{{.*}}]
  // CHECK: %[[NEXT:.*]] = llvm.getelementptr %[[PART]][16384]
  // CHECK: nvvm.cp.async.bulk.tensor.global.shared.cta %{{.*}}, %[[NEXT]], box[%{{.*}}, %[[ROW]], %{{.*}}]
  gpu.func @warpgroups(%map: !map, %row: i32) kernel attributes {known_block_size = array<i32: 384, 1, 1>, nvvm.minctasm = 1 : i32} {
    %zero = arith.constant 0 : i32
    %id = arith.constant 3 : i32
    %b = attn.alloc {offset = 0 : i64} : !attn.buffer<128x128xf16, #span128, shared>
    attn.warp_specialize
    partition "consumer" warps 8 tiles [8, 1] registers 240 {
      attn.named_barrier %id {threads = 128, each_warpgroup}
      attn.elect each_warpgroup {
        attn.tma.store %b, %map[%zero, %row, %zero] {warpgroups = 2} : !attn.buffer<128x128xf16, #span128, shared>, !map
      }
    }
    partition "producer" warps 4 registers 24 {
    }
    gpu.return
  }

  // One thread alone waits for a word: whether there is a fence depends on it.
  // CHECK-LABEL: gpu.func @word_of_one
  // CHECK: %[[X:.*]] = llvm.inline_asm has_side_effects "ld.shared.b32 $0, [$1];", "=r,r,~{memory}"
  // CHECK-NOT: nvvm.shfl.sync
  // CHECK: %[[SELDOM:.*]] = arith.cmpi eq, %[[X]], %c-2147483648_i32
  // CHECK: llvm.inline_asm has_side_effects "@$0 fence.acq_rel.cta;", "b,~{memory}" %[[SELDOM]]
  // CHECK: llvm.inline_asm has_side_effects "st.shared.b32 [$0], $1;", "r,r,~{memory}"
  gpu.func @word_of_one(%i: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %b = attn.alloc {offset = 0 : i64} : !attn.buffer<2xi32, #attn.rows, shared>
    attn.elect {
      %x = attn.scalar_load %b[%i] : !attn.buffer<2xi32, #attn.rows, shared>
      attn.scalar_store %x, %b[%i] : !attn.buffer<2xi32, #attn.rows, shared>
    }
    gpu.return
  }

  // In a cluster warps wait as well, which their shuffle need not do.
  // CHECK-LABEL: gpu.func @word_in_cluster
  // CHECK: %[[X:.*]] = llvm.inline_asm has_side_effects "ld.shared.b32 $0, [$1];", "=r,r,~{memory}"
  // CHECK: %[[SAME:.*]] = nvvm.shfl.sync idx %{{.*}}, %[[X]], %c0_i32
  // CHECK: %[[SELDOM:.*]] = arith.cmpi eq, %[[SAME]], %c-2147483648_i32
  // CHECK: llvm.inline_asm has_side_effects "@$0 fence.acq_rel.cta;", "b,~{memory}" %[[SELDOM]]
  gpu.func @word_in_cluster(%i: i32) kernel attributes {attn.warps = array<i64: 4, 1>, known_cluster_size = array<i32: 2, 1, 1>} {
    %b = attn.alloc {offset = 0 : i64} : !attn.buffer<2xi32, #attn.rows, shared>
    %x = attn.scalar_load %b[%i] : !attn.buffer<2xi32, #attn.rows, shared>
    attn.elect {
      attn.scalar_store %x, %b[%i] : !attn.buffer<2xi32, #attn.rows, shared>
    }
    gpu.return
  }

  // Scalars in shared memory: LLVM keeps them where they are between signals,
  // and ptxas sees that all lanes read the same. A loop with a condition stays.
  // CHECK-LABEL: gpu.func @scalars
  // CHECK: scf.while
  // CHECK: %[[X:.*]] = llvm.inline_asm has_side_effects "ld.shared.b32 $0, [$1];", "=r,r,~{memory}"
  // CHECK: %[[SAME:.*]] = nvvm.shfl.sync idx %{{.*}}, %[[X]], %c0_i32
  // CHECK-NOT: fence.acq_rel
  // CHECK: arith.cmpi ult, %[[SAME]]
  // CHECK: } do {
  // CHECK: llvm.inline_asm has_side_effects "st.shared.b32 [$0], $1;", "r,r,~{memory}"
  gpu.func @scalars(%i: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %b = attn.alloc {offset = 0 : i64} : !attn.buffer<2xi32, #attn.rows, shared>
    scf.while : () -> () {
      %x = attn.scalar_load %b[%i] : !attn.buffer<2xi32, #attn.rows, shared>
      %more = arith.cmpi ult, %x, %i : i32
      scf.condition(%more)
    } do {
      attn.elect {
        attn.scalar_store %i, %b[%i] : !attn.buffer<2xi32, #attn.rows, shared>
      }
      scf.yield
    }
    gpu.return
  }
}
