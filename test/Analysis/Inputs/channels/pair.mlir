// V trails K by a block: the consumer holds a slot of V while it waits for the next K.
#rows = #attn.swizzled<span = 128>
gpu.module @kernels [#attn.target<chip = "sm_90a">] {
  gpu.func @pair(%n: i32, %map: !attn.tensor_map<1x1x64x64xf16, swizzle = 128>) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %k = attn.alloc {name = "k"} : !attn.buffer<2x64x64xf16, #rows, shared>
    %v = attn.alloc {name = "v"} : !attn.buffer<2x64x64xf16, #rows, shared>
    %k_ring = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    %v_ring = attn.channel.create {name = "v", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 240 {
      %c = attn.cursor.start %k_ring as "consumer" : !attn.channel<2>
      %d = attn.cursor.start %v_ring as "consumer" : !attn.channel<2>
      %some = arith.cmpi sgt, %n, %zero : i32
      %e:2 = scf.if %some -> (!attn.cursor, !attn.cursor) {
        %k_index, %k_token = attn.channel.acquire %k_ring[%c] as "consumer" : !attn.channel<2>
        attn.channel.release %k_ring, %k_token as "consumer" : !attn.channel<2>
        %c1 = attn.cursor.advance %c on %k_ring : !attn.channel<2>
        %r:2 = scf.for %i = %one to %n step %one iter_args(%ck = %c1, %cv = %d) -> (!attn.cursor, !attn.cursor) : i32 {
          %v1_index, %v1_token = attn.channel.acquire %v_ring[%cv] as "consumer" : !attn.channel<2>
          %v1 = attn.slot %v[%v1_index] : !attn.buffer<2x64x64xf16, #rows, shared> -> !attn.buffer<64x64xf16, #rows, shared>
          %k1_index, %k1_token = attn.channel.acquire %k_ring[%ck] as "consumer" : !attn.channel<2>
          %k1 = attn.slot %k[%k1_index] : !attn.buffer<2x64x64xf16, #rows, shared> -> !attn.buffer<64x64xf16, #rows, shared>
          %tk = attn.local_load %k1 : !attn.buffer<64x64xf16, #rows, shared> -> tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
          %tv = attn.local_load %v1 : !attn.buffer<64x64xf16, #rows, shared> -> tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
          attn.channel.release %k_ring, %k1_token as "consumer" : !attn.channel<2>
          attn.channel.release %v_ring, %v1_token as "consumer" : !attn.channel<2>
          %ck1 = attn.cursor.advance %ck on %k_ring : !attn.channel<2>
          %cv1 = attn.cursor.advance %cv on %v_ring : !attn.channel<2>
          scf.yield %ck1, %cv1 : !attn.cursor, !attn.cursor
        }
        %v_index, %v_token = attn.channel.acquire %v_ring[%r#1] as "consumer" : !attn.channel<2>
        attn.channel.release %v_ring, %v_token as "consumer" : !attn.channel<2>
        %d1 = attn.cursor.advance %r#1 on %v_ring : !attn.channel<2>
        scf.yield %r#0, %d1 : !attn.cursor, !attn.cursor
      } else {
        scf.yield %c, %d : !attn.cursor, !attn.cursor
      }
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        %c = attn.cursor.start %k_ring as "producer" : !attn.channel<2>
        %d = attn.cursor.start %v_ring as "producer" : !attn.channel<2>
        %r:2 = scf.for %i = %zero to %n step %one iter_args(%ck = %c, %cv = %d) -> (!attn.cursor, !attn.cursor) : i32 {
          %k_index, %k_token = attn.channel.acquire %k_ring[%ck] as "producer" : !attn.channel<2>
          %v_index, %v_token = attn.channel.acquire %v_ring[%cv] as "producer" : !attn.channel<2>
          %k1 = attn.slot %k[%k_index] : !attn.buffer<2x64x64xf16, #rows, shared> -> !attn.buffer<64x64xf16, #rows, shared>
          %v1 = attn.slot %v[%v_index] : !attn.buffer<2x64x64xf16, #rows, shared> -> !attn.buffer<64x64xf16, #rows, shared>
          attn.tma.load %map[%zero, %zero, %i, %zero], %k1 token %k_token : !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #rows, shared>
          attn.tma.load %map[%zero, %zero, %i, %zero], %v1 token %v_token : !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #rows, shared>
          attn.channel.release %k_ring, %k_token as "producer" : !attn.channel<2>
          attn.channel.release %v_ring, %v_token as "producer" : !attn.channel<2>
          %ck1 = attn.cursor.advance %ck on %k_ring : !attn.channel<2>
          %cv1 = attn.cursor.advance %cv on %v_ring : !attn.channel<2>
          scf.yield %ck1, %cv1 : !attn.cursor, !attn.cursor
        }
      }
    }
    gpu.return
  }
}
