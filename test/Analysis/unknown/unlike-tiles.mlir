// RUN: attn-opt %s --split-input-file --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -verify-diagnostics -o /dev/null

// How many tiles there are only the launch says. All walk the same ones only if what these are computed from is the same
// for all threads, and for all CTAs of a cluster.

gpu.module @kernels {
  gpu.func @by_thread(%n: i32) kernel {
    %id = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    attn.warp_specialize
    partition "a" warps 4 registers 24 {
      %x = gpu.block_id x
      %block = arith.index_cast %x : index to i32
      %g = gpu.grid_dim x
      %grid = arith.index_cast %g : index to i32
      %thread_index = gpu.thread_id x
      %thread = arith.index_cast %thread_index : index to i32
      %last = arith.addi %n, %thread : i32
      // expected-warning @below {{cannot be checked: the launch does not say how many CTAs there are}}
      scf.for %i = %block to %last step %grid : i32 {
        attn.named_barrier %id {threads = 256}
      }
    }
    partition "b" warps 4 registers 24 {
      %x = gpu.block_id x
      %block = arith.index_cast %x : index to i32
      %g = gpu.grid_dim x
      %grid = arith.index_cast %g : index to i32
      %thread_index = gpu.thread_id x
      %thread = arith.index_cast %thread_index : index to i32
      %last = arith.addi %n, %thread : i32
      scf.for %i = %block to %last step %grid : i32 {
        attn.named_barrier %id {threads = 256}
      }
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @by_lane(%n: i32) kernel {
    %id = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    attn.warp_specialize
    partition "a" warps 4 registers 24 {
      %x = gpu.block_id x
      %block = arith.index_cast %x : index to i32
      %g = gpu.grid_dim x
      %grid = arith.index_cast %g : index to i32
      %lane_index = gpu.lane_id
      %lane = arith.index_cast %lane_index : index to i32
      %first = arith.addi %block, %lane : i32
      // expected-warning @below {{cannot be checked: the launch does not say how many CTAs there are}}
      scf.for %i = %first to %n step %grid : i32 {
        attn.named_barrier %id {threads = 256}
      }
    }
    partition "b" warps 4 registers 24 {
      %x = gpu.block_id x
      %block = arith.index_cast %x : index to i32
      %g = gpu.grid_dim x
      %grid = arith.index_cast %g : index to i32
      %lane_index = gpu.lane_id
      %lane = arith.index_cast %lane_index : index to i32
      %first = arith.addi %block, %lane : i32
      scf.for %i = %first to %n step %grid : i32 {
        attn.named_barrier %id {threads = 256}
      }
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @by_rank(%n: i32) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    %id = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    attn.warp_specialize
    partition "a" warps 4 registers 24 {
      %x = gpu.block_id x
      %block = arith.index_cast %x : index to i32
      %g = gpu.grid_dim x
      %grid = arith.index_cast %g : index to i32
      %rank_index = gpu.cluster_block_id x
      %rank = arith.index_cast %rank_index : index to i32
      %last = arith.addi %n, %rank : i32
      %first = arith.divui %block, %c2 : i32
      // expected-warning @below {{cannot be checked: the launch does not say how many CTAs there are}}
      scf.for %i = %first to %last step %grid : i32 {
        attn.named_barrier %id {threads = 256}
      }
    }
    partition "b" warps 4 registers 24 {
      %x = gpu.block_id x
      %block = arith.index_cast %x : index to i32
      %g = gpu.grid_dim x
      %grid = arith.index_cast %g : index to i32
      %rank_index = gpu.cluster_block_id x
      %rank = arith.index_cast %rank_index : index to i32
      %last = arith.addi %n, %rank : i32
      %first = arith.divui %block, %c2 : i32
      scf.for %i = %first to %last step %grid : i32 {
        attn.named_barrier %id {threads = 256}
      }
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @undivided(%n: i32) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    %id = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    attn.warp_specialize
    partition "a" warps 4 registers 24 {
      %x = gpu.block_id x
      %block = arith.index_cast %x : index to i32
      %g = gpu.grid_dim x
      %grid = arith.index_cast %g : index to i32
      // expected-warning @below {{cannot be checked: the launch does not say how many CTAs there are}}
      scf.for %i = %block to %n step %grid : i32 {
        attn.named_barrier %id {threads = 256}
      }
    }
    partition "b" warps 4 registers 24 {
      %x = gpu.block_id x
      %block = arith.index_cast %x : index to i32
      %g = gpu.grid_dim x
      %grid = arith.index_cast %g : index to i32
      scf.for %i = %block to %n step %grid : i32 {
        attn.named_barrier %id {threads = 256}
      }
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @divided(%n: i32) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    %id = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    attn.warp_specialize
    partition "a" warps 4 registers 24 {
      %x = gpu.block_id x
      %block = arith.index_cast %x : index to i32
      %g = gpu.grid_dim x
      %grid = arith.index_cast %g : index to i32
      %first = arith.divui %block, %c2 : i32
      %step = arith.divui %grid, %c2 : i32
      scf.for %i = %first to %n step %step : i32 {
        attn.named_barrier %id {threads = 256}
      }
    }
    partition "b" warps 4 registers 24 {
      %x = gpu.block_id x
      %block = arith.index_cast %x : index to i32
      %g = gpu.grid_dim x
      %grid = arith.index_cast %g : index to i32
      %first = arith.divui %block, %c2 : i32
      %step = arith.divui %grid, %c2 : i32
      scf.for %i = %first to %n step %step : i32 {
        attn.named_barrier %id {threads = 256}
      }
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @divided_by_half(%n: i32) kernel attributes {known_cluster_size = array<i32: 4, 1, 1>} {
    %id = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    attn.warp_specialize
    partition "a" warps 4 registers 24 {
      %x = gpu.block_id x
      %block = arith.index_cast %x : index to i32
      %g = gpu.grid_dim x
      %grid = arith.index_cast %g : index to i32
      %first = arith.divui %block, %c2 : i32
      // expected-warning @below {{cannot be checked: the launch does not say how many CTAs there are}}
      scf.for %i = %first to %n step %grid : i32 {
        attn.named_barrier %id {threads = 256}
      }
    }
    partition "b" warps 4 registers 24 {
      %x = gpu.block_id x
      %block = arith.index_cast %x : index to i32
      %g = gpu.grid_dim x
      %grid = arith.index_cast %g : index to i32
      %first = arith.divui %block, %c2 : i32
      scf.for %i = %first to %n step %grid : i32 {
        attn.named_barrier %id {threads = 256}
      }
    }
    gpu.return
  }
}

// -----

// Bounds below 0 are none without a sign.

gpu.module @kernels {
  gpu.func @by_sign(%n: i32) kernel {
    %id = arith.constant 1 : i32
    %c5 = arith.constant 5 : i32
    attn.warp_specialize
    partition "a" warps 4 registers 24 {
      %x = gpu.block_id x
      %block = arith.index_cast %x : index to i32
      %g = gpu.grid_dim x
      %grid = arith.index_cast %g : index to i32
      %last = arith.subi %n, %c5 : i32
      scf.for unsigned %i = %block to %last step %grid : i32 {
        attn.named_barrier %id {threads = 256}
      }
    }
    partition "b" warps 4 registers 24 {
      %x = gpu.block_id x
      %block = arith.index_cast %x : index to i32
      %g = gpu.grid_dim x
      %grid = arith.index_cast %g : index to i32
      %last = arith.subi %n, %c5 : i32
      // expected-warning @below {{cannot be checked: its tiles are not computed as those of the other partitions are}}
      scf.for %i = %block to %last step %grid : i32 {
        attn.named_barrier %id {threads = 256}
      }
    }
    gpu.return
  }
}
