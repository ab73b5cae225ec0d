// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-lower-channels))' --split-input-file -verify-diagnostics

gpu.module @kernels {
  // expected-note@below {{this kernel has none}}
  gpu.func @no_partitions() kernel {
    // expected-error@below {{expected a channel made before the kernel's attn.warp_specialize}}
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @inside() kernel {

    // expected-note@below {{which is here}}
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      // expected-error@below {{expected a channel made before the kernel's attn.warp_specialize}}
      %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    }
    partition "producer" warps 4 tiles [4, 1] registers 24 {

    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @unknown_role() kernel {
    // expected-error@below {{expected partition "load" of role 'load', got none}}
    %k = attn.channel.create {name = "k", roles = [#attn.role<"load", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    // expected-note@below {{the partitions are here}}
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {

    }
    partition "producer" warps 4 registers 24 {

    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @no_such_role() kernel {
    // expected-note@below {{the channel's roles are here}}
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      // expected-error@below {{expected a role of channel 'k', got 'load'}}
      %c = attn.cursor.start %k as "load" : !attn.channel<2>
    }
    partition "producer" warps 4 registers 24 {

    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @foreign_channel(%k: !attn.channel<2>) kernel {

    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      // expected-error@below {{expected the result of an attn.channel.create as its channel}}
      %c = attn.cursor.start %k as "consumer" : !attn.channel<2>
    }
    partition "producer" warps 4 registers 24 {

    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @advance_foreign_channel(%k2: !attn.channel<2>) kernel {
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %c = attn.cursor.start %k as "consumer" : !attn.channel<2>
      // expected-error@below {{expected the result of an attn.channel.create as its channel}}
      %n = attn.cursor.advance %c on %k2 : !attn.channel<2>
    }
    partition "producer" warps 4 registers 24 {

    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @acquire_elsewhere() kernel {
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %c = attn.cursor.start %k as "producer" : !attn.channel<2>
      // expected-error@below {{expected to stand in partition "producer" of role 'producer', got partition "consumer"}}
      %i, %t = attn.channel.acquire %k[%c] as "producer" : !attn.channel<2>
    }
    partition "producer" warps 4 registers 24 {

    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @acquire_outside() kernel {
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    %c = attn.cursor.start %k as "consumer" : !attn.channel<2>
    // expected-error@below {{expected to stand in partition "consumer" of role 'consumer', got no partition}}
    %i, %t = attn.channel.acquire %k[%c] as "consumer" : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {

    }
    partition "producer" warps 4 registers 24 {

    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @release_elsewhere() kernel {
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %c = attn.cursor.start %k as "consumer" : !attn.channel<2>
      %i, %t = attn.channel.acquire %k[%c] as "consumer" : !attn.channel<2>
      // expected-error@below {{expected to stand in partition "producer" of role 'producer', got partition "consumer"}}
      attn.channel.release %k, %t as "producer" : !attn.channel<2>
    }
    partition "producer" warps 4 registers 24 {

    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @release_of_other_channel() kernel {
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    %v = attn.channel.create {name = "v", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %c = attn.cursor.start %k as "consumer" : !attn.channel<2>
      %i, %t = attn.channel.acquire %k[%c] as "consumer" : !attn.channel<2>
      // expected-error@below {{expected a token of role 'consumer' of channel 'v', got one of role 'consumer' of channel 'k'}}
      attn.channel.release %v, %t as "consumer" : !attn.channel<2>
    }
    partition "producer" warps 4 registers 24 {

    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @acquire_of_other_role() kernel {
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %c = attn.cursor.start %k as "producer" : !attn.channel<2>
      // expected-error@below {{expected a cursor of role 'consumer' of channel 'k', got one of role 'producer' of channel 'k'}}
      %i, %t = attn.channel.acquire %k[%c] as "consumer" : !attn.channel<2>
    }
    partition "producer" warps 4 registers 24 {

    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @advance_on_other_channel() kernel {
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    %v = attn.channel.create {name = "v", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %c = attn.cursor.start %k as "consumer" : !attn.channel<2>
      // expected-error@below {{expected a cursor of role 'consumer' of channel 'v', got one of role 'consumer' of channel 'k'}}
      %n = attn.cursor.advance %c on %v : !attn.channel<2>
    }
    partition "producer" warps 4 registers 24 {

    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @cursor_from_outside(%c: !attn.cursor) kernel {
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      // expected-error@below {{expected a cursor of role 'consumer' of channel 'k', got one from outside the kernel}}
      %i, %t = attn.channel.acquire %k[%c] as "consumer" : !attn.channel<2>
    }
    partition "producer" warps 4 registers 24 {

    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @channels_meet(%cond: i1) kernel {
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    %v = attn.channel.create {name = "v", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %a = attn.cursor.start %k as "consumer" : !attn.channel<2>
      %b = attn.cursor.start %v as "consumer" : !attn.channel<2>
      %c = scf.if %cond -> !attn.cursor {
        scf.yield %a : !attn.cursor
      } else {
        // expected-error@below {{expected cursors and tokens of one role to meet, got role 'consumer' of channel 'k' and role 'consumer' of channel 'v'}}
        scf.yield %b : !attn.cursor
      }
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
  gpu.func @load_into_arrive_role(%map: !map, %x: i32) kernel {
    %a = attn.alloc {name = "a"} : !slot
    // expected-note@below {{the channel is here}}
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %c = attn.cursor.start %k as "consumer" : !attn.channel<2>
      %i, %t = attn.channel.acquire %k[%c] as "consumer" : !attn.channel<2>
      // expected-error@below {{expected the token of a role that signals by tx, got role 'consumer' of channel 'k', which signals by arrive}}
      attn.tma.load %map[%x, %x], %a token %t : !map, !slot
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
  gpu.func @load_with_foreign_token(%map: !map, %x: i32, %t: !attn.token) kernel {
    %a = attn.alloc {name = "a"} : !slot
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {

    }
    partition "producer" warps 4 registers 24 {
      // expected-error@below {{expected a token of a channel of the kernel, got one from outside}}
      attn.tma.load %map[%x, %x], %a token %t : !map, !slot
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @different_counts() kernel {
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %c0 = attn.cursor.start %k as "consumer" : !attn.channel<2>
      %i0, %t0 = attn.channel.acquire %k[%c0] as "consumer" : !attn.channel<2>
      // expected-note@below {{the other release is here}}
      attn.channel.release %k, %t0 as "consumer" : !attn.channel<2>
      %c1 = attn.cursor.advance %c0 on %k : !attn.channel<2>
      %i1, %t1 = attn.channel.acquire %k[%c1] as "consumer" : !attn.channel<2>
      attn.elect {
        // expected-error@below {{expected as many arrivals at each release, got 1 here and 4 elsewhere}}
        attn.channel.release %k, %t1 as "consumer" : !attn.channel<2>
      }
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        %c = attn.cursor.start %k as "producer" : !attn.channel<2>
        %i, %t = attn.channel.acquire %k[%c] as "producer" : !attn.channel<2>
        attn.channel.release %k, %t as "producer" : !attn.channel<2>
      }
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @tx_by_all() kernel {
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %c = attn.cursor.start %k as "consumer" : !attn.channel<2>
      %i, %t = attn.channel.acquire %k[%c] as "consumer" : !attn.channel<2>
      attn.channel.release %k, %t as "consumer" : !attn.channel<2>
    }
    partition "producer" warps 4 registers 24 {
      %c = attn.cursor.start %k as "producer" : !attn.channel<2>
      // expected-error@below {{expected to stand in an attn.elect, since one thread announces the bytes of a tx role}}
      %i, %t = attn.channel.acquire %k[%c] as "producer" : !attn.channel<2>
      attn.channel.release %k, %t as "producer" : !attn.channel<2>
    }
    gpu.return
  }
}

// -----

!slot = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!map = !attn.tensor_map<64x64xf16, swizzle = 128>
gpu.module @kernels {
  gpu.func @different_bytes(%map: !map, %x: i32, %cond: i1) kernel {
    %a = attn.alloc {name = "a"} : !slot
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %c = attn.cursor.start %k as "consumer" : !attn.channel<2>
      %i, %t = attn.channel.acquire %k[%c] as "consumer" : !attn.channel<2>
      attn.channel.release %k, %t as "consumer" : !attn.channel<2>
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        %c = attn.cursor.start %k as "producer" : !attn.channel<2>
        // expected-note@below {{the bytes are announced here, where the slot is acquired}}
        %i, %t = attn.channel.acquire %k[%c] as "producer" : !attn.channel<2>
        // expected-error@below {{expected loads of as many bytes on both paths, got 8192 and 0}}
        scf.if %cond {
          attn.tma.load %map[%x, %x], %a token %t : !map, !slot
        }
        attn.channel.release %k, %t as "producer" : !attn.channel<2>
      }
    }
    gpu.return
  }
}

// -----

!slot = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!map = !attn.tensor_map<64x64xf16, swizzle = 128>
gpu.module @kernels {
  gpu.func @load_in_loop(%map: !map, %x: i32) kernel {
    %a = attn.alloc {name = "a"} : !slot
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %c = attn.cursor.start %k as "consumer" : !attn.channel<2>
      %i, %t = attn.channel.acquire %k[%c] as "consumer" : !attn.channel<2>
      attn.channel.release %k, %t as "consumer" : !attn.channel<2>
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        %c = attn.cursor.start %k as "producer" : !attn.channel<2>
        // expected-note@below {{the slot is acquired here}}
        %i, %t = attn.channel.acquire %k[%c] as "producer" : !attn.channel<2>
        // expected-error@below {{expected loads outside of loops, since their bytes are announced when the slot is acquired}}
        scf.for %j = %x to %x step %x : i32 {
          attn.tma.load %map[%x, %x], %a token %t : !map, !slot
        }
        attn.channel.release %k, %t as "producer" : !attn.channel<2>
      }
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @tx_token_passed_on(%cond: i1) kernel {
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %c = attn.cursor.start %k as "consumer" : !attn.channel<2>
      %i, %t = attn.channel.acquire %k[%c] as "consumer" : !attn.channel<2>
      attn.channel.release %k, %t as "consumer" : !attn.channel<2>
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        %c = attn.cursor.start %k as "producer" : !attn.channel<2>
        %i, %t = attn.channel.acquire %k[%c] as "producer" : !attn.channel<2>
        %u = scf.if %cond -> !attn.token {
          // expected-error@below {{expected the token of a tx role to be used by loads and its release only}}
          scf.yield %t : !attn.token
        } else {
          scf.yield %t : !attn.token
        }
        attn.channel.release %k, %u as "producer" : !attn.channel<2>
      }
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @never_released() kernel {
    // expected-error@below {{expected a release by role 'consumer' of channel 'k', got none}}
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    // expected-note@below {{so the role after it would wait forever}}
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {

    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        %c = attn.cursor.start %k as "producer" : !attn.channel<2>
        %i, %t = attn.channel.acquire %k[%c] as "producer" : !attn.channel<2>
        attn.channel.release %k, %t as "producer" : !attn.channel<2>
      }
    }
    gpu.return
  }
}

// -----

!slot = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!map = !attn.tensor_map<64x64xf16, swizzle = 128>
gpu.module @kernels {
  // expected-note@below {{the kernel's known_cluster_size says so}}
  gpu.func @cluster_too_small(%map: !map, %x: i32) kernel {
    %a = attn.alloc {name = "a"} : !attn.buffer<128x64xf16, #attn.swizzled<span = 128>, shared>
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %c = attn.cursor.start %k as "consumer" : !attn.channel<2>
      %i, %t = attn.channel.acquire %k[%c] as "consumer" : !attn.channel<2>
      attn.channel.release %k, %t as "consumer" : !attn.channel<2>
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        %c = attn.cursor.start %k as "producer" : !attn.channel<2>
        %i, %t = attn.channel.acquire %k[%c] as "producer" : !attn.channel<2>
        // expected-error@below {{expected a cluster of 2 CTAs, got 1}}
        attn.tma.load %map[%x, %x], %a token %t {multicast = 2} : !map, !attn.buffer<128x64xf16, #attn.swizzled<span = 128>, shared>
        attn.channel.release %k, %t as "producer" : !attn.channel<2>
      }
    }
    gpu.return
  }
}

// -----

!slot = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!map = !attn.tensor_map<64x64xf16, swizzle = 128>
gpu.module @kernels {
  gpu.func @different_multicast(%map: !map, %x: i32) kernel {
    %a = attn.alloc {name = "a"} : !attn.buffer<128x64xf16, #attn.swizzled<span = 128>, shared>
    %b = attn.alloc {name = "b"} : !slot
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %c = attn.cursor.start %k as "consumer" : !attn.channel<2>
      %i, %t = attn.channel.acquire %k[%c] as "consumer" : !attn.channel<2>
      attn.channel.release %k, %t as "consumer" : !attn.channel<2>
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        %c = attn.cursor.start %k as "producer" : !attn.channel<2>
        %i, %t = attn.channel.acquire %k[%c] as "producer" : !attn.channel<2>
        // expected-note@below {{the other load is here}}
        attn.tma.load %map[%x, %x], %a token %t {multicast = 2} : !map, !attn.buffer<128x64xf16, #attn.swizzled<span = 128>, shared>
        // expected-error@below {{expected all loads of role 'producer' of channel 'k' to go to as many CTAs, got 1 here and 2 elsewhere}}
        attn.tma.load %map[%x, %x], %b token %t : !map, !slot
        attn.channel.release %k, %t as "producer" : !attn.channel<2>
      }
    }
    gpu.return
  }
}

// -----

!slot = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!map = !attn.tensor_map<64x64xf16, swizzle = 128>
gpu.module @kernels {
  gpu.func @tx_before_multicast(%map: !map, %x: i32) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    %a = attn.alloc {name = "a"} : !attn.buffer<128x64xf16, #attn.swizzled<span = 128>, shared>
    // expected-error@below {{expected a role that signals by arrive before one with multicast loads, got role 'consumer' of channel 'k'}}
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", tx>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      attn.elect {
        %c = attn.cursor.start %k as "consumer" : !attn.channel<2>
        %i, %t = attn.channel.acquire %k[%c] as "consumer" : !attn.channel<2>
        attn.channel.release %k, %t as "consumer" : !attn.channel<2>
      }
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        %c = attn.cursor.start %k as "producer" : !attn.channel<2>
        %i, %t = attn.channel.acquire %k[%c] as "producer" : !attn.channel<2>
        attn.tma.load %map[%x, %x], %a token %t {multicast = 2} : !map, !attn.buffer<128x64xf16, #attn.swizzled<span = 128>, shared>
        attn.channel.release %k, %t as "producer" : !attn.channel<2>
      }
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @no_parts() kernel {
    // expected-note@below {{the channel is here}}
    %q = attn.channel.create {name = "q", roles = [#attn.role<"producer", arrive>, #attn.role<"consumer", arrive>]} : !attn.channel<1>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %c = attn.cursor.start %q as "consumer" : !attn.channel<1>
      // expected-error@below {{expected no part of channel 'q', whose slots role 'producer' hands on as a whole}}
      %i0, %t0 = attn.channel.acquire %q[%c] as "consumer" part "upper" : !attn.channel<1>
    }
    partition "producer" warps 4 registers 24 {
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @which_part() kernel {
    // expected-note@below {{the channel is here}}
    %q = attn.channel.create {name = "q", roles = [#attn.role<"producer", arrive, parts = ["upper", "lower"]>, #attn.role<"consumer", arrive, parts = ["upper", "lower"]>]} : !attn.channel<1>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %c = attn.cursor.start %q as "consumer" : !attn.channel<1>
      // expected-error@below {{expected a part of channel 'q', got none}}
      %i0, %t0 = attn.channel.acquire %q[%c] as "consumer" : !attn.channel<1>
    }
    partition "producer" warps 4 registers 24 {
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @unknown_part() kernel {
    // expected-note@below {{the channel is here}}
    %q = attn.channel.create {name = "q", roles = [#attn.role<"producer", arrive, parts = ["upper", "lower"]>, #attn.role<"consumer", arrive, parts = ["upper", "lower"]>]} : !attn.channel<1>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %c = attn.cursor.start %q as "consumer" : !attn.channel<1>
      // expected-error@below {{expected a part of channel 'q', got 'middle'}}
      %i0, %t0 = attn.channel.acquire %q[%c] as "consumer" part "middle" : !attn.channel<1>
    }
    partition "producer" warps 4 registers 24 {
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @part_of_each() kernel {
    // expected-note@below {{the channel is here}}
    %q = attn.channel.create {name = "q", roles = [#attn.role<"producer", arrive, parts = ["upper", "lower"]>, #attn.role<"consumer", arrive, parts = ["upper", "lower"]>]} : !attn.channel<1>
    attn.warp_specialize
    partition "consumer" warps 12 tiles [12, 1] registers 96 {
      %c = attn.cursor.start %q as "consumer" : !attn.channel<1>
      // expected-error@below {{expected as many parts as warpgroups, got 2 and 3}}
      %i0, %t0 = attn.channel.acquire %q[%c] as "consumer" {each_warpgroup} : !attn.channel<1>
    }
    partition "producer" warps 4 registers 24 {
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @one_released() kernel {
    // expected-error@below {{expected a release of each part by role 'consumer' of channel 'q', got none of "lower"}}
    %q = attn.channel.create {name = "q", roles = [#attn.role<"producer", arrive, parts = ["upper", "lower"]>, #attn.role<"consumer", arrive, parts = ["upper", "lower"]>]} : !attn.channel<1>
    // expected-note@below {{so the role after it would wait forever}}
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %c = attn.cursor.start %q as "consumer" : !attn.channel<1>
      %i0, %t0 = attn.channel.acquire %q[%c] as "consumer" part "upper" : !attn.channel<1>
      attn.channel.release %q, %t0 as "consumer" : !attn.channel<1>
    }
    partition "producer" warps 4 registers 24 {
      %c = attn.cursor.start %q as "producer" : !attn.channel<1>
      %i, %t = attn.channel.acquire %q[%c] as "producer" part "upper" : !attn.channel<1>
      attn.channel.release %q, %t as "producer" : !attn.channel<1>
      %j, %u = attn.channel.acquire %q[%c] as "producer" part "lower" : !attn.channel<1>
      attn.channel.release %q, %u as "producer" : !attn.channel<1>
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @mixed(%cond: i1) kernel {
    %q = attn.channel.create {name = "q", roles = [#attn.role<"producer", arrive, parts = ["upper", "lower"]>, #attn.role<"consumer", arrive, parts = ["upper", "lower"]>]} : !attn.channel<1>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %c = attn.cursor.start %q as "consumer" : !attn.channel<1>
      %i0, %t0 = attn.channel.acquire %q[%c] as "consumer" part "upper" : !attn.channel<1>
      %i1, %t1 = attn.channel.acquire %q[%c] as "consumer" part "lower" : !attn.channel<1>
      %r = scf.if %cond -> !attn.token {
        scf.yield %t0 : !attn.token
      } else {
        // expected-error@below {{expected cursors and tokens of one role to meet, got role 'consumer' of channel 'q' (part "upper") and role 'consumer' of channel 'q' (part "lower")}}
        scf.yield %t1 : !attn.token
      }
    }
    partition "producer" warps 4 registers 24 {
    }
    gpu.return
  }
}

// -----

!ring = !attn.buffer<2xi32, #attn.rows, shared>

gpu.module @kernels {
  gpu.func @sometimes_leader(%x: i32) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    %ring = attn.alloc {name = "tile"} : !ring
    %c = attn.channel.create {name = "tile", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %p = attn.cursor.start %c as "consumer" : !attn.channel<2>
      %i, %t = attn.channel.acquire %c[%p] as "consumer" : !attn.channel<2>
      attn.channel.release %c, %t as "consumer" : !attn.channel<2>
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        %p = attn.cursor.start %c as "producer" : !attn.channel<2>
        attn.cluster_leader {
          %i, %t = attn.channel.acquire %c[%p] as "producer" : !attn.channel<2>
          attn.scalar_send %x, %ring[%i] token %t : !ring
          // expected-note@below {{the other one is here}}
          attn.channel.release %c, %t as "producer" : !attn.channel<2>
        }
        %n = attn.cursor.advance %p on %c : !attn.channel<2>
        // expected-error@below {{expected all acquires and releases of role 'producer' of channel 'tile' in an attn.cluster_leader or none, got one outside}}
        %i, %t = attn.channel.acquire %c[%n] as "producer" : !attn.channel<2>
        attn.channel.release %c, %t as "producer" : !attn.channel<2>
      }
    }
    gpu.return
  }
}

// -----

!ring = !attn.buffer<2xi32, #attn.rows, shared>

gpu.module @kernels {
  gpu.func @tx_before_leader(%x: i32) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    %ring = attn.alloc {name = "tile"} : !ring
    // expected-error@below {{expected a role that signals by arrive before one of the cluster's leader, got role 'consumer' of channel 'tile'}}
    %c = attn.channel.create {name = "tile", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", tx>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      attn.elect {
        %p = attn.cursor.start %c as "consumer" : !attn.channel<2>
        %i, %t = attn.channel.acquire %c[%p] as "consumer" : !attn.channel<2>
        attn.channel.release %c, %t as "consumer" : !attn.channel<2>
      }
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        %p = attn.cursor.start %c as "producer" : !attn.channel<2>
        attn.cluster_leader {
          %i, %t = attn.channel.acquire %c[%p] as "producer" : !attn.channel<2>
          attn.scalar_send %x, %ring[%i] token %t : !ring
          attn.channel.release %c, %t as "producer" : !attn.channel<2>
        }
      }
    }
    gpu.return
  }
}

// -----

!ring = !attn.buffer<2xi32, #attn.rows, shared>
!slot = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!map = !attn.tensor_map<64x64xf16, swizzle = 128>

gpu.module @kernels {
  gpu.func @leader_loads(%map: !map, %x: i32) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    %ring = attn.alloc {name = "tile"} : !ring
    %a = attn.alloc {name = "a"} : !slot
    %c = attn.channel.create {name = "tile", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %p = attn.cursor.start %c as "consumer" : !attn.channel<2>
      %i, %t = attn.channel.acquire %c[%p] as "consumer" : !attn.channel<2>
      attn.channel.release %c, %t as "consumer" : !attn.channel<2>
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        %p = attn.cursor.start %c as "producer" : !attn.channel<2>
        attn.cluster_leader {
          %i, %t = attn.channel.acquire %c[%p] as "producer" : !attn.channel<2>
          // expected-error@below {{expected a load in all CTAs of the cluster, got one by role 'producer' of channel 'tile', which is the leader's}}
          attn.tma.load %map[%x, %x], %a token %t : !map, !slot
          attn.channel.release %c, %t as "producer" : !attn.channel<2>
        }
      }
    }
    gpu.return
  }
}

// -----

!ring = !attn.buffer<2xi32, #attn.rows, shared>

gpu.module @kernels {
  gpu.func @send_by_arrive(%x: i32) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    %ring = attn.alloc {name = "tile"} : !ring
    // expected-note@below {{the channel is here}}
    %c = attn.channel.create {name = "tile", roles = [#attn.role<"producer", arrive>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %p = attn.cursor.start %c as "consumer" : !attn.channel<2>
      %i, %t = attn.channel.acquire %c[%p] as "consumer" : !attn.channel<2>
      attn.channel.release %c, %t as "consumer" : !attn.channel<2>
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        %p = attn.cursor.start %c as "producer" : !attn.channel<2>
        %i, %t = attn.channel.acquire %c[%p] as "producer" : !attn.channel<2>
        // expected-error@below {{expected the token of a role that signals by tx, got role 'producer' of channel 'tile', which signals by arrive}}
        attn.scalar_send %x, %ring[%i] token %t : !ring
        attn.channel.release %c, %t as "producer" : !attn.channel<2>
      }
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @one_of_two() kernel {
    // expected-error@below {{expected a release by role 'use' of channel 'k' in partition "right", got none}}
    %k = attn.channel.create {name = "k", roles = [#attn.role<"load", arrive>, #attn.role<"use" in ["left", "right"], arrive>]} : !attn.channel<1>
    // expected-note@below {{so the role after it would wait forever}}
    attn.warp_specialize
    partition "left" warps 4 registers 96 {
      %c = attn.cursor.start %k as "use" : !attn.channel<1>
      %i, %t = attn.channel.acquire %k[%c] as "use" : !attn.channel<1>
      attn.channel.release %k, %t as "use" : !attn.channel<1>
    }
    partition "right" warps 4 registers 96 {
    }
    partition "load" warps 4 registers 96 {
      %c = attn.cursor.start %k as "load" : !attn.channel<1>
      %i, %t = attn.channel.acquire %k[%c] as "load" : !attn.channel<1>
      attn.channel.release %k, %t as "load" : !attn.channel<1>
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @elsewhere() kernel {
    %k = attn.channel.create {name = "k", roles = [#attn.role<"load", arrive>, #attn.role<"use" in ["left", "right"], arrive>]} : !attn.channel<1>
    attn.warp_specialize
    partition "left" warps 4 registers 96 {
    }
    partition "right" warps 4 registers 96 {
    }
    partition "load" warps 4 registers 96 {
      %c = attn.cursor.start %k as "use" : !attn.channel<1>
      // expected-error@below {{expected to stand in partition "left" or "right" of role 'use', got partition "load"}}
      %i, %t = attn.channel.acquire %k[%c] as "use" : !attn.channel<1>
      attn.channel.release %k, %t as "use" : !attn.channel<1>
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @whole_for_parts() kernel {
    // expected-note@below {{the channel's roles are here}}
    %s = attn.channel.create {name = "s", roles = [#attn.role<"mma", arrive>, #attn.role<"softmax", arrive, parts = ["front", "back"]>]} : !attn.channel<1>
    attn.warp_specialize
    partition "softmax" warps 4 registers 96 {
      %c = attn.cursor.start %s as "softmax" : !attn.channel<1>
      %i, %t = attn.channel.acquire %s[%c] as "softmax" : !attn.channel<1>
      // expected-error@below {{expected a token of a part in which role 'softmax' hands a slot on, got one of a whole slot}}
      attn.channel.release %s, %t as "softmax" : !attn.channel<1>
    }
    partition "mma" warps 4 registers 24 {
      %c = attn.cursor.start %s as "mma" : !attn.channel<1>
      %i, %front = attn.channel.acquire %s[%c] as "mma" part "front" : !attn.channel<1>
      %j, %back = attn.channel.acquire %s[%c] as "mma" part "back" : !attn.channel<1>
      %w = attn.channel.join %s, %front, %back as "mma" : !attn.channel<1>
      attn.channel.release %s, %w as "mma" : !attn.channel<1>
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @part_for_whole() kernel {
    // expected-note@below {{the channel's roles are here}}
    %s = attn.channel.create {name = "s", roles = [#attn.role<"mma", arrive>, #attn.role<"softmax", arrive, parts = ["front", "back"]>]} : !attn.channel<1>
    attn.warp_specialize
    partition "softmax" warps 4 registers 96 {
      %c = attn.cursor.start %s as "softmax" : !attn.channel<1>
      %i, %t = attn.channel.acquire %s[%c] as "softmax" : !attn.channel<1>
      %f, %b = attn.channel.split %s, %t as "softmax" : !attn.channel<1> -> !attn.token, !attn.token
      attn.channel.release %s, %f as "softmax" : !attn.channel<1>
      attn.channel.release %s, %b as "softmax" : !attn.channel<1>
    }
    partition "mma" warps 4 registers 24 {
      %c = attn.cursor.start %s as "mma" : !attn.channel<1>
      %i, %front = attn.channel.acquire %s[%c] as "mma" part "front" : !attn.channel<1>
      %j, %back = attn.channel.acquire %s[%c] as "mma" part "back" : !attn.channel<1>
      // expected-error@below {{expected a token of a whole slot, as role 'mma' hands it on, got one of a part}}
      attn.channel.release %s, %front as "mma" : !attn.channel<1>
      attn.channel.release %s, %back as "mma" : !attn.channel<1>
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @three_parts() kernel {
    %s = attn.channel.create {name = "s", roles = [#attn.role<"mma", arrive>, #attn.role<"softmax", arrive, parts = ["front", "back"]>]} : !attn.channel<1>
    attn.warp_specialize
    partition "softmax" warps 4 registers 96 {
      %c = attn.cursor.start %s as "softmax" : !attn.channel<1>
      %i, %t = attn.channel.acquire %s[%c] as "softmax" : !attn.channel<1>
      // expected-error@below {{expected a result for each of 2 parts of role 'softmax', got 3}}
      %f, %m, %b = attn.channel.split %s, %t as "softmax" : !attn.channel<1> -> !attn.token, !attn.token, !attn.token
    }
    partition "mma" warps 4 registers 24 {
      %c = attn.cursor.start %s as "mma" : !attn.channel<1>
      %i, %front = attn.channel.acquire %s[%c] as "mma" part "front" : !attn.channel<1>
      %j, %back = attn.channel.acquire %s[%c] as "mma" part "back" : !attn.channel<1>
      %w = attn.channel.join %s, %front, %back as "mma" : !attn.channel<1>
      attn.channel.release %s, %w as "mma" : !attn.channel<1>
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @split_part() kernel {
    %s = attn.channel.create {name = "s", roles = [#attn.role<"mma", arrive>, #attn.role<"softmax", arrive, parts = ["front", "back"]>]} : !attn.channel<1>
    attn.warp_specialize
    partition "softmax" warps 4 registers 96 {
      %c = attn.cursor.start %s as "softmax" : !attn.channel<1>
      %i, %t = attn.channel.acquire %s[%c] as "softmax" : !attn.channel<1>
      %f, %b = attn.channel.split %s, %t as "softmax" : !attn.channel<1> -> !attn.token, !attn.token
      attn.channel.release %s, %f as "softmax" : !attn.channel<1>
      attn.channel.release %s, %b as "softmax" : !attn.channel<1>
    }
    partition "mma" warps 4 registers 24 {
      %c = attn.cursor.start %s as "mma" : !attn.channel<1>
      %i, %front = attn.channel.acquire %s[%c] as "mma" part "front" : !attn.channel<1>
      %j, %back = attn.channel.acquire %s[%c] as "mma" part "back" : !attn.channel<1>
      // expected-error@below {{expected a result for each of 0 parts of role 'mma', got 2}}
      %f, %b = attn.channel.split %s, %front as "mma" : !attn.channel<1> -> !attn.token, !attn.token
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @join_one() kernel {
    %s = attn.channel.create {name = "s", roles = [#attn.role<"mma", arrive>, #attn.role<"softmax", arrive, parts = ["front", "back"]>]} : !attn.channel<1>
    attn.warp_specialize
    partition "softmax" warps 4 registers 96 {
      %c = attn.cursor.start %s as "softmax" : !attn.channel<1>
      %i, %t = attn.channel.acquire %s[%c] as "softmax" : !attn.channel<1>
      %f, %b = attn.channel.split %s, %t as "softmax" : !attn.channel<1> -> !attn.token, !attn.token
      attn.channel.release %s, %f as "softmax" : !attn.channel<1>
      attn.channel.release %s, %b as "softmax" : !attn.channel<1>
    }
    partition "mma" warps 4 registers 24 {
      %c = attn.cursor.start %s as "mma" : !attn.channel<1>
      %i, %front = attn.channel.acquire %s[%c] as "mma" part "front" : !attn.channel<1>
      %j, %back = attn.channel.acquire %s[%c] as "mma" part "back" : !attn.channel<1>
      // expected-error@below {{expected each of 2 parts once, got 1 of them in 1 tokens}}
      %w = attn.channel.join %s, %front as "mma" : !attn.channel<1>
      attn.channel.release %s, %w as "mma" : !attn.channel<1>
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @join_twice() kernel {
    %s = attn.channel.create {name = "s", roles = [#attn.role<"mma", arrive>, #attn.role<"softmax", arrive, parts = ["front", "back"]>]} : !attn.channel<1>
    attn.warp_specialize
    partition "softmax" warps 4 registers 96 {
      %c = attn.cursor.start %s as "softmax" : !attn.channel<1>
      %i, %t = attn.channel.acquire %s[%c] as "softmax" : !attn.channel<1>
      %f, %b = attn.channel.split %s, %t as "softmax" : !attn.channel<1> -> !attn.token, !attn.token
      attn.channel.release %s, %f as "softmax" : !attn.channel<1>
      attn.channel.release %s, %b as "softmax" : !attn.channel<1>
    }
    partition "mma" warps 4 registers 24 {
      %c = attn.cursor.start %s as "mma" : !attn.channel<1>
      %i, %front = attn.channel.acquire %s[%c] as "mma" part "front" : !attn.channel<1>
      %j, %back = attn.channel.acquire %s[%c] as "mma" part "back" : !attn.channel<1>
      // expected-error@below {{expected each of 2 parts once, got 1 of them in 2 tokens}}
      %w = attn.channel.join %s, %front, %front as "mma" : !attn.channel<1>
      attn.channel.release %s, %w as "mma" : !attn.channel<1>
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @bytes_of_parts() kernel {
    // expected-error@below {{expected role 'load', which signals by tx, to hand slots on in the parts of role 'use' before it}}
    %s = attn.channel.create {name = "s", roles = [#attn.role<"load", tx>, #attn.role<"use", arrive, parts = ["front", "back"]>]} : !attn.channel<1>
    attn.warp_specialize
    partition "use" warps 4 registers 96 {
    }
    partition "load" warps 4 registers 24 {
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-note@below {{the kernel's known_cluster_size says so}}
  gpu.func @exchange() kernel attributes {known_cluster_size = array<i32: 4, 1, 1>} {
    %b = attn.alloc {name = "s"} : !attn.buffer<64x32xf32, #attn.auto, shared>
    %c = attn.channel.create {name = "s", roles = [#attn.role<"sender" in ["softmax"], tx>, #attn.role<"adder" in ["softmax"], arrive>]} : !attn.channel<1>
    attn.warp_specialize
    partition "softmax" warps 4 tiles [4, 1] registers 96 {
      %t = arith.constant dense<1.0> : tensor<64x32xf32, #attn.auto>
      %p = attn.cursor.start %c as "sender" : !attn.channel<1>
      %r = attn.cursor.start %c as "adder" : !attn.channel<1>
      %i, %to = attn.channel.acquire %c[%p] as "sender" : !attn.channel<1>
      // expected-error@below {{expected a cluster of 2 CTAs, got 4}}
      attn.local_send %t, %b token %to : tensor<64x32xf32, #attn.auto>, !attn.buffer<64x32xf32, #attn.auto, shared>
      attn.channel.release %c, %to as "sender" : !attn.channel<1>
      %j, %from = attn.channel.acquire %c[%r] as "adder" : !attn.channel<1>
      attn.channel.release %c, %from as "adder" : !attn.channel<1>
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @copies_of_one_thread() kernel {
    %k = attn.channel.create {name = "k", roles = [#attn.role<"load", copies>, #attn.role<"read", arrive>]} : !attn.channel<1>
    attn.warp_specialize
    partition "read" warps 4 tiles [4, 1] registers 96 {
      %c = attn.cursor.start %k as "read" : !attn.channel<1>
      %i, %t = attn.channel.acquire %k[%c] as "read" : !attn.channel<1>
      attn.channel.release %k, %t as "read" : !attn.channel<1>
    }
    partition "load" warps 2 registers 96 {
      // expected-note@below {{it stands in this attn.elect}}
      attn.elect {
        %c = attn.cursor.start %k as "load" : !attn.channel<1>
        %i, %t = attn.channel.acquire %k[%c] as "load" : !attn.channel<1>
        // expected-error@below {{expected all threads of role 'load' of channel 'k', each of which signals for its own copies, got one}}
        attn.channel.release %k, %t as "load" : !attn.channel<1>
      }
    }
    gpu.return
  }
}
