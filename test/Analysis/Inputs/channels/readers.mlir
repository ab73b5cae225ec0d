// A role of two partitions, and a buffer without slots, which both read.
#rows = #attn.swizzled<span = 128>
#tile = #attn.mma<warps = [4, 1]>
gpu.module @kernels [#attn.target<chip = "sm_90a">] {
  gpu.func @readers(%n: i32) kernel attributes {known_block_size = array<i32: 384, 1, 1>} {
    %p = attn.alloc {name = "p"} : !attn.buffer<64x64xf16, #rows, shared>
    %ring = attn.channel.create {name = "p", roles = [#attn.role<"writer", arrive>, #attn.role<"reader" in ["first", "second"], arrive>]} : !attn.channel<1>
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    attn.warp_specialize
    partition "first" warps 4 tiles [4, 1] registers 160 {
      %c = attn.cursor.start %ring as "reader" : !attn.channel<1>
      %r = scf.for %i = %zero to %n step %one iter_args(%at = %c) -> (!attn.cursor) : i32 {
        %index, %token = attn.channel.acquire %ring[%at] as "reader" : !attn.channel<1>
        %t = attn.local_load %p : !attn.buffer<64x64xf16, #rows, shared> -> tensor<64x64xf16, #tile>
        attn.channel.release %ring, %token as "reader" : !attn.channel<1>
        %next = attn.cursor.advance %at on %ring : !attn.channel<1>
        scf.yield %next : !attn.cursor
      }
    }
    partition "second" warps 4 tiles [4, 1] registers 160 {
      %c = attn.cursor.start %ring as "reader" : !attn.channel<1>
      %r = scf.for %i = %zero to %n step %one iter_args(%at = %c) -> (!attn.cursor) : i32 {
        %index, %token = attn.channel.acquire %ring[%at] as "reader" : !attn.channel<1>
        %t = attn.local_load %p : !attn.buffer<64x64xf16, #rows, shared> -> tensor<64x64xf16, #tile>
        attn.channel.release %ring, %token as "reader" : !attn.channel<1>
        %next = attn.cursor.advance %at on %ring : !attn.channel<1>
        scf.yield %next : !attn.cursor
      }
    }
    partition "writer" warps 4 tiles [4, 1] registers 160 {
      %zeros = arith.constant dense<0.0> : tensor<64x64xf16, #tile>
      %c = attn.cursor.start %ring as "writer" : !attn.channel<1>
      %r = scf.for %i = %zero to %n step %one iter_args(%at = %c) -> (!attn.cursor) : i32 {
        %index, %token = attn.channel.acquire %ring[%at] as "writer" : !attn.channel<1>
        attn.local_store %zeros, %p : tensor<64x64xf16, #tile>, !attn.buffer<64x64xf16, #rows, shared>
        attn.channel.release %ring, %token as "writer" : !attn.channel<1>
        %next = attn.cursor.advance %at on %ring : !attn.channel<1>
        scf.yield %next : !attn.cursor
      }
    }
    gpu.return
  }
}
