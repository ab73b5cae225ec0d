// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers{require-proof}))' -o /dev/null --remarks-filter='attn.check.*' 2>&1 | FileCheck %s

// Scores in tensor memory become probabilities in half of their columns. The
// next scores overwrite these while a product still reads them, which the order
// of products alone makes right (A1).

// CHECK: synchronisation is proved for all tiles
// CHECK-SAME: assumptions="A1 A2"

#regs = #attn.tmem_regs<shape_32x32b, warps = [4, 1]>
#kmajor = #attn.swizzled<span = 128>
#tmem = #attn.tmem<m = 128>

gpu.module @kernels {
  gpu.func @tensor() kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c3 = arith.constant 3 : i32
    %q = attn.alloc {name = "q", offset = 0} : !attn.buffer<128x64xf16, #kmajor, shared>
    %k = attn.alloc {name = "k", offset = 16384} : !attn.buffer<64x64xf16, #kmajor, shared>
    %address = attn.alloc {name = "address", offset = 24576} : !attn.buffer<1xi32, #attn.rows, shared>
    %done = attn.mbarrier.alloc {name = "done", offset = 24592} : !attn.mbarriers<1>
    %ready = attn.mbarrier.alloc {name = "ready", offset = 24600} : !attn.mbarriers<1>
    %base = attn.tmem.reserve %address {columns = 128} : !attn.buffer<1xi32, #attn.rows, shared>
    %sp = attn.tmem_alloc {name = "s", column = 0, fields = [#attn.field<"s", 0, 64>, #attn.field<"p", 32, 32>]} : !attn.buffer<128x64xf32, #tmem, tmem>
    %s = attn.tmem.field %sp "s" : !attn.buffer<128x64xf32, #tmem, tmem> -> !attn.buffer<128x64xf32, #tmem, tmem>
    %p = attn.tmem.field %sp "p" : !attn.buffer<128x64xf32, #tmem, tmem> -> !attn.buffer<128x64xf16, #tmem, tmem>
    %o = attn.tmem_alloc {name = "o", column = 64} : !attn.buffer<128x64xf32, #tmem, tmem>
    attn.elect {
      attn.mbarrier.init %done {count = 1} : !attn.mbarriers<1>
      attn.mbarrier.init %ready {count = 4} : !attn.mbarriers<1>
      attn.mbarrier.fence_init
    }
    gpu.barrier
    attn.warp_specialize
    partition "softmax" warps 4 tiles [4, 1] registers 240 {
      scf.for %i = %c0 to %c3 step %c1 : i32 {
        %parity = arith.remui %i, %c2 : i32
        attn.mbarrier.wait %done[%c0] parity %parity : !attn.mbarriers<1>
        attn.tcgen05.fence after
        %f = attn.tmem.load %s : !attn.buffer<128x64xf32, #tmem, tmem> -> !attn.inflight<128x64xf32, #regs>
        %t = attn.tmem.wait %f : !attn.inflight<128x64xf32, #regs> -> tensor<128x64xf32, #regs>
        %h = arith.truncf %t : tensor<128x64xf32, #regs> to tensor<128x64xf16, #regs>
        attn.tmem.store %h, %p : tensor<128x64xf16, #regs>, !attn.buffer<128x64xf16, #tmem, tmem>
        attn.tmem.store_wait
        attn.tcgen05.fence before
        attn.mbarrier.arrive %ready[%c0] : !attn.mbarriers<1>
      }
      attn.mbarrier.wait %done[%c0] parity %c1 : !attn.mbarriers<1>
      attn.tcgen05.fence after
      %f = attn.tmem.load %o : !attn.buffer<128x64xf32, #tmem, tmem> -> !attn.inflight<128x64xf32, #regs>
      %t = attn.tmem.wait %f : !attn.inflight<128x64xf32, #regs> -> tensor<128x64xf32, #regs>
    }
    partition "mma" warps 4 registers 24 {
      attn.elect {
        %no = arith.constant false
        %kt = attn.transpose %k : !attn.buffer<64x64xf16, #kmajor, shared> -> !attn.buffer<64x64xf16, #attn.transposed<#kmajor>, shared>
        scf.for %i = %c0 to %c3 step %c1 : i32 {
          %parity = arith.remui %i, %c2 : i32
          attn.tcgen05.mma %q, %kt, %s accumulate %no : !attn.buffer<128x64xf16, #kmajor, shared>, !attn.buffer<64x64xf16, #attn.transposed<#kmajor>, shared>, !attn.buffer<128x64xf32, #tmem, tmem>
          attn.tcgen05.commit %done[%c0] : !attn.mbarriers<1>
          attn.mbarrier.wait %ready[%c0] parity %parity : !attn.mbarriers<1>
          attn.tcgen05.fence after
          %more = arith.cmpi ne, %i, %c0 : i32
          attn.tcgen05.mma %p, %k, %o accumulate %more : !attn.buffer<128x64xf16, #tmem, tmem>, !attn.buffer<64x64xf16, #kmajor, shared>, !attn.buffer<128x64xf32, #tmem, tmem>
        }
        attn.tcgen05.commit %done[%c0] : !attn.mbarriers<1>
      }
    }
    attn.tmem.dealloc %base {columns = 128}
    gpu.return
  }
}
