// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-insert-fences))' | FileCheck %s
// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-insert-fences))' --remarks-filter='attn.*' -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

#regs = #attn.tmem_regs<shape_32x32b, warps = [4, 1]>
!s = !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
!p = !attn.buffer<128x64xf16, #attn.tmem<m = 128>, tmem>
!q = !attn.buffer<128x64xf16, #attn.swizzled<span = 128>, shared>
!k = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!f = !attn.inflight<128x64xf32, #regs>
!st = tensor<128x64xf32, #regs>
!pt = tensor<128x64xf16, #regs>
!bar = !attn.mbarriers<1>

gpu.module @kernels {
  // S is loaded behind a wait, P is stored before an arrival. Between the load's
  // wait and the store nothing is needed, and one fence is enough behind two
  // waits. The product waits too; its commit needs nothing.
  // REMARK: Function=softmax {{.*}}accesses to tensor memory are ordered with signals", fences-after=2, fences-before=1, store-waits=2
  // CHECK-LABEL: gpu.func @softmax
  // CHECK: partition "softmax"
  // CHECK: scf.for
  // CHECK-NEXT: attn.mbarrier.wait
  // CHECK-NEXT: attn.mbarrier.wait
  // CHECK-NEXT: attn.tcgen05.fence after
  // CHECK-NEXT: attn.tmem.load
  // CHECK-NEXT: attn.tmem.wait
  // CHECK-NEXT: arith.truncf
  // CHECK-NEXT: attn.tmem.field
  // CHECK-NEXT: attn.tmem.store
  // CHECK-NEXT: attn.tmem.store_wait
  // CHECK-NEXT: attn.tcgen05.fence before
  // CHECK-NEXT: attn.mbarrier.arrive
  // CHECK-NEXT: attn.mbarrier.arrive
  // CHECK-NEXT: }
  // CHECK: partition "mma"
  // CHECK: attn.mbarrier.wait
  // CHECK-NEXT: attn.tcgen05.fence after
  // CHECK-NEXT: attn.tcgen05.mma
  // CHECK-NEXT: attn.tcgen05.mma
  // CHECK-NEXT: attn.tcgen05.commit
  // CHECK-NEXT: }
  // The columns are given back behind the stores, on all paths.
  // CHECK: attn.tmem.store_wait
  // CHECK-NEXT: attn.tmem.dealloc
  gpu.func @softmax(%n: i32, %yes: i1) kernel attributes {attn.shared_bytes = 32768 : i64, known_block_size = array<i32: 256, 1, 1>} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %slot = attn.alloc {offset = 30000 : i64} : !attn.buffer<1xi32, #attn.rows, shared>
    %q = attn.alloc {offset = 0 : i64} : !q
    %k = attn.alloc {offset = 16384 : i64} : !k
    %full = attn.mbarrier.alloc {offset = 31000 : i64} : !bar
    %base = attn.tmem.reserve %slot {columns = 64} : !attn.buffer<1xi32, #attn.rows, shared>
    %s = attn.tmem_alloc {column = 0 : i64, fields = [#attn.field<"s", 0, 64>, #attn.field<"p", 32, 32>]} : !s
    attn.warp_specialize
    partition "softmax" warps 4 tiles [4, 1] registers 128 {
      scf.for %i = %zero to %n step %one : i32 {
        attn.mbarrier.wait %full[%zero] parity %zero : !bar
        attn.mbarrier.wait %full[%zero] parity %one : !bar
        %f = attn.tmem.load %s : !s -> !f
        %t = attn.tmem.wait %f : !f -> !st
        %r = arith.truncf %t : !st to !pt
        %p = attn.tmem.field %s "p" : !s -> !p
        attn.tmem.store %r, %p : !pt, !p
        attn.mbarrier.arrive %full[%zero] : !bar
        attn.mbarrier.arrive %full[%zero] : !bar
      }
      %z = arith.constant dense<0.0> : !st
      attn.tmem.store %z, %s : !st, !s
    }
    partition "mma" warps 1 registers 128 {
      attn.elect {
        attn.mbarrier.wait %full[%zero] parity %zero : !bar
        attn.tcgen05.mma %q, %k, %s accumulate %yes : !q, !k, !s
        attn.tcgen05.mma %q, %k, %s accumulate %yes : !q, !k, !s
        attn.tcgen05.commit %full[%zero] : !bar
      }
    }
    partition "rest" warps 3 registers 128 {
    }
    attn.tmem.dealloc %base {columns = 64}
    gpu.return
  }

  // What is there already is not made twice. A rare path's store is awaited where
  // all come to; the arrival of one thread is fenced for all lanes.
  // CHECK-LABEL: gpu.func @there
  // CHECK: attn.mbarrier.wait
  // CHECK-NEXT: attn.tcgen05.fence after
  // CHECK-NEXT: scf.if
  // CHECK-NEXT: attn.tmem.store
  // CHECK-NEXT: }
  // CHECK-NEXT: attn.tmem.store_wait
  // CHECK-NEXT: attn.tcgen05.fence before
  // CHECK-NEXT: attn.elect {
  // CHECK-NEXT: attn.mbarrier.arrive
  // CHECK-NEXT: }
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: attn.tcgen05.fence after
  // CHECK-NEXT: attn.tmem.store
  // CHECK-NEXT: attn.tmem.store_wait
  // CHECK-NEXT: attn.tcgen05.fence before
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: gpu.return
  gpu.func @there(%c: i1) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant 0 : i32
    %full = attn.mbarrier.alloc : !bar
    %s = attn.tmem_alloc : !s
    %z = arith.constant dense<0.0> : !st
    attn.mbarrier.wait %full[%zero] parity %zero : !bar
    attn.tcgen05.fence after
    scf.if %c {
      attn.tmem.store %z, %s : !st, !s
    }
    attn.elect {
      attn.mbarrier.arrive %full[%zero] : !bar
    }
    gpu.barrier
    attn.tmem.store %z, %s : !st, !s
    attn.tmem.store_wait
    attn.tcgen05.fence before
    gpu.barrier
    gpu.return
  }

  // A barrier of the warp lets the lane behind it start products of what all
  // lanes have stored: their fence stands in front of it.
  // CHECK-LABEL: gpu.func @ones
  // CHECK: attn.local_store
  // CHECK-NEXT: attn.fence.proxy_async
  // CHECK-NEXT: nvvm.bar.warp.sync
  // CHECK-NEXT: attn.elect
  // CHECK-NEXT: attn.tcgen05.mma
  gpu.func @ones() kernel attributes {attn.shared_bytes = 32768 : i64, known_block_size = array<i32: 128, 1, 1>} {
    %zero = arith.constant 0 : i32
    %lanes = arith.constant -1 : i32
    %yes = arith.constant true
    %slot = attn.alloc {offset = 30000 : i64} : !attn.buffer<1xi32, #attn.rows, shared>
    %q = attn.alloc {offset = 0 : i64} : !q
    %k = attn.alloc {offset = 16384 : i64} : !k
    %full = attn.mbarrier.alloc {offset = 31000 : i64} : !bar
    %base = attn.tmem.reserve %slot {columns = 64} : !attn.buffer<1xi32, #attn.rows, shared>
    %s = attn.tmem_alloc {column = 0 : i64} : !s
    attn.warp_specialize
    partition "mma" warps 1 tiles [1, 1] registers 128 {
      %tile = arith.constant dense<1.0> : tensor<64x64xf16, #attn.blocked<per_thread = [1, 8], warps = 1, order = [1, 0]>>
      attn.local_store %tile, %k : tensor<64x64xf16, #attn.blocked<per_thread = [1, 8], warps = 1, order = [1, 0]>>, !k
      nvvm.bar.warp.sync %lanes : i32
      attn.elect {
        attn.tcgen05.mma %q, %k, %s accumulate %yes : !q, !k, !s
        attn.tcgen05.commit %full[%zero] : !bar
      }
    }
    partition "none" warps 3 registers 128 {
    }
    attn.tmem.dealloc %base {columns = 64}
    gpu.return
  }
}
