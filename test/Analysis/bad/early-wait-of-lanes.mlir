// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s

// Between tiles the elected thread alone has waited for the phase before the one that all threads wait for next.

// CHECK: error: early wait: the wait of warp 0 for phase 1 of 'ready'[0] is not ordered after the completion of phase 0: phase -1 satisfies it too

gpu.module @kernels {
  gpu.func @lanes_of_a_tile(%p: !llvm.ptr<1>) kernel attributes {known_block_size = array<i32: 64, 1, 1>, attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["2", "1", "1"], block = [64, 1, 1], tensors = [{access = "read", dtype = "f32", name = "x", shape = array<i64: 4>, strides = array<i64: 1>}], args = [{kind = "pointer", tensor = "x"}]>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c6 = arith.constant 6 : i32
    %c16 = arith.constant 16 : i32
    %lap = arith.constant 65536 : i32
    %ready = attn.mbarrier.alloc {name = "ready", offset = 0} : !attn.mbarriers<1>
    %go = attn.mbarrier.alloc {name = "go", offset = 8} : !attn.mbarriers<1>
    %seen = attn.mbarrier.alloc {name = "seen", offset = 16} : !attn.mbarriers<1>
    attn.elect {
      attn.mbarrier.init %ready {count = 1} : !attn.mbarriers<1>
      attn.mbarrier.init %go {count = 1} : !attn.mbarriers<1>
      attn.mbarrier.init %seen {count = 1} : !attn.mbarriers<1>
      attn.mbarrier.fence_init
    }
    gpu.barrier
    attn.warp_specialize
    partition "reader" warps 1 registers 24 {
      %x = gpu.block_id x
      %block = arith.index_cast %x : index to i32
      %g = gpu.grid_dim x
      %grid = arith.index_cast %g : index to i32
      attn.elect {
        attn.mbarrier.wait %ready[%c0] parity %c0 : !attn.mbarriers<1>
        attn.mbarrier.arrive %go[%c0] : !attn.mbarriers<1>
      }
      scf.for %tile = %block to %c6 step %grid : i32 {
        attn.mbarrier.wait %ready[%c0] parity %c1 : !attn.mbarriers<1>
        attn.mbarrier.arrive %seen[%c0] : !attn.mbarriers<1>
        attn.elect {
          attn.mbarrier.wait %ready[%c0] parity %c0 : !attn.mbarriers<1>
          attn.mbarrier.arrive %go[%c0] : !attn.mbarriers<1>
        }
      }
    }
    partition "writer" warps 1 registers 24 {
      attn.elect {
        %x = gpu.block_id x
        %block = arith.index_cast %x : index to i32
        %g = gpu.grid_dim x
        %grid = arith.index_cast %g : index to i32
        attn.mbarrier.arrive %ready[%c0] : !attn.mbarriers<1>
        %end = scf.for %tile = %block to %c6 step %grid iter_args(%at = %c0) -> (i32) : i32 {
          %parity = arith.shrui %at, %c16 : i32
          attn.mbarrier.wait %go[%c0] parity %parity : !attn.mbarriers<1>
          attn.mbarrier.arrive %ready[%c0] : !attn.mbarriers<1>
          attn.mbarrier.wait %seen[%c0] parity %parity : !attn.mbarriers<1>
          attn.mbarrier.arrive %ready[%c0] : !attn.mbarriers<1>
          %next = arith.xori %at, %lap : i32
          scf.yield %next : i32
        }
      }
    }
    gpu.return
  }
}
