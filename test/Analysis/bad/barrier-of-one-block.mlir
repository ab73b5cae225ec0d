// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s

// One of the CTAs has a barrier more. The block's number is asked for in a loop over tiles that are dealt.

// CHECK: error: deadlock: 'a' waits for phase 2 of named barrier 1, which lacks 4 of 8 arrivals from 'b', which exited

gpu.module @kernels {
  gpu.func @of_block(%p: !llvm.ptr<1>) kernel attributes {known_block_size = array<i32: 256, 1, 1>, attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["4", "1", "1"], block = [256, 1, 1],
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
        %here = arith.cmpi eq, %block, %c3 : i32
        scf.if %here {
          attn.named_barrier %id {threads = 256}
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
