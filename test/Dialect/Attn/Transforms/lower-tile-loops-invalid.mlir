// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-lower-tile-loops))' --split-input-file -verify-diagnostics

!ring = !attn.buffer<2xi32, #attn.auto, shared>

gpu.module @kernels {
  gpu.func @cluster(%count: i32, %counter: !llvm.ptr<1>, %ring: !ring) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    // expected-note@below {{the roles are here}}
    %c = attn.channel.create {name = "tile", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        // expected-error@below {{expected a second role of partition 'producer', by which the CTAs of a cluster read indices, got none}}
        attn.tile_loop %count scheduler dynamic counter %counter channel %c ring %ring : !llvm.ptr<1>, !attn.channel<2>, !ring {
        ^bb0(%tile: i32):
          attn.yield
        }
      }
    }
    gpu.return
  }
}

// -----

!ring = !attn.buffer<2xi32, #attn.auto, shared>

gpu.module @kernels {
  gpu.func @channel(%count: i32, %counter: !llvm.ptr<1>, %c: !attn.channel<2>, %ring: !ring) kernel {
    // expected-error@below {{expected the result of an attn.channel.create as its channel}}
    attn.tile_loop %count scheduler dynamic counter %counter channel %c ring %ring : !llvm.ptr<1>, !attn.channel<2>, !ring {
    ^bb0(%tile: i32):
      attn.yield
    }
    gpu.return
  }
}

// -----

!ring = !attn.buffer<2xi32, #attn.auto, shared>

gpu.module @kernels {
  gpu.func @partition(%count: i32, %counter: !llvm.ptr<1>, %ring: !ring) kernel {
    // expected-note@below {{the roles are here}}
    %c = attn.channel.create {name = "tile", roles = [#attn.role<"producer", arrive>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    // expected-error@below {{expected to stand in the partition of a role of its channel}}
    attn.tile_loop %count scheduler dynamic counter %counter channel %c ring %ring : !llvm.ptr<1>, !attn.channel<2>, !ring {
    ^bb0(%tile: i32):
      attn.yield
    }
    gpu.return
  }
}

// -----

!ring = !attn.buffer<2xi32, #attn.auto, shared>

gpu.module @kernels {
  gpu.func @elect(%count: i32, %counter: !llvm.ptr<1>, %ring: !ring) kernel {
    // expected-note@below {{the roles are here}}
    %c = attn.channel.create {name = "tile", roles = [#attn.role<"producer", arrive>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
    }
    partition "producer" warps 4 registers 24 {
      // expected-error@below {{expected to stand in an attn.elect or a second role of partition 'producer', by which its threads read indices, got none}}
      attn.tile_loop %count scheduler dynamic counter %counter channel %c ring %ring : !llvm.ptr<1>, !attn.channel<2>, !ring {
      ^bb0(%tile: i32):
        attn.yield
      }
    }
    gpu.return
  }
}

// -----

!ring = !attn.buffer<2xi32, #attn.auto, shared>

gpu.module @kernels {
  gpu.func @signal(%count: i32, %counter: !llvm.ptr<1>, %ring: !ring) kernel {
    // expected-note@below {{the roles are here}}
    %c = attn.channel.create {name = "tile", roles = [#attn.role<"producer", tx>, #attn.role<"reader" in ["producer"], arrive>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
    }
    partition "producer" warps 4 registers 24 {
      // expected-error@below {{expected a first role that signals by arrive in clusters of 1 CTAs, got tx}}
      attn.tile_loop %count scheduler dynamic counter %counter channel %c ring %ring : !llvm.ptr<1>, !attn.channel<2>, !ring {
      ^bb0(%tile: i32):
        attn.yield
      }
    }
    gpu.return
  }
}

// -----

!ring = !attn.buffer<2xi32, #attn.auto, shared>

gpu.module @kernels {
  gpu.func @readers(%count: i32, %counter: !llvm.ptr<1>, %ring: !ring) kernel {
    // expected-note@below {{the roles are here}}
    %c = attn.channel.create {name = "tile", roles = [#attn.role<"producer", arrive>, #attn.role<"consumer", arrive>, #attn.role<"other" in ["consumer"], arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      // expected-error@below {{expected one role of partition 'consumer' that reads indices, got 'consumer' and 'other'}}
      attn.tile_loop %count scheduler dynamic counter %counter channel %c ring %ring : !llvm.ptr<1>, !attn.channel<2>, !ring {
      ^bb0(%tile: i32):
        attn.yield
      }
    }
    partition "producer" warps 4 registers 24 {
    }
    gpu.return
  }
}

// -----

!responses = !attn.buffer<2xi128, #attn.auto, shared>

gpu.module @kernels {
  gpu.func @requests(%count: i32, %ring: !responses) kernel {
    // expected-note@below {{the roles are here}}
    %c = attn.channel.create {name = "tile", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        // expected-error@below {{expected a second role of partition 'producer', which reads responses, got none}}
        attn.tile_loop %count scheduler clc channel %c ring %ring : !attn.channel<2>, !responses {
        ^bb0(%tile: i32):
          attn.yield
        }
      }
    }
    gpu.return
  }
}

// -----

!responses = !attn.buffer<2xi128, #attn.auto, shared>

gpu.module @kernels {
  gpu.func @requests(%count: i32, %ring: !responses) kernel {
    // expected-note@below {{the roles are here}}
    %c = attn.channel.create {name = "tile", roles = [#attn.role<"producer", arrive>, #attn.role<"reader" in ["producer"], arrive>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
    }
    partition "producer" warps 4 registers 24 {
      // expected-error@below {{expected a first role that signals by tx with the scheduler 'clc', got arrive}}
      attn.tile_loop %count scheduler clc channel %c ring %ring : !attn.channel<2>, !responses {
      ^bb0(%tile: i32):
        attn.yield
      }
    }
    gpu.return
  }
}
