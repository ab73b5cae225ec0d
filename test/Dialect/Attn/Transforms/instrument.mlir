// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-instrument{timeout-us=1000}))' | FileCheck %s

// Words behind the kernel's bytes, which all threads clear; a wait with a limit, whose phases the
// warp counts; signals that are counted before they are sent, and left out once a wait was given
// up, by all lanes of a warp or none.

// CHECK: gpu.func @ring
// CHECK: scf.for
// CHECK: st.relaxed.cluster.shared.u32
// CHECK: gpu.barrier
// CHECK: partition "consumer"
// CHECK: ld.relaxed.cluster.shared.u32
// CHECK: scf.while
// CHECK: nvvm.mbarrier.try_wait
// CHECK: %globaltimer
// CHECK: arith.constant 1000000 : i64
// CHECK: atom.relaxed.gpu.global.add.u32
// CHECK-NOT: attn.mbarrier.wait
// CHECK: attn.local_load
// CHECK: %[[FLAG:.+]] = llvm.inline_asm has_side_effects "ld.relaxed.cluster.shared.u32
// CHECK: %[[ISZERO:.+]] = arith.cmpi eq, %[[FLAG]],
// CHECK: %[[GOES:.+]] = nvvm.vote.sync all %{{.+}}, %[[ISZERO]] -> i1
// CHECK-NEXT: scf.if %[[GOES]] {
// CHECK: atom.relaxed.cluster.shared.add.u32
// CHECK: attn.mbarrier.arrive {{.*}} : <2>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK: partition "producer"
// CHECK: scf.while
// CHECK: attn.mbarrier.expect_tx {{.*}} : <2>
// CHECK-NEXT: }
// CHECK: attn.tma.load {{.*}}shared>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: gpu.return
// CHECK: gpu.func @commit
// CHECK: attn.elect
// CHECK: scf.if
// CHECK-NEXT: attn.tcgen05.commit

// Without a limit waits stay; without checks nothing is counted.

// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-instrument{timeout-us=0 checks=false delay-ns=300 seed=7}))' | FileCheck %s --check-prefix=DELAYS
// DELAYS: attn.mbarrier.wait
// DELAYS: nanosleep.u32
// DELAYS-NOT: scf.while
// DELAYS-NOT: atom.
// DELAYS-NOT: nvvm.vote.sync
// DELAYS: nanosleep.u32
// DELAYS: attn.mbarrier.arrive
// DELAYS: attn.mbarrier.expect_tx
// DELAYS-NEXT: attn.slot

gpu.module @kernels {
  gpu.func @ring(%map: !attn.tensor_map<1x1x64x64xf16, swizzle = 128>) kernel attributes {attn.shared_bytes = 16416 : i64,
      known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 1 : i32} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c5 = arith.constant 5 : i32
    %k = attn.alloc {name = "k", offset = 0} : !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared>
    %full = attn.mbarrier.alloc {name = "k.full", offset = 16384} : !attn.mbarriers<2>
    %empty = attn.mbarrier.alloc {name = "k.empty", offset = 16400} : !attn.mbarriers<2>
    attn.elect {
      attn.mbarrier.init %full {count = 1} : !attn.mbarriers<2>
      attn.mbarrier.init %empty {count = 4} : !attn.mbarriers<2>
      attn.mbarrier.fence_init
    }
    gpu.barrier
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 240 {
      scf.for %i = %c0 to %c5 step %c1 : i32 {
        %slot = arith.remui %i, %c2 : i32
        %lap = arith.divui %i, %c2 : i32
        %parity = arith.remui %lap, %c2 : i32
        attn.mbarrier.wait %full[%slot] parity %parity : !attn.mbarriers<2>
        %s = attn.slot %k[%slot] : !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
        %t = attn.local_load %s : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared> -> tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
        attn.fence.proxy_async
        attn.mbarrier.arrive %empty[%slot] : !attn.mbarriers<2>
      }
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        scf.for %i = %c0 to %c5 step %c1 : i32 {
          %slot = arith.remui %i, %c2 : i32
          %lap = arith.divui %i, %c2 : i32
          %odd = arith.remui %lap, %c2 : i32
          %parity = arith.xori %odd, %c1 : i32
          attn.mbarrier.wait %empty[%slot] parity %parity : !attn.mbarriers<2>
          attn.mbarrier.expect_tx %full[%slot] {bytes = 8192} : !attn.mbarriers<2>
          %s = attn.slot %k[%slot] : !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
          attn.tma.load %map[%c0, %c0, %i, %c0], %s barrier %full[%slot] : !attn.mbarriers<2> : !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
        }
      }
    }
    gpu.return
  }
  gpu.func @commit() kernel attributes {attn.shared_bytes = 16 : i64, attn.warps = array<i64: 4, 1>, known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %done = attn.mbarrier.alloc {name = "done", offset = 0} : !attn.mbarriers<1>
    attn.elect {
      attn.tcgen05.commit %done[%c0] : !attn.mbarriers<1>
    }
    gpu.return
  }
}
