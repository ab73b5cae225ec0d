// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-lower-channels))' | FileCheck %s

!slot = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!ring = !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared>
!map = !attn.tensor_map<64x64xf16, swizzle = 128>

gpu.module @kernels {
  gpu.func @kernel(%map: !map, %n: i32) kernel {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %ring = attn.alloc {name = "k"} : !ring
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 240 {
      %first = attn.cursor.start %k as "consumer" : !attn.channel<2>
      %last = scf.for %i = %zero to %n step %one iter_args(%c = %first) -> !attn.cursor : i32 {
        %index, %token = attn.channel.acquire %k[%c] as "consumer" : !attn.channel<2>
        %slot = attn.slot %ring[%index] : !ring -> !slot
        attn.channel.release %k, %token as "consumer" : !attn.channel<2>
        %next = attn.cursor.advance %c on %k : !attn.channel<2>
        scf.yield %next : !attn.cursor
      }
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        %first = attn.cursor.start %k as "producer" : !attn.channel<2>
        %last = scf.for %i = %zero to %n step %one iter_args(%c = %first) -> !attn.cursor : i32 {
          %index, %token = attn.channel.acquire %k[%c] as "producer" : !attn.channel<2>
          %slot = attn.slot %ring[%index] : !ring -> !slot
          attn.tma.load %map[%i, %zero], %slot token %token : !map, !slot
          attn.channel.release %k, %token as "producer" : !attn.channel<2>
          %next = attn.cursor.advance %c on %k : !attn.channel<2>
          scf.yield %next : !attn.cursor
        }
      }
    }
    gpu.return
  }
}

// CHECK:      %[[FULL:.*]] = attn.mbarrier.alloc {name = "k.producer"} : <
// CHECK:      %[[EMPTY:.*]] = attn.mbarrier.alloc {name = "k.consumer"} : <
// CHECK:      attn.elect {
// CHECK-NEXT:   attn.mbarrier.init %[[FULL]] {count = 1 : i64}
// CHECK-NEXT:   attn.mbarrier.init %[[EMPTY]] {count = 4 : i64}
// CHECK-NEXT:   attn.mbarrier.fence_init
// CHECK:      gpu.barrier
// CHECK:      partition "consumer"
// CHECK:        attn.mbarrier.wait %[[FULL]][%{{.*}}] parity
// CHECK:        attn.mbarrier.arrive %[[EMPTY]][
// CHECK:      partition "producer"
// CHECK:        attn.mbarrier.wait %[[EMPTY]][%[[SLOT:.*]]] parity
// CHECK:        attn.mbarrier.expect_tx %[[FULL]][%[[SLOT]]] {bytes = 8192 : i64}
// CHECK:        attn.tma.load {{.*}} barrier %[[FULL]][
