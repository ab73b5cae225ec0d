// Slots that go back in two parts, of which the front one comes first. A second channel, by which
// "scores" lets "weights" go on, is between them.
gpu.module @kernels [#attn.target<chip = "sm_90a">] {
  gpu.func @parts(%n: i32) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %s = attn.channel.create {name = "s", roles = [#attn.role<"scores", arrive>, #attn.role<"weights", arrive, parts = ["front", "back"]>]} : !attn.channel<1>
    %go = attn.channel.create {name = "go", roles = [#attn.role<"scores", arrive>, #attn.role<"weights", arrive>]} : !attn.channel<1>
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    attn.warp_specialize
    partition "scores" warps 4 registers 160 {
      %c = attn.cursor.start %s as "scores" : !attn.channel<1>
      %d = attn.cursor.start %go as "scores" : !attn.channel<1>
      %r:2 = scf.for %i = %zero to %n step %one iter_args(%at = %c, %gt = %d) -> (!attn.cursor, !attn.cursor) : i32 {
        %i0, %front = attn.channel.acquire %s[%at] as "scores" part "front" : !attn.channel<1>
        %j, %signal = attn.channel.acquire %go[%gt] as "scores" : !attn.channel<1>
        attn.channel.release %go, %signal as "scores" : !attn.channel<1>
        %i1, %back = attn.channel.acquire %s[%at] as "scores" part "back" : !attn.channel<1>
        %whole = attn.channel.join %s, %front, %back as "scores" : !attn.channel<1>
        attn.channel.release %s, %whole as "scores" : !attn.channel<1>
        %next = attn.cursor.advance %at on %s : !attn.channel<1>
        %gnext = attn.cursor.advance %gt on %go : !attn.channel<1>
        scf.yield %next, %gnext : !attn.cursor, !attn.cursor
      }
    }
    partition "weights" warps 4 registers 160 {
      %c = attn.cursor.start %s as "weights" : !attn.channel<1>
      %d = attn.cursor.start %go as "weights" : !attn.channel<1>
      %r:2 = scf.for %i = %zero to %n step %one iter_args(%at = %c, %gt = %d) -> (!attn.cursor, !attn.cursor) : i32 {
        %j, %signal = attn.channel.acquire %go[%gt] as "weights" : !attn.channel<1>
        attn.channel.release %go, %signal as "weights" : !attn.channel<1>
        %i0, %token = attn.channel.acquire %s[%at] as "weights" : !attn.channel<1>
        %front, %back = attn.channel.split %s, %token as "weights" : !attn.channel<1> -> !attn.token, !attn.token
        attn.channel.release %s, %front as "weights" : !attn.channel<1>
        attn.channel.release %s, %back as "weights" : !attn.channel<1>
        %next = attn.cursor.advance %at on %s : !attn.channel<1>
        %gnext = attn.cursor.advance %gt on %go : !attn.channel<1>
        scf.yield %next, %gnext : !attn.cursor, !attn.cursor
      }
    }
    gpu.return
  }
}
