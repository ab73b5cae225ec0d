// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s
// RUN: sed 's/cmpi ne, %block, %c2/cmpi ne, %block, %c9/' %s | attn-opt --pass-pipeline='builtin.module(gpu.module(attn-check-barriers{require-proof}))' -o /dev/null --remarks-filter='attn.check.*' 2>&1 | FileCheck %s --check-prefix=RIGHT

// Of four blocks that are followed together the third one lacks a barrier in its loop.

// CHECK: error: race: read by warp 0 of 'x' is not ordered after write by warp
// RIGHT: synchronisation is proved for all tiles{{.*}}block-kinds=4

!tile = tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
!buffer = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
gpu.module @kernels {
  gpu.func @blocks(%p: !llvm.ptr<1>) kernel attributes {known_block_size = array<i32: 128, 1, 1>, attn.launch = #attn.launch<chip = "sm_80", ptx = 80, grid = ["4", "1", "1"], block = [128, 1, 1],
      tensors = [{access = "read", dtype = "f32", name = "x", shape = array<i64: 4>, strides = array<i64: 1>}], args = [{kind = "pointer", tensor = "x"}]>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c9 = arith.constant 9 : i32
    %zero = arith.constant dense<0.0> : !tile
    %x = attn.alloc {name = "x", offset = 0} : !buffer
    %id = gpu.block_id x
    %block = arith.index_cast %id : index to i32
    %trips = arith.addi %block, %c1 : i32
    scf.for %i = %c0 to %trips step %c1 : i32 {
      attn.local_store %zero, %x : !tile, !buffer
      %meets = arith.cmpi ne, %block, %c2 : i32
      scf.if %meets {
        gpu.barrier
      }
      %v = attn.local_load %x : !buffer -> !tile
      gpu.barrier
    }
    gpu.return
  }
}
