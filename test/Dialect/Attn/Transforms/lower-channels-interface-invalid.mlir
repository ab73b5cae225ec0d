// RUN: attn-test-opt %s --pass-pipeline='builtin.module(gpu.module(attn-lower-channels))' -split-input-file -verify-diagnostics

// An op that takes a channel, a cursor or a token and does not answer
// ChannelUserOpInterface is refused.

!ch = !attn.channel<1>
gpu.module @kernels {
  gpu.func @channel() kernel attributes {attn.warps = array<i64: 4, 1>} {
    %k = attn.channel.create {name = "k", roles = [#attn.role<"a", arrive>, #attn.role<"b", arrive>]} : !ch
    attn.warp_specialize
    partition "a" warps 4 registers 96 {
      // expected-error @below {{'test_attn.opaque' op does not say what it does with its channel}}
      test_attn.opaque %k : !ch
    }
    partition "b" warps 4 registers 96 {
    }
    gpu.return
  }
}

// -----

!ch = !attn.channel<1>
gpu.module @kernels {
  gpu.func @token() kernel attributes {attn.warps = array<i64: 4, 1>} {
    %k = attn.channel.create {name = "k", roles = [#attn.role<"a", arrive>, #attn.role<"b", arrive>]} : !ch
    attn.warp_specialize
    partition "a" warps 4 registers 96 {
      %c = attn.cursor.start %k as "a" : !ch
      %i, %t = attn.channel.acquire %k[%c] as "a" : !ch
      // expected-error @below {{'test_attn.opaque' op does not say what it does with its token}}
      test_attn.opaque %t : !attn.token
    }
    partition "b" warps 4 registers 96 {
    }
    gpu.return
  }
}

// -----

!ch = !attn.channel<1>
gpu.module @kernels {
  gpu.func @cursor() kernel attributes {attn.warps = array<i64: 4, 1>} {
    %k = attn.channel.create {name = "k", roles = [#attn.role<"a", arrive>, #attn.role<"b", arrive>]} : !ch
    attn.warp_specialize
    partition "a" warps 4 registers 96 {
      %c = attn.cursor.start %k as "a" : !ch
      // expected-error @below {{'test_attn.opaque' op does not say what it does with its cursor}}
      test_attn.opaque %c : !attn.cursor
    }
    partition "b" warps 4 registers 96 {
    }
    gpu.return
  }
}

// -----

// Its slots have to be released by acquires and releases, which a loop over
// tiles does not have yet.

!ch = !attn.channel<1>
gpu.module @kernels {
  gpu.func @later(%n: i32, %counter: !llvm.ptr<1>) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %k = attn.channel.create {name = "k", roles = [#attn.role<"a", arrive>, #attn.role<"b", arrive>]} : !ch
    %ring = attn.alloc {name = "ring"} : !attn.buffer<1xi32, #attn.auto, shared>
    attn.warp_specialize
    partition "a" warps 4 registers 96 {
      // expected-error @below {{'attn.tile_loop' op expected to be lowered before its channel}}
      attn.tile_loop %n scheduler dynamic counter %counter channel %k ring %ring : !llvm.ptr<1>, !ch, !attn.buffer<1xi32, #attn.auto, shared> {
      ^bb0(%tile: i32):
        attn.yield
      }
    }
    partition "b" warps 4 registers 96 {
    }
    gpu.return
  }
}
