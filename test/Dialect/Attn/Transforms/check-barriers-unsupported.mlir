// RUN: attn-opt %s -split-input-file -verify-diagnostics --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null

gpu.module @kernels {
  gpu.func @word() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %x = attn.alloc {name = "x", offset = 0} : !attn.buffer<4xi32, #attn.rows, shared>
    %v = attn.scalar_load %x[%c0] : !attn.buffer<4xi32, #attn.rows, shared>
    %is = arith.cmpi eq, %v, %c0 : i32
    // expected-warning @below {{the synchronisation of 'word' cannot be checked: the condition does not follow from constants, sizes, the place of the warp and loop counters}}
    scf.if %is {
      gpu.barrier
    }
    gpu.return
  }
}

// -----

// What was in the word before does not matter.

gpu.module @kernels {
  gpu.func @overwritten(%p: !llvm.ptr<1>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %x = attn.alloc {name = "x", offset = 0} : !attn.buffer<4xi32, #attn.rows, shared>
    %n = llvm.load volatile %p : !llvm.ptr<1> -> i32
    attn.elect {
      attn.scalar_store %c1, %x[%c0] : !attn.buffer<4xi32, #attn.rows, shared>
      attn.scalar_store %n, %x[%c0] : !attn.buffer<4xi32, #attn.rows, shared>
    }
    gpu.barrier
    %v = attn.scalar_load %x[%c0] : !attn.buffer<4xi32, #attn.rows, shared>
    %is = arith.cmpi eq, %v, %c0 : i32
    // expected-warning @below {{cannot be checked: the condition does not follow from}}
    scf.if %is {
      attn.elect {
        attn.scalar_store %c1, %x[%c0] : !attn.buffer<4xi32, #attn.rows, shared>
      }
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @bound(%n: i32) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %lane = gpu.lane_id
    %id = arith.index_cast %lane : index to i32
    %end = arith.addi %n, %id : i32
    // expected-warning @below {{cannot be checked: the upper bound does not follow from}}
    scf.for %i = %c0 to %end step %c1 : i32 {
      gpu.barrier
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @backwards() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %c9 = arith.constant 9 : i32
    // expected-warning @below {{cannot be checked: its step is not positive}}
    scf.for %i = %c0 to %c9 step %c0 : i32 {
      gpu.barrier
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-warning @below {{cannot be checked: the number of its warps is not known}}
  gpu.func @warps() kernel {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-warning @below {{cannot be checked: its clusters do not have 1 to 16 CTAs}}
  gpu.func @large() kernel attributes {known_block_size = array<i32: 128, 1, 1>, known_cluster_size = array<i32: 32, 1, 1>} {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-warning @below {{cannot be checked: it has several blocks}}
  gpu.func @blocks() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    cf.br ^bb1
  ^bb1:
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @place() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    // expected-warning @below {{cannot be checked: its place in shared memory is not chosen (attn-allocate-shared)}}
    %x = attn.alloc {name = "x"} : !attn.buffer<4xi32, #attn.rows, shared>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @overlap() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    // expected-note @below {{this has bytes 0 to 15}}
    %x = attn.alloc {name = "x", offset = 0} : !attn.buffer<4xi32, #attn.rows, shared>
    // expected-error @below {{race: expected mbarriers in bytes of their own, got bytes 8 to 15}}
    %b = attn.mbarrier.alloc {offset = 8} : !attn.mbarriers<1>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  func.func private @other()
  gpu.func @call() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    // expected-warning @below {{cannot be checked: what it does to shared memory or to who waits for whom is not known}}
    func.call @other() : () -> ()
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @foreign(%x: !attn.buffer<4xi32, #attn.rows, shared>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : i32
    // expected-warning @below {{cannot be checked: 'attn.scalar_load' op expected a buffer that comes from an attn.alloc through views}}
    %v = attn.scalar_load %x[%c0] : !attn.buffer<4xi32, #attn.rows, shared>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @barriers(%b: !attn.mbarriers<1>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : i32
    // expected-warning @below {{cannot be checked: its mbarriers do not come from an attn.mbarrier.alloc}}
    attn.mbarrier.arrive %b[%c0] : !attn.mbarriers<1>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @cluster() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %b = attn.mbarrier.alloc {offset = 0} : !attn.mbarriers<1>
    // expected-warning @below {{cannot be checked: it signals to more CTAs than the cluster has}}
    attn.mbarrier.arrive %b[%c0] {ctas = 2} : !attn.mbarriers<1>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @multicast(%map: !attn.tensor_map<1x1x32x64xf16, swizzle = 128>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %x = attn.alloc {name = "x", offset = 0} : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    %b = attn.mbarrier.alloc {offset = 8192} : !attn.mbarriers<1>
    attn.elect {
      // expected-warning @below {{cannot be checked: it goes to more CTAs than the cluster has}}
      attn.tma.load %map[%c0, %c0, %c0, %c0], %x barrier %b[%c0] : !attn.mbarriers<1> {multicast = 2} : !attn.tensor_map<1x1x32x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @all_lanes(%map: !attn.tensor_map<1x1x64x64xf16, swizzle = 128>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %x = attn.alloc {name = "x", offset = 0} : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    %b = attn.mbarrier.alloc {offset = 8192} : !attn.mbarriers<1>
    // expected-warning @below {{cannot be checked: it does not stand in attn.elect, so that each lane of its warps would start it}}
    attn.tma.load %map[%c0, %c0, %c0, %c0], %x barrier %b[%c0] : !attn.mbarriers<1> : !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @token(%map: !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, %t: !attn.token) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %x = attn.alloc {name = "x", offset = 0} : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    attn.elect {
      // expected-warning @below {{cannot be checked: it is not known which mbarrier counts its bytes}}
      attn.tma.load %map[%c0, %c0, %c0, %c0], %x token %t : !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @named() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %id = arith.constant 16 : i32
    // expected-warning @below {{cannot be checked: there is no named barrier 16}}
    attn.named_barrier %id {threads = 128}
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @vote(%c: tensor<64xi1, #attn.slice<dim = 1, parent = #attn.mma<warps = [4, 1]>>>, %x: tensor<64xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [4, 1]>>>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    // expected-warning @below {{cannot be checked: its vote has no barrier (attn-insert-fences)}}
    %r = attn.rare any %c default(%x : tensor<64xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [4, 1]>>>) {each_warpgroup} : tensor<64xi1, #attn.slice<dim = 1, parent = #attn.mma<warps = [4, 1]>>> {
      attn.fence.proxy_async
      attn.yield %x : tensor<64xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [4, 1]>>>
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @decides(%c: tensor<64xi1, #attn.slice<dim = 1, parent = #attn.mma<warps = [4, 1]>>>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    // expected-warning @below {{cannot be checked: who waits for whom depends on the path that it takes}}
    %id = attn.rare any %c default(%c1 : i32) : tensor<64xi1, #attn.slice<dim = 1, parent = #attn.mma<warps = [4, 1]>>> {
      attn.yield %c2 : i32
    }
    attn.named_barrier %id {threads = 128}
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @open(%map: !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, %c: tensor<64xi1, #attn.slice<dim = 1, parent = #attn.mma<warps = [4, 1]>>>, %x: tensor<64xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [4, 1]>>>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %o = attn.alloc {name = "o", offset = 0} : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    attn.elect {
      attn.tma.store %o, %map[%c0, %c0, %c0, %c0] : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>, !attn.tensor_map<1x1x64x64xf16, swizzle = 128>
    }
    // expected-warning @below {{cannot be checked: an asynchronous access is in no group yet}}
    %r = attn.rare any %c default(%x : tensor<64xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [4, 1]>>>) : tensor<64xi1, #attn.slice<dim = 1, parent = #attn.mma<warps = [4, 1]>>> {
      attn.fence.proxy_async
      attn.yield %x : tensor<64xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [4, 1]>>>
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @unlike(%p: !llvm.ptr<1>) kernel attributes {attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["4", "1", "1"], block = [256, 1, 1],
      tensors = [{access = "read", dtype = "f32", name = "x", shape = array<i64: 4>, strides = array<i64: 1>}], args = [{kind = "pointer", tensor = "x"}]>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    %c9 = arith.constant 9 : i32
    %id = arith.constant 1 : i32
    attn.warp_specialize
    partition "a" warps 4 registers 24 {
      %x = gpu.block_id x
      %block = arith.index_cast %x : index to i32
      %g = gpu.grid_dim x
      %grid = arith.index_cast %g : index to i32
      scf.for %i = %block to %c8 step %grid : i32 {
        attn.named_barrier %id {threads = 128}
      }
    }
    partition "b" warps 4 registers 24 {
      %x = gpu.block_id x
      %block = arith.index_cast %x : index to i32
      %g = gpu.grid_dim x
      %grid = arith.index_cast %g : index to i32
      %n = llvm.load %p : !llvm.ptr<1> -> i32
      // expected-warning @below {{cannot be checked: its tiles are not computed as those of the other partitions are}}
      scf.for %i = %block to %n step %grid : i32 {
        attn.named_barrier %id {threads = 128}
      }
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @several(%p: !llvm.ptr<1>) kernel attributes {attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["4", "1", "1"], block = [128, 1, 1],
      tensors = [{access = "read", dtype = "f32", name = "x", shape = array<i64: 4>, strides = array<i64: 1>}], args = [{kind = "pointer", tensor = "x"}]>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    %c9 = arith.constant 9 : i32
    %id = arith.constant 1 : i32
    attn.warp_specialize
    partition "a" warps 4 registers 24 {
      %x = gpu.block_id x
      %block = arith.index_cast %x : index to i32
      %g = gpu.grid_dim x
      %grid = arith.index_cast %g : index to i32
      scf.for %i = %block to %c8 step %grid : i32 {
        attn.named_barrier %id {threads = 128}
      }
      // expected-warning @below {{cannot be checked: its warps walk tiles in several loops}}
      scf.for %i = %block to %c8 step %grid : i32 {
        attn.named_barrier %id {threads = 128}
      }
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @no_launch(%p: !llvm.ptr<1>) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    %c9 = arith.constant 9 : i32
    %id = arith.constant 1 : i32
    attn.warp_specialize
    partition "a" warps 4 registers 24 {
      %x = gpu.block_id x
      %block = arith.index_cast %x : index to i32
      %g = gpu.grid_dim x
      %grid = arith.index_cast %g : index to i32
      // expected-warning @below {{cannot be checked: the launch does not say how many CTAs there are}}
      scf.for %i = %block to %c8 step %grid : i32 {
        attn.named_barrier %id {threads = 128}
      }
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @read_anew(%p: !llvm.ptr<1>) kernel attributes {attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["4", "1", "1"], block = [128, 1, 1],
      tensors = [{access = "read", dtype = "f32", name = "x", shape = array<i64: 4>, strides = array<i64: 1>}], args = [{kind = "pointer", tensor = "x"}]>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    %c9 = arith.constant 9 : i32
    %id = arith.constant 1 : i32
    attn.warp_specialize
    partition "a" warps 4 registers 24 {
      %x = gpu.block_id x
      %block = arith.index_cast %x : index to i32
      %g = gpu.grid_dim x
      %grid = arith.index_cast %g : index to i32
      %n = llvm.load volatile %p : !llvm.ptr<1> -> i32
      // expected-warning @below {{cannot be checked: how many tiles there are is not known}}
      scf.for %i = %block to %n step %grid : i32 {
        attn.named_barrier %id {threads = 128}
      }
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @twice(%p: !llvm.ptr<1>) kernel attributes {attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["4", "1", "1"], block = [128, 1, 1],
      tensors = [{access = "read", dtype = "f32", name = "x", shape = array<i64: 4>, strides = array<i64: 1>}], args = [{kind = "pointer", tensor = "x"}]>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    %c9 = arith.constant 9 : i32
    %id = arith.constant 1 : i32
    attn.warp_specialize
    partition "a" warps 4 registers 24 {
      %x = gpu.block_id x
      %block = arith.index_cast %x : index to i32
      %g = gpu.grid_dim x
      %grid = arith.index_cast %g : index to i32
      %more = arith.muli %block, %c0 : i32
      %most = arith.addi %c8, %more : i32
      // expected-warning @below {{cannot be checked: a tile comes twice}}
      scf.for %i = %c0 to %most step %c1 : i32 {
        %h = arith.muli %grid, %c0 : i32
        %b = arith.muli %block, %h : i32
        %tile = arith.addi %i, %b : i32
        %is = arith.cmpi eq, %tile, %c9 : i32
        scf.if %is {
          attn.named_barrier %id {threads = 128}
        }
        attn.named_barrier %id {threads = 128}
      }
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @unknown_tile(%n: i32, %p: !llvm.ptr<1>) kernel attributes {attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["4", "1", "1"], block = [128, 1, 1],
      tensors = [{access = "read", dtype = "f32", name = "x", shape = array<i64: 4>, strides = array<i64: 1>}], args = [{dim = 0 : i64, kind = "size", tensor = "x", type = "i32"}, {kind = "pointer", tensor = "x"}]>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    %c9 = arith.constant 9 : i32
    %id = arith.constant 1 : i32
    attn.warp_specialize
    partition "a" warps 4 registers 24 {
      %x = gpu.block_id x
      %block = arith.index_cast %x : index to i32
      %g = gpu.grid_dim x
      %grid = arith.index_cast %g : index to i32
      %more = arith.muli %block, %c0 : i32
      %most = arith.addi %c8, %more : i32
      // expected-warning @below {{cannot be checked: the number of a tile is not known}}
      scf.for %i = %c0 to %most step %c1 : i32 {
        %h = arith.muli %grid, %n : i32
        %b = arith.muli %block, %h : i32
        %tile = arith.addi %i, %b : i32
        %is = arith.cmpi eq, %tile, %c9 : i32
        scf.if %is {
          attn.named_barrier %id {threads = 128}
        }
        attn.named_barrier %id {threads = 128}
      }
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-warning @below {{cannot be checked: it depends on the block, and the launch does not say how many there are}}
  gpu.func @block() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %x = gpu.block_id x
    %block = arith.index_cast %x : index to i32
    scf.for %i = %c0 to %block step %c1 : i32 {
      gpu.barrier
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @first(%p: !llvm.ptr<1>) kernel attributes {attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["4", "1", "1"], block = [256, 1, 1],
      tensors = [{access = "read", dtype = "f32", name = "x", shape = array<i64: 4>, strides = array<i64: 1>}], args = [{kind = "pointer", tensor = "x"}]>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    %c9 = arith.constant 9 : i32
    %id = arith.constant 1 : i32
    %w = attn.alloc {name = "w", offset = 0} : !attn.buffer<4xi32, #attn.rows, shared>
    attn.warp_specialize
    partition "a" warps 4 registers 24 {
      %x = gpu.block_id x
      %block = arith.index_cast %x : index to i32
      %g = gpu.grid_dim x
      %grid = arith.index_cast %g : index to i32
      %r1 = scf.while (%t = %block) : (i32) -> i32 {
        %is = arith.cmpi ult, %t, %c8 : i32
        scf.condition(%is) %t : i32
      } do {
      ^bb0(%t: i32):
        attn.named_barrier %id {threads = 128}
        %n = attn.scalar_load %w[%c0] : !attn.buffer<4xi32, #attn.rows, shared>
        scf.yield %n : i32
      }
    }
    partition "b" warps 4 registers 24 {
      %x = gpu.block_id x
      %block = arith.index_cast %x : index to i32
      %g = gpu.grid_dim x
      %grid = arith.index_cast %g : index to i32
      %other = arith.addi %block, %c1 : i32
      // expected-warning @below {{cannot be checked: its tiles are not computed as those of the other partitions are}}
      %r2 = scf.while (%t = %other) : (i32) -> i32 {
        %is = arith.cmpi ult, %t, %c8 : i32
        scf.condition(%is) %t : i32
      } do {
      ^bb0(%t: i32):
        attn.named_barrier %id {threads = 128}
        %n = attn.scalar_load %w[%c0] : !attn.buffer<4xi32, #attn.rows, shared>
        scf.yield %n : i32
      }
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @dealers(%p: !llvm.ptr<1>) kernel attributes {attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["4", "1", "1"], block = [128, 1, 1],
      tensors = [{access = "read", dtype = "f32", name = "x", shape = array<i64: 4>, strides = array<i64: 1>}], args = [{kind = "pointer", tensor = "x"}]>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    %c9 = arith.constant 9 : i32
    %id = arith.constant 1 : i32
    %w = attn.alloc {name = "w", offset = 0} : !attn.buffer<4xi32, #attn.rows, shared>
    %b = attn.mbarrier.alloc {offset = 16} : !attn.mbarriers<1>
    attn.warp_specialize
    partition "a" warps 4 registers 24 {
      attn.elect {
        %k1 = llvm.atomicrmw uinc_wrap %p, %c8 syncscope("device") monotonic : !llvm.ptr<1>, i32
        %s1 = arith.addi %k1, %c1 : i32
        attn.scalar_send %s1, %w[%c0] barrier %b[%c0] : !attn.mbarriers<1> : !attn.buffer<4xi32, #attn.rows, shared>
        %s2 = arith.addi %k1, %c8 : i32
        // expected-warning @below {{cannot be checked: tiles are dealt in more than one place}}
        attn.scalar_send %s2, %w[%c0] barrier %b[%c0] : !attn.mbarriers<1> : !attn.buffer<4xi32, #attn.rows, shared>
      }
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @signal(%done: !attn.mbarriers<1>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : i32
    attn.elect {
      // expected-warning @below {{cannot be checked: its mbarriers do not come from an attn.mbarrier.alloc}}
      attn.tcgen05.commit %done[%c0] : !attn.mbarriers<1>
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @columns(%s: !attn.buffer<128x32xf32, #attn.tmem<m = 128>, tmem>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    // expected-warning @below {{cannot be checked: 'attn.tmem.load' op expected a buffer that comes from an attn.tmem_alloc through views}}
    %f = attn.tmem.load %s : !attn.buffer<128x32xf32, #attn.tmem<m = 128>, tmem> -> !attn.inflight<128x32xf32, #attn.tmem_regs<shape_32x32b, warps = [4, 1]>>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @elected() kernel attributes {attn.warps = array<i64: 1, 1>, attn.teams = 4 : i64, known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %x = attn.alloc {name = "x", offset = 0} : !attn.buffer<4xi32, #attn.rows, shared>
    // expected-warning @below {{cannot be checked: what it does in a kernel of teams is not known}}
    %v = attn.scalar_load %x[%c0] : !attn.buffer<4xi32, #attn.rows, shared>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-warning @below {{cannot be checked: its teams walk tiles}}
  gpu.func @walk(%p: !llvm.ptr<1>) kernel attributes {attn.warps = array<i64: 1, 1>, attn.teams = 4 : i64, attn.launch = #attn.launch<chip = "sm_80", ptx = 80, grid = ["4", "1", "1"], block = [128, 1, 1],
      tensors = [{access = "read", dtype = "f32", name = "x", shape = array<i64: 4>, strides = array<i64: 1>}], args = [{kind = "pointer", tensor = "x"}]>} {
    %c8 = arith.constant 8 : i32
    %x = gpu.block_id x
    %block = arith.index_cast %x : index to i32
    %g = gpu.grid_dim x
    %grid = arith.index_cast %g : index to i32
    scf.for %i = %block to %c8 step %grid : i32 {
      attn.team_barrier
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @one_waits(%g: !attn.global<?x16xf16>) kernel attributes {attn.warps = array<i64: 1, 1>, known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %x = attn.alloc {name = "x", offset = 0} : !attn.buffer<16x16xf16, #attn.rows, shared>
    attn.cp_async %g[%c0], %x : !attn.global<?x16xf16>, !attn.buffer<16x16xf16, #attn.rows, shared>
    attn.cp_async.commit
    attn.elect {
      // expected-warning @below {{cannot be checked: one thread waits for what all of its warp have started}}
      attn.cp_async.wait {pending = 0}
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @some_lanes() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %half = arith.constant 65535 : i32
    // expected-warning @below {{cannot be checked: not all threads of a warp come to it}}
    nvvm.bar.warp.sync %half : i32
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @exchange_of_four(%t: tensor<64x16xf32, #attn.mma<warps = [4, 1]>>) kernel attributes {known_block_size = array<i32: 128, 1, 1>, known_cluster_size = array<i32: 4, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %x = attn.alloc {name = "x", offset = 0} : !attn.buffer<64x16xf32, #attn.swizzled<span = 64>, shared>
    %b = attn.mbarrier.alloc {offset = 8192} : !attn.mbarriers<1>
    // expected-warning @below {{cannot be checked: it goes to the other one of two CTAs, and the cluster has more}}
    attn.local_send %t, %x barrier %b[%c0] : !attn.mbarriers<1> : tensor<64x16xf32, #attn.mma<warps = [4, 1]>>, !attn.buffer<64x16xf32, #attn.swizzled<span = 64>, shared>
    gpu.return
  }
}

// -----

// That a word is read before it is written is no reason where nobody goes on by what is in it.

gpu.module @kernels {
  gpu.func @word(%p: !llvm.ptr<1>) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c3 = arith.constant 3 : i32
    %all = arith.constant -1 : i32
    %x = attn.alloc {name = "x", offset = 0} : !attn.buffer<1xi32, #attn.rows, shared>
    %full = attn.mbarrier.alloc {name = "x.full", offset = 16} : !attn.mbarriers<1>
    %free = attn.mbarrier.alloc {name = "x.free", offset = 24} : !attn.mbarriers<1>
    attn.elect {
      attn.mbarrier.init %full {count = 1} : !attn.mbarriers<1>
      attn.mbarrier.init %free {count = 1} : !attn.mbarriers<1>
      attn.mbarrier.fence_init
    }
    gpu.barrier
    attn.warp_specialize
    partition "take" warps 1 registers 24 {
      %before = attn.scalar_load %x[%c0] : !attn.buffer<1xi32, #attn.rows, shared>
      attn.mbarrier.arrive %free[%c0] : !attn.mbarriers<1>
      %end = scf.for %i = %c0 to %c1 step %c1 iter_args(%n = %before) -> (i32) : i32 {
        attn.mbarrier.wait %full[%c0] parity %c0 : !attn.mbarriers<1>
        %read = attn.scalar_load %x[%c0] : !attn.buffer<1xi32, #attn.rows, shared>
        scf.yield %read : i32
      }
      %other = llvm.load volatile %p : !llvm.ptr<1> -> i32
      // expected-warning @below {{the upper bound does not follow from constants, sizes, the place of the warp and loop counters}}
      scf.for %i = %c0 to %other step %c1 : i32 {
        nvvm.bar.warp.sync %all : i32
      }
      scf.for %i = %c0 to %end step %c1 : i32 {
        nvvm.bar.warp.sync %all : i32
      }
    }
    partition "give" warps 3 registers 24 {
      attn.elect {
        attn.mbarrier.wait %free[%c0] parity %c0 : !attn.mbarriers<1>
        attn.scalar_store %c3, %x[%c0] : !attn.buffer<1xi32, #attn.rows, shared>
        attn.mbarrier.arrive %full[%c0] : !attn.mbarriers<1>
      }
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @long_buffer() kernel attributes {known_block_size = array<i32: 128, 1, 1>, attn.shared_bytes = 16383 : i64} {
    // expected-error @below {{lifetime: expected all of it within the 16383 bytes of 'attn.shared_bytes', got bytes 8192 to 16383}}
    %k = attn.alloc {name = "k", offset = 8192} : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @long_mbarriers() kernel attributes {known_block_size = array<i32: 128, 1, 1>, attn.shared_bytes = 64 : i64} {
    // expected-error @below {{lifetime: expected all of it within the 64 bytes of 'attn.shared_bytes', got bytes 56 to 71}}
    %full = attn.mbarrier.alloc {name = "full", offset = 56} : !attn.mbarriers<2>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @two_mbarriers() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    // expected-error @below {{race: expected mbarriers in bytes of their own, got bytes 0 to 15}}
    %a = attn.mbarrier.alloc {offset = 0} : !attn.mbarriers<2>
    // expected-note @below {{this has bytes 8 to 15}}
    %b = attn.mbarrier.alloc {offset = 8} : !attn.mbarriers<1>
    gpu.return
  }
}
