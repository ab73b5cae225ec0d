// Loops of many trips in which nothing happens.
gpu.module @kernels {
  gpu.func @signals(%n: i32) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %go = attn.channel.create {name = "go", roles = [#attn.role<"producer", arrive>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    attn.warp_specialize
    partition "consumer" warps 4 registers 160 {
      %c = attn.cursor.start %go as "consumer" : !attn.channel<2>
      %r = scf.for %i = %zero to %n step %one iter_args(%a1 = %c) -> (!attn.cursor) : i32 {
        %r2 = scf.for %j = %zero to %n step %one iter_args(%a2 = %a1) -> (!attn.cursor) : i32 {
          %r3 = scf.for %k = %zero to %n step %one iter_args(%at = %a2) -> (!attn.cursor) : i32 {
            %s = arith.addi %i, %j : i32
            %s2 = arith.addi %s, %k : i32
            %c9 = arith.constant 900000 : i32
            %q = arith.cmpi sgt, %s2, %c9 : i32
            %f = scf.if %q -> !attn.cursor {
              %index, %token = attn.channel.acquire %go[%at] as "consumer" : !attn.channel<2>
              attn.channel.release %go, %token as "consumer" : !attn.channel<2>
              %next = attn.cursor.advance %at on %go : !attn.channel<2>
              scf.yield %next : !attn.cursor
            } else {
              scf.yield %at : !attn.cursor
            }
            scf.yield %f : !attn.cursor
          }
          scf.yield %r3 : !attn.cursor
        }
        scf.yield %r2 : !attn.cursor
      }
    }
    partition "producer" warps 4 registers 160 {
      %c = attn.cursor.start %go as "producer" : !attn.channel<2>
      %z = arith.constant 7 : i32
      %r = scf.for %i = %z to %z step %one iter_args(%at = %c) -> (!attn.cursor) : i32 {
        %index, %token = attn.channel.acquire %go[%at] as "producer" : !attn.channel<2>
        attn.channel.release %go, %token as "producer" : !attn.channel<2>
        %next = attn.cursor.advance %at on %go : !attn.channel<2>
        scf.yield %next : !attn.cursor
      }
    }
    gpu.return
  }
}
