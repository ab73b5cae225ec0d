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

// -----

// Which tiles do more depends on the block too.

gpu.module @kernels [#attn.target<chip = "sm_90a">] attributes {attn.rung = "barrier"} {
  gpu.func @dealt_block_and_tile(%x0: !llvm.ptr<1>, %counter: !llvm.ptr<1>) kernel attributes {nvvm.minctasm = 1 : i32, known_block_size = array<i32: 256, 1, 1>, attn.shared_bytes = 65536 : i64,
      attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["2", "1", "1"], block = [256, 1, 1],
        tensors = [{access = "read", dtype = "f32", name = "x", shape = array<i64: 4>, strides = array<i64: 1>}], args = [{kind = "pointer", tensor = "x"}, {index = 0 : i64, kind = "workspace"}], workspaces = [{bytes = "4", restored = false, zeroed = true}]>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c3 = arith.constant 3 : i32
    %c4 = arith.constant 4 : i32
    %c9 = arith.constant 9 : i32
    %word = attn.alloc {name = "word", offset = 0} : !attn.buffer<1xi32, #attn.rows, shared>
    %tf = attn.mbarrier.alloc {name = "tf", offset = 16} : !attn.mbarriers<1>
    %te = attn.mbarrier.alloc {name = "te", offset = 24} : !attn.mbarriers<1>
    attn.elect {
      attn.mbarrier.init %tf {count = 1} : !attn.mbarriers<1>
      attn.mbarrier.init %te {count = 8} : !attn.mbarriers<1>
      attn.mbarrier.fence_init
    }
    gpu.barrier
    attn.warp_specialize
    partition "a" warps 4 registers 24 {
      %bx = gpu.block_id x
      %b = arith.index_cast %bx : index to i32
      %gx = gpu.grid_dim x
      %g = arith.index_cast %gx : index to i32
      %r:3 = scf.while (%t = %b, %w = %c0, %p = %c0) : (i32, i32, i32) -> (i32, i32, i32) {
        %go = arith.cmpi ult, %t, %c9 : i32
        scf.condition(%go) %t, %w, %p : i32, i32, i32
      } do {
      ^bb0(%t: i32, %w: i32, %p: i32):
        attn.mbarrier.wait %tf[%c0] parity %w : !attn.mbarriers<1>
        %next = attn.scalar_load %word[%c0] : !attn.buffer<1xi32, #attn.rows, shared>
        attn.mbarrier.arrive %te[%c0] : !attn.mbarriers<1>
        attn.named_barrier %c1 {threads = 256}
        %wx = arith.xori %w, %c1 : i32
        %y = arith.xori %p, %c1 : i32
        scf.yield %next, %wx, %y : i32, i32, i32
      }
    }
    partition "b" warps 4 registers 24 {
      %bx = gpu.block_id x
      %b = arith.index_cast %bx : index to i32
      %gx = gpu.grid_dim x
      %g = arith.index_cast %gx : index to i32
      %r:3 = scf.while (%t = %b, %w = %c0, %p = %c0) : (i32, i32, i32) -> (i32, i32, i32) {
        %go = arith.cmpi ult, %t, %c9 : i32
        scf.condition(%go) %t, %w, %p : i32, i32, i32
      } do {
      ^bb0(%t: i32, %w: i32, %p: i32):
        %nw = arith.xori %w, %c1 : i32
        attn.elect {
          attn.mbarrier.wait %te[%c0] parity %nw : !attn.mbarriers<1>
          %old = llvm.atomicrmw add %counter, %c1 monotonic : !llvm.ptr<1>, i32
          %deal = arith.addi %old, %g : i32
          attn.scalar_store %deal, %word[%c0] : !attn.buffer<1xi32, #attn.rows, shared>
          attn.mbarrier.arrive %tf[%c0] : !attn.mbarriers<1>
        }
        attn.mbarrier.wait %tf[%c0] parity %w : !attn.mbarriers<1>
        %next = attn.scalar_load %word[%c0] : !attn.buffer<1xi32, #attn.rows, shared>
        attn.mbarrier.arrive %te[%c0] : !attn.mbarriers<1>
        %m0 = arith.addi %t, %b : i32
        %m1 = arith.remui %m0, %c4 : i32
        %i1 = arith.cmpi ne, %m1, %c3 : i32
        %i2 = arith.cmpi ne, %b, %c1 : i32
        %is = arith.ori %i1, %i2 : i1
        // expected-warning @below {{cannot be checked: it depends on the tile and on the block besides}}
        scf.if %is {
          attn.named_barrier %c1 {threads = 256}
        }
        %wx = arith.xori %w, %c1 : i32
        %y = arith.xori %p, %c1 : i32
        scf.yield %next, %wx, %y : i32, i32, i32
      }
    }
    gpu.return
  }
}

// -----

// The first tile of a CTA has a number that is less than 0.

gpu.module @kernels [#attn.target<chip = "sm_90a">] attributes {attn.rung = "barrier"} {
  gpu.func @dealt_first_negative(%x0: !llvm.ptr<1>, %counter: !llvm.ptr<1>) kernel attributes {nvvm.minctasm = 1 : i32, known_block_size = array<i32: 256, 1, 1>, attn.shared_bytes = 65536 : i64,
      attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["2", "1", "1"], block = [256, 1, 1],
        tensors = [{access = "read", dtype = "f32", name = "x", shape = array<i64: 4>, strides = array<i64: 1>}], args = [{kind = "pointer", tensor = "x"}, {index = 0 : i64, kind = "workspace"}], workspaces = [{bytes = "4", restored = false, zeroed = true}]>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c9 = arith.constant 9 : i32
    %word = attn.alloc {name = "word", offset = 0} : !attn.buffer<1xi32, #attn.rows, shared>
    %tf = attn.mbarrier.alloc {name = "tf", offset = 16} : !attn.mbarriers<1>
    %te = attn.mbarrier.alloc {name = "te", offset = 24} : !attn.mbarriers<1>
    attn.elect {
      attn.mbarrier.init %tf {count = 1} : !attn.mbarriers<1>
      attn.mbarrier.init %te {count = 8} : !attn.mbarriers<1>
      attn.mbarrier.fence_init
    }
    gpu.barrier
    attn.warp_specialize
    partition "a" warps 4 registers 24 {
      %bx = gpu.block_id x
      %b = arith.index_cast %bx : index to i32
      %gx = gpu.grid_dim x
      %g = arith.index_cast %gx : index to i32
      %first = arith.subi %b, %c1 : i32
      // expected-warning @below {{cannot be checked: how many tiles there are is not known}}
      %r:3 = scf.while (%t = %first, %w = %c0, %p = %c0) : (i32, i32, i32) -> (i32, i32, i32) {
        %go = arith.cmpi slt, %t, %c9 : i32
        scf.condition(%go) %t, %w, %p : i32, i32, i32
      } do {
      ^bb0(%t: i32, %w: i32, %p: i32):
        attn.mbarrier.wait %tf[%c0] parity %w : !attn.mbarriers<1>
        %next = attn.scalar_load %word[%c0] : !attn.buffer<1xi32, #attn.rows, shared>
        attn.mbarrier.arrive %te[%c0] : !attn.mbarriers<1>
        attn.named_barrier %c1 {threads = 256}
        %wx = arith.xori %w, %c1 : i32
        %y = arith.xori %p, %c1 : i32
        scf.yield %next, %wx, %y : i32, i32, i32
      }
    }
    partition "b" warps 4 registers 24 {
      %bx = gpu.block_id x
      %b = arith.index_cast %bx : index to i32
      %gx = gpu.grid_dim x
      %g = arith.index_cast %gx : index to i32
      %first = arith.subi %b, %c1 : i32
      %r:3 = scf.while (%t = %first, %w = %c0, %p = %c0) : (i32, i32, i32) -> (i32, i32, i32) {
        %go = arith.cmpi slt, %t, %c9 : i32
        scf.condition(%go) %t, %w, %p : i32, i32, i32
      } do {
      ^bb0(%t: i32, %w: i32, %p: i32):
        %nw = arith.xori %w, %c1 : i32
        attn.elect {
          attn.mbarrier.wait %te[%c0] parity %nw : !attn.mbarriers<1>
          %old = llvm.atomicrmw add %counter, %c1 monotonic : !llvm.ptr<1>, i32
          %deal = arith.addi %old, %g : i32
          attn.scalar_store %deal, %word[%c0] : !attn.buffer<1xi32, #attn.rows, shared>
          attn.mbarrier.arrive %tf[%c0] : !attn.mbarriers<1>
        }
        attn.mbarrier.wait %tf[%c0] parity %w : !attn.mbarriers<1>
        %next = attn.scalar_load %word[%c0] : !attn.buffer<1xi32, #attn.rows, shared>
        attn.mbarrier.arrive %te[%c0] : !attn.mbarriers<1>
        %is = arith.cmpi sge, %t, %c0 : i32
        scf.if %is {
          attn.named_barrier %c1 {threads = 256}
        }
        %wx = arith.xori %w, %c1 : i32
        %y = arith.xori %p, %c1 : i32
        scf.yield %next, %wx, %y : i32, i32, i32
      }
    }
    gpu.return
  }
}

// -----

// And so has one that is dealt.

gpu.module @kernels [#attn.target<chip = "sm_90a">] attributes {attn.rung = "barrier"} {
  gpu.func @dealt_negative(%x0: !llvm.ptr<1>, %counter: !llvm.ptr<1>) kernel attributes {nvvm.minctasm = 1 : i32, known_block_size = array<i32: 256, 1, 1>, attn.shared_bytes = 65536 : i64,
      attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["2", "1", "1"], block = [256, 1, 1],
        tensors = [{access = "read", dtype = "f32", name = "x", shape = array<i64: 4>, strides = array<i64: 1>}], args = [{kind = "pointer", tensor = "x"}, {index = 0 : i64, kind = "workspace"}], workspaces = [{bytes = "4", restored = false, zeroed = true}]>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c3 = arith.constant 3 : i32
    %c9 = arith.constant 9 : i32
    %word = attn.alloc {name = "word", offset = 0} : !attn.buffer<1xi32, #attn.rows, shared>
    %tf = attn.mbarrier.alloc {name = "tf", offset = 16} : !attn.mbarriers<1>
    %te = attn.mbarrier.alloc {name = "te", offset = 24} : !attn.mbarriers<1>
    attn.elect {
      attn.mbarrier.init %tf {count = 1} : !attn.mbarriers<1>
      attn.mbarrier.init %te {count = 8} : !attn.mbarriers<1>
      attn.mbarrier.fence_init
    }
    gpu.barrier
    attn.warp_specialize
    partition "a" warps 4 registers 24 {
      %bx = gpu.block_id x
      %b = arith.index_cast %bx : index to i32
      %gx = gpu.grid_dim x
      %g = arith.index_cast %gx : index to i32
      // expected-warning @below {{cannot be checked: how many tiles there are is not known}}
      %r:3 = scf.while (%t = %b, %w = %c0, %p = %c0) : (i32, i32, i32) -> (i32, i32, i32) {
        %go = arith.cmpi slt, %t, %c9 : i32
        scf.condition(%go) %t, %w, %p : i32, i32, i32
      } do {
      ^bb0(%t: i32, %w: i32, %p: i32):
        attn.mbarrier.wait %tf[%c0] parity %w : !attn.mbarriers<1>
        %next = attn.scalar_load %word[%c0] : !attn.buffer<1xi32, #attn.rows, shared>
        attn.mbarrier.arrive %te[%c0] : !attn.mbarriers<1>
        attn.named_barrier %c1 {threads = 256}
        %wx = arith.xori %w, %c1 : i32
        %y = arith.xori %p, %c1 : i32
        scf.yield %next, %wx, %y : i32, i32, i32
      }
    }
    partition "b" warps 4 registers 24 {
      %bx = gpu.block_id x
      %b = arith.index_cast %bx : index to i32
      %gx = gpu.grid_dim x
      %g = arith.index_cast %gx : index to i32
      %r:3 = scf.while (%t = %b, %w = %c0, %p = %c0) : (i32, i32, i32) -> (i32, i32, i32) {
        %go = arith.cmpi slt, %t, %c9 : i32
        scf.condition(%go) %t, %w, %p : i32, i32, i32
      } do {
      ^bb0(%t: i32, %w: i32, %p: i32):
        %nw = arith.xori %w, %c1 : i32
        attn.elect {
          attn.mbarrier.wait %te[%c0] parity %nw : !attn.mbarriers<1>
          %old = llvm.atomicrmw add %counter, %c1 monotonic : !llvm.ptr<1>, i32
          %deal = arith.subi %old, %c3 : i32
          attn.scalar_store %deal, %word[%c0] : !attn.buffer<1xi32, #attn.rows, shared>
          attn.mbarrier.arrive %tf[%c0] : !attn.mbarriers<1>
        }
        attn.mbarrier.wait %tf[%c0] parity %w : !attn.mbarriers<1>
        %next = attn.scalar_load %word[%c0] : !attn.buffer<1xi32, #attn.rows, shared>
        attn.mbarrier.arrive %te[%c0] : !attn.mbarriers<1>
        %is = arith.cmpi sge, %t, %c0 : i32
        scf.if %is {
          attn.named_barrier %c1 {threads = 256}
        }
        %wx = arith.xori %w, %c1 : i32
        %y = arith.xori %p, %c1 : i32
        scf.yield %next, %wx, %y : i32, i32, i32
      }
    }
    gpu.return
  }
}

// -----

// A counter that counts down.

gpu.module @kernels [#attn.target<chip = "sm_90a">] attributes {attn.rung = "barrier"} {
  gpu.func @dealt_sub(%x0: !llvm.ptr<1>, %counter: !llvm.ptr<1>) kernel attributes {nvvm.minctasm = 1 : i32, known_block_size = array<i32: 256, 1, 1>, attn.shared_bytes = 65536 : i64,
      attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["2", "1", "1"], block = [256, 1, 1],
        tensors = [{access = "read", dtype = "f32", name = "x", shape = array<i64: 4>, strides = array<i64: 1>}], args = [{kind = "pointer", tensor = "x"}, {index = 0 : i64, kind = "workspace"}], workspaces = [{bytes = "4", restored = false, zeroed = true}]>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c9 = arith.constant 9 : i32
    %word = attn.alloc {name = "word", offset = 0} : !attn.buffer<1xi32, #attn.rows, shared>
    %tf = attn.mbarrier.alloc {name = "tf", offset = 16} : !attn.mbarriers<1>
    %te = attn.mbarrier.alloc {name = "te", offset = 24} : !attn.mbarriers<1>
    attn.elect {
      attn.mbarrier.init %tf {count = 1} : !attn.mbarriers<1>
      attn.mbarrier.init %te {count = 8} : !attn.mbarriers<1>
      attn.mbarrier.fence_init
    }
    gpu.barrier
    attn.warp_specialize
    partition "a" warps 4 registers 24 {
      %bx = gpu.block_id x
      %b = arith.index_cast %bx : index to i32
      %gx = gpu.grid_dim x
      %g = arith.index_cast %gx : index to i32
      // expected-warning @below {{cannot be checked: how many tiles there are is not known}}
      %r:3 = scf.while (%t = %b, %w = %c0, %p = %c0) : (i32, i32, i32) -> (i32, i32, i32) {
        %go = arith.cmpi slt, %t, %c9 : i32
        scf.condition(%go) %t, %w, %p : i32, i32, i32
      } do {
      ^bb0(%t: i32, %w: i32, %p: i32):
        attn.mbarrier.wait %tf[%c0] parity %w : !attn.mbarriers<1>
        %next = attn.scalar_load %word[%c0] : !attn.buffer<1xi32, #attn.rows, shared>
        attn.mbarrier.arrive %te[%c0] : !attn.mbarriers<1>
        attn.named_barrier %c1 {threads = 256}
        %wx = arith.xori %w, %c1 : i32
        %y = arith.xori %p, %c1 : i32
        scf.yield %next, %wx, %y : i32, i32, i32
      }
    }
    partition "b" warps 4 registers 24 {
      %bx = gpu.block_id x
      %b = arith.index_cast %bx : index to i32
      %gx = gpu.grid_dim x
      %g = arith.index_cast %gx : index to i32
      %r:3 = scf.while (%t = %b, %w = %c0, %p = %c0) : (i32, i32, i32) -> (i32, i32, i32) {
        %go = arith.cmpi slt, %t, %c9 : i32
        scf.condition(%go) %t, %w, %p : i32, i32, i32
      } do {
      ^bb0(%t: i32, %w: i32, %p: i32):
        %nw = arith.xori %w, %c1 : i32
        attn.elect {
          attn.mbarrier.wait %te[%c0] parity %nw : !attn.mbarriers<1>
          %old = llvm.atomicrmw sub %counter, %c1 monotonic : !llvm.ptr<1>, i32
          %deal = arith.addi %old, %c0 : i32
          attn.scalar_store %deal, %word[%c0] : !attn.buffer<1xi32, #attn.rows, shared>
          attn.mbarrier.arrive %tf[%c0] : !attn.mbarriers<1>
        }
        attn.mbarrier.wait %tf[%c0] parity %w : !attn.mbarriers<1>
        %next = attn.scalar_load %word[%c0] : !attn.buffer<1xi32, #attn.rows, shared>
        attn.mbarrier.arrive %te[%c0] : !attn.mbarriers<1>
        %is = arith.cmpi sge, %t, %c0 : i32
        scf.if %is {
          attn.named_barrier %c1 {threads = 256}
        }
        %wx = arith.xori %w, %c1 : i32
        %y = arith.xori %p, %c1 : i32
        scf.yield %next, %wx, %y : i32, i32, i32
      }
    }
    gpu.return
  }
}
