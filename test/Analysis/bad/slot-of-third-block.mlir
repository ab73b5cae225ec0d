// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s

// Blocks of more than two kinds part at one step: each of them is followed, the third one too.

// CHECK: error: lifetime: warp 0 uses mbarrier 2 of 'ready', which has 2

gpu.module @kernels {
  gpu.func @slot_of_a_block(%p: !llvm.ptr<1>) kernel attributes {known_block_size = array<i32: 128, 1, 1>, attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["3", "1", "1"], block = [128, 1, 1], tensors = [{access = "read", dtype = "f32", name = "x", shape = array<i64: 4>, strides = array<i64: 1>}], args = [{kind = "pointer", tensor = "x"}]>} {
    %ready = attn.mbarrier.alloc {name = "ready", offset = 0} : !attn.mbarriers<2>
    attn.elect {
      attn.mbarrier.init %ready {count = 4} : !attn.mbarriers<2>
      attn.mbarrier.fence_init
    }
    gpu.barrier
    %x = gpu.block_id x
    %block = arith.index_cast %x : index to i32
    attn.elect {
      attn.mbarrier.arrive %ready[%block] : !attn.mbarriers<2>
    }
    gpu.return
  }
}
