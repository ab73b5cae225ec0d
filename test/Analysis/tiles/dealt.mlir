// RUN: attn-opt %s --split-input-file --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -verify-diagnostics -o /dev/null

// Number 8 is a tile to one of the partitions only.

gpu.module @kernels {
  gpu.func @one_more(%p: !llvm.ptr<1>) kernel attributes {known_block_size = array<i32: 256, 1, 1>, attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["4", "1", "1"], block = [256, 1, 1],
      tensors = [{access = "read", dtype = "f32", name = "x", shape = array<i64: 4>, strides = array<i64: 1>}], args = [{kind = "pointer", tensor = "x"}]>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c3 = arith.constant 3 : i32
    %c8 = arith.constant 8 : i32
    %c9 = arith.constant 9 : i32
    %id = arith.constant 1 : i32
    %w = attn.alloc {name = "w", offset = 0} : !attn.buffer<1xi32, #attn.rows, shared>
    attn.warp_specialize
    partition "a" warps 4 registers 24 {
      %x = gpu.block_id x
      %block = arith.index_cast %x : index to i32
      %g = gpu.grid_dim x
      %grid = arith.index_cast %g : index to i32
      %end = scf.while (%tile = %block) : (i32) -> i32 {
        %is = arith.cmpi ult, %tile, %c8 : i32
        scf.condition(%is) %tile : i32
      } do {
      ^bb0(%tile: i32):
        attn.named_barrier %id {threads = 256}
        attn.elect {
          %counted = llvm.atomicrmw add %p, %c1 monotonic : !llvm.ptr<1>, i32
          %dealt = arith.addi %counted, %grid : i32
          attn.scalar_store %dealt, %w[%c0] : !attn.buffer<1xi32, #attn.rows, shared>
        }
        attn.named_barrier %id {threads = 256}
        %next = attn.scalar_load %w[%c0] : !attn.buffer<1xi32, #attn.rows, shared>
        scf.yield %next : i32
      }
    }
    partition "b" warps 4 registers 24 {
      %x = gpu.block_id x
      %block = arith.index_cast %x : index to i32
      %g = gpu.grid_dim x
      %grid = arith.index_cast %g : index to i32
      // expected-warning @below {{cannot be checked: its tiles are not computed as those of the other partitions are}}
      %end = scf.while (%tile = %block) : (i32) -> i32 {
        %is = arith.cmpi ult, %tile, %c9 : i32
        scf.condition(%is) %tile : i32
      } do {
      ^bb0(%tile: i32):
        attn.named_barrier %id {threads = 256}
        attn.named_barrier %id {threads = 256}
        %next = attn.scalar_load %w[%c0] : !attn.buffer<1xi32, #attn.rows, shared>
        scf.yield %next : i32
      }
    }
    gpu.return
  }
}

// -----

// Which numbers are tiles is known only if all below a bound are.

gpu.module @kernels {
  gpu.func @not_below(%p: !llvm.ptr<1>) kernel attributes {known_block_size = array<i32: 256, 1, 1>, attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["4", "1", "1"], block = [256, 1, 1],
      tensors = [{access = "read", dtype = "f32", name = "x", shape = array<i64: 4>, strides = array<i64: 1>}], args = [{kind = "pointer", tensor = "x"}]>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c3 = arith.constant 3 : i32
    %c8 = arith.constant 8 : i32
    %c9 = arith.constant 9 : i32
    %id = arith.constant 1 : i32
    %w = attn.alloc {name = "w", offset = 0} : !attn.buffer<1xi32, #attn.rows, shared>
    attn.warp_specialize
    partition "a" warps 4 registers 24 {
      %x = gpu.block_id x
      %block = arith.index_cast %x : index to i32
      %g = gpu.grid_dim x
      %grid = arith.index_cast %g : index to i32
      // expected-warning @below {{cannot be checked: how many tiles there are is not known}}
      %end = scf.while (%tile = %block) : (i32) -> i32 {
        %is = arith.cmpi ne, %tile, %c3 : i32
        scf.condition(%is) %tile : i32
      } do {
      ^bb0(%tile: i32):
        attn.named_barrier %id {threads = 256}
        attn.elect {
          %counted = llvm.atomicrmw add %p, %c1 monotonic : !llvm.ptr<1>, i32
          %dealt = arith.addi %counted, %grid : i32
          attn.scalar_store %dealt, %w[%c0] : !attn.buffer<1xi32, #attn.rows, shared>
        }
        attn.named_barrier %id {threads = 256}
        %next = attn.scalar_load %w[%c0] : !attn.buffer<1xi32, #attn.rows, shared>
        scf.yield %next : i32
      }
    }
    partition "b" warps 4 registers 24 {
      %x = gpu.block_id x
      %block = arith.index_cast %x : index to i32
      %g = gpu.grid_dim x
      %grid = arith.index_cast %g : index to i32
      %end = scf.while (%tile = %block) : (i32) -> i32 {
        %is = arith.cmpi ne, %tile, %c3 : i32
        scf.condition(%is) %tile : i32
      } do {
      ^bb0(%tile: i32):
        attn.named_barrier %id {threads = 256}
        attn.named_barrier %id {threads = 256}
        %next = attn.scalar_load %w[%c0] : !attn.buffer<1xi32, #attn.rows, shared>
        scf.yield %next : i32
      }
    }
    gpu.return
  }
}

// -----

// Each CTA has another bound.

gpu.module @kernels {
  gpu.func @by_block(%p: !llvm.ptr<1>) kernel attributes {known_block_size = array<i32: 256, 1, 1>, attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["4", "1", "1"], block = [256, 1, 1],
      tensors = [{access = "read", dtype = "f32", name = "x", shape = array<i64: 4>, strides = array<i64: 1>}], args = [{kind = "pointer", tensor = "x"}]>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c3 = arith.constant 3 : i32
    %c8 = arith.constant 8 : i32
    %c9 = arith.constant 9 : i32
    %id = arith.constant 1 : i32
    %w = attn.alloc {name = "w", offset = 0} : !attn.buffer<1xi32, #attn.rows, shared>
    attn.warp_specialize
    partition "a" warps 4 registers 24 {
      %x = gpu.block_id x
      %block = arith.index_cast %x : index to i32
      %g = gpu.grid_dim x
      %grid = arith.index_cast %g : index to i32
      // expected-warning @below {{cannot be checked: how many tiles there are is not known}}
      %end = scf.while (%tile = %block) : (i32) -> i32 {
        %bound = arith.addi %c2, %block : i32
        %is = arith.cmpi ult, %tile, %bound : i32
        scf.condition(%is) %tile : i32
      } do {
      ^bb0(%tile: i32):
        attn.named_barrier %id {threads = 256}
        attn.elect {
          %counted = llvm.atomicrmw add %p, %c1 monotonic : !llvm.ptr<1>, i32
          %dealt = arith.addi %counted, %grid : i32
          attn.scalar_store %dealt, %w[%c0] : !attn.buffer<1xi32, #attn.rows, shared>
        }
        attn.named_barrier %id {threads = 256}
        %next = attn.scalar_load %w[%c0] : !attn.buffer<1xi32, #attn.rows, shared>
        scf.yield %next : i32
      }
    }
    partition "b" warps 4 registers 24 {
      %x = gpu.block_id x
      %block = arith.index_cast %x : index to i32
      %g = gpu.grid_dim x
      %grid = arith.index_cast %g : index to i32
      %end = scf.while (%tile = %block) : (i32) -> i32 {
        %bound = arith.addi %c2, %block : i32
        %is = arith.cmpi ult, %tile, %bound : i32
        scf.condition(%is) %tile : i32
      } do {
      ^bb0(%tile: i32):
        attn.named_barrier %id {threads = 256}
        attn.named_barrier %id {threads = 256}
        %next = attn.scalar_load %w[%c0] : !attn.buffer<1xi32, #attn.rows, shared>
        scf.yield %next : i32
      }
    }
    gpu.return
  }
}

// -----

// Each lane has a number of its own.

gpu.module @kernels {
  gpu.func @all_lanes(%p: !llvm.ptr<1>) kernel attributes {known_block_size = array<i32: 256, 1, 1>, attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["4", "1", "1"], block = [256, 1, 1],
      tensors = [{access = "read", dtype = "f32", name = "x", shape = array<i64: 4>, strides = array<i64: 1>}], args = [{kind = "pointer", tensor = "x"}]>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c3 = arith.constant 3 : i32
    %c8 = arith.constant 8 : i32
    %c9 = arith.constant 9 : i32
    %id = arith.constant 1 : i32
    %w = attn.alloc {name = "w", offset = 0} : !attn.buffer<1xi32, #attn.rows, shared>
    attn.warp_specialize
    partition "a" warps 4 registers 24 {
      %x = gpu.block_id x
      %block = arith.index_cast %x : index to i32
      %g = gpu.grid_dim x
      %grid = arith.index_cast %g : index to i32
      %end = scf.while (%tile = %block) : (i32) -> i32 {
        %is = arith.cmpi ult, %tile, %c8 : i32
        scf.condition(%is) %tile : i32
      } do {
      ^bb0(%tile: i32):
        attn.named_barrier %id {threads = 256}
        %counted = llvm.atomicrmw add %p, %c1 monotonic : !llvm.ptr<1>, i32
        %dealt = arith.addi %counted, %grid : i32
        attn.elect {
          // expected-warning @below {{cannot be checked: its tiles are dealt by several threads}}
          attn.scalar_store %dealt, %w[%c0] : !attn.buffer<1xi32, #attn.rows, shared>
        }
        attn.named_barrier %id {threads = 256}
        %next = attn.scalar_load %w[%c0] : !attn.buffer<1xi32, #attn.rows, shared>
        scf.yield %next : i32
      }
    }
    partition "b" warps 4 registers 24 {
      %x = gpu.block_id x
      %block = arith.index_cast %x : index to i32
      %g = gpu.grid_dim x
      %grid = arith.index_cast %g : index to i32
      %end = scf.while (%tile = %block) : (i32) -> i32 {
        %is = arith.cmpi ult, %tile, %c8 : i32
        scf.condition(%is) %tile : i32
      } do {
      ^bb0(%tile: i32):
        attn.named_barrier %id {threads = 256}
        attn.named_barrier %id {threads = 256}
        %next = attn.scalar_load %w[%c0] : !attn.buffer<1xi32, #attn.rows, shared>
        scf.yield %next : i32
      }
    }
    gpu.return
  }
}
