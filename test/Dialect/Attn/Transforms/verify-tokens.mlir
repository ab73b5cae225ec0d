// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-verify-tokens))' -o /dev/null

// What may be done with cursors, tokens and accumulators.

!slot = !attn.buffer<64x64xf16, #attn.auto, shared>
!acc = !attn.inflight<64x64xf32>
!tile = tensor<64x64xf32, #attn.auto>
gpu.module @kernels {
  gpu.func @kernel(%n: i32, %cond: i1) kernel {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %a = attn.alloc {name = "a"} : !slot
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", arrive>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 240 {
      %c0 = attn.cursor.start %k as "consumer" : !attn.channel<2>
      // In one branch only: the cursor is passed on by the other one.
      %c1 = scf.if %cond -> !attn.cursor {
        %i, %t = attn.channel.acquire %k[%c0] as "consumer" : !attn.channel<2>
        attn.channel.release %k, %t as "consumer" : !attn.channel<2>
        %next = attn.cursor.advance %c0 on %k : !attn.channel<2>
        scf.yield %next : !attn.cursor
      } else {
        scf.yield %c0 : !attn.cursor
      }
      // A token and an accumulator cross the back-edge.
      %i1, %t1 = attn.channel.acquire %k[%c1] as "consumer" : !attn.channel<2>
      %c2 = attn.cursor.advance %c1 on %k : !attn.channel<2>
      %s1 = attn.wgmma %a, %a : !slot, !slot -> !acc
      %r:3 = scf.for %i = %zero to %n step %one iter_args(%c = %c2, %held = %t1, %s = %s1) -> (!attn.cursor, !attn.token, !acc) : i32 {
        %j, %t = attn.channel.acquire %k[%c] as "consumer" : !attn.channel<2>
        %next = attn.cursor.advance %c on %k : !attn.channel<2>
        %more = attn.wgmma %a, %a acc %s : !acc : !slot, !slot -> !acc
        attn.channel.release %k, %held as "consumer" : !attn.channel<2>
        scf.yield %next, %t, %more : !attn.cursor, !attn.token, !acc
      }
      %sum = attn.wgmma.wait %r#2 {pending = 0} : !acc -> !tile
      // A position that is advanced from before it is acquired.
      %ahead = attn.cursor.advance %r#0 on %k : !attn.channel<2>
      %late:2 = scf.for %i = %zero to %n step %one iter_args(%behind = %r#0, %front = %ahead) -> (!attn.cursor, !attn.cursor) : i32 {
        %j, %t = attn.channel.acquire %k[%behind] as "consumer" : !attn.channel<2>
        attn.channel.release %k, %t as "consumer" : !attn.channel<2>
        %next = attn.cursor.advance %front on %k : !attn.channel<2>
        scf.yield %front, %next : !attn.cursor, !attn.cursor
      }
      %i4, %t4 = attn.channel.acquire %k[%late#0] as "consumer" : !attn.channel<2>
      attn.channel.release %k, %t4 as "consumer" : !attn.channel<2>
      // Both branches release.
      scf.if %cond {
        attn.elect {
          attn.channel.release %k, %r#1 as "consumer" : !attn.channel<2>
        }
      } else {
        attn.channel.release %k, %r#1 as "consumer" : !attn.channel<2>
      }
    }
    partition "producer" warps 4 registers 24 {
    }
    gpu.return
  }
}
