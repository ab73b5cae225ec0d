// RUN: attn-opt %s --attn-shard-cga | FileCheck %s

!map = !attn.tensor_map<64x64xf16, swizzle = 128>
!slot = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!ring = !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared>

gpu.module @kernels {
  // Two CTAs work on tiles of their own with the same keys.
  gpu.func @kernel(%q_map: !map, %k_map: !map, %tiles: i32) kernel
      attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    %zero = arith.constant 0 : i32
    %two = arith.constant 2 : i32
    %rows = arith.constant 64 : i32
    %id = gpu.cluster_block_id x
    %rank = arith.index_cast %id : index to i32
    %q_ring = attn.alloc {name = "q"} : !ring
    %k_ring = attn.alloc {name = "k"} : !ring
    %q = attn.channel.create {name = "q", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 240 {
      %q_first = attn.cursor.start %q as "consumer" : !attn.channel<2>
      %k_first = attn.cursor.start %k as "consumer" : !attn.channel<2>
      %end:2 = attn.tile_loop %tiles scheduler strided iter_args(%q_first, %k_first : !attn.cursor, !attn.cursor) {
      ^bb0(%tile: i32, %qc: !attn.cursor, %kc: !attn.cursor):
        %qs, %qt = attn.channel.acquire %q[%qc] as "consumer" : !attn.channel<2>
        %ks, %kt = attn.channel.acquire %k[%kc] as "consumer" : !attn.channel<2>
        attn.channel.release %q, %qt as "consumer" : !attn.channel<2>
        attn.channel.release %k, %kt as "consumer" : !attn.channel<2>
        %qn = attn.cursor.advance %qc on %q : !attn.channel<2>
        %kn = attn.cursor.advance %kc on %k : !attn.channel<2>
        attn.yield %qn, %kn : !attn.cursor, !attn.cursor
      }
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        %q_first = attn.cursor.start %q as "producer" : !attn.channel<2>
        %k_first = attn.cursor.start %k as "producer" : !attn.channel<2>
        %end:2 = attn.tile_loop %tiles scheduler strided iter_args(%q_first, %k_first : !attn.cursor, !attn.cursor) {
        ^bb0(%tile: i32, %qc: !attn.cursor, %kc: !attn.cursor):
          %pair = arith.muli %tile, %two : i32
          %own = arith.addi %pair, %rank : i32
          %row = arith.muli %own, %rows : i32
          %qs, %qt = attn.channel.acquire %q[%qc] as "producer" : !attn.channel<2>
          %q_slot = attn.slot %q_ring[%qs] : !ring -> !slot
          attn.tma.load %q_map[%row, %zero], %q_slot token %qt : !map, !slot
          attn.channel.release %q, %qt as "producer" : !attn.channel<2>
          %ks, %kt = attn.channel.acquire %k[%kc] as "producer" : !attn.channel<2>
          %k_slot = attn.slot %k_ring[%ks] : !ring -> !slot
          attn.tma.load %k_map[%tile, %zero], %k_slot token %kt : !map, !slot
          attn.channel.release %k, %kt as "producer" : !attn.channel<2>
          %qn = attn.cursor.advance %qc on %q : !attn.channel<2>
          %kn = attn.cursor.advance %kc on %k : !attn.channel<2>
          attn.yield %qn, %kn : !attn.cursor, !attn.cursor
        }
      }
    }
    gpu.return
  }
}

// CHECK: gpu.func @kernel(%[[Q:.*]]: !attn.tensor_map<64x64xf16, swizzle = 128>, %[[K:.*]]: !attn.tensor_map<32x64xf16, swizzle = 128>,
// CHECK: attn.tma.load %[[Q]][{{.*}}], %{{.*}} token %{{[^ ]*}} : <64x64xf16
// CHECK: attn.tma.load %[[K]][{{.*}}], %{{.*}} token %{{[^ ]*}} {multicast = 2 : i64} : <32x64xf16
