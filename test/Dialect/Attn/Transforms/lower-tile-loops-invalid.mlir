// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-lower-tile-loops))' --split-input-file -verify-diagnostics

!ring = !attn.buffer<2xi32, #attn.auto, shared>

gpu.module @kernels {
  // expected-note@below {{the kernel is here}}
  gpu.func @cluster(%count: i32, %counter: !llvm.ptr<1>, %c: !attn.channel<2>, %ring: !ring) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    // expected-error@below {{expected a kernel without clusters for the scheduler 'dynamic', got clusters of 2 CTAs}}
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
    // expected-error@below {{expected to stand in the partition of one of two roles of its channel}}
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
    %c = attn.channel.create {name = "tile", roles = [#attn.role<"producer", arrive>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 registers 96 {
    }
    partition "producer" warps 4 registers 24 {
      // expected-error@below {{expected to stand in an attn.elect, since one thread takes tiles from the counter}}
      attn.tile_loop %count scheduler dynamic counter %counter channel %c ring %ring : !llvm.ptr<1>, !attn.channel<2>, !ring {
      ^bb0(%tile: i32):
        attn.yield
      }
    }
    gpu.return
  }
}
