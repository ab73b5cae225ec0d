// RUN: not attn-opt %s --split-input-file --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s

// Rings whose slots and laps come of the number of the trip, and are wrong: laps of another depth.

// CHECK: error: deadlock: 'consumer' waits for phase 1 of 'k.full'[2], which lacks 1 of 1 arrival from 'producer', which exited
// CHECK: note: where argument 1 is 3

gpu.module @kernels {
  gpu.func @other_laps(%map: !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, %n: i32) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c3 = arith.constant 3 : i32
    %k = attn.alloc {name = "k", offset = 0} : !attn.buffer<3x64x64xf16, #attn.swizzled<span = 128>, shared>
    %full = attn.mbarrier.alloc {name = "k.full", offset = 24576} : !attn.mbarriers<3>
    %empty = attn.mbarrier.alloc {name = "k.empty", offset = 24600} : !attn.mbarriers<3>
    attn.elect {
      attn.mbarrier.init %full {count = 1} : !attn.mbarriers<3>
      attn.mbarrier.init %empty {count = 4} : !attn.mbarriers<3>
      attn.mbarrier.fence_init
    }
    gpu.barrier
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 240 {
      scf.for %i = %c0 to %n step %c1 : i32 {
        %slot = arith.remui %i, %c3 : i32
        %lap = arith.divui %i, %c2 : i32
        %parity = arith.remui %lap, %c2 : i32
        attn.mbarrier.wait %full[%slot] parity %parity : !attn.mbarriers<3>
        %s = attn.slot %k[%slot] : !attn.buffer<3x64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
        %t = attn.local_load %s : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared> -> tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
        attn.fence.proxy_async
        attn.mbarrier.arrive %empty[%slot] : !attn.mbarriers<3>
      }
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        scf.for %i = %c0 to %n step %c1 : i32 {
          %slot = arith.remui %i, %c3 : i32
          %lap = arith.divui %i, %c3 : i32
          %odd = arith.remui %lap, %c2 : i32
          %parity = arith.xori %odd, %c1 : i32
          attn.mbarrier.wait %empty[%slot] parity %parity : !attn.mbarriers<3>
          attn.mbarrier.expect_tx %full[%slot] {bytes = 8192} : !attn.mbarriers<3>
          %s = attn.slot %k[%slot] : !attn.buffer<3x64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
          attn.tma.load %map[%c0, %c0, %i, %c0], %s barrier %full[%slot] : !attn.mbarriers<3> : !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
        }
      }
    }
    gpu.return
  }
}

// -----

// Waits with the parity of the other side.

// CHECK: error: deadlock: 'consumer' waits for phase 0 of 'k.full'[0] from 'producer', which waits for phase 0 of 'k.empty'[0]
// CHECK: note: where argument 1 is 1

gpu.module @kernels {
  gpu.func @same_parity(%map: !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, %n: i32) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c3 = arith.constant 3 : i32
    %k = attn.alloc {name = "k", offset = 0} : !attn.buffer<3x64x64xf16, #attn.swizzled<span = 128>, shared>
    %full = attn.mbarrier.alloc {name = "k.full", offset = 24576} : !attn.mbarriers<3>
    %empty = attn.mbarrier.alloc {name = "k.empty", offset = 24600} : !attn.mbarriers<3>
    attn.elect {
      attn.mbarrier.init %full {count = 1} : !attn.mbarriers<3>
      attn.mbarrier.init %empty {count = 4} : !attn.mbarriers<3>
      attn.mbarrier.fence_init
    }
    gpu.barrier
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 240 {
      scf.for %i = %c0 to %n step %c1 : i32 {
        %slot = arith.remui %i, %c3 : i32
        %lap = arith.divui %i, %c3 : i32
        %parity = arith.remui %lap, %c2 : i32
        attn.mbarrier.wait %full[%slot] parity %parity : !attn.mbarriers<3>
        %s = attn.slot %k[%slot] : !attn.buffer<3x64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
        %t = attn.local_load %s : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared> -> tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
        attn.fence.proxy_async
        attn.mbarrier.arrive %empty[%slot] : !attn.mbarriers<3>
      }
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        scf.for %i = %c0 to %n step %c1 : i32 {
          %slot = arith.remui %i, %c3 : i32
          %lap = arith.divui %i, %c3 : i32
          %odd = arith.remui %lap, %c2 : i32
          %parity = arith.xori %odd, %c0 : i32
          attn.mbarrier.wait %empty[%slot] parity %parity : !attn.mbarriers<3>
          attn.mbarrier.expect_tx %full[%slot] {bytes = 8192} : !attn.mbarriers<3>
          %s = attn.slot %k[%slot] : !attn.buffer<3x64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
          attn.tma.load %map[%c0, %c0, %i, %c0], %s barrier %full[%slot] : !attn.mbarriers<3> : !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
        }
      }
    }
    gpu.return
  }
}

// -----

// The last slot is not handed back.

// CHECK: error: deadlock: 'consumer' waits for phase 1 of 'k.full'[2] from 'producer', which waits for phase 0 of 'k.empty'[2]
// CHECK: note: where argument 1 is 6

gpu.module @kernels {
  gpu.func @slot_kept(%map: !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, %n: i32) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c3 = arith.constant 3 : i32
    %k = attn.alloc {name = "k", offset = 0} : !attn.buffer<3x64x64xf16, #attn.swizzled<span = 128>, shared>
    %full = attn.mbarrier.alloc {name = "k.full", offset = 24576} : !attn.mbarriers<3>
    %empty = attn.mbarrier.alloc {name = "k.empty", offset = 24600} : !attn.mbarriers<3>
    attn.elect {
      attn.mbarrier.init %full {count = 1} : !attn.mbarriers<3>
      attn.mbarrier.init %empty {count = 4} : !attn.mbarriers<3>
      attn.mbarrier.fence_init
    }
    gpu.barrier
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 240 {
      scf.for %i = %c0 to %n step %c1 : i32 {
        %slot = arith.remui %i, %c3 : i32
        %lap = arith.divui %i, %c3 : i32
        %parity = arith.remui %lap, %c2 : i32
        attn.mbarrier.wait %full[%slot] parity %parity : !attn.mbarriers<3>
        %s = attn.slot %k[%slot] : !attn.buffer<3x64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
        %t = attn.local_load %s : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared> -> tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
        attn.fence.proxy_async
        %kept = arith.cmpi ne, %slot, %c2 : i32
        scf.if %kept {
          attn.mbarrier.arrive %empty[%slot] : !attn.mbarriers<3>
        }
      }
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        scf.for %i = %c0 to %n step %c1 : i32 {
          %slot = arith.remui %i, %c3 : i32
          %lap = arith.divui %i, %c3 : i32
          %odd = arith.remui %lap, %c2 : i32
          %parity = arith.xori %odd, %c1 : i32
          attn.mbarrier.wait %empty[%slot] parity %parity : !attn.mbarriers<3>
          attn.mbarrier.expect_tx %full[%slot] {bytes = 8192} : !attn.mbarriers<3>
          %s = attn.slot %k[%slot] : !attn.buffer<3x64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
          attn.tma.load %map[%c0, %c0, %i, %c0], %s barrier %full[%slot] : !attn.mbarriers<3> : !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
        }
      }
    }
    gpu.return
  }
}

// -----

// Reads the next slot.

// CHECK: error: race: read by warp 0 of 'k' is not ordered after asynchronous write by warp 4
// CHECK: note: where argument 1 is 2

gpu.module @kernels {
  gpu.func @slot_further(%map: !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, %n: i32) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c3 = arith.constant 3 : i32
    %k = attn.alloc {name = "k", offset = 0} : !attn.buffer<3x64x64xf16, #attn.swizzled<span = 128>, shared>
    %full = attn.mbarrier.alloc {name = "k.full", offset = 24576} : !attn.mbarriers<3>
    %empty = attn.mbarrier.alloc {name = "k.empty", offset = 24600} : !attn.mbarriers<3>
    attn.elect {
      attn.mbarrier.init %full {count = 1} : !attn.mbarriers<3>
      attn.mbarrier.init %empty {count = 4} : !attn.mbarriers<3>
      attn.mbarrier.fence_init
    }
    gpu.barrier
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 240 {
      scf.for %i = %c0 to %n step %c1 : i32 {
        %slot = arith.remui %i, %c3 : i32
        %lap = arith.divui %i, %c3 : i32
        %parity = arith.remui %lap, %c2 : i32
        attn.mbarrier.wait %full[%slot] parity %parity : !attn.mbarriers<3>
        %next = arith.addi %i, %c1 : i32
        %further = arith.remui %next, %c3 : i32
        %s = attn.slot %k[%further] : !attn.buffer<3x64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
        %t = attn.local_load %s : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared> -> tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
        attn.fence.proxy_async
        attn.mbarrier.arrive %empty[%slot] : !attn.mbarriers<3>
      }
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        scf.for %i = %c0 to %n step %c1 : i32 {
          %slot = arith.remui %i, %c3 : i32
          %lap = arith.divui %i, %c3 : i32
          %odd = arith.remui %lap, %c2 : i32
          %parity = arith.xori %odd, %c1 : i32
          attn.mbarrier.wait %empty[%slot] parity %parity : !attn.mbarriers<3>
          attn.mbarrier.expect_tx %full[%slot] {bytes = 8192} : !attn.mbarriers<3>
          %s = attn.slot %k[%slot] : !attn.buffer<3x64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
          attn.tma.load %map[%c0, %c0, %i, %c0], %s barrier %full[%slot] : !attn.mbarriers<3> : !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
        }
      }
    }
    gpu.return
  }
}

// -----

// A mask of three bits is no remainder by 16.

// CHECK: error: deadlock: 'b' waits for phase {{[0-9]+}} of named barrier 1

gpu.module @kernels [#attn.target<chip = "sm_90a">] attributes {attn.rung = "barrier"} {
  gpu.func @and_mask_wrong(%n: i32) kernel attributes {nvvm.minctasm = 1 : i32, known_block_size = array<i32: 256, 1, 1>, attn.shared_bytes = 65536 : i64,
      attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["2", "1", "1"], block = [256, 1, 1],
        tensors = [{access = "read", dtype = "f32", name = "x", shape = array<i64: -1>, strides = array<i64: 1>}], args = [{dim = 0 : i64, kind = "size", tensor = "x", type = "i32"}]>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    attn.warp_specialize
    partition "a" warps 4 registers 24 {
      %c7 = arith.constant 7 : i32
      %m = arith.andi %n, %c7 : i32
      scf.for %i = %c0 to %m step %c1 : i32 {
        attn.named_barrier %c1 {threads = 256}
      }
    }
    partition "b" warps 4 registers 24 {
      %c8 = arith.constant 16 : i32
      %m = arith.remui %n, %c8 : i32
      scf.for %i = %c0 to %m step %c1 : i32 {
        attn.named_barrier %c1 {threads = 256}
      }
    }
    gpu.return
  }
}
