// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers{require-proof}))' --remarks-filter='attn.check.*' -o /dev/null 2>&1 | FileCheck %s --check-prefix=PROVED
// RUN: sed 's,// MAPPED ,, ; /CHOSEN/d' %s > %t.mapped.mlir
// RUN: attn-opt %t.mapped.mlir --pass-pipeline='builtin.module(gpu.module(attn-check-barriers{require-proof}))' --remarks-filter='attn.check.*' -o /dev/null 2>&1 | FileCheck %s --check-prefix=PROVED
// RUN: sed 's,// ALSO ,,' %s > %t.also.mlir
// RUN: not attn-opt %t.also.mlir --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s
// RUN: sed 's,// ALSO ,,' %t.mapped.mlir > %t.mapped.also.mlir
// RUN: not attn-opt %t.mapped.also.mlir --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s

// Elements that a mask leaves out are used by nobody, those that it takes are
// stored in front of the signal. Where something else takes them too, it may
// do so behind the signal.

// PROVED: proved{{.*}}assumptions=none,
// CHECK: error: race: write by warp 4 of 'word', whose bytes are also those of 'x' is not ordered after read by warp {{[0-3]}}: st.async may overtake the read, of which nothing has used what was read by then
// CHECK: note: the read

!tile = tensor<64x16xi32, #attn.mma<warps = [4, 1]>>
!buffer = !attn.buffer<64x16xi32, #attn.swizzled<span = 64>, shared>

gpu.module @kernels {
  gpu.func @chosen(%first: i32) kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c5 = arith.constant 5 : i32
    %x = attn.alloc {name = "x", offset = 0} : !buffer
    %word = attn.alloc {name = "word", offset = 0} : !attn.buffer<64xi32, #attn.rows, shared>
    %y = attn.alloc {name = "y", offset = 4096} : !buffer
    %z = attn.alloc {name = "z", offset = 8192} : !buffer
    %full = attn.mbarrier.alloc {name = "full", offset = 12288} : !attn.mbarriers<1>
    %empty = attn.mbarrier.alloc {name = "empty", offset = 12296} : !attn.mbarriers<1>
    attn.elect {
      attn.mbarrier.init %full {count = 1} : !attn.mbarriers<1>
      attn.mbarrier.init %empty {count = 4} : !attn.mbarriers<1>
      attn.mbarrier.fence_init
    }
    gpu.barrier
    attn.warp_specialize
    partition "reader" warps 4 tiles [4, 1] registers 240 {
      %none = arith.constant dense<0> : !tile
      %end = scf.for %i = %c0 to %c5 step %c1 iter_args(%parity = %c0) -> (i32) : i32 {
        attn.mbarrier.wait %full[%c0] parity %parity : !attn.mbarriers<1>
        %t = attn.local_load %x : !buffer -> !tile
        %u = arith.addi %t, %none : !tile
        %isOdd = arith.constant dense<true> : tensor<64x16xi1, #attn.mma<warps = [4, 1]>> // CHOSEN
        %v = arith.select %isOdd, %u, %none : tensor<64x16xi1, #attn.mma<warps = [4, 1]>>, !tile // CHOSEN
        // MAPPED %v = attn.map_elements %u[%i, %i] : !tile {
        // MAPPED ^bb0(%e: i32, %row: i32, %column: i32):
        // MAPPED   %isSeen = arith.cmpi slt, %row, %column : i32
        // MAPPED   %chosen = arith.select %isSeen, %e, %c0 : i32
        // MAPPED   attn.yield %chosen : i32
        // MAPPED }
        attn.local_store %v, %y : !tile, !buffer
        attn.mbarrier.arrive %empty[%c0] : !attn.mbarriers<1>
        // ALSO attn.local_store %u, %z : !tile, !buffer
        %next = arith.xori %parity, %c1 : i32
        scf.yield %next : i32
      }
    }
    partition "sender" warps 4 registers 24 {
      attn.elect {
        %end = scf.for %i = %c0 to %c5 step %c1 iter_args(%parity = %c1) -> (i32) : i32 {
          attn.mbarrier.wait %empty[%c0] parity %parity : !attn.mbarriers<1>
          attn.mbarrier.expect_tx %full[%c0] {bytes = 4} : !attn.mbarriers<1>
          attn.scalar_send %i, %word[%c0] barrier %full[%c0] : !attn.mbarriers<1> : !attn.buffer<64xi32, #attn.rows, shared>
          %next = arith.xori %parity, %c1 : i32
          scf.yield %next : i32
        }
      }
    }
    gpu.return
  }
}
