// RUN: attn-opt %s --split-input-file --pass-pipeline='builtin.module(gpu.module(attn-verify-tokens,attn-check-channels,attn-lower-channels))' -verify-diagnostics

// A role of a channel that others use acquires and releases, too.

gpu.module @kernels {
  gpu.func @only_p() kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %false = arith.constant false
    // expected-error @below {{expected a release by role 'c' of channel 'x', got none}}
    %ch = attn.channel.create {name = "x", roles = [#attn.role<"p", arrive>, #attn.role<"c", arrive>]} : !attn.channel<1>
    // expected-note @below {{so the role after it would wait forever}}
    attn.warp_specialize
    partition "c" warps 4 registers 240 {
    }
    partition "p" warps 4 registers 24 {
      %sp = attn.cursor.start %ch as "p" : !attn.channel<1>
      %ip, %tp = attn.channel.acquire %ch[%sp] as "p" : !attn.channel<1>
      attn.channel.release %ch, %tp as "p" : !attn.channel<1>
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @only_c() kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %false = arith.constant false
    // expected-error @below {{expected a release by role 'p' of channel 'x', got none}}
    %ch = attn.channel.create {name = "x", roles = [#attn.role<"p", arrive>, #attn.role<"c", arrive>]} : !attn.channel<1>
    // expected-note @below {{so the role after it would wait forever}}
    attn.warp_specialize
    partition "c" warps 4 registers 240 {
      %sc = attn.cursor.start %ch as "c" : !attn.channel<1>
      %ic, %tc = attn.channel.acquire %ch[%sc] as "c" : !attn.channel<1>
      attn.channel.release %ch, %tc as "c" : !attn.channel<1>
    }
    partition "p" warps 4 registers 24 {
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @zero_trips_one() kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %false = arith.constant false
    // expected-error @below {{expected a release by role 'c' of channel 'x', got none}}
    %ch = attn.channel.create {name = "x", roles = [#attn.role<"p", arrive>, #attn.role<"c", arrive>]} : !attn.channel<1>
    // expected-note @below {{so the role after it would wait forever}}
    attn.warp_specialize
    partition "c" warps 4 registers 240 {
    }
    partition "p" warps 4 registers 24 {
      scf.for %j = %c0 to %c0 step %c1 : i32 {
        %sp = attn.cursor.start %ch as "p" : !attn.channel<1>
        %ip, %tp = attn.channel.acquire %ch[%sp] as "p" : !attn.channel<1>
        attn.channel.release %ch, %tp as "p" : !attn.channel<1>
      }
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @two_partitions_one_uses() kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %false = arith.constant false
    // expected-error @below {{expected a release by role 'c' of channel 'x' in partition "p", got none}}
    %ch = attn.channel.create {name = "x", roles = [#attn.role<"p", arrive>, #attn.role<"c" in ["c","p"], arrive>]} : !attn.channel<1>
    // expected-note @below {{so the role after it would wait forever}}
    attn.warp_specialize
    partition "c" warps 4 registers 240 {
      %sc = attn.cursor.start %ch as "c" : !attn.channel<1>
      %ic, %tc = attn.channel.acquire %ch[%sc] as "c" : !attn.channel<1>
      attn.channel.release %ch, %tc as "c" : !attn.channel<1>
    }
    partition "p" warps 4 registers 24 {
      %sp = attn.cursor.start %ch as "p" : !attn.channel<1>
      %ip, %tp = attn.channel.acquire %ch[%sp] as "p" : !attn.channel<1>
      attn.channel.release %ch, %tp as "p" : !attn.channel<1>
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @acquire_no_release_both() kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %false = arith.constant false
    %ch = attn.channel.create {name = "x", roles = [#attn.role<"p", arrive>, #attn.role<"c", arrive>]} : !attn.channel<1>
    attn.warp_specialize
    partition "c" warps 4 registers 240 {
      %sc = attn.cursor.start %ch as "c" : !attn.channel<1>
      // expected-error @below {{expected a use of the token on each path, got none}}
      %ic, %tc = attn.channel.acquire %ch[%sc] as "c" : !attn.channel<1>
    }
    partition "p" warps 4 registers 24 {
      %sp = attn.cursor.start %ch as "p" : !attn.channel<1>
      %ip, %tp = attn.channel.acquire %ch[%sp] as "p" : !attn.channel<1>
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @unreachable_one() kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %false = arith.constant false
    %ch = attn.channel.create {name = "x", roles = [#attn.role<"p", arrive>, #attn.role<"c", arrive>]} : !attn.channel<1>
    attn.warp_specialize
    partition "c" warps 4 registers 240 {
      scf.if %false {
        %sc = attn.cursor.start %ch as "c" : !attn.channel<1>
      // expected-error @below {{balance: expected roles to acquire equal numbers of slots of channel 'x' per tile, got 1 as role 'p' in partition 'p' and (0 ? 1 : 0) as role 'c' in partition 'c': 1 and 0}}
        %ic, %tc = attn.channel.acquire %ch[%sc] as "c" : !attn.channel<1>
        attn.channel.release %ch, %tc as "c" : !attn.channel<1>
      }
    }
    partition "p" warps 4 registers 24 {
      %sp = attn.cursor.start %ch as "p" : !attn.channel<1>
      // expected-note @below {{the other role acquires here}}
      %ip, %tp = attn.channel.acquire %ch[%sp] as "p" : !attn.channel<1>
      attn.channel.release %ch, %tp as "p" : !attn.channel<1>
    }
    gpu.return
  }
}
