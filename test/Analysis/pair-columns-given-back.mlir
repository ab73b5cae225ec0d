// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s
// RUN: sed '/^    scf.if %is /,/^    }/d; s/^    gpu.return/    attn.tcgen05.fence before\n    attn.cluster_barrier\n    attn.tmem.dealloc %base {columns = 64, pair}\n&/' %s | attn-opt --pass-pipeline='builtin.module(gpu.module(attn-check-barriers{require-proof}))' -o /dev/null

// The CTA that comes first gives the columns of both back, and the other one reads its own ones
// behind a barrier of the cluster. Where both give them back behind all that is right.

// CHECK: error: lifetime: warp {{[0-3]}} of CTA 1 touches 'd' after its columns were given back

#regs = #attn.tmem_regs<shape_32x32b, warps = [4, 1]>
gpu.module @kernels {
  gpu.func @pair() kernel attributes {known_block_size = array<i32: 128, 1, 1>, known_cluster_size = array<i32: 2, 1, 1>} {
    %first = arith.constant 0 : index
    %zeros = arith.constant dense<0.0> : tensor<128x64xf32, #regs>
    %d = attn.tmem_alloc {column = 0 : i64, name = "d"} : !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
    %slot = attn.alloc {name = "slot", offset = 0} : !attn.buffer<1xi32, #attn.rows, shared>
    attn.cluster_barrier
    %base = attn.tmem.reserve %slot {columns = 64, pair} : !attn.buffer<1xi32, #attn.rows, shared>
    gpu.barrier
    attn.tmem.store %zeros, %d : tensor<128x64xf32, #regs>, !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
    attn.tmem.store_wait
    attn.tcgen05.fence before
    attn.cluster_barrier
    attn.tcgen05.fence after
    %rank = gpu.cluster_block_id x
    %is = arith.cmpi eq, %rank, %first : index
    scf.if %is {
      attn.tmem.dealloc %base {columns = 64, pair}
    }
    attn.cluster_barrier
    %isnt = arith.cmpi ne, %rank, %first : index
    scf.if %isnt {
      %f = attn.tmem.load %d : !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem> -> !attn.inflight<128x64xf32, #regs>
      %t = attn.tmem.wait %f : !attn.inflight<128x64xf32, #regs> -> tensor<128x64xf32, #regs>
    }
    gpu.return
  }
}
