// The kernel of examples/by-hand/gemm-pair.mlir with an A of ones, which a warpgroup of each CTA writes
// with stores of its own in the place of copies.

!amap = !attn.tensor_map<128x64xf16, swizzle = 128>
!bmap = !attn.tensor_map<64x64xf16, swizzle = 128>
!aring = !attn.buffer<2x128x64xf16, #attn.auto, shared>
!bring = !attn.buffer<2x64x64xf16, #attn.auto, shared>
!a    = !attn.buffer<128x64xf16, #attn.auto, shared>
!b    = !attn.buffer<64x64xf16, #attn.auto, shared>
!d    = !attn.buffer<128x128xf32, #attn.tmem<m = 128>, tmem>
gpu.module @kernels [#attn.target<chip = "sm_100a">] {
  gpu.func @gemm(%c: !llvm.ptr<1>, %amap: !amap, %bmap: !bmap) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>, known_block_size = array<i32: 384, 1, 1>, nvvm.minctasm = 1 : i32,
      attn.launch = #attn.launch<chip = "sm_100a", ptx = 88, grid = ["2", "1", "1"], block = [384, 1, 1], cluster = [2, 1, 1],
        tensors = [{access = "read", dtype = "f16", name = "a", shape = array<i64: 256, 256>, strides = array<i64: 256, 1>},
                   {access = "read", dtype = "f16", name = "b", shape = array<i64: 256, 256>, strides = array<i64: 256, 1>},
                   {access = "write", dtype = "f16", name = "c", shape = array<i64: 256, 256>, strides = array<i64: 256, 1>}],
        args = [{kind = "pointer", tensor = "c"},
                {box = array<i64: 64, 128>, element = "f16", kind = "tensor_map", rank = 2 : i64, swizzle = "128B", tensor = "a"},
                {box = array<i64: 64, 64>, element = "f16", kind = "tensor_map", rank = 2 : i64, swizzle = "128B", tensor = "b"}]>} {
    %a = attn.alloc {name = "a"} : !aring
    %b = attn.alloc {name = "b"} : !bring
    %d = attn.tmem_alloc {name = "d"} : !d
    %ch = attn.channel.create {name = "b", roles = [#attn.role<"load", tx>, #attn.role<"mma", commit>]} : !attn.channel<2>
    %ach = attn.channel.create {name = "a", roles = [#attn.role<"make", arrive>, #attn.role<"mma", commit>]} : !attn.channel<2>
    %dch = attn.channel.create {name = "d", roles = [#attn.role<"mma", commit>, #attn.role<"store", arrive>]} : !attn.channel<1>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %steps = arith.constant 4 : i32
    %c64 = arith.constant 64 : i32
    %c128 = arith.constant 128 : i32
    %bx = gpu.block_id x
    %bi = arith.index_cast %bx : index to i32
    %row = arith.muli %bi, %c128 : i32
    attn.warp_specialize
    partition "store" warps 4 tiles [4, 1] registers 112 {
      %first = attn.cursor.start %dch as "store" : !attn.channel<1>
      %last = scf.for %tile = %c0 to %c2 step %c1 iter_args(%cur = %first) -> (!attn.cursor) : i32 {
        %idx, %tok = attn.channel.acquire %dch[%cur] as "store" : !attn.channel<1>
        %f = attn.tmem.load %d : !d -> !attn.inflight<128x128xf32, #attn.tmem_regs<shape_32x32b, warps = [4, 1]>>
        %t = attn.tmem.wait %f : !attn.inflight<128x128xf32, #attn.tmem_regs<shape_32x32b, warps = [4, 1]>> -> tensor<128x128xf32, #attn.auto>
        attn.channel.release %dch, %tok as "store" : !attn.channel<1>
        %h = arith.truncf %t : tensor<128x128xf32, #attn.auto> to tensor<128x128xf16, #attn.auto>
        %stride = arith.constant 256 : i64
        %rows = arith.constant 256 : i32
        %column = arith.muli %tile, %c128 : i32
        %off = arith.extui %column : i32 to i64
        %view = attn.global_view %c[%off] rows %rows stride %stride {alignment = 16 : i64} : !attn.global<?x128xf16>
        attn.store_result %h, %view[%row] : tensor<128x128xf16, #attn.auto>, !attn.global<?x128xf16>
        %next = attn.cursor.advance %cur on %dch : !attn.channel<1>
        scf.yield %next : !attn.cursor
      }
    }
    partition "make" warps 4 tiles [4, 1] registers 112 {
      %first = attn.cursor.start %ach as "make" : !attn.channel<2>
      %x = arith.constant dense<1.0> : tensor<128x64xf16, #attn.auto>
      %last = scf.for %tile = %c0 to %c2 step %c1 iter_args(%from = %first) -> (!attn.cursor) : i32 {
        %end = scf.for %i = %c0 to %steps step %c1 iter_args(%cur = %from) -> (!attn.cursor) : i32 {
          %idx, %tok = attn.channel.acquire %ach[%cur] as "make" : !attn.channel<2>
          %as = attn.slot %a[%idx] : !aring -> !a
          attn.local_store %x, %as : tensor<128x64xf16, #attn.auto>, !a
          attn.channel.release %ach, %tok as "make" : !attn.channel<2>
          %next = attn.cursor.advance %cur on %ach : !attn.channel<2>
          scf.yield %next : !attn.cursor
        }
        scf.yield %end : !attn.cursor
      }
    }
    partition "mma" warps 1 registers 24 {
      attn.cluster_leader {
        %first = attn.cursor.start %ch as "mma" : !attn.channel<2>
        %dfirst = attn.cursor.start %dch as "mma" : !attn.channel<1>
        %afirst = attn.cursor.start %ach as "mma" : !attn.channel<2>
        %last:3 = scf.for %tile = %c0 to %c2 step %c1 iter_args(%from = %first, %afrom = %afirst, %dcur = %dfirst) -> (!attn.cursor, !attn.cursor, !attn.cursor) : i32 {
          %di, %dt = attn.channel.acquire %dch[%dcur] as "mma" : !attn.channel<1>
          %end:2 = scf.for %i = %c0 to %steps step %c1 iter_args(%cur = %from, %acur = %afrom) -> (!attn.cursor, !attn.cursor) : i32 {
            %idx, %tok = attn.channel.acquire %ch[%cur] as "mma" : !attn.channel<2>
            %aidx, %atok = attn.channel.acquire %ach[%acur] as "mma" : !attn.channel<2>
            %as = attn.slot %a[%aidx] : !aring -> !a
            %bs = attn.slot %b[%idx] : !bring -> !b
            %bt = attn.transpose %bs : !b -> !b
            %more = arith.cmpi ne, %i, %c0 : i32
            attn.elect {
              attn.tcgen05.mma %as, %bt, %d accumulate %more {pair} : !a, !b, !d
              attn.channel.release %ch, %tok as "mma" : !attn.channel<2>
              attn.channel.release %ach, %atok as "mma" : !attn.channel<2>
            }
            %next = attn.cursor.advance %cur on %ch : !attn.channel<2>
            %anext = attn.cursor.advance %acur on %ach : !attn.channel<2>
            scf.yield %next, %anext : !attn.cursor, !attn.cursor
          }
          attn.elect {
            attn.channel.release %dch, %dt as "mma" : !attn.channel<1>
          }
          %dnext = attn.cursor.advance %dcur on %dch : !attn.channel<1>
          scf.yield %end#0, %end#1, %dnext : !attn.cursor, !attn.cursor, !attn.cursor
        }
      }
    }
    partition "load" warps 3 registers 24 {
      %r = gpu.cluster_block_id x
      %rank = arith.index_cast %r : index to i32
      %half = arith.muli %rank, %c64 : i32
      attn.elect {
        %first = attn.cursor.start %ch as "load" : !attn.channel<2>
        %last = scf.for %tile = %c0 to %c2 step %c1 iter_args(%from = %first) -> (!attn.cursor) : i32 {
          %column = arith.muli %tile, %c128 : i32
          %key = arith.addi %column, %half : i32
          %end = scf.for %i = %c0 to %steps step %c1 iter_args(%cur = %from) -> (!attn.cursor) : i32 {
            %k = arith.muli %i, %c64 : i32
            %idx, %tok = attn.channel.acquire %ch[%cur] as "load" : !attn.channel<2>
            %bs = attn.slot %b[%idx] : !bring -> !b
            attn.tma.load %bmap[%key, %k], %bs token %tok : !bmap, !b
            attn.channel.release %ch, %tok as "load" : !attn.channel<2>
            %next = attn.cursor.advance %cur on %ch : !attn.channel<2>
            scf.yield %next : !attn.cursor
          }
          scf.yield %end : !attn.cursor
        }
      }
    }
    gpu.return
  }
}
