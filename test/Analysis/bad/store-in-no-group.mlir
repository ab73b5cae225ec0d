// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s

// The store is in no group yet when the wait in front of the count ends.

// CHECK: error: result in flight: warp 0 counts its part of a tile while a store of it may be in flight

gpu.module @kernels {
  gpu.func @tile_arrive_no_commit(%map: !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, %counter: !llvm.ptr<1>, %x: !llvm.ptr<1>, %out: !llvm.ptr<1>) kernel attributes {known_block_size = array<i32: 128, 1, 1>, attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["2", "1", "1"], block = [128, 1, 1],
        tensors = [{access = "write", dtype = "i32", name = "out", shape = array<i64: 1>, strides = array<i64: 1>}, {access = "write", dtype = "f16", name = "x", shape = array<i64: 1, 1, 128, 64>, strides = array<i64: 8192, 8192, 64, 1>}], args = [{kind = "tensor_map", tensor = "x", rank = 4 : i64, element = "f16", box = array<i64: 64, 64, 1, 1>, swizzle = "128B"}, {index = 0 : i64, kind = "workspace"}, {kind = "pointer", tensor = "x"}, {kind = "pointer", tensor = "out"}], workspaces = [{bytes = "4", restored = true, zeroed = true}]>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %k = attn.alloc {name = "k", offset = 0} : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    %bx = gpu.block_id x
    %b = arith.index_cast %bx : index to i32
    %c64 = arith.constant 64 : i32
    %row = arith.muli %b, %c64 : i32
    %v = arith.constant dense<1.0> : tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
    attn.local_store %v, %k : tensor<64x64xf16, #attn.mma<warps = [4, 1]>>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    attn.fence.proxy_async
    gpu.barrier
    attn.elect {
      attn.tma.store %k, %map[%c0, %c0, %row, %c0] : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>, !attn.tensor_map<1x1x64x64xf16, swizzle = 128>
      attn.tma.wait {pending = 0}
    }
    %last = attn.tile_arrive %counter of %c2
    attn.elect {
      attn.tma.commit
      attn.tma.wait {pending = 0}
    }
    scf.if %last {
      %o = arith.subi %c1, %b : i32
      %at = arith.muli %o, %c64 : i32
      %p = llvm.getelementptr %x[%at] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      %l = llvm.load %p : !llvm.ptr<1> -> i32
      llvm.store %l, %out : i32, !llvm.ptr<1>
    }
    gpu.return
  }
}
