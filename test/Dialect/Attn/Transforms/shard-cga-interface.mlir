// RUN: attn-test-opt %s --attn-shard-cga --remarks-filter='attn.*' -o /dev/null 2>&1 | FileCheck %s

// A load of another dialect: the pass asks BulkCopyOpInterface and
// ChannelUserOpInterface.

!map = !attn.tensor_map<64x64xf16, swizzle = 128>
!slot = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!ch = !attn.channel<2>
gpu.module @kernels {
  // A load that states no multicast is each CTA's own.
  // CHECK: Reason="test_attn.bulk_fill has no multicast"
  // CHECK-SAME: each CTA fills the slots of channel 'k' for itself
  gpu.func @own(%n: i32, %map: !map) kernel
      attributes {attn.warps = array<i64: 4, 1>, known_cluster_size = array<i32: 2, 1, 1>} {
    %zero = arith.constant 0 : i32
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
        test_attn.bulk_fill %map[%zero, %zero], %slot token %t : !map, !slot
        test_attn.give %t to %k "producer" : !ch
      }
    }
    gpu.return
  }
}
