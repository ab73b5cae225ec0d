// C = A B^T on sm_100a in clusters: A is 1024 x 256, B 128 x 256, C 1024 x 128, all f16. The program is
// that of one CTA, which has 128 rows of A and all of B. attn-shard-cga finds that the CTAs of a cluster
// have rows of their own and the same B, and lets pairs of them multiply together, each with half of B,
// which it loads for the pairs beside it too. Other numbers of CTAs in known_cluster_size and in
// `cluster`, 1, 2, 4 or 8, make other kernels of the same source:
//
//   attn-compile examples/by-hand/gemm-cluster.mlir -o gemm.ptx --launch-out=gemm.json --remarks-filter=attn.shard-cga
//   attn-sim gemm.ptx --launch=gemm.json

!map  = !attn.tensor_map<128x64xf16, swizzle = 128>
!ring = !attn.buffer<2x128x64xf16, #attn.auto, shared>
!tile = !attn.buffer<128x64xf16, #attn.auto, shared>
!tileT = !attn.buffer<64x128xf16, #attn.auto, shared>
!d    = !attn.buffer<128x128xf32, #attn.tmem<m = 128>, tmem>
gpu.module @kernels [#attn.target<chip = "sm_100a">] {
  gpu.func @gemm(%c: !llvm.ptr<1>, %amap: !map, %bmap: !map) kernel attributes {known_cluster_size = array<i32: 4, 1, 1>, known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 1 : i32,
      attn.launch = #attn.launch<chip = "sm_100a", ptx = 88, grid = ["8", "1", "1"], block = [256, 1, 1], cluster = [4, 1, 1],
        tensors = [{access = "read", dtype = "f16", name = "a", shape = array<i64: 1024, 256>, strides = array<i64: 256, 1>},
                   {access = "read", dtype = "f16", name = "b", shape = array<i64: 128, 256>, strides = array<i64: 256, 1>},
                   {access = "write", dtype = "f16", name = "c", shape = array<i64: 1024, 128>, strides = array<i64: 128, 1>}],
        args = [{kind = "pointer", tensor = "c"},
                {box = array<i64: 64, 128>, element = "f16", kind = "tensor_map", rank = 2 : i64, swizzle = "128B", tensor = "a"},
                {box = array<i64: 64, 128>, element = "f16", kind = "tensor_map", rank = 2 : i64, swizzle = "128B", tensor = "b"}]>} {
    %a = attn.alloc {name = "a"} : !ring
    %b = attn.alloc {name = "b"} : !ring
    %d = attn.tmem_alloc {name = "d"} : !d
    %ch = attn.channel.create {name = "a", roles = [#attn.role<"load", tx>, #attn.role<"mma", commit>]} : !attn.channel<2>
    %chb = attn.channel.create {name = "b", roles = [#attn.role<"load", tx>, #attn.role<"mma", commit>]} : !attn.channel<2>
    %dch = attn.channel.create {name = "d", roles = [#attn.role<"mma", commit>, #attn.role<"store", arrive>]} : !attn.channel<1>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %steps = arith.constant 4 : i32
    %c64 = arith.constant 64 : i32
    %c128 = arith.constant 128 : i32
    %bx = gpu.block_id x
    %bi = arith.index_cast %bx : index to i32
    %row = arith.muli %bi, %c128 : i32
    attn.warp_specialize
    partition "store" warps 4 tiles [4, 1] registers 224 {
      %first = attn.cursor.start %dch as "store" : !attn.channel<1>
      %idx, %tok = attn.channel.acquire %dch[%first] as "store" : !attn.channel<1>
      %f = attn.tmem.load %d : !d -> !attn.inflight<128x128xf32, #attn.tmem_regs<shape_32x32b, warps = [4, 1]>>
      %t = attn.tmem.wait %f : !attn.inflight<128x128xf32, #attn.tmem_regs<shape_32x32b, warps = [4, 1]>> -> tensor<128x128xf32, #attn.auto>
      attn.channel.release %dch, %tok as "store" : !attn.channel<1>
      %h = arith.truncf %t : tensor<128x128xf32, #attn.auto> to tensor<128x128xf16, #attn.auto>
      %off = arith.constant 0 : i64
      %stride = arith.constant 128 : i64
      %rows = arith.constant 1024 : i32
      %view = attn.global_view %c[%off] rows %rows stride %stride {alignment = 16 : i64} : !attn.global<?x128xf16>
      attn.store_result %h, %view[%row] : tensor<128x128xf16, #attn.auto>, !attn.global<?x128xf16>
    }
    partition "mma" warps 1 registers 24 {
      %first = attn.cursor.start %ch as "mma" : !attn.channel<2>
      %firstb = attn.cursor.start %chb as "mma" : !attn.channel<2>
      %dcur = attn.cursor.start %dch as "mma" : !attn.channel<1>
      %di, %dt = attn.channel.acquire %dch[%dcur] as "mma" : !attn.channel<1>
      %last:2 = scf.for %i = %c0 to %steps step %c1 iter_args(%cur = %first, %curb = %firstb) -> (!attn.cursor, !attn.cursor) : i32 {
        %idx, %tok = attn.channel.acquire %ch[%cur] as "mma" : !attn.channel<2>
        %idxb, %tokb = attn.channel.acquire %chb[%curb] as "mma" : !attn.channel<2>
        %as = attn.slot %a[%idx] : !ring -> !tile
        %bs = attn.slot %b[%idxb] : !ring -> !tile
        %bt = attn.transpose %bs : !tile -> !tileT
        %more = arith.cmpi ne, %i, %c0 : i32
        attn.elect {
          attn.tcgen05.mma %as, %bt, %d accumulate %more : !tile, !tileT, !d
          attn.channel.release %ch, %tok as "mma" : !attn.channel<2>
          attn.channel.release %chb, %tokb as "mma" : !attn.channel<2>
        }
        %next = attn.cursor.advance %cur on %ch : !attn.channel<2>
        %nextb = attn.cursor.advance %curb on %chb : !attn.channel<2>
        scf.yield %next, %nextb : !attn.cursor, !attn.cursor
      }
      attn.elect {
        attn.channel.release %dch, %dt as "mma" : !attn.channel<1>
      }
    }
    partition "load" warps 3 registers 24 {
      attn.elect {
        %first = attn.cursor.start %ch as "load" : !attn.channel<2>
        %firstb = attn.cursor.start %chb as "load" : !attn.channel<2>
        %last:2 = scf.for %i = %c0 to %steps step %c1 iter_args(%cur = %first, %curb = %firstb) -> (!attn.cursor, !attn.cursor) : i32 {
          %k = arith.muli %i, %c64 : i32
          %idx, %tok = attn.channel.acquire %ch[%cur] as "load" : !attn.channel<2>
          %idxb, %tokb = attn.channel.acquire %chb[%curb] as "load" : !attn.channel<2>
          %as = attn.slot %a[%idx] : !ring -> !tile
          %bs = attn.slot %b[%idxb] : !ring -> !tile
          attn.tma.load %amap[%row, %k], %as token %tok : !map, !tile
          attn.tma.load %bmap[%c0, %k], %bs token %tokb : !map, !tile
          attn.channel.release %ch, %tok as "load" : !attn.channel<2>
          attn.channel.release %chb, %tokb as "load" : !attn.channel<2>
          %next = attn.cursor.advance %cur on %ch : !attn.channel<2>
          %nextb = attn.cursor.advance %curb on %chb : !attn.channel<2>
          scf.yield %next, %nextb : !attn.cursor, !attn.cursor
        }
      }
    }
    gpu.return
  }
}
