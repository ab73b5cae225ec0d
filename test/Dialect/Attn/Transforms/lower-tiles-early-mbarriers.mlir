// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-lower-tiles))' | FileCheck %s

// Chips before sm_90 elect no thread, have nothing to fence barriers for and test them in a loop.
// Partitions that ask for the same registers keep what they start with, in any number of warps.

// CHECK-LABEL: gpu.func @copies
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %{{.*}}, %c0_i32
// CHECK: scf.if %[[FIRST]]
// CHECK:   nvvm.mbarrier.init
// CHECK-NOT: nvvm.fence
// CHECK: gpu.barrier
// CHECK-NOT: setmaxregister
// CHECK: scf.while
// CHECK:   nvvm.mbarrier.test.wait
// CHECK: nvvm.cp.async.shared.global
// CHECK: nvvm.cp.async.mbarrier.arrive %{{.*}} {noinc = true}
// CHECK-NOT: setmaxregister
gpu.module @early [#attn.target<chip = "sm_80">] {
  gpu.func @copies(%p: !llvm.ptr<1>, %off: i64, %n: i32, %stride: i64) kernel {
    %zero = arith.constant 0 : i32
    %g = attn.global_view %p[%off] rows %n stride %stride {alignment = 16 : i64} : !attn.global<?x64xf16>
    %k = attn.alloc {name = "k", offset = 0 : i64} : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    %full = attn.mbarrier.alloc {offset = 8192 : i64} : !attn.mbarriers<1>
    attn.elect {
      attn.mbarrier.init %full {count = 64} : !attn.mbarriers<1>
      attn.mbarrier.fence_init
    }
    gpu.barrier
    attn.warp_specialize
    partition "read" warps 4 registers 96 {
      attn.mbarrier.wait %full[%zero] parity %zero : !attn.mbarriers<1>
    }
    partition "load" warps 2 registers 96 {
      attn.cp_async %g[%zero], %k : !attn.global<?x64xf16>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
      attn.cp_async.arrive %full[%zero] : !attn.mbarriers<1>
    }
    gpu.return
  }
}
