// A ring, and as many blocks in a tile as its number says.
#rows = #attn.swizzled<span = 128>
gpu.module @kernels [#attn.target<chip = "sm_90a">] {
  gpu.func @tiles(%n: i32, %map: !attn.tensor_map<1x1x64x64xf16, swizzle = 128>) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %k = attn.alloc {name = "k"} : !attn.buffer<2x64x64xf16, #rows, shared>
    %k_channel = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 240 {
      %c = attn.cursor.start %k_channel as "consumer" : !attn.channel<2>
      %w:2 = scf.while (%tile = %zero, %tc = %c) : (i32, !attn.cursor) -> (i32, !attn.cursor) {
        %more = arith.cmpi slt, %tile, %n : i32
        scf.condition(%more) %tile, %tc : i32, !attn.cursor
      } do {
      ^bb0(%tl: i32, %tk: !attn.cursor):
        %r = scf.for %i = %zero to %tl step %one iter_args(%at = %tk) -> (!attn.cursor) : i32 {
          %index, %token = attn.channel.acquire %k_channel[%at] as "consumer" : !attn.channel<2>
          %slot = attn.slot %k[%index] : !attn.buffer<2x64x64xf16, #rows, shared> -> !attn.buffer<64x64xf16, #rows, shared>
          %p = attn.wgmma %slot, %slot : !attn.buffer<64x64xf16, #rows, shared>, !attn.buffer<64x64xf16, #rows, shared> -> <64x64xf32>
          %t = attn.wgmma.wait %p {pending = 0 : i64} : !attn.inflight<64x64xf32> -> tensor<64x64xf32, #attn.auto>
          attn.channel.release %k_channel, %token as "consumer" : !attn.channel<2>
          %next = attn.cursor.advance %at on %k_channel : !attn.channel<2>
          scf.yield %next : !attn.cursor
        }
        %tn = arith.addi %tl, %one : i32
        scf.yield %tn, %r : i32, !attn.cursor
      }
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        %c = attn.cursor.start %k_channel as "producer" : !attn.channel<2>
        %w:2 = scf.while (%tile = %zero, %tc = %c) : (i32, !attn.cursor) -> (i32, !attn.cursor) {
          %more = arith.cmpi slt, %tile, %n : i32
          scf.condition(%more) %tile, %tc : i32, !attn.cursor
        } do {
        ^bb0(%tl: i32, %tk: !attn.cursor):
          %r = scf.for %i = %zero to %tl step %one iter_args(%at = %tk) -> (!attn.cursor) : i32 {
            %index, %token = attn.channel.acquire %k_channel[%at] as "producer" : !attn.channel<2>
            %slot = attn.slot %k[%index] : !attn.buffer<2x64x64xf16, #rows, shared> -> !attn.buffer<64x64xf16, #rows, shared>
            attn.tma.load %map[%zero, %zero, %i, %zero], %slot token %token : !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #rows, shared>
            attn.channel.release %k_channel, %token as "producer" : !attn.channel<2>
            %next = attn.cursor.advance %at on %k_channel : !attn.channel<2>
            scf.yield %next : !attn.cursor
          }
          %tn = arith.addi %tl, %one : i32
          scf.yield %tn, %r : i32, !attn.cursor
        }
      }
    }
    gpu.return
  }
}
