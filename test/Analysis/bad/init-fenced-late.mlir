// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s

// The fence of initialisations stands behind the signal by which another warp learns of one, whose copy may come first.

// CHECK: error: missing proxy fence: a copy of warp 4 signals 'k.full'[0], whose initialisation has no attn.mbarrier.fence_init after it
// CHECK: note: initialised here

gpu.module @kernels {
  gpu.func @init_fenced_late(%map: !attn.tensor_map<1x1x64x64xf16, swizzle = 128>) kernel attributes {known_block_size = array<i32: 256, 1, 1>, attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["2", "1", "1"], block = [256, 1, 1],
        tensors = [{access = "read", dtype = "f16", name = "x", shape = array<i64: 1, 1, 1024, 64>, strides = array<i64: 65536, 65536, 64, 1>}], args = [{kind = "tensor_map", tensor = "x", rank = 4 : i64, element = "f16", box = array<i64: 64, 64, 1, 1>, swizzle = "128B"}]>} {
    %c0 = arith.constant 0 : i32
    %k = attn.alloc {name = "k", offset = 0} : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    %ready = attn.mbarrier.alloc {name = "ready", offset = 8192} : !attn.mbarriers<1>
    %full = attn.mbarrier.alloc {name = "k.full", offset = 8200} : !attn.mbarriers<1>
    attn.elect {
      attn.mbarrier.init %ready {count = 1} : !attn.mbarriers<1>
      attn.mbarrier.fence_init
    }
    gpu.barrier
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 128 {
      attn.elect {
        attn.mbarrier.init %full {count = 1} : !attn.mbarriers<1>
        attn.mbarrier.arrive %ready[%c0] : !attn.mbarriers<1>
        attn.mbarrier.fence_init
      }
      attn.mbarrier.wait %ready[%c0] parity %c0 : !attn.mbarriers<1>
      attn.mbarrier.wait %full[%c0] parity %c0 : !attn.mbarriers<1>
      %t = attn.local_load %k : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared> -> tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
    }
    partition "producer" warps 4 registers 24 {
      attn.mbarrier.wait %ready[%c0] parity %c0 : !attn.mbarriers<1>
      attn.elect {
        attn.mbarrier.expect_tx %full[%c0] {bytes = 8192} : !attn.mbarriers<1>
        attn.tma.load %map[%c0, %c0, %c0, %c0], %k barrier %full[%c0] : !attn.mbarriers<1> : !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
      }
    }
    gpu.return
  }
}
