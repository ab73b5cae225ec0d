// C = A B^T + bias on sm_100a: A is 256 x 256, B 128 x 256, C 256 x 128, all f16, the bias f32. A CTA has 128 rows of C: a
// thread loads by TMA, another one starts products into tensor memory (tcgen05), a warpgroup stores.

!map  = !attn.tensor_map<128x64xf16, swizzle = 128>
!ring = !attn.buffer<2x128x64xf16, #attn.auto, shared>
!tile = !attn.buffer<128x64xf16, #attn.auto, shared>
!tileT = !attn.buffer<64x128xf16, #attn.auto, shared>
!d    = !attn.buffer<128x128xf32, #attn.tmem<m = 128>, tmem>
gpu.module @kernels [#attn.target<chip = "sm_100a">] {
  gpu.func @gemm(%c: !llvm.ptr<1>, %bias: !llvm.ptr<1>, %amap: !map, %bmap: !map) kernel attributes {known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 1 : i32,
      attn.launch = #attn.launch<chip = "sm_100a", ptx = 88, grid = ["2", "1", "1"], block = [256, 1, 1],
        tensors = [{access = "read", dtype = "f16", name = "a", shape = array<i64: 256, 256>, strides = array<i64: 256, 1>},
                   {access = "read", dtype = "f16", name = "b", shape = array<i64: 128, 256>, strides = array<i64: 256, 1>},
                   {access = "read", dtype = "f32", name = "bias", shape = array<i64: 128>, strides = array<i64: 1>},
                   {access = "write", dtype = "f16", name = "c", shape = array<i64: 256, 128>, strides = array<i64: 128, 1>}],
        args = [{kind = "pointer", tensor = "c"}, {kind = "pointer", tensor = "bias"},
                {box = array<i64: 64, 128>, element = "f16", kind = "tensor_map", rank = 2 : i64, swizzle = "128B", tensor = "a"},
                {box = array<i64: 64, 128>, element = "f16", kind = "tensor_map", rank = 2 : i64, swizzle = "128B", tensor = "b"}]>} {
    %a = attn.alloc {name = "a"} : !ring
    %b = attn.alloc {name = "b"} : !ring
    %d = attn.tmem_alloc {name = "d"} : !d
    %ch = attn.channel.create {name = "ab", roles = [#attn.role<"load", tx>, #attn.role<"mma", commit>]} : !attn.channel<2>
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
      // A value for each column, the same in all rows.
      %first_column = arith.constant 0 : i64
      %one = arith.constant 1 : i64
      %columns = arith.constant 128 : i32
      %biases = attn.global_view %bias[%first_column] rows %columns stride %one : !attn.global<?xf32>
      %line = attn.global_load %biases[%c0] : !attn.global<?xf32> -> tensor<128xf32, #attn.auto>
      %wide = attn.broadcast %line {columns} : tensor<128xf32, #attn.auto> -> tensor<128x128xf32, #attn.auto>
      %sum = arith.addf %t, %wide : tensor<128x128xf32, #attn.auto>
      %h = arith.truncf %sum : tensor<128x128xf32, #attn.auto> to tensor<128x128xf16, #attn.auto>
      %off = arith.constant 0 : i64
      %stride = arith.constant 128 : i64
      %rows = arith.constant 256 : i32
      %view = attn.global_view %c[%off] rows %rows stride %stride {alignment = 16 : i64} : !attn.global<?x128xf16>
      attn.store_result %h, %view[%row] : tensor<128x128xf16, #attn.auto>, !attn.global<?x128xf16>
    }
    partition "mma" warps 1 registers 24 {
      %first = attn.cursor.start %ch as "mma" : !attn.channel<2>
      %dcur = attn.cursor.start %dch as "mma" : !attn.channel<1>
      %di, %dt = attn.channel.acquire %dch[%dcur] as "mma" : !attn.channel<1>
      %last = scf.for %i = %c0 to %steps step %c1 iter_args(%cur = %first) -> (!attn.cursor) : i32 {
        %idx, %tok = attn.channel.acquire %ch[%cur] as "mma" : !attn.channel<2>
        %as = attn.slot %a[%idx] : !ring -> !tile
        %bs = attn.slot %b[%idx] : !ring -> !tile
        %bt = attn.transpose %bs : !tile -> !tileT
        %more = arith.cmpi ne, %i, %c0 : i32
        attn.elect {
          attn.tcgen05.mma %as, %bt, %d accumulate %more : !tile, !tileT, !d
          attn.channel.release %ch, %tok as "mma" : !attn.channel<2>
        }
        %next = attn.cursor.advance %cur on %ch : !attn.channel<2>
        scf.yield %next : !attn.cursor
      }
      attn.elect {
        attn.channel.release %dch, %dt as "mma" : !attn.channel<1>
      }
    }
    partition "load" warps 3 registers 24 {
      attn.elect {
        %first = attn.cursor.start %ch as "load" : !attn.channel<2>
        %last = scf.for %i = %c0 to %steps step %c1 iter_args(%cur = %first) -> (!attn.cursor) : i32 {
          %k = arith.muli %i, %c64 : i32
          %idx, %tok = attn.channel.acquire %ch[%cur] as "load" : !attn.channel<2>
          %as = attn.slot %a[%idx] : !ring -> !tile
          %bs = attn.slot %b[%idx] : !ring -> !tile
          attn.tma.load %amap[%row, %k], %as token %tok : !map, !tile
          attn.tma.load %bmap[%c0, %k], %bs token %tok : !map, !tile
          attn.channel.release %ch, %tok as "load" : !attn.channel<2>
          %next = attn.cursor.advance %cur on %ch : !attn.channel<2>
          scf.yield %next : !attn.cursor
        }
      }
    }
    gpu.return
  }
}
