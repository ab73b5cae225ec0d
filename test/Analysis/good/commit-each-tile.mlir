// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers{require-proof}))' -o /dev/null --remarks-filter='attn.check.*' 2>&1 | FileCheck %s

// A commit in each tile: that it counts after that of the tile before it rests
// on the order of commits (A2), though no tile has two of them.

// CHECK: synchronisation is proved for all tiles
// CHECK-SAME: assumptions=A2

#regs = #attn.tmem_regs<shape_32x32b, warps = [4, 1]>
#kmajor = #attn.swizzled<span = 128>
#tmem = #attn.tmem<m = 128>

gpu.module @kernels {
  gpu.func @tiles() kernel attributes {known_block_size = array<i32: 256, 1, 1>, attn.launch = #attn.launch<chip = "sm_100a", ptx = 88, grid = ["2", "1", "1"], block = [256, 1, 1], tensors = [], args = []>} {
    %c0 = arith.constant 0 : i32
    %c6 = arith.constant 6 : i32
    %c16 = arith.constant 16 : i32
    %lap = arith.constant 65536 : i32
    %q = attn.alloc {name = "q", offset = 0} : !attn.buffer<128x64xf16, #kmajor, shared>
    %k = attn.alloc {name = "k", offset = 16384} : !attn.buffer<64x64xf16, #kmajor, shared>
    %address = attn.alloc {name = "address", offset = 24576} : !attn.buffer<1xi32, #attn.rows, shared>
    %done = attn.mbarrier.alloc {name = "done", offset = 24592} : !attn.mbarriers<1>
    %free = attn.mbarrier.alloc {name = "free", offset = 24600} : !attn.mbarriers<1>
    %base = attn.tmem.reserve %address {columns = 64} : !attn.buffer<1xi32, #attn.rows, shared>
    %s = attn.tmem_alloc {name = "s", column = 0} : !attn.buffer<128x64xf32, #tmem, tmem>
    attn.elect {
      attn.mbarrier.init %done {count = 1} : !attn.mbarriers<1>
      attn.mbarrier.init %free {count = 4} : !attn.mbarriers<1>
      attn.mbarrier.fence_init
    }
    gpu.barrier
    attn.warp_specialize
    partition "reader" warps 4 tiles [4, 1] registers 240 {
      %x = gpu.block_id x
      %block = arith.index_cast %x : index to i32
      %g = gpu.grid_dim x
      %grid = arith.index_cast %g : index to i32
      %end = scf.for %tile = %block to %c6 step %grid iter_args(%at = %c0) -> (i32) : i32 {
        %parity = arith.shrui %at, %c16 : i32
        attn.mbarrier.wait %done[%c0] parity %parity : !attn.mbarriers<1>
        attn.tcgen05.fence after
        %f = attn.tmem.load %s : !attn.buffer<128x64xf32, #tmem, tmem> -> !attn.inflight<128x64xf32, #regs>
        %t = attn.tmem.wait %f : !attn.inflight<128x64xf32, #regs> -> tensor<128x64xf32, #regs>
        attn.tcgen05.fence before
        attn.mbarrier.arrive %free[%c0] : !attn.mbarriers<1>
        %next = arith.xori %at, %lap : i32
        scf.yield %next : i32
      }
    }
    partition "mma" warps 4 registers 24 {
      attn.elect {
        %x = gpu.block_id x
        %block = arith.index_cast %x : index to i32
        %g = gpu.grid_dim x
        %grid = arith.index_cast %g : index to i32
        %no = arith.constant false
        %kt = attn.transpose %k : !attn.buffer<64x64xf16, #kmajor, shared> -> !attn.buffer<64x64xf16, #attn.transposed<#kmajor>, shared>
        %end = scf.for %tile = %block to %c6 step %grid iter_args(%at = %lap) -> (i32) : i32 {
          %parity = arith.shrui %at, %c16 : i32
          attn.mbarrier.wait %free[%c0] parity %parity : !attn.mbarriers<1>
          attn.tcgen05.fence after
          attn.tcgen05.mma %q, %kt, %s accumulate %no : !attn.buffer<128x64xf16, #kmajor, shared>, !attn.buffer<64x64xf16, #attn.transposed<#kmajor>, shared>, !attn.buffer<128x64xf32, #tmem, tmem>
          attn.tcgen05.commit %done[%c0] : !attn.mbarriers<1>
          %next = arith.xori %at, %lap : i32
          scf.yield %next : i32
        }
      }
    }
    attn.tmem.dealloc %base {columns = 64}
    gpu.return
  }
}
