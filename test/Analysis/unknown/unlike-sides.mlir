// RUN: attn-opt %s --split-input-file --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s

// Either side of a branch is followed only if both start the same copies: not into another slot, counted by another
// barrier, a copy more or less, or with a signal or a fence besides.

// CHECK: warning: the synchronisation of 'other_slot' cannot be checked: the condition does not follow

gpu.module @kernels {
  gpu.func @other_slot(%map: !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, %words: !llvm.ptr<1>) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c4 = arith.constant 4 : i32
    %k = attn.alloc {name = "k", offset = 0} : !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared>
    %full = attn.mbarrier.alloc {name = "k.full", offset = 16384} : !attn.mbarriers<2>
    %empty = attn.mbarrier.alloc {name = "k.empty", offset = 16400} : !attn.mbarriers<2>
    attn.elect {
      attn.mbarrier.init %full {count = 1} : !attn.mbarriers<2>
      attn.mbarrier.init %empty {count = 4} : !attn.mbarriers<2>
      attn.mbarrier.fence_init
    }
    gpu.barrier
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 240 {
      scf.for %i = %c0 to %c4 step %c1 : i32 {
        %slot = arith.remui %i, %c2 : i32
        %lap = arith.divui %i, %c2 : i32
        attn.mbarrier.wait %full[%slot] parity %lap : !attn.mbarriers<2>
        %s = attn.slot %k[%slot] : !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
        %t = attn.local_load %s : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared> -> tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
        attn.fence.proxy_async
        attn.mbarrier.arrive %empty[%slot] : !attn.mbarriers<2>
      }
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        scf.for %i = %c0 to %c4 step %c1 : i32 {
          %slot = arith.remui %i, %c2 : i32
          %other = arith.xori %slot, %c1 : i32
          %lap = arith.divui %i, %c2 : i32
          %parity = arith.xori %lap, %c1 : i32
          attn.mbarrier.wait %empty[%slot] parity %parity : !attn.mbarriers<2>
          attn.mbarrier.expect_tx %full[%slot] {bytes = 8192} : !attn.mbarriers<2>
          %s = attn.slot %k[%slot] : !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
          %o = attn.slot %k[%other] : !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
          %place = llvm.getelementptr %words[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
          %word = llvm.load %place : !llvm.ptr<1> -> i32
          llvm.store %c1, %place : i32, !llvm.ptr<1>
          %isWritten = arith.cmpi eq, %word, %c1 : i32
          scf.if %isWritten {
            attn.tma.load %map[%c0, %c0, %i, %c0], %s barrier %full[%slot] : !attn.mbarriers<2> : !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
          } else {
            attn.tma.load %map[%c0, %c0, %i, %c0], %o barrier %full[%slot] : !attn.mbarriers<2> : !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
          }
        }
      }
    }
    gpu.return
  }
}

// -----

// CHECK: warning: the synchronisation of 'other_barrier' cannot be checked: the condition does not follow

gpu.module @kernels {
  gpu.func @other_barrier(%map: !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, %words: !llvm.ptr<1>) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c4 = arith.constant 4 : i32
    %k = attn.alloc {name = "k", offset = 0} : !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared>
    %full = attn.mbarrier.alloc {name = "k.full", offset = 16384} : !attn.mbarriers<2>
    %empty = attn.mbarrier.alloc {name = "k.empty", offset = 16400} : !attn.mbarriers<2>
    attn.elect {
      attn.mbarrier.init %full {count = 1} : !attn.mbarriers<2>
      attn.mbarrier.init %empty {count = 4} : !attn.mbarriers<2>
      attn.mbarrier.fence_init
    }
    gpu.barrier
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 240 {
      scf.for %i = %c0 to %c4 step %c1 : i32 {
        %slot = arith.remui %i, %c2 : i32
        %lap = arith.divui %i, %c2 : i32
        attn.mbarrier.wait %full[%slot] parity %lap : !attn.mbarriers<2>
        %s = attn.slot %k[%slot] : !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
        %t = attn.local_load %s : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared> -> tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
        attn.fence.proxy_async
        attn.mbarrier.arrive %empty[%slot] : !attn.mbarriers<2>
      }
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        scf.for %i = %c0 to %c4 step %c1 : i32 {
          %slot = arith.remui %i, %c2 : i32
          %other = arith.xori %slot, %c1 : i32
          %lap = arith.divui %i, %c2 : i32
          %parity = arith.xori %lap, %c1 : i32
          attn.mbarrier.wait %empty[%slot] parity %parity : !attn.mbarriers<2>
          attn.mbarrier.expect_tx %full[%slot] {bytes = 8192} : !attn.mbarriers<2>
          %s = attn.slot %k[%slot] : !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
          %o = attn.slot %k[%other] : !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
          %place = llvm.getelementptr %words[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
          %word = llvm.load %place : !llvm.ptr<1> -> i32
          llvm.store %c1, %place : i32, !llvm.ptr<1>
          %isWritten = arith.cmpi eq, %word, %c1 : i32
          scf.if %isWritten {
            attn.tma.load %map[%c0, %c0, %i, %c0], %s barrier %full[%slot] : !attn.mbarriers<2> : !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
          } else {
            attn.tma.load %map[%c0, %c0, %i, %c0], %s barrier %full[%other] : !attn.mbarriers<2> : !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
          }
        }
      }
    }
    gpu.return
  }
}

// -----

// CHECK: warning: the synchronisation of 'twice' cannot be checked: the condition does not follow

gpu.module @kernels {
  gpu.func @twice(%map: !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, %words: !llvm.ptr<1>) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c4 = arith.constant 4 : i32
    %k = attn.alloc {name = "k", offset = 0} : !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared>
    %full = attn.mbarrier.alloc {name = "k.full", offset = 16384} : !attn.mbarriers<2>
    %empty = attn.mbarrier.alloc {name = "k.empty", offset = 16400} : !attn.mbarriers<2>
    attn.elect {
      attn.mbarrier.init %full {count = 1} : !attn.mbarriers<2>
      attn.mbarrier.init %empty {count = 4} : !attn.mbarriers<2>
      attn.mbarrier.fence_init
    }
    gpu.barrier
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 240 {
      scf.for %i = %c0 to %c4 step %c1 : i32 {
        %slot = arith.remui %i, %c2 : i32
        %lap = arith.divui %i, %c2 : i32
        attn.mbarrier.wait %full[%slot] parity %lap : !attn.mbarriers<2>
        %s = attn.slot %k[%slot] : !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
        %t = attn.local_load %s : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared> -> tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
        attn.fence.proxy_async
        attn.mbarrier.arrive %empty[%slot] : !attn.mbarriers<2>
      }
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        scf.for %i = %c0 to %c4 step %c1 : i32 {
          %slot = arith.remui %i, %c2 : i32
          %other = arith.xori %slot, %c1 : i32
          %lap = arith.divui %i, %c2 : i32
          %parity = arith.xori %lap, %c1 : i32
          attn.mbarrier.wait %empty[%slot] parity %parity : !attn.mbarriers<2>
          attn.mbarrier.expect_tx %full[%slot] {bytes = 8192} : !attn.mbarriers<2>
          %s = attn.slot %k[%slot] : !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
          %o = attn.slot %k[%other] : !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
          %place = llvm.getelementptr %words[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
          %word = llvm.load %place : !llvm.ptr<1> -> i32
          llvm.store %c1, %place : i32, !llvm.ptr<1>
          %isWritten = arith.cmpi eq, %word, %c1 : i32
          scf.if %isWritten {
            attn.tma.load %map[%c0, %c0, %i, %c0], %s barrier %full[%slot] : !attn.mbarriers<2> : !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
          } else {
            attn.tma.load %map[%c0, %c0, %i, %c0], %s barrier %full[%slot] : !attn.mbarriers<2> : !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
            attn.tma.load %map[%c0, %c0, %i, %c0], %s barrier %full[%slot] : !attn.mbarriers<2> : !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
          }
        }
      }
    }
    gpu.return
  }
}

// -----

// CHECK: warning: the synchronisation of 'one_more_signal' cannot be checked: the condition does not follow

gpu.module @kernels {
  gpu.func @one_more_signal(%map: !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, %words: !llvm.ptr<1>) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c4 = arith.constant 4 : i32
    %k = attn.alloc {name = "k", offset = 0} : !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared>
    %full = attn.mbarrier.alloc {name = "k.full", offset = 16384} : !attn.mbarriers<2>
    %empty = attn.mbarrier.alloc {name = "k.empty", offset = 16400} : !attn.mbarriers<2>
    attn.elect {
      attn.mbarrier.init %full {count = 1} : !attn.mbarriers<2>
      attn.mbarrier.init %empty {count = 4} : !attn.mbarriers<2>
      attn.mbarrier.fence_init
    }
    gpu.barrier
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 240 {
      scf.for %i = %c0 to %c4 step %c1 : i32 {
        %slot = arith.remui %i, %c2 : i32
        %lap = arith.divui %i, %c2 : i32
        attn.mbarrier.wait %full[%slot] parity %lap : !attn.mbarriers<2>
        %s = attn.slot %k[%slot] : !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
        %t = attn.local_load %s : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared> -> tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
        attn.fence.proxy_async
        attn.mbarrier.arrive %empty[%slot] : !attn.mbarriers<2>
      }
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        scf.for %i = %c0 to %c4 step %c1 : i32 {
          %slot = arith.remui %i, %c2 : i32
          %other = arith.xori %slot, %c1 : i32
          %lap = arith.divui %i, %c2 : i32
          %parity = arith.xori %lap, %c1 : i32
          attn.mbarrier.wait %empty[%slot] parity %parity : !attn.mbarriers<2>
          attn.mbarrier.expect_tx %full[%slot] {bytes = 8192} : !attn.mbarriers<2>
          %s = attn.slot %k[%slot] : !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
          %o = attn.slot %k[%other] : !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
          %place = llvm.getelementptr %words[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
          %word = llvm.load %place : !llvm.ptr<1> -> i32
          llvm.store %c1, %place : i32, !llvm.ptr<1>
          %isWritten = arith.cmpi eq, %word, %c1 : i32
          scf.if %isWritten {
            attn.tma.load %map[%c0, %c0, %i, %c0], %s barrier %full[%slot] : !attn.mbarriers<2> : !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
          } else {
            attn.tma.load %map[%c0, %c0, %i, %c0], %s barrier %full[%slot] : !attn.mbarriers<2> : !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
            attn.mbarrier.arrive %full[%slot] : !attn.mbarriers<2>
          }
        }
      }
    }
    gpu.return
  }
}

// -----

// CHECK: warning: the synchronisation of 'fence_besides' cannot be checked: the condition does not follow

gpu.module @kernels {
  gpu.func @fence_besides(%map: !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, %words: !llvm.ptr<1>) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c4 = arith.constant 4 : i32
    %k = attn.alloc {name = "k", offset = 0} : !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared>
    %full = attn.mbarrier.alloc {name = "k.full", offset = 16384} : !attn.mbarriers<2>
    %empty = attn.mbarrier.alloc {name = "k.empty", offset = 16400} : !attn.mbarriers<2>
    attn.elect {
      attn.mbarrier.init %full {count = 1} : !attn.mbarriers<2>
      attn.mbarrier.init %empty {count = 4} : !attn.mbarriers<2>
      attn.mbarrier.fence_init
    }
    gpu.barrier
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 240 {
      scf.for %i = %c0 to %c4 step %c1 : i32 {
        %slot = arith.remui %i, %c2 : i32
        %lap = arith.divui %i, %c2 : i32
        attn.mbarrier.wait %full[%slot] parity %lap : !attn.mbarriers<2>
        %s = attn.slot %k[%slot] : !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
        %t = attn.local_load %s : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared> -> tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
        attn.fence.proxy_async
        attn.mbarrier.arrive %empty[%slot] : !attn.mbarriers<2>
      }
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        scf.for %i = %c0 to %c4 step %c1 : i32 {
          %slot = arith.remui %i, %c2 : i32
          %other = arith.xori %slot, %c1 : i32
          %lap = arith.divui %i, %c2 : i32
          %parity = arith.xori %lap, %c1 : i32
          attn.mbarrier.wait %empty[%slot] parity %parity : !attn.mbarriers<2>
          attn.mbarrier.expect_tx %full[%slot] {bytes = 8192} : !attn.mbarriers<2>
          %s = attn.slot %k[%slot] : !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
          %o = attn.slot %k[%other] : !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
          %place = llvm.getelementptr %words[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
          %word = llvm.load %place : !llvm.ptr<1> -> i32
          llvm.store %c1, %place : i32, !llvm.ptr<1>
          %isWritten = arith.cmpi eq, %word, %c1 : i32
          scf.if %isWritten {
            attn.tma.load %map[%c0, %c0, %i, %c0], %s barrier %full[%slot] : !attn.mbarriers<2> : !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
          } else {
            attn.tma.load %map[%c0, %c0, %i, %c0], %s barrier %full[%slot] : !attn.mbarriers<2> : !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
            attn.fence.proxy_async
          }
        }
      }
    }
    gpu.return
  }
}

// -----

// CHECK: warning: the synchronisation of 'none' cannot be checked: the condition does not follow

gpu.module @kernels {
  gpu.func @none(%map: !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, %words: !llvm.ptr<1>) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c4 = arith.constant 4 : i32
    %k = attn.alloc {name = "k", offset = 0} : !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared>
    %full = attn.mbarrier.alloc {name = "k.full", offset = 16384} : !attn.mbarriers<2>
    %empty = attn.mbarrier.alloc {name = "k.empty", offset = 16400} : !attn.mbarriers<2>
    attn.elect {
      attn.mbarrier.init %full {count = 1} : !attn.mbarriers<2>
      attn.mbarrier.init %empty {count = 4} : !attn.mbarriers<2>
      attn.mbarrier.fence_init
    }
    gpu.barrier
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 240 {
      scf.for %i = %c0 to %c4 step %c1 : i32 {
        %slot = arith.remui %i, %c2 : i32
        %lap = arith.divui %i, %c2 : i32
        attn.mbarrier.wait %full[%slot] parity %lap : !attn.mbarriers<2>
        %s = attn.slot %k[%slot] : !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
        %t = attn.local_load %s : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared> -> tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
        attn.fence.proxy_async
        attn.mbarrier.arrive %empty[%slot] : !attn.mbarriers<2>
      }
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        scf.for %i = %c0 to %c4 step %c1 : i32 {
          %slot = arith.remui %i, %c2 : i32
          %other = arith.xori %slot, %c1 : i32
          %lap = arith.divui %i, %c2 : i32
          %parity = arith.xori %lap, %c1 : i32
          attn.mbarrier.wait %empty[%slot] parity %parity : !attn.mbarriers<2>
          attn.mbarrier.expect_tx %full[%slot] {bytes = 8192} : !attn.mbarriers<2>
          %s = attn.slot %k[%slot] : !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
          %o = attn.slot %k[%other] : !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
          %place = llvm.getelementptr %words[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
          %word = llvm.load %place : !llvm.ptr<1> -> i32
          llvm.store %c1, %place : i32, !llvm.ptr<1>
          %isWritten = arith.cmpi eq, %word, %c1 : i32
          scf.if %isWritten {
            attn.tma.load %map[%c0, %c0, %i, %c0], %s barrier %full[%slot] : !attn.mbarriers<2> : !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
          } else {
          }
        }
      }
    }
    gpu.return
  }
}
