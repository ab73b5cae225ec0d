// RUN: attn-test-opt %s --pass-pipeline='builtin.module(gpu.module(attn-verify-tokens,attn-lower-channels,canonicalize))' | FileCheck %s

// Users of a channel that belong to another dialect: the analysis and the pass
// ask ChannelUserOpInterface and know none by name.

!slot = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!ch = !attn.channel<2>
gpu.module @kernels {
  // The bytes of the slot are announced, and the fill gets its barrier.
  // CHECK-LABEL: gpu.func @fill
  // CHECK:         %[[PRODUCER:.*]] = attn.mbarrier.alloc {name = "k.producer"} : <2>
  // CHECK:         %[[CONSUMER:.*]] = attn.mbarrier.alloc {name = "k.consumer"} : <2>
  // CHECK:         attn.mbarrier.init %[[PRODUCER]] {count = 1 : i64}
  // CHECK:         attn.mbarrier.init %[[CONSUMER]] {count = 4 : i64}
  // CHECK:         partition "consumer"
  // CHECK:           attn.mbarrier.wait %[[PRODUCER]]
  // CHECK:           attn.mbarrier.arrive %[[CONSUMER]]
  // CHECK:         partition "producer"
  // CHECK:           attn.mbarrier.wait %[[CONSUMER]]
  // CHECK:           attn.mbarrier.expect_tx %[[PRODUCER]][%[[INDEX:.*]]] {bytes = 8192 : i64}
  // CHECK:           test_attn.async_fill %{{.*}} barrier %[[PRODUCER]][%[[INDEX]]]
  gpu.func @fill(%n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !ch
    %slot = attn.alloc {name = "k"} : !slot
    attn.warp_specialize
    partition "consumer" warps 4 registers 96 {
      %c = attn.cursor.start %k as "consumer" : !ch
      %t, %i = test_attn.take %k[%c] "consumer" : !ch
      test_attn.give %t to %k "consumer" : !ch
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        %c = attn.cursor.start %k as "producer" : !ch
        %t, %i = test_attn.take %k[%c] "producer" : !ch
        test_attn.async_fill %slot token %t : !slot
        test_attn.give %t to %k "producer" : !ch
      }
    }
    gpu.return
  }
}
