// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-verify-tokens))' --split-input-file -verify-diagnostics

gpu.module @kernels {
  gpu.func @not_released() kernel {
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %c = attn.cursor.start %k as "consumer" : !attn.channel<2>
      // expected-error@below {{expected a use of the token on each path, got none}}
      %i, %t = attn.channel.acquire %k[%c] as "consumer" : !attn.channel<2>
    }
    partition "producer" warps 4 registers 24 {

    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @released_twice() kernel {
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %c = attn.cursor.start %k as "consumer" : !attn.channel<2>
      // expected-note@below {{the token is made here}}
      %i, %t = attn.channel.acquire %k[%c] as "consumer" : !attn.channel<2>
      // expected-note@below {{it is used here}}
      attn.channel.release %k, %t as "consumer" : !attn.channel<2>
      // expected-error@below {{expected one use of the token on each path, got another one}}
      attn.channel.release %k, %t as "consumer" : !attn.channel<2>
    }
    partition "producer" warps 4 registers 24 {

    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @released_on_one_path(%cond: i1) kernel {
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %c = attn.cursor.start %k as "consumer" : !attn.channel<2>
      // expected-note@below {{the token is made here}}
      %i, %t = attn.channel.acquire %k[%c] as "consumer" : !attn.channel<2>
      // expected-error@below {{expected the same uses of the token on both paths}}
      scf.if %cond {
        attn.channel.release %k, %t as "consumer" : !attn.channel<2>
      }
    }
    partition "producer" warps 4 registers 24 {

    }
    gpu.return
  }
}

// -----

!acc = !attn.inflight<64x8xf32>
!q = !attn.buffer<64x16xf16, #attn.swizzled<span = 32>, shared>
!k = !attn.buffer<16x8xf16, #attn.rows, shared>
gpu.module @kernels {
  gpu.func @awaited_in_a_rare_region(%f: f32, %q: !q, %k: !k) kernel {
    // expected-note@below {{the accumulator in flight is made here}}
    %s = attn.wgmma %q, %k : !q, !k -> !acc
    %p = arith.constant dense<true> : tensor<64x8xi1, #attn.auto>
    // expected-error@below {{expected the same uses of the accumulator in flight on both paths}}
    %r = attn.rare any %p default(%f : f32) {each_warpgroup} : tensor<64x8xi1, #attn.auto> {
      %t = attn.wgmma.wait %s {pending = 0} : !acc -> tensor<64x8xf32, #attn.auto>
      attn.yield %f : f32
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @released_in_a_loop(%x: i32) kernel {
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %c = attn.cursor.start %k as "consumer" : !attn.channel<2>
      // expected-note@below {{the token is made here}}
      %i, %t = attn.channel.acquire %k[%c] as "consumer" : !attn.channel<2>
      // expected-note@below {{the region is here}}
      scf.for %j = %x to %x step %x : i32 {
        // expected-error@below {{expected the region to make or carry the token, got one from outside}}
        attn.channel.release %k, %t as "consumer" : !attn.channel<2>
      }
    }
    partition "producer" warps 4 registers 24 {

    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @carried_and_released(%x: i32) kernel {
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %c = attn.cursor.start %k as "consumer" : !attn.channel<2>
      // expected-note@below {{the token is made here}}
      %i, %t = attn.channel.acquire %k[%c] as "consumer" : !attn.channel<2>
      // expected-note@below {{it is used here}}
      %r = scf.for %j = %x to %x step %x iter_args(%held = %t) -> !attn.token : i32 {
        scf.yield %held : !attn.token
      }
      attn.channel.release %k, %r as "consumer" : !attn.channel<2>
      // expected-error@below {{expected one use of the token on each path, got another one}}
      attn.channel.release %k, %t as "consumer" : !attn.channel<2>
    }
    partition "producer" warps 4 registers 24 {

    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @lost_by_an_iteration(%x: i32) kernel {
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %c = attn.cursor.start %k as "consumer" : !attn.channel<2>
      %i, %t = attn.channel.acquire %k[%c] as "consumer" : !attn.channel<2>
      // expected-error@below {{expected a use of the token on each path, got none}}
      %r = scf.for %j = %x to %x step %x iter_args(%held = %t) -> !attn.token : i32 {
        %c2 = attn.cursor.start %k as "consumer" : !attn.channel<2>
        %i2, %t2 = attn.channel.acquire %k[%c2] as "consumer" : !attn.channel<2>
        scf.yield %t2 : !attn.token
      }
      attn.channel.release %k, %r as "consumer" : !attn.channel<2>
    }
    partition "producer" warps 4 registers 24 {

    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @selected(%cond: i1) kernel {
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %c = attn.cursor.start %k as "consumer" : !attn.channel<2>
      // expected-note@below {{the token is made here}}
      %i, %t = attn.channel.acquire %k[%c] as "consumer" : !attn.channel<2>
      %c2 = attn.cursor.start %k as "consumer" : !attn.channel<2>
      %i2, %t2 = attn.channel.acquire %k[%c2] as "consumer" : !attn.channel<2>
      // expected-error@below {{expected the token to follow control flow, got a select, which loses one of two}}
      %s = arith.select %cond, %t, %t2 : !attn.token
      attn.channel.release %k, %s as "consumer" : !attn.channel<2>
    }
    partition "producer" warps 4 registers 24 {

    }
    gpu.return
  }
}

// -----

!slot = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!map = !attn.tensor_map<64x64xf16, swizzle = 128>
gpu.module @kernels {
  gpu.func @load_after_release(%map: !map, %x: i32) kernel {
    %a = attn.alloc {name = "a"} : !slot
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %c = attn.cursor.start %k as "consumer" : !attn.channel<2>
      // expected-note@below {{the token is made here}}
      %i, %t = attn.channel.acquire %k[%c] as "consumer" : !attn.channel<2>
      // expected-note@below {{it is used here}}
      attn.channel.release %k, %t as "consumer" : !attn.channel<2>
      // expected-error@below {{expected loads with a token before its release}}
      attn.tma.load %map[%x, %x], %a token %t : !map, !slot
    }
    partition "producer" warps 4 registers 24 {

    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @never_acquired() kernel {
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      // expected-error@below {{expected an acquire of each position that is advanced from, got none of this cursor's}}
      %c = attn.cursor.start %k as "consumer" : !attn.channel<2>
      %n = attn.cursor.advance %c on %k : !attn.channel<2>
    }
    partition "producer" warps 4 registers 24 {

    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @acquired_twice() kernel {
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      // expected-note@below {{the cursor is made here}}
      %c = attn.cursor.start %k as "consumer" : !attn.channel<2>
      // expected-note@below {{it is used here}}
      %i, %t = attn.channel.acquire %k[%c] as "consumer" : !attn.channel<2>
      // expected-error@below {{expected one acquire of a position, got another one}}
      %i2, %t2 = attn.channel.acquire %k[%c] as "consumer" : !attn.channel<2>
      attn.channel.release %k, %t2 as "consumer" : !attn.channel<2>
      attn.channel.release %k, %t as "consumer" : !attn.channel<2>
    }
    partition "producer" warps 4 registers 24 {

    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @advanced_twice() kernel {
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      // expected-note@below {{the cursor is made here}}
      %c = attn.cursor.start %k as "consumer" : !attn.channel<2>
      %i, %t = attn.channel.acquire %k[%c] as "consumer" : !attn.channel<2>
      attn.channel.release %k, %t as "consumer" : !attn.channel<2>
      // expected-note@below {{it is used here}}
      %n = attn.cursor.advance %c on %k : !attn.channel<2>
      // expected-error@below {{expected one advance from a position, got another one}}
      %m = attn.cursor.advance %c on %k : !attn.channel<2>
    }
    partition "producer" warps 4 registers 24 {

    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @acquired_again_by_an_iteration(%x: i32) kernel {
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %c = attn.cursor.start %k as "consumer" : !attn.channel<2>
      %r = scf.for %j = %x to %x step %x iter_args(
          // expected-note@below {{the cursor is made here}}
          %c2 = %c) -> !attn.cursor : i32 {
        // expected-error@below {{expected one acquire of a position, got another one}}
        %i2, %t2 = attn.channel.acquire %k[%c2] as "consumer" : !attn.channel<2>
        attn.channel.release %k, %t2 as "consumer" : !attn.channel<2>
        scf.yield %c2 : !attn.cursor
      }
    }
    partition "producer" warps 4 registers 24 {

    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @acquired_after_passing_on(%x: i32) kernel {
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      // expected-note@below {{the cursor is made here}}
      %c = attn.cursor.start %k as "consumer" : !attn.channel<2>
      // expected-note@below {{it is used here}}
      %r = scf.for %j = %x to %x step %x iter_args(%c2 = %c) -> !attn.cursor : i32 {
        scf.yield %c2 : !attn.cursor
      }
      // expected-error@below {{expected one acquire of a position, got another one}}
      %i, %t = attn.channel.acquire %k[%c] as "consumer" : !attn.channel<2>
      attn.channel.release %k, %t as "consumer" : !attn.channel<2>
    }
    partition "producer" warps 4 registers 24 {

    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @dropped_behind_a_loop(%x: i32) kernel {
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %c = attn.cursor.start %k as "consumer" : !attn.channel<2>
      %n = attn.cursor.advance %c on %k : !attn.channel<2>
      // expected-error@below {{expected an acquire of each position that is advanced from, got none of this cursor's}}
      %r:2 = scf.for %j = %x to %x step %x iter_args(%held = %c, %c2 = %n) -> (!attn.cursor, !attn.cursor) : i32 {
        %i2, %t2 = attn.channel.acquire %k[%held] as "consumer" : !attn.channel<2>
        attn.channel.release %k, %t2 as "consumer" : !attn.channel<2>
        %n2 = attn.cursor.advance %c2 on %k : !attn.channel<2>
        scf.yield %c2, %n2 : !attn.cursor, !attn.cursor
      }
    }
    partition "producer" warps 4 registers 24 {

    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @accumulator_not_awaited(%a: !attn.buffer<64x64xf16, #attn.auto, shared>) kernel {

    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      // expected-error@below {{expected a use of the accumulator in flight on each path, got none}}
      %s = attn.wgmma %a, %a : !attn.buffer<64x64xf16, #attn.auto, shared>, !attn.buffer<64x64xf16, #attn.auto, shared> -> !attn.inflight<64x64xf32>
    }
    partition "producer" warps 4 registers 24 {

    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @accumulator_awaited_twice(%a: !attn.buffer<64x64xf16, #attn.auto, shared>) kernel {

    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      // expected-note@below {{the accumulator in flight is made here}}
      %s = attn.wgmma %a, %a : !attn.buffer<64x64xf16, #attn.auto, shared>, !attn.buffer<64x64xf16, #attn.auto, shared> -> !attn.inflight<64x64xf32>
      // expected-note@below {{it is used here}}
      %r = attn.wgmma.wait %s {pending = 0} : !attn.inflight<64x64xf32> -> tensor<64x64xf32, #attn.auto>
      // expected-error@below {{expected one use of the accumulator in flight on each path, got another one}}
      %r2 = attn.wgmma.wait %s {pending = 0} : !attn.inflight<64x64xf32> -> tensor<64x64xf32, #attn.auto>
    }
    partition "producer" warps 4 registers 24 {

    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @accumulator_of_two(%a: !attn.buffer<64x64xf16, #attn.auto, shared>, %cond: i1) kernel {

    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      // expected-note@below {{the accumulator in flight is made here}}
      %s = attn.wgmma %a, %a : !attn.buffer<64x64xf16, #attn.auto, shared>, !attn.buffer<64x64xf16, #attn.auto, shared> -> !attn.inflight<64x64xf32>
      // expected-error@below {{expected the same uses of the accumulator in flight on both paths}}
      scf.if %cond {
        %u = attn.wgmma %a, %a acc %s : !attn.inflight<64x64xf32> : !attn.buffer<64x64xf16, #attn.auto, shared>, !attn.buffer<64x64xf16, #attn.auto, shared> -> !attn.inflight<64x64xf32>
        %r = attn.wgmma.wait %u {pending = 0} : !attn.inflight<64x64xf32> -> tensor<64x64xf32, #attn.auto>
      }
    }
    partition "producer" warps 4 registers 24 {

    }
    gpu.return
  }
}

// -----

!acc = !attn.inflight<64x64xf32>
!slot = !attn.buffer<64x64xf16, #attn.auto, shared>

gpu.module @kernels {
  gpu.func @lost_on_the_rare_path(%o: tensor<64x64xf32, #attn.auto>) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %a = attn.alloc {name = "a"} : !slot
    // expected-note@below {{the accumulator in flight is made here}}
    %s = attn.wgmma %a, %a : !slot, !slot -> !acc
    %p = arith.constant dense<true> : tensor<64x8xi1, #attn.auto>
    // expected-error@below {{expected the same uses of the accumulator in flight on both paths}}
    %r = attn.rare any %p default(%s : !acc) : tensor<64x8xi1, #attn.auto> {
      %f = attn.wgmma.resume %o : tensor<64x64xf32, #attn.auto> -> !acc
      attn.yield %f : !acc
    }
    %t = attn.wgmma.wait %r {pending = 0} : !acc -> tensor<64x64xf32, #attn.auto>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @part_twice() kernel {
    %q = attn.channel.create {name = "q", roles = [#attn.role<"producer", arrive, parts = ["upper", "lower"]>, #attn.role<"consumer", arrive, parts = ["upper", "lower"]>]} : !attn.channel<1>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      // expected-note@below {{the cursor is made here}}
      %c = attn.cursor.start %q as "consumer" : !attn.channel<1>
      %i0, %t0 = attn.channel.acquire %q[%c] as "consumer" part "upper" : !attn.channel<1>
      // expected-note@below {{it is used here}}
      %i2, %t2 = attn.channel.acquire %q[%c] as "consumer" part "lower" : !attn.channel<1>
      attn.channel.release %q, %t0 as "consumer" : !attn.channel<1>
      attn.channel.release %q, %t2 as "consumer" : !attn.channel<1>
      // expected-error@below {{expected one acquire of a position, got another one}}
      %i1, %t1 = attn.channel.acquire %q[%c] as "consumer" part "upper" : !attn.channel<1>
      attn.channel.release %q, %t1 as "consumer" : !attn.channel<1>
    }
    partition "producer" warps 4 registers 24 {
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @part_left() kernel {
    %q = attn.channel.create {name = "q", roles = [#attn.role<"producer", arrive, parts = ["upper", "lower"]>, #attn.role<"consumer", arrive, parts = ["upper", "lower"]>]} : !attn.channel<1>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      // expected-error@below {{expected an acquire of each position that is advanced from, got none of this cursor's}}
      %c = attn.cursor.start %q as "consumer" : !attn.channel<1>
      %i0, %t0 = attn.channel.acquire %q[%c] as "consumer" part "upper" : !attn.channel<1>
      attn.channel.release %q, %t0 as "consumer" : !attn.channel<1>
      %n = attn.cursor.advance %c on %q : !attn.channel<1>
    }
    partition "producer" warps 4 registers 24 {
    }
    gpu.return
  }
}

// -----

!ring = !attn.buffer<2xi32, #attn.rows, shared>
gpu.module @kernels {
  gpu.func @send_after_release(%x: i32) kernel {
    %ring = attn.alloc {name = "tile"} : !ring
    %c = attn.channel.create {name = "tile", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        %p = attn.cursor.start %c as "producer" : !attn.channel<2>
        attn.cluster_leader {
          // expected-note@below {{the token is made here}}
          %i, %t = attn.channel.acquire %c[%p] as "producer" : !attn.channel<2>
          // expected-note@below {{it is used here}}
          attn.channel.release %c, %t as "producer" : !attn.channel<2>
          // expected-error@below {{expected loads with a token before its release}}
          attn.scalar_send %x, %ring[%i] token %t : !ring
        }
      }
    }
    gpu.return
  }
}
