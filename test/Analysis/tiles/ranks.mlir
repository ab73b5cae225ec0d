// RUN: attn-opt %s --split-input-file --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -verify-diagnostics -o /dev/null

// The second CTA of each cluster walks a tile more than the first one, in which nobody meets it.

gpu.module @kernels {
  gpu.func @by_rank(%p: !llvm.ptr<1>) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>, known_block_size = array<i32: 128, 1, 1>, attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["4", "1", "1"], block = [128, 1, 1], cluster = [2, 1, 1],
      tensors = [{access = "read", dtype = "f32", name = "x", shape = array<i64: 4>, strides = array<i64: 1>}], args = [{kind = "pointer", tensor = "x"}]>} {
    %c2 = arith.constant 2 : i32
    %c8 = arith.constant 8 : i32
    attn.warp_specialize
    partition "a" warps 4 registers 24 {
      %x = gpu.block_id x
      %block = arith.index_cast %x : index to i32
      %r = gpu.cluster_block_id x
      %rank = arith.index_cast %r : index to i32
      %g = gpu.grid_dim x
      %grid = arith.index_cast %g : index to i32
      %first = arith.divui %block, %c2 : i32
      %step = arith.divui %grid, %c2 : i32
      %last = arith.addi %c8, %rank : i32
      // expected-warning @below {{cannot be checked: the CTAs of a cluster walk different tiles}}
      scf.for %i = %first to %last step %step : i32 {
        attn.cluster_barrier
      }
    }
    gpu.return
  }
}

// -----

// The block's number is another one in each CTA of a cluster.

gpu.module @kernels {
  gpu.func @undivided(%p: !llvm.ptr<1>) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>, known_block_size = array<i32: 128, 1, 1>, attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["4", "1", "1"], block = [128, 1, 1], cluster = [2, 1, 1],
      tensors = [{access = "read", dtype = "f32", name = "x", shape = array<i64: 4>, strides = array<i64: 1>}], args = [{kind = "pointer", tensor = "x"}]>} {
    %c9 = arith.constant 9 : i32
    attn.warp_specialize
    partition "a" warps 4 registers 24 {
      %x = gpu.block_id x
      %block = arith.index_cast %x : index to i32
      %g = gpu.grid_dim x
      %grid = arith.index_cast %g : index to i32
      // expected-warning @below {{cannot be checked: the CTAs of a cluster walk different tiles}}
      scf.for %i = %block to %c9 step %grid : i32 {
        attn.cluster_barrier
      }
    }
    gpu.return
  }
}

// -----

// The first number of those that are dealt is another one for each thread.

gpu.module @kernels {
  gpu.func @dealt(%p: !llvm.ptr<1>) kernel attributes {known_block_size = array<i32: 128, 1, 1>, attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["4", "1", "1"], block = [128, 1, 1],
      tensors = [{access = "read", dtype = "f32", name = "x", shape = array<i64: 4>, strides = array<i64: 1>}], args = [{kind = "pointer", tensor = "x"}]>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    %w = attn.alloc {name = "w", offset = 0} : !attn.buffer<1xi32, #attn.rows, shared>
    attn.warp_specialize
    partition "a" warps 4 registers 24 {
      %x = gpu.block_id x
      %block = arith.index_cast %x : index to i32
      %t = gpu.thread_id x
      %thread = arith.index_cast %t : index to i32
      %first = arith.addi %block, %thread : i32
      // expected-warning @below {{cannot be checked: its first tile is not known}}
      %end = scf.while (%tile = %first) : (i32) -> i32 {
        %is = arith.cmpi ult, %tile, %c8 : i32
        scf.condition(%is) %tile : i32
      } do {
      ^bb0(%tile: i32):
        gpu.barrier
        attn.elect {
          %dealt = llvm.atomicrmw add %p, %c1 monotonic : !llvm.ptr<1>, i32
          attn.scalar_store %dealt, %w[%c0] : !attn.buffer<1xi32, #attn.rows, shared>
        }
        gpu.barrier
        %next = attn.scalar_load %w[%c0] : !attn.buffer<1xi32, #attn.rows, shared>
        scf.yield %next : i32
      }
    }
    gpu.return
  }
}
