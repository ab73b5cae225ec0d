// C = A B^T on sm_90a: A is 128 x 256, B 64 x 256, C 128 x 64, all f16. A CTA has 64 rows of C: one
// thread loads by TMA, one warpgroup multiplies (wgmma). Two CTAs are a cluster and need the same B:
// each loads half of a tile of it for both.
//
// docs/HowTo/write-a-kernel.md goes through it.

!map  = !attn.tensor_map<64x64xf16, swizzle = 128>
!ring = !attn.buffer<2x64x64xf16, #attn.auto, shared>
!tile = !attn.buffer<64x64xf16, #attn.auto, shared>
!acc  = tensor<64x64xf32, #attn.auto>
gpu.module @kernels [#attn.target<chip = "sm_90a">] {
  gpu.func @gemm(%c: !llvm.ptr<1>, %amap: !map, %bmap: !map) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>, known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 1 : i32,
      attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["2", "1", "1"], block = [256, 1, 1], cluster = [2, 1, 1],
        tensors = [{access = "read", dtype = "f16", name = "a", shape = array<i64: 128, 256>, strides = array<i64: 256, 1>},
                   {access = "read", dtype = "f16", name = "b", shape = array<i64: 64, 256>, strides = array<i64: 256, 1>},
                   {access = "write", dtype = "f16", name = "c", shape = array<i64: 128, 64>, strides = array<i64: 64, 1>}],
        args = [{kind = "pointer", tensor = "c"},
                {box = array<i64: 64, 64>, element = "f16", kind = "tensor_map", rank = 2 : i64, swizzle = "128B", tensor = "a"},
                {box = array<i64: 64, 64>, element = "f16", kind = "tensor_map", rank = 2 : i64, swizzle = "128B", tensor = "b"}]>} {
    %a = attn.alloc {name = "a"} : !ring
    %b = attn.alloc {name = "b"} : !ring
    %ch = attn.channel.create {name = "a", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    %chb = attn.channel.create {name = "b", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %steps = arith.constant 4 : i32
    %c64 = arith.constant 64 : i32
    %bx = gpu.block_id x
    %bi = arith.index_cast %bx : index to i32
    %row = arith.muli %bi, %c64 : i32
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 240 {
      %first = attn.cursor.start %ch as "consumer" : !attn.channel<2>
      %firstb = attn.cursor.start %chb as "consumer" : !attn.channel<2>
      %zero = arith.constant dense<0.0> : !acc
      %r:3 = scf.for %i = %c0 to %steps step %c1 iter_args(%cur = %first, %curb = %firstb, %acc = %zero) -> (!attn.cursor, !attn.cursor, !acc) : i32 {
        %idx, %tok = attn.channel.acquire %ch[%cur] as "consumer" : !attn.channel<2>
        %idxb, %tokb = attn.channel.acquire %chb[%curb] as "consumer" : !attn.channel<2>
        %as = attn.slot %a[%idx] : !ring -> !tile
        %bs = attn.slot %b[%idxb] : !ring -> !tile
        %bt = attn.transpose %bs : !tile -> !tile
        %f = attn.wgmma %as, %bt acc %acc : !acc : !tile, !tile -> !attn.inflight<64x64xf32>
        %n = attn.wgmma.wait %f {pending = 0 : i64} : !attn.inflight<64x64xf32> -> !acc
        attn.channel.release %ch, %tok as "consumer" : !attn.channel<2>
        attn.channel.release %chb, %tokb as "consumer" : !attn.channel<2>
        %next = attn.cursor.advance %cur on %ch : !attn.channel<2>
        %nextb = attn.cursor.advance %curb on %chb : !attn.channel<2>
        scf.yield %next, %nextb, %n : !attn.cursor, !attn.cursor, !acc
      }
      %h = arith.truncf %r#2 : !acc to tensor<64x64xf16, #attn.auto>
      %off = arith.constant 0 : i64
      %stride = arith.constant 64 : i64
      %rows = arith.constant 128 : i32
      %view = attn.global_view %c[%off] rows %rows stride %stride {alignment = 16 : i64} : !attn.global<?x64xf16>
      attn.store_result %h, %view[%row] : tensor<64x64xf16, #attn.auto>, !attn.global<?x64xf16>
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        %first = attn.cursor.start %ch as "producer" : !attn.channel<2>
        %firstb = attn.cursor.start %chb as "producer" : !attn.channel<2>
        %last:2 = scf.for %i = %c0 to %steps step %c1 iter_args(%cur = %first, %curb = %firstb) -> (!attn.cursor, !attn.cursor) : i32 {
          %k = arith.muli %i, %c64 : i32
          %idx, %tok = attn.channel.acquire %ch[%cur] as "producer" : !attn.channel<2>
          %idxb, %tokb = attn.channel.acquire %chb[%curb] as "producer" : !attn.channel<2>
          %as = attn.slot %a[%idx] : !ring -> !tile
          %bs = attn.slot %b[%idxb] : !ring -> !tile
          attn.tma.load %amap[%row, %k], %as token %tok : !map, !tile
          attn.tma.load %bmap[%c0, %k], %bs token %tokb : !map, !tile
          attn.channel.release %ch, %tok as "producer" : !attn.channel<2>
          attn.channel.release %chb, %tokb as "producer" : !attn.channel<2>
          %next = attn.cursor.advance %cur on %ch : !attn.channel<2>
          %nextb = attn.cursor.advance %curb on %chb : !attn.channel<2>
          scf.yield %next, %nextb : !attn.cursor, !attn.cursor
        }
      }
    }
    gpu.return
  }
}
