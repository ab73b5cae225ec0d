// RUN: attn-test-opt %s --pass-pipeline='builtin.module(gpu.module(attn-lower-channels))' -split-input-file -verify-diagnostics

// An op that takes a channel, a cursor or a token and does not answer
// ChannelUserOpInterface is refused.

!ch = !attn.channel<1>
gpu.module @kernels {
  gpu.func @channel() kernel {
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
  gpu.func @token() kernel {
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
  gpu.func @cursor() kernel {
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
  gpu.func @later(%n: i32, %counter: !llvm.ptr<1>) kernel {
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

// -----

// All cases of a switch bring as many bytes, since they were announced before.

!slot = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!ch = !attn.channel<1>
gpu.module @kernels {
  gpu.func @cases(%c: index) kernel {
    %k = attn.channel.create {name = "k", roles = [#attn.role<"a", tx>, #attn.role<"b", arrive>]} : !ch
    %slot = attn.alloc {name = "k"} : !slot
    attn.warp_specialize
    partition "a" warps 4 registers 96 {
      attn.elect {
        %cursor = attn.cursor.start %k as "a" : !ch
        // expected-note @below {{the bytes are announced here, where the slot is acquired}}
        %i, %t = attn.channel.acquire %k[%cursor] as "a" : !ch
        // expected-error @below {{expected loads of as many bytes on both paths, got 0 and 8192}}
        scf.index_switch %c
        case 1 {
          test_attn.async_fill %slot token %t : !slot
          scf.yield
        }
        default {
        }
        attn.channel.release %k, %t as "a" : !ch
      }
    }
    partition "b" warps 4 registers 96 {
      %cursor = attn.cursor.start %k as "b" : !ch
      %i, %t = attn.channel.acquire %k[%cursor] as "b" : !ch
      attn.channel.release %k, %t as "b" : !ch
    }
    gpu.return
  }
}
