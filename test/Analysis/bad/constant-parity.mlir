// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s

// A ring of one slot whose first two phases are over in front of the tiles. One partition counts its phases, the other
// one waits for the same parity in each tile, which is right in the first one only: the ring may not be turned.

// CHECK: error: phase slip: phase 3 of 'ready'[0] completes without being ordered after the wait of warp 0 for phase 2: the wait may miss its phase
// CHECK: note: initialised here
// CHECK: note: the signal that completes it, by warp 4

gpu.module @kernels {
  gpu.func @constant_parity(%p: !llvm.ptr<1>) kernel attributes {attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["4", "1", "1"], block = [256, 1, 1],
      tensors = [{access = "read", dtype = "f32", name = "x", shape = array<i64: 4>, strides = array<i64: 1>}], args = [{kind = "pointer", tensor = "x"}]>, known_block_size = array<i32: 256, 1, 1>} {
    %c8 = arith.constant 8 : i32
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c16 = arith.constant 16 : i32
    %flip = arith.constant 65536 : i32
    %id = arith.constant 1 : i32
    %ready = attn.mbarrier.alloc {name = "ready", offset = 0} : !attn.mbarriers<1>
    attn.elect {
      attn.mbarrier.init %ready {count = 1} : !attn.mbarriers<1>
      attn.mbarrier.fence_init
    }
    gpu.barrier
    attn.warp_specialize
    partition "a" warps 4 registers 24 {
      %x = gpu.block_id x
      %block = arith.index_cast %x : index to i32
      %g = gpu.grid_dim x
      %grid = arith.index_cast %g : index to i32
      attn.mbarrier.wait %ready[%c0] parity %c0 : !attn.mbarriers<1>
      attn.named_barrier %id {threads = 256}
      attn.mbarrier.wait %ready[%c0] parity %c1 : !attn.mbarriers<1>
      attn.named_barrier %id {threads = 256}
      scf.for %i = %block to %c8 step %grid : i32 {
        attn.mbarrier.wait %ready[%c0] parity %c0 : !attn.mbarriers<1>
        attn.named_barrier %id {threads = 256}
      }
    }
    partition "b" warps 4 registers 24 {
      %x = gpu.block_id x
      %block = arith.index_cast %x : index to i32
      %g = gpu.grid_dim x
      %grid = arith.index_cast %g : index to i32
      attn.elect {
        attn.mbarrier.arrive %ready[%c0] : !attn.mbarriers<1>
      }
      attn.mbarrier.wait %ready[%c0] parity %c0 : !attn.mbarriers<1>
      attn.named_barrier %id {threads = 256}
      attn.elect {
        attn.mbarrier.arrive %ready[%c0] : !attn.mbarriers<1>
      }
      attn.mbarrier.wait %ready[%c0] parity %c1 : !attn.mbarriers<1>
      attn.named_barrier %id {threads = 256}
      %last = scf.for %i = %block to %c8 step %grid iter_args(%cursor = %c0) -> (i32) : i32 {
        attn.elect {
          attn.mbarrier.arrive %ready[%c0] : !attn.mbarriers<1>
        }
        %parity = arith.shrui %cursor, %c16 : i32
        attn.mbarrier.wait %ready[%c0] parity %parity : !attn.mbarriers<1>
        attn.named_barrier %id {threads = 256}
        %next = arith.xori %cursor, %flip : i32
        scf.yield %next : i32
      }
    }
    gpu.return
  }
}
