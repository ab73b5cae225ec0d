// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s

// No fence of initialisations stands in front of copies that signal the mbarrier.

// CHECK: error: missing proxy fence: a copy of warp 4 signals 'k.full'[0], whose initialisation has no attn.mbarrier.fence_init after it
// CHECK: note: initialised here

gpu.module @kernels {
  gpu.func @init_no_fence(%map: !attn.tensor_map<1x1x64x64xf16, swizzle = 128>) kernel attributes {known_block_size = array<i32: 256, 1, 1>, attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["2", "1", "1"], block = [256, 1, 1],
        tensors = [{access = "read", dtype = "f16", name = "x", shape = array<i64: 1, 1, 1024, 64>, strides = array<i64: 65536, 65536, 64, 1>}], args = [{kind = "tensor_map", tensor = "x", rank = 4 : i64, element = "f16", box = array<i64: 64, 64, 1, 1>, swizzle = "128B"}]>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c5 = arith.constant 5 : i32
    %k = attn.alloc {name = "k", offset = 0} : !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared>
    %full = attn.mbarrier.alloc {name = "k.full", offset = 16384} : !attn.mbarriers<2>
    %empty = attn.mbarrier.alloc {name = "k.empty", offset = 16512} : !attn.mbarriers<2>
    attn.elect {
      attn.mbarrier.init %full {count = 1} : !attn.mbarriers<2>
      attn.mbarrier.init %empty {count = 4} : !attn.mbarriers<2>
    }
    gpu.barrier
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 128 {
      scf.for %i = %c0 to %c5 step %c1 : i32 {
        %slot = arith.remui %i, %c2 : i32
        %lap = arith.divui %i, %c2 : i32
        %par = arith.remui %lap, %c2 : i32
        attn.mbarrier.wait %full[%slot] parity %par : !attn.mbarriers<2>
        %s = attn.slot %k[%slot] : !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
        %t = attn.local_load %s : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared> -> tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
        attn.fence.proxy_async
        attn.mbarrier.arrive %empty[%slot] : !attn.mbarriers<2>
      }
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        scf.for %i = %c0 to %c5 step %c1 : i32 {
          %slot = arith.remui %i, %c2 : i32
          %lap = arith.divui %i, %c2 : i32
          %par = arith.remui %lap, %c2 : i32
          %odd = arith.xori %par, %c1 : i32
          attn.mbarrier.wait %empty[%slot] parity %odd : !attn.mbarriers<2>
          attn.mbarrier.expect_tx %full[%slot] {bytes = 8192} : !attn.mbarriers<2>
          %s = attn.slot %k[%slot] : !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
          attn.tma.load %map[%c0, %c0, %i, %c0], %s barrier %full[%slot] : !attn.mbarriers<2> : !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
        }
      }
    }
    gpu.return
  }
}
