// RUN: attn-opt %s --split-input-file --pass-pipeline='builtin.module(gpu.module(attn-insert-fences{leave-out-proved}))' | FileCheck %s

// What is left out is only what the kernel is proved without: these barriers are needed in one CTA, and in tiles of numbers
// less than 0.

// CHECK-LABEL: gpu.func @fence_dealt_block
// CHECK: attn.local_store
// CHECK: attn.named_barrier
// CHECK: attn.local_load

gpu.module @kernels [#attn.target<chip = "sm_90a">] attributes {attn.rung = "tile"} {
  gpu.func @fence_dealt_block(%x0: !llvm.ptr<1>, %counter: !llvm.ptr<1>) kernel attributes {nvvm.minctasm = 1 : i32, known_block_size = array<i32: 256, 1, 1>, attn.shared_bytes = 65536 : i64,
      attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["2", "1", "1"], block = [256, 1, 1],
        tensors = [{access = "read", dtype = "f32", name = "x", shape = array<i64: 4>, strides = array<i64: 1>}], args = [{kind = "pointer", tensor = "x"}, {index = 0 : i64, kind = "workspace"}], workspaces = [{bytes = "4", restored = true, zeroed = true}]>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %x = attn.alloc {name = "x", offset = 4096} : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
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
    partition "a" warps 4 tiles [4, 1] registers 128 {
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
        %is = arith.cmpi eq, %b, %c1 : i32
        scf.if %is {
          %v = arith.constant dense<1.0> : tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
          attn.local_store %v, %x : tensor<64x64xf16, #attn.mma<warps = [4, 1]>>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
          %ld = attn.local_load %x : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared> -> tensor<64x64xf16, #attn.mma<warps = [2, 2]>>
        }
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
        %wx = arith.xori %w, %c1 : i32
        %y = arith.xori %p, %c1 : i32
        scf.yield %next, %wx, %y : i32, i32, i32
      }
    }
    gpu.return
  }
}

// -----

// CHECK-LABEL: gpu.func @fence_negative
// CHECK: attn.local_store
// CHECK: attn.named_barrier
// CHECK: attn.local_load

gpu.module @kernels [#attn.target<chip = "sm_90a">] attributes {attn.rung = "tile"} {
  gpu.func @fence_negative(%n: i32) kernel attributes {nvvm.minctasm = 1 : i32, known_block_size = array<i32: 256, 1, 1>, attn.shared_bytes = 65536 : i64,
      attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["1", "1", "1"], block = [256, 1, 1],
        tensors = [{access = "read", dtype = "f32", name = "x", shape = array<i64: -1>, strides = array<i64: 1>}], args = [{dim = 0 : i64, kind = "size", tensor = "x", type = "i32"}]>} {
    %c0 = arith.constant 0 : i32
    %c3 = arith.constant 3 : i32
    %x = attn.alloc {name = "x", offset = 1024} : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    attn.warp_specialize
    partition "a" warps 4 tiles [4, 1] registers 128 {
      %bx = gpu.block_id x
      %b = arith.index_cast %bx : index to i32
      %gx = gpu.grid_dim x
      %g = arith.index_cast %gx : index to i32
      %f = arith.subi %b, %c3 : i32
      scf.for %i = %f to %n step %g : i32 {
        %is = arith.cmpi slt, %i, %c0 : i32
        scf.if %is {
          %v = arith.constant dense<1.0> : tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
          attn.local_store %v, %x : tensor<64x64xf16, #attn.mma<warps = [4, 1]>>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
          %ld = attn.local_load %x : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared> -> tensor<64x64xf16, #attn.mma<warps = [2, 2]>>
        }
      }
    }
    partition "b" warps 4 registers 24 {
    }
    gpu.return
  }
}
