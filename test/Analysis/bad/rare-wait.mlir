// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s

// Half of the CTAs wait for the product in front of a path that may be left out, the other half on it. Then its operand is
// written.

// CHECK: error: race: write by warp {{[0-3]}} of 'k' is not ordered after asynchronous read by warp {{[0-3]}}

gpu.module @kernels {
  gpu.func @rare_wait(%p: !llvm.ptr<1>) kernel attributes {known_block_size = array<i32: 128, 1, 1>, attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["4", "1", "1"], block = [128, 1, 1],
      tensors = [{access = "read", dtype = "f32", name = "x", shape = array<i64: 4>, strides = array<i64: 1>}], args = [{kind = "pointer", tensor = "x"}]>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %all = arith.constant -1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
    %q = attn.alloc {name = "q", offset = 0} : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    %k = attn.alloc {name = "k", offset = 8192} : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    attn.local_store %zero, %q : tensor<64x64xf16, #attn.mma<warps = [4, 1]>>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    attn.local_store %zero, %k : tensor<64x64xf16, #attn.mma<warps = [4, 1]>>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    attn.fence.proxy_async
    gpu.barrier
    %b = gpu.block_id x
    %block = arith.index_cast %b : index to i32
    %low = arith.andi %block, %c1 : i32
    %high = arith.shrui %block, %c1 : i32
    %isLow = arith.cmpi eq, %low, %c1 : i32
    %isOther = arith.cmpi eq, %low, %c0 : i32
    %isHigh = arith.cmpi eq, %high, %c1 : i32
    %s = attn.wgmma %q, %k : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.inflight<64x64xf32>
    scf.if %isLow {
      %early = attn.wgmma.wait %s {pending = 0} : !attn.inflight<64x64xf32> -> tensor<64x64xf32, #attn.mma<warps = [4, 1]>>
    }
    %rarely = arith.constant dense<true> : tensor<64xi1, #attn.slice<dim = 1, parent = #attn.mma<warps = [4, 1]>>>
    attn.rare any %rarely {barrier = 5 : i64, each_warpgroup} : tensor<64xi1, #attn.slice<dim = 1, parent = #attn.mma<warps = [4, 1]>>> {
      scf.if %isOther {
        %late = attn.wgmma.wait %s {pending = 0} : !attn.inflight<64x64xf32> -> tensor<64x64xf32, #attn.mma<warps = [4, 1]>>
      }
      scf.if %isHigh {
        attn.fence.proxy_async
      }
      attn.yield
    }
    gpu.barrier
    attn.local_store %zero, %k : tensor<64x64xf16, #attn.mma<warps = [4, 1]>>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    gpu.return
  }
}
