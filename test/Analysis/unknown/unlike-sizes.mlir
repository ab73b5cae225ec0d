// RUN: not attn-opt %s --split-input-file --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s

// The kernel, its partitions and its launch say how many threads and CTAs there are, and have to say the same.

// CHECK: error: expected a kernel that agrees with its launch: its threads do not lie along x, but in a block of [64, 2, 1]

gpu.module @kernels {
  gpu.func @flat() kernel attributes {known_block_size = array<i32: 64, 2, 1>} {
    gpu.barrier
    gpu.return
  }
}

// -----

// CHECK: error: expected a kernel that agrees with its launch: its block has 512 threads, and its warps 256

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

// CHECK: error: expected a kernel that agrees with its launch: it has blocks of [128, 1, 1], and its launch [256, 1, 1]

gpu.module @kernels {
  gpu.func @block() kernel attributes {known_block_size = array<i32: 128, 1, 1>, attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["4", "1", "1"], block = [256, 1, 1], tensors = [], args = []>} {
    gpu.barrier
    gpu.return
  }
}

// -----

// CHECK: error: expected a kernel that agrees with its launch: it has clusters of [2, 1, 1], and its launch [4, 1, 1]

gpu.module @kernels {
  gpu.func @cluster() kernel attributes {known_block_size = array<i32: 128, 1, 1>, known_cluster_size = array<i32: 2, 1, 1>, attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["4", "1", "1"], block = [128, 1, 1], cluster = [4, 1, 1], tensors = [], args = []>} {
    attn.cluster_barrier
    gpu.return
  }
}

// -----

// CHECK: error: expected a kernel that agrees with its launch: it has clusters of [2, 1, 1], and its launch [1, 1, 1]

gpu.module @kernels {
  gpu.func @one_cta() kernel attributes {known_block_size = array<i32: 128, 1, 1>, known_cluster_size = array<i32: 2, 1, 1>, attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["4", "1", "1"], block = [128, 1, 1], tensors = [], args = []>} {
    attn.cluster_barrier
    gpu.return
  }
}

// -----

// CHECK: error: expected a kernel that agrees with its launch: its block has 256 threads, and its warps 128

gpu.module @kernels {
  gpu.func @warps() kernel attributes {attn.warps = array<i64: 4, 1>, known_block_size = array<i32: 256, 1, 1>} {
    gpu.barrier
    gpu.return
  }
}

// -----

// CHECK: error: expected a kernel that agrees with its launch: its threads do not lie along x, but in a block of [64, 2, 1]

gpu.module @kernels {
  gpu.func @flat_launch() kernel attributes {attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["4", "1", "1"], block = [64, 2, 1], tensors = [], args = []>} {
    gpu.barrier
    gpu.return
  }
}

// -----

// CHECK: error: expected a kernel that agrees with its launch: its launch has 64 threads, and its warps 128

gpu.module @kernels {
  gpu.func @launched_warps() kernel attributes {attn.warps = array<i64: 4, 1>, attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["4", "1", "1"], block = [64, 1, 1], tensors = [], args = []>} {
    gpu.barrier
    gpu.return
  }
}

// -----

// CHECK: error: expected a kernel that agrees with its launch: argument 0 is a tensor map with box [64, 64, 1, 1], swizzle 128 and elements of 16 bits, and that of its launch a tensor map with box [64, 32, 1, 1], swizzle 128 and elements of 16 bits

gpu.module @kernels {
  gpu.func @map(%map: !attn.tensor_map<1x1x64x64xf16, swizzle = 128>) kernel attributes {known_block_size = array<i32: 128, 1, 1>, attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["4", "1", "1"], block = [128, 1, 1], tensors = [{access = "read", dtype = "f16", name = "t", shape = array<i64: 1, 1, 64, 64>, strides = array<i64: 4096, 4096, 64, 1>}], args = [{box = array<i64: 64, 32, 1, 1>, element = "f16", kind = "tensor_map", rank = 4 : i64, swizzle = "128B", tensor = "t"}]>} {
    gpu.barrier
    gpu.return
  }
}

// -----

// CHECK: error: expected a kernel that agrees with its launch: it has 2 arguments, and its launch 1

gpu.module @kernels {
  gpu.func @fewer(%a: !llvm.ptr<1>, %b: i32) kernel attributes {known_block_size = array<i32: 128, 1, 1>, attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["4", "1", "1"], block = [128, 1, 1], tensors = [{access = "read", dtype = "f16", name = "t", shape = array<i64: 64>, strides = array<i64: 1>}], args = [{kind = "pointer", tensor = "t"}]>} {
    gpu.barrier
    gpu.return
  }
}

// -----

// CHECK: error: expected a kernel that agrees with its launch: argument 0 is a pointer, and that of its launch a number of 32 bits

gpu.module @kernels {
  gpu.func @number(%a: !llvm.ptr<1>) kernel attributes {known_block_size = array<i32: 128, 1, 1>, attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["4", "1", "1"], block = [128, 1, 1], tensors = [{access = "read", dtype = "f16", name = "t", shape = array<i64: 64>, strides = array<i64: 1>}], args = [{kind = "scalar", name = "n", type = "i32"}]>} {
    gpu.barrier
    gpu.return
  }
}

// -----

// CHECK: error: expected a kernel that agrees with its launch: argument 0 is a number of 32 bits, and that of its launch a pointer

gpu.module @kernels {
  gpu.func @pointer(%a: i32) kernel attributes {known_block_size = array<i32: 128, 1, 1>, attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["4", "1", "1"], block = [128, 1, 1], tensors = [{access = "read", dtype = "f16", name = "t", shape = array<i64: 64>, strides = array<i64: 1>}], args = [{kind = "pointer", tensor = "t"}]>} {
    gpu.barrier
    gpu.return
  }
}

// -----

// CHECK: error: expected a kernel that agrees with its launch: argument 1 is a number of 64 bits, and that of its launch a number of 32 bits

gpu.module @kernels {
  gpu.func @wide(%a: !llvm.ptr<1>, %b: i64) kernel attributes {known_block_size = array<i32: 128, 1, 1>, attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["4", "1", "1"], block = [128, 1, 1], tensors = [{access = "read", dtype = "f16", name = "t", shape = array<i64: 64>, strides = array<i64: 1>}], args = [{kind = "pointer", tensor = "t"}, {kind = "scalar", name = "n", type = "i32"}]>} {
    gpu.barrier
    gpu.return
  }
}

// -----

// CHECK: error: expected a kernel that agrees with its launch: argument 0 is a tensor map with box [64, 64], swizzle 128 and elements of 16 bits, and that of its launch a pointer

gpu.module @kernels {
  gpu.func @map_for_pointer(%a: !attn.tensor_map<64x64xf16, swizzle = 128>) kernel attributes {known_block_size = array<i32: 128, 1, 1>, attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["4", "1", "1"], block = [128, 1, 1], tensors = [{access = "read", dtype = "f16", name = "t", shape = array<i64: 64>, strides = array<i64: 1>}], args = [{kind = "pointer", tensor = "t"}]>} {
    gpu.barrier
    gpu.return
  }
}

// -----

// CHECK: error: expected a kernel that agrees with its launch: its module is for sm_100a, and its launch for sm_90a

gpu.module @kernels [#attn.target<chip = "sm_100a">] {
  gpu.func @chip(%a: !llvm.ptr<1>) kernel attributes {known_block_size = array<i32: 128, 1, 1>, attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["4", "1", "1"], block = [128, 1, 1], tensors = [{access = "read", dtype = "f16", name = "t", shape = array<i64: 64>, strides = array<i64: 1>}], args = [{kind = "pointer", tensor = "t"}]>} {
    gpu.barrier
    gpu.return
  }
}
