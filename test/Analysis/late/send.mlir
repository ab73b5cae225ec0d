// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s
// RUN: sed 's,// USE ,,' %s > %t.mlir
// RUN: attn-opt %t.mlir --pass-pipeline='builtin.module(gpu.module(attn-check-barriers{require-proof}))' --remarks-filter='attn.check.*' -o /dev/null 2>&1 | FileCheck %s --check-prefix=PROVED

// Within a CTA st.async may overtake a load that a signal has followed. A store
// of what was loaded uses it.

// CHECK: error: race: write by warp 4 of 'x' is not ordered after read by warp {{[0-3]}}: st.async may overtake the read, of which nothing has used what was read by then
// CHECK: note: the read
// PROVED: proved{{.*}}assumptions=none,

gpu.module @kernels {
  gpu.func @send() kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c5 = arith.constant 5 : i32
    %x = attn.alloc {name = "x", offset = 0} : !attn.buffer<64xi32, #attn.rows, shared>
    %y = attn.alloc {name = "y", offset = 256} : !attn.buffer<64xi32, #attn.rows, shared>
    %full = attn.mbarrier.alloc {name = "full", offset = 512} : !attn.mbarriers<1>
    %empty = attn.mbarrier.alloc {name = "empty", offset = 520} : !attn.mbarriers<1>
    attn.elect {
      attn.mbarrier.init %full {count = 1} : !attn.mbarriers<1>
      attn.mbarrier.init %empty {count = 4} : !attn.mbarriers<1>
      attn.mbarrier.fence_init
    }
    gpu.barrier
    attn.warp_specialize
    partition "reader" warps 4 tiles [4, 1] registers 240 {
      %end = scf.for %i = %c0 to %c5 step %c1 iter_args(%parity = %c0) -> (i32) : i32 {
        attn.mbarrier.wait %full[%c0] parity %parity : !attn.mbarriers<1>
        %t = attn.local_load %x : !attn.buffer<64xi32, #attn.rows, shared> -> tensor<64xi32, #attn.slice<dim = 1, parent = #attn.mma<warps = [4, 1]>>>
        // USE attn.local_store %t, %y : tensor<64xi32, #attn.slice<dim = 1, parent = #attn.mma<warps = [4, 1]>>>, !attn.buffer<64xi32, #attn.rows, shared>
        attn.mbarrier.arrive %empty[%c0] : !attn.mbarriers<1>
        %next = arith.xori %parity, %c1 : i32
        scf.yield %next : i32
      }
    }
    partition "sender" warps 4 registers 24 {
      attn.elect {
        %end = scf.for %i = %c0 to %c5 step %c1 iter_args(%parity = %c1) -> (i32) : i32 {
          attn.mbarrier.wait %empty[%c0] parity %parity : !attn.mbarriers<1>
          attn.mbarrier.expect_tx %full[%c0] {bytes = 4} : !attn.mbarriers<1>
          attn.scalar_send %i, %x[%c0] barrier %full[%c0] : !attn.mbarriers<1> : !attn.buffer<64xi32, #attn.rows, shared>
          %next = arith.xori %parity, %c1 : i32
          scf.yield %next : i32
        }
      }
    }
    gpu.return
  }
}
