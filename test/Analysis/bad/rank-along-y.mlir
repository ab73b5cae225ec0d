// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s

// Both CTAs of a cluster that lies along x are the first one along y, so that both signal.

// CHECK: error: signal in the wrong phase: a signal of warp 0 of CTA 1 for phase 1 of 'a'[0] of CTA 0 is not ordered after the completion of phase 0

gpu.module @kernels {
  gpu.func @rank_along_y(%p: !llvm.ptr<1>) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>, known_block_size = array<i32: 128, 1, 1>, attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["2", "1", "1"], block = [128, 1, 1], cluster = [2, 1, 1],
        tensors = [{access = "read", dtype = "f32", name = "x", shape = array<i64: 4>, strides = array<i64: 1>}], args = [{kind = "pointer", tensor = "x"}]>} {
    %c0 = arith.constant 0 : i32
    %ma = attn.mbarrier.alloc {name = "a", offset = 0} : !attn.mbarriers<1>
    %mb = attn.mbarrier.alloc {name = "b", offset = 8} : !attn.mbarriers<1>
    attn.elect {
      attn.mbarrier.init %ma {count = 1} : !attn.mbarriers<1>
      attn.mbarrier.init %mb {count = 1} : !attn.mbarriers<1>
      attn.mbarrier.fence_init
    }
    attn.cluster_barrier
    %by = gpu.cluster_block_id y
    %y = arith.index_cast %by : index to i32
    %is = arith.cmpi eq, %y, %c0 : i32
    attn.elect {
      scf.if %is {
        attn.mbarrier.arrive %ma[%c0] {ctas = 2} : !attn.mbarriers<1>
      }
      attn.mbarrier.wait %ma[%c0] parity %c0 : !attn.mbarriers<1>
    }
    attn.cluster_barrier
    gpu.return
  }
}
