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
      attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    %zero = arith.constant 0 : i32
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !ch
    %slot = attn.alloc {name = "k"} : !slot
    attn.warp_specialize
    partition "consumer" warps 4 registers 96 {
      %c = attn.cursor.start %k as "consumer" : !ch
      %i, %t = test_attn.take %k[%c] as "consumer" : !ch
      test_attn.give %k, %t as "consumer" : !ch
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        %c = attn.cursor.start %k as "producer" : !ch
        %i, %t = test_attn.take %k[%c] as "producer" : !ch
        test_attn.bulk_fill %map[%zero, %zero], %slot token %t : !map, !slot
        test_attn.give %k, %t as "producer" : !ch
      }
    }
    gpu.return
  }

  // A region op that nobody knows by name says what decides between its regions.
  // CHECK: Reason="whether a load runs depends on gpu.cluster_block_id"
  gpu.func @switched(%map: !map) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    %zero = arith.constant 0 : i32
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !ch
    %slot = attn.alloc {name = "k"} : !slot
    attn.warp_specialize
    partition "consumer" warps 4 registers 96 {
      %c = attn.cursor.start %k as "consumer" : !ch
      %i, %t = attn.channel.acquire %k[%c] as "consumer" : !ch
      attn.channel.release %k, %t as "consumer" : !ch
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        %rank = gpu.cluster_block_id x
        %c = attn.cursor.start %k as "producer" : !ch
        %i, %t = attn.channel.acquire %k[%c] as "producer" : !ch
        scf.index_switch %rank
        case 1 {
          attn.tma.load %map[%zero, %zero], %slot token %t : !map, !slot
          scf.yield
        }
        default {
          attn.tma.load %map[%zero, %zero], %slot token %t : !map, !slot
        }
        attn.channel.release %k, %t as "producer" : !ch
      }
    }
    gpu.return
  }
}
