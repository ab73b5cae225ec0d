gpu.module @kernels [#attn.target<chip = "sm_90a">] attributes {attn.rung = "barrier"} {
  gpu.func @peers(%out: !llvm.ptr<1>) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>, known_block_size = array<i32: 128, 1, 1>, attn.shared_bytes = 16 : i64, attn.warps = array<i64: 4, 1>,
      attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["2", "1", "1"], block = [128, 1, 1], cluster = [2, 1, 1],
        tensors = [{access = "read", dtype = "f32", name = "x", shape = array<i64: 128>, strides = array<i64: 1>}], args = [{kind = "pointer", tensor = "x"}]>} {
    %c0 = arith.constant 0 : i32
    %done = attn.mbarrier.alloc {name = "done", offset = 0} : !attn.mbarriers<1>
    attn.elect {
      attn.mbarrier.init %done {count = 8} : !attn.mbarriers<1>
      attn.mbarrier.fence_init
    }
    attn.cluster_barrier
    // Each warp tells both CTAs that it is done.
    attn.mbarrier.arrive %done[%c0] {ctas = 2} : !attn.mbarriers<1>
    attn.cluster_barrier
    attn.elect {
      attn.mbarrier.inval %done : !attn.mbarriers<1>
    }
    gpu.return
  }
}
