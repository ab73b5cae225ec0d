// RUN: not attn-opt %s --split-input-file --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s

// The kernel, its partitions and its launch say how many threads and CTAs there are, and have to say the same.

// CHECK: error: expected a kernel that agrees with its launch: its threads do not lie along x

gpu.module @kernels {
  gpu.func @flat() kernel attributes {known_block_size = array<i32: 64, 2, 1>} {
    gpu.barrier
    gpu.return
  }
}

// -----

// CHECK: error: expected a kernel that agrees with its launch: its block has other threads than its warps

gpu.module @kernels {
  gpu.func @partitions() kernel attributes {known_block_size = array<i32: 512, 1, 1>} {
    attn.warp_specialize
    partition "a" warps 4 registers 24 {
    }
    partition "b" warps 4 registers 24 {
    }
    gpu.barrier
    gpu.return
  }
}

// -----

// CHECK: error: expected a kernel that agrees with its launch: its launch has blocks of another size

gpu.module @kernels {
  gpu.func @block() kernel attributes {known_block_size = array<i32: 128, 1, 1>, attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["4", "1", "1"], block = [256, 1, 1], tensors = [], args = []>} {
    gpu.barrier
    gpu.return
  }
}

// -----

// CHECK: error: expected a kernel that agrees with its launch: its launch has clusters of another size

gpu.module @kernels {
  gpu.func @cluster() kernel attributes {known_block_size = array<i32: 128, 1, 1>, known_cluster_size = array<i32: 2, 1, 1>, attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["4", "1", "1"], block = [128, 1, 1], cluster = [4, 1, 1], tensors = [], args = []>} {
    attn.cluster_barrier
    gpu.return
  }
}

// -----

// CHECK: error: expected a kernel that agrees with its launch: its launch has clusters of another size

gpu.module @kernels {
  gpu.func @one_cta() kernel attributes {known_block_size = array<i32: 128, 1, 1>, known_cluster_size = array<i32: 2, 1, 1>, attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["4", "1", "1"], block = [128, 1, 1], tensors = [], args = []>} {
    attn.cluster_barrier
    gpu.return
  }
}

// -----

// CHECK: error: expected a kernel that agrees with its launch: its block has other threads than its warps

gpu.module @kernels {
  gpu.func @warps() kernel attributes {attn.warps = array<i64: 4, 1>, known_block_size = array<i32: 256, 1, 1>} {
    gpu.barrier
    gpu.return
  }
}

// -----

// CHECK: error: expected a kernel that agrees with its launch: its threads do not lie along x

gpu.module @kernels {
  gpu.func @flat_launch() kernel attributes {attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["4", "1", "1"], block = [64, 2, 1], tensors = [], args = []>} {
    gpu.barrier
    gpu.return
  }
}

// -----

// CHECK: error: expected a kernel that agrees with its launch: its launch has other threads than its warps

gpu.module @kernels {
  gpu.func @launched_warps() kernel attributes {attn.warps = array<i64: 4, 1>, attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["4", "1", "1"], block = [64, 1, 1], tensors = [], args = []>} {
    gpu.barrier
    gpu.return
  }
}

// -----

// CHECK: error: expected a kernel that agrees with its launch: its launch has other tensor maps than its arguments

gpu.module @kernels {
  gpu.func @map(%map: !attn.tensor_map<1x1x64x64xf16, swizzle = 128>) kernel attributes {known_block_size = array<i32: 128, 1, 1>, attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["4", "1", "1"], block = [128, 1, 1], tensors = [{access = "read", dtype = "f16", name = "t", shape = array<i64: 1, 1, 64, 64>, strides = array<i64: 4096, 4096, 64, 1>}], args = [{box = array<i64: 64, 32, 1, 1>, element = "f16", kind = "tensor_map", rank = 4 : i64, swizzle = "128B", tensor = "t"}]>} {
    gpu.barrier
    gpu.return
  }
}
